//! Settings of single tools: patterns in the file, one settled answer for each tool.
//!
//! Every pattern that fits a name applies, in the order of the file, and a later one replaces what an earlier one said,
//! key by key: general patterns go first, exceptions after them.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use moka::sync::Cache;
use serde_json::{Map, Value};

use super::backend::Backend;
use super::credential::{Credential, credential};
use super::integrations::{HINT_MAX, NONE};
use super::openapi::Operation;
use super::route::TOOL_NAME;
use super::sections::HOUR;
use crate::glob::Glob;
use crate::health::{Mode, Policy};
use crate::rules::target::TargetSource;
use crate::yaml::{At, Fields, Place};

/// Settled answers that are kept for each backend; a hostile client can name tools without end.
const KEPT: u64 = 10_000;
/// The longest a trial may hold its permit (DESIGN 8).
const LEASE_MAX: Duration = Duration::from_secs(30);
/// Longest advice, in bytes.
const ADVICE_MAX: usize = 512;

pub(super) const MODES: [(&str, Mode); 2] = [("enforce", Mode::Enforce), ("observe", Mode::Observe)];

/// All that is set for one tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSettings {
    /// What judge and gate go by.
    pub policy: Arc<Policy>,
    /// Where the tool's target stands in its arguments.
    pub target: TargetSource,
    /// For the head of the answer; the backend's unless the tool has its own.
    pub timeout: Duration,
    /// Whether the tool may be called in a probe: the file says so, or its OpenAPI operation is a GET or HEAD.
    pub safe_probe: bool,
    /// What it is called with then.
    pub sample: Option<Arc<Map<String, Value>>>,
    /// What must be there so that the tool can be used.
    pub needs: Needs,
}

/// What the configuration says a tool needs. It goes before what the backend declares; `None` says nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Needs {
    /// The integration that backs it; `Some(None)` says that there is none.
    pub integration: Option<Option<Arc<str>>>,
    /// Credentials besides those of the integration.
    pub credentials: Option<Vec<Credential>>,
    /// What somebody has to do so that they are there.
    pub setup_hint: Option<Arc<str>>,
    /// Roles that a caller must hold, all of them.
    pub roles: Option<Vec<Arc<str>>>,
}

/// The settings of every tool of every backend.
#[derive(Clone)]
pub struct Tools {
    inner: Arc<Inner>,
}

struct Inner {
    mode: Mode,
    overrides: Vec<(Glob, Overrides)>,
    session_tools: Vec<Glob>,
    backends: HashMap<Arc<str>, Settled>,
    changes: AtomicU64,
}

struct Settled {
    timeout: Duration,
    /// Replaced as a whole, so that no answer settled from older facts outlives them.
    kept: ArcSwap<Kept>,
}

struct Kept {
    /// Tools that their OpenAPI document calls safe to call.
    safe: HashSet<Arc<str>>,
    settings: Cache<Arc<str>, Arc<ToolSettings>>,
}

/// What one pattern of the file sets.
#[derive(Clone, Debug, Default)]
pub(super) struct Overrides {
    mode: Option<Mode>,
    down_on_first_failure: Option<bool>,
    target: Option<TargetSource>,
    slow_call: Option<Option<Duration>>,
    advice: Option<Arc<str>>,
    safe_probe: Option<bool>,
    sample: Option<Arc<Map<String, Value>>>,
    timeout: Option<Duration>,
    integration: Option<(Option<Arc<str>>, Place)>,
    credentials: Option<Vec<Credential>>,
    setup_hint: Option<Arc<str>>,
    roles: Option<Vec<Arc<str>>>,
}

impl Tools {
    pub(super) fn new(
        mode: Mode,
        overrides: Vec<(Glob, Overrides)>,
        session_tools: Vec<Glob>,
        backends: &[Arc<Backend>],
    ) -> Tools {
        let settled = |backend: &Arc<Backend>| Settled {
            timeout: backend.timeouts.response,
            kept: ArcSwap::from_pointee(Kept { safe: HashSet::new(), settings: Cache::new(KEPT) }),
        };
        let backends = backends.iter().map(|backend| (backend.name.clone(), settled(backend))).collect();
        Tools { inner: Arc::new(Inner { mode, overrides, session_tools, backends, changes: AtomicU64::new(0) }) }
    }

    /// What holds for a tool. A backend that is not configured has the defaults.
    pub fn settings(&self, backend: &str, tool: &str) -> Arc<ToolSettings> {
        let Some(settled) = self.inner.backends.get(backend) else {
            return Arc::new(self.inner.settle(LEASE_MAX, tool, false));
        };
        let kept = settled.kept.load();
        if tool.len() > TOOL_NAME {
            return Arc::new(self.inner.settle(settled.timeout, tool, false));
        }
        if let Some(known) = kept.settings.get(tool) {
            return known;
        }
        let settings = Arc::new(self.inner.settle(settled.timeout, tool, kept.safe.contains(tool)));
        kept.settings.insert(Arc::from(tool), settings.clone());
        settings
    }

    /// Takes over which tools a backend's OpenAPI document calls safe, in place of what an earlier one did. The configuration
    /// goes before it.
    pub fn declare(&self, backend: &str, operations: &[Operation]) {
        let Some(settled) = self.inner.backends.get(backend) else { return };
        let safe = operations.iter().filter(|operation| operation.safe).map(|operation| operation.route.tool.clone());
        settled.kept.store(Arc::new(Kept { safe: safe.collect(), settings: Cache::new(KEPT) }));
        self.inner.changes.fetch_add(1, Ordering::Release);
    }

    /// How often settings changed: those that were read at another count may be old.
    pub fn changes(&self) -> u64 {
        self.inner.changes.load(Ordering::Acquire)
    }

    /// What judge and gate go by for a tool.
    pub fn policy(&self, backend: &str, tool: &str) -> Arc<Policy> {
        self.settings(backend, tool).policy.clone()
    }

    /// Whether belief acts on some tool at all.
    pub fn enforce_any(&self) -> bool {
        let set = self.inner.overrides.iter().filter_map(|(_, overrides)| overrides.mode);
        std::iter::once(self.inner.mode).chain(set).any(|mode| mode == Mode::Enforce)
    }

    /// Every place that a credential of a tool is looked for.
    pub(super) fn credentials(&self) -> impl Iterator<Item = &Credential> {
        self.inner.overrides.iter().flat_map(|(_, overrides)| overrides.credentials.iter().flatten())
    }

    /// The patterns that name this integration, in the order of the file.
    pub fn patterns_of(&self, integration: &str) -> Vec<String> {
        let names_it = |overrides: &Overrides| overrides.integration().is_some_and(|(id, _)| &**id == integration);
        let patterns = self.inner.overrides.iter().filter(|(_, overrides)| names_it(overrides));
        patterns.map(|(glob, _)| glob.as_str().to_owned()).collect()
    }

    /// Whether some tool is for callers with certain roles only.
    pub fn ask_for_roles(&self) -> bool {
        self.inner
            .overrides
            .iter()
            .any(|(_, overrides)| overrides.roles.as_ref().is_some_and(|roles| !roles.is_empty()))
    }

    /// Whether the tool is provided by the session itself, so that its faults stay there.
    pub fn is_session_tool(&self, tool: &str) -> bool {
        self.inner.session_tools.iter().any(|glob| glob.matches(tool))
    }
}

impl Inner {
    fn settle(&self, timeout: Duration, tool: &str, declared_safe: bool) -> ToolSettings {
        let mut set = Overrides::default();
        for (_, overrides) in self.overrides.iter().filter(|(glob, _)| glob.matches(tool)) {
            set.lay(overrides);
        }
        let timeout = set.timeout.unwrap_or(timeout);
        let target = set.target.unwrap_or_default();
        let policy = Policy {
            mode: set.mode.unwrap_or(self.mode),
            session_tool: self.session_tools.iter().any(|glob| glob.matches(tool)),
            down_on_first_failure: set.down_on_first_failure.unwrap_or(false),
            has_targets: target != TargetSource::Off,
            slow_call: set.slow_call.flatten(),
            trial_lease: timeout.min(LEASE_MAX),
            advice: set.advice,
        };
        let needs = Needs {
            integration: set.integration.map(|(id, _)| id),
            credentials: set.credentials,
            setup_hint: set.setup_hint,
            roles: set.roles,
        };
        ToolSettings {
            policy: Arc::new(policy),
            target,
            timeout,
            sample: set.sample,
            needs,
            safe_probe: set.safe_probe.unwrap_or(declared_safe),
        }
    }
}

impl Overrides {
    /// The integration that a pattern names, and where.
    pub(super) fn integration(&self) -> Option<(&Arc<str>, Place)> {
        self.integration.as_ref().and_then(|(id, place)| id.as_ref().map(|id| (id, *place)))
    }

    fn lay(&mut self, over: &Overrides) {
        fn lay<T: Clone>(mine: &mut Option<T>, over: &Option<T>) {
            if over.is_some() {
                mine.clone_from(over);
            }
        }
        lay(&mut self.mode, &over.mode);
        lay(&mut self.down_on_first_failure, &over.down_on_first_failure);
        lay(&mut self.target, &over.target);
        lay(&mut self.slow_call, &over.slow_call);
        lay(&mut self.advice, &over.advice);
        lay(&mut self.safe_probe, &over.safe_probe);
        lay(&mut self.sample, &over.sample);
        lay(&mut self.timeout, &over.timeout);
        lay(&mut self.integration, &over.integration);
        lay(&mut self.credentials, &over.credentials);
        lay(&mut self.setup_hint, &over.setup_hint);
        lay(&mut self.roles, &over.roles);
    }
}

impl fmt::Debug for Tools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let patterns: Vec<&str> = self.inner.overrides.iter().map(|(glob, _)| glob.as_str()).collect();
        f.debug_struct("Tools").field("patterns", &patterns).finish_non_exhaustive()
    }
}

pub(super) fn overrides(at: At<'_>, directory: &Path) -> Option<Vec<(Glob, Overrides)>> {
    let read = at.entries(|pattern, at| {
        let glob = Glob::new(pattern).ok().or_else(|| {
            at.fail_key("this is no name pattern: 1 to 256 bytes without control characters", |problem| problem)
        });
        let overrides = at.map(|f| tool(f, directory));
        Some((glob?, overrides?))
    })?;
    Some(read.into_iter().map(|(_, pair)| pair).collect())
}

const MODE: &str = "`observe` lets every call pass and leaves it in lists as it is, whatever health says.";
const FIRST: &str = "DOWN on the first failure that counts.";
const TARGET: &str = "Where the target of a call stands in its arguments, whose failure is not the tool's: \
    `auto` is any URL or host, `/pointer` a JSON pointer, `off` none.";
const SLOW: &str = "A call that takes longer is slow; enough slow ones make DEGRADED. Default `off`.";
const ADVICE: &str = "Words that end the answer to a call that was not made.";
const SAFETY: &str = "`SAFE_PROBE`: may be called in a probe, since calling it changes nothing.";
const SAMPLE: &str =
    "The arguments that the tool is called with in a probe; by default the examples of its own `inputSchema`.";
const TIMEOUT: &str = "For the head of the answer; default: the backend's `timeouts.response`.";

const INTEGRATION: &str = "What backs the tool: a name of `integrations`, or `none`, over what the backend declares.";
const CREDENTIALS: &str =
    "What must be there besides the integration's own; if one is missing, the tool is not set up.";
const HINT: &str = "What somebody has to do so that the credentials are there.";
const ROLES: &str =
    "The tool does not exist for callers without all of these roles; `[]` over what the backend declares.";

fn tool(f: &Fields<'_>, directory: &Path) -> Overrides {
    let shortest = Duration::from_millis(10);
    Overrides {
        mode: f.opt("mode", MODE, |at| at.word(&MODES)),
        down_on_first_failure: f.opt("down_on_first_failure", FIRST, |at| at.bool()),
        target: f.opt("target", TARGET, target),
        slow_call: f.opt("slow_call", SLOW, |at| at.duration_or_off(shortest..=HOUR)),
        advice: f.opt("advice", ADVICE, |at| at.line(ADVICE_MAX)),
        safe_probe: f.opt("safety", SAFETY, |at| at.word(&[("SAFE_PROBE", true)])),
        sample: f.opt("sample", SAMPLE, super::diagnosis::sample),
        timeout: f.opt("timeout", TIMEOUT, |at| at.duration(shortest..=HOUR)),
        integration: f.opt("integration", INTEGRATION, |at| {
            at.line(64).map(|id| (Some(id).filter(|id| &**id != NONE), at.place()))
        }),
        credentials: f.opt("credentials_required", CREDENTIALS, |at| at.list(|at| credential(at, directory))),
        setup_hint: f.opt("setup_hint", HINT, |at| at.line(HINT_MAX)),
        roles: f.opt("requiresEngineRoles", ROLES, |at| at.list(|at| at.line(128))),
    }
}

fn target(at: At<'_>) -> Option<TargetSource> {
    at.parse("`auto`, `off` or a JSON pointer such as `/url`", "^(auto|off|/.*)$", |text| match text {
        "auto" => Ok(TargetSource::Auto),
        "off" => Ok(TargetSource::Off),
        pointer if pointer.starts_with('/') && pointer.len() <= 256 => Ok(TargetSource::Pointer(pointer.to_owned())),
        _ => Err(String::new()),
    })
}
