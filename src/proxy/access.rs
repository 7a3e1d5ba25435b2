//! Whether a tool exists for a caller, may be used by him, and is set up (DESIGN 10 to 12). The first two are the operator's
//! will and hold for every call; the third is what we believe, and yields to `mode: observe`.

use std::sync::Arc;

use http::HeaderMap;

use super::gate::Wanted;
use super::shared::{Backend, Shared};
use crate::clock::Now;
use crate::config::ToolSettings;
use crate::health::{Caller, Declared, Force, Mode, ToolRef, Unready, View};
use crate::telemetry::events::IdentityHeaderDropped;

/// How a tool stands to a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Nothing stands against it.
    Open,
    /// The caller lacks a role: for him there is no such tool.
    NoRole,
    /// An allow or deny list excludes it.
    Disallowed,
    /// What backs it is not set up.
    Unready(Unready),
}

/// A caller who looks at the tools of a backend.
#[derive(Clone, Copy, Debug)]
pub(super) struct Looker<'a> {
    pub(super) shared: &'a Shared,
    pub(super) backend: &'a Backend,
    pub(super) caller: &'a Caller,
    pub(super) profile: Option<&'a str>,
    pub(super) now: Now,
}

impl Looker<'_> {
    /// What the configuration says of a tool.
    pub(super) fn settings(&self, tool: &str) -> Arc<ToolSettings> {
        self.shared.config.tools.settings(&self.backend.name, tool)
    }

    /// How the tool stands to this caller. Asks nobody.
    pub(super) fn access(&self, at: &ToolRef, settings: &ToolSettings) -> Access {
        let declared = self.shared.declared.of(at);
        match self.policy(&at.tool, settings, declared.as_deref()) {
            Access::Open => self.readiness(at, declared.as_deref()).map_or(Access::Open, Access::Unready),
            closed => closed,
        }
    }

    /// How a tool of which all else is known stands to this caller.
    pub(super) fn access_to(&self, wanted: &Wanted) -> Access {
        if wanted.is_open { Access::Open } else { self.access(&wanted.at, &wanted.settings) }
    }

    /// Whether the tool stands open to every caller, as long as nothing is configured or declared otherwise.
    pub(super) fn is_open_to_all(&self, at: &ToolRef, settings: &ToolSettings) -> bool {
        let declared = self.shared.declared.of(at);
        let roles = settings.needs.roles.as_ref().or(declared.as_ref().map(|declared| &declared.roles));
        let restricted = roles.is_some_and(|roles| !roles.is_empty())
            || !self.backend.config.lists.is_empty()
            || self.shared.config.access.depends_on_the_caller();
        !restricted && !self.shared.readiness.is_backed(at, declared.as_deref())
    }

    /// The same as far as the operator's will goes: for calls that no belief may stop.
    pub(super) fn policy_on(&self, at: &ToolRef, settings: &ToolSettings) -> Access {
        self.policy(&at.tool, settings, self.shared.declared.of(at).as_deref())
    }

    fn policy(&self, tool: &str, settings: &ToolSettings, declared: Option<&Declared>) -> Access {
        let wanted = settings.needs.roles.as_ref().or(declared.map(|declared| &declared.roles));
        let lacks = |role: &Arc<str>| !self.caller.roles.contains(role);
        if wanted.is_some_and(|wanted| wanted.iter().any(lacks)) {
            return Access::NoRole;
        }
        let lists = &self.backend.config.lists;
        let permitted = lists.allows(tool)
            && !lists.denies(tool)
            && self.shared.config.access.permits(tool, self.profile, &self.caller.roles);
        if permitted { Access::Open } else { Access::Disallowed }
    }

    /// What is not set up behind the tool, whoever calls.
    pub(super) fn readiness(&self, at: &ToolRef, declared: Option<&Declared>) -> Option<Unready> {
        self.shared.readiness.unready(at, declared, self.now)
    }

    /// Whether callers can see different lists by the operator's will.
    pub(super) fn depends_on_the_caller(&self) -> bool {
        self.shared.config.access.depends_on_the_caller() || self.backend.asks_for_roles()
    }
}

/// Whether belief may act on a tool with these settings.
pub(super) fn enforces(settings: &ToolSettings) -> bool {
    settings.policy.mode == Mode::Enforce
}

/// Whether callers see in lists what is believed of a tool. An operator's decision goes before the mode.
pub(super) fn shows(mode: Mode, view: &View) -> bool {
    match view.forced.as_ref().map(|forced| forced.decision.force) {
        Some(Force::Ok | Force::Down) => true,
        Some(Force::Observe) => false,
        None => mode == Mode::Enforce,
    }
}

/// The profile that a request names. From whoever is not trusted the header is neither believed nor passed on.
pub(super) fn profile(shared: &Shared, headers: &mut HeaderMap, trusted: bool) -> Option<Arc<str>> {
    let name = shared.config.access.profile_header.as_ref()?;
    if !trusted {
        if headers.remove(name).is_some() {
            shared.telemetry.emit(IdentityHeaderDropped { header: name.as_str() });
        }
        return None;
    }
    headers.get(name)?.to_str().ok().map(str::trim).filter(|profile| !profile.is_empty()).map(Arc::from)
}
