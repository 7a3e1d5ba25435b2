//! All known tools as somebody would see them, each with the reason if he would not: what the admin surface shows, and what
//! follows when something gets set up or ceases to be.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::access::{self, Access, Looker};
use super::effects;
use super::facts::setup_step;
use super::listed::Change;
use super::manifest;
use super::shared::{Backend, Shared};
use crate::clock::Wall;
use crate::config::{BackendKind, WhenUnready};
use crate::health::{Caller, StatusReason, Unready, View};
use crate::telemetry::bus::Kind;
use crate::telemetry::events::ToolHidden;

/// Why a tool is not listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Hidden {
    /// A credential is missing.
    CredentialsMissing,
    /// The integration is not set up.
    IntegrationUnconfigured,
    /// An allow or deny list excludes it.
    Disallowed,
    /// The caller lacks a role.
    RoleMissing,
}

impl Hidden {
    /// The name in answers and labels.
    pub const fn as_str(self) -> &'static str {
        match self {
            Hidden::CredentialsMissing => StatusReason::CredentialsMissing.as_str(),
            Hidden::IntegrationUnconfigured => StatusReason::IntegrationUnconfigured.as_str(),
            Hidden::Disallowed => "disallowed",
            Hidden::RoleMissing => "role_missing",
        }
    }
}

/// A tool as a caller would see it.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its backend.
    pub backend: Arc<str>,
    /// Its name.
    pub tool: Arc<str>,
    /// Whether it stands in the caller's list.
    pub listed: bool,
    /// What stands against it; with `manifest.unready: annotate` and in `mode: observe` it may be listed all the same.
    pub reason: Option<Hidden>,
    /// What is added to its description.
    pub annotation: Option<String>,
    /// What backs it.
    pub integration: Option<Arc<str>>,
    /// Places of credentials at which nothing is.
    pub missing: Vec<Arc<str>>,
    /// Credentials that the backend declares and nobody can check here.
    pub unchecked: Vec<Arc<str>>,
    /// What somebody has to do so that it is set up.
    pub setup_step: Option<String>,
    /// When it may be found to be set up.
    pub next_check: Option<Wall>,
    /// Its health for the caller.
    pub health: View,
}

/// The tools as this caller would see them.
pub(super) fn catalogue(
    shared: &Shared,
    tools: Vec<(Arc<str>, String)>,
    caller: &Caller,
    profile: Option<&str>,
) -> Vec<Entry> {
    let now = shared.clock.now();
    let entry = |(name, tool): (Arc<str>, String)| {
        let backend = shared.backends.iter().find(|backend| backend.name == name)?;
        Some(Looker { shared, backend, caller, profile, now }.entry(&tool))
    };
    tools.into_iter().filter_map(entry).collect()
}

/// How many of these tools nobody is shown.
pub(super) fn hidden(shared: &Shared, tools: Vec<(Arc<str>, String)>) -> BTreeMap<(Arc<str>, Hidden), u64> {
    let mut counts = BTreeMap::new();
    for (name, tool) in tools {
        let Some(backend) = shared.backends.iter().find(|backend| backend.name == name) else { continue };
        let looker = nobody(shared, backend);
        let lists = &backend.config.lists;
        let reason = if lists.denies(&tool) || !lists.allows(&tool) {
            Some(Hidden::Disallowed)
        } else {
            looker.unready(&tool).filter(|_| looker.hides_unready(&tool)).map(|unready| unready.reason.into())
        };
        if let Some(reason) = reason {
            *counts.entry((name, reason)).or_default() += 1;
        }
    }
    counts
}

/// Notices which tools stand otherwise than they were shown, and tells operator and clients.
pub(super) fn readiness_changed(shared: &Arc<Shared>) {
    for backend in &shared.backends {
        let looker = nobody(shared, backend);
        let mut tools = shared.shown.tools(&backend.name);
        tools.extend(backend.routes.load().iter().map(|route| route.tool.to_string()));
        let reasons: Vec<_> =
            tools.iter().map(|tool| (tool.as_str(), looker.unready(tool).map(|unready| unready.reason))).collect();
        let changes = shared.shown.changes(&backend.name, reasons.into_iter());
        tell_operator(shared, backend, &changes);
        let differs = |change: &Change| change.was_shown && access::enforces(&looker.settings(&change.tool));
        if backend.config.kind == BackendKind::Mcp && changes.iter().any(differs) {
            effects::list_changed(shared, &backend.name);
        }
    }
}

/// Puts the changes into the log and the stream of events.
pub(super) fn tell_operator(shared: &Shared, backend: &Backend, changes: &[Change]) {
    for change in changes {
        let at = backend.tool(&change.tool);
        let integration = shared.readiness.integration(&at, shared.declared.of(&at).as_deref());
        let (tool, reason) = (&change.tool, change.to.map(StatusReason::as_str));
        let integration = integration.as_deref();
        shared.telemetry.emit(ToolHidden { backend: &backend.name, tool, reason, integration });
        let facts = json!({
            "backend": &*backend.name, "toolName": tool, "statusReason": reason, "integration": integration,
            "change": if reason.is_some() { "not set up" } else { "set up" },
        });
        shared.telemetry.publish(Kind::Readiness, shared.clock.now().wall, facts);
    }
}

/// One who has no name and no roles: readiness is the same for everybody.
fn nobody<'a>(shared: &'a Shared, backend: &'a Backend) -> Looker<'a> {
    Looker { shared, backend, caller: &shared.nobody, profile: None, now: shared.clock.now() }
}

impl Looker<'_> {
    /// What is not set up behind the tool.
    pub(super) fn unready(&self, tool: &str) -> Option<Unready> {
        let at = self.backend.tool(tool);
        self.readiness(&at, self.shared.declared.of(&at).as_deref())
    }

    /// Whether the tool is taken off the list while it is not set up.
    pub(super) fn hides_unready(&self, tool: &str) -> bool {
        self.shared.config.manifest.unready == WhenUnready::Hide && access::enforces(&self.settings(tool))
    }

    fn entry(&self, tool: &str) -> Entry {
        let at = self.backend.tool(tool);
        let declared = self.shared.declared.of(&at);
        let settings = self.settings(tool);
        let access = self.access(&at, &settings);
        let health = self.shared.registry.lookup(self.caller, &at, self.now);
        let (reason, unready) = match access {
            Access::Open => (None, None),
            Access::NoRole => (Some(Hidden::RoleMissing), None),
            Access::Disallowed => (Some(Hidden::Disallowed), None),
            Access::Unready(unready) => (Some(unready.reason.into()), Some(unready)),
        };
        let listed = reason.is_none() || unready.is_some() && !self.hides_unready(tool);
        let words = match &unready {
            Some(unready) => access::enforces(&settings).then(|| manifest::unready_words(unready)),
            None => manifest::words(&health).filter(|_| access::shows(settings.policy.mode, &health)),
        };
        Entry {
            listed,
            reason,
            annotation: words.filter(|_| listed && self.shared.config.manifest.annotate.in_description()),
            integration: self.shared.readiness.integration(&at, declared.as_deref()),
            missing: unready.as_ref().map(|unready| unready.missing.clone()).unwrap_or_default(),
            unchecked: self.shared.readiness.unchecked(&at, declared.as_deref()),
            setup_step: unready.as_ref().map(setup_step),
            next_check: unready.as_ref().map(|unready| unready.next_check),
            backend: at.backend,
            tool: at.tool,
            health,
        }
    }
}

impl From<StatusReason> for Hidden {
    fn from(reason: StatusReason) -> Hidden {
        match reason {
            StatusReason::CredentialsMissing => Hidden::CredentialsMissing,
            StatusReason::IntegrationUnconfigured => Hidden::IntegrationUnconfigured,
        }
    }
}
