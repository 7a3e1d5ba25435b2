//! Settings of single tools: patterns in the file, one settled answer for each tool.
//!
//! Every pattern that fits a name applies, in the order of the file, and a later one replaces what an earlier one said,
//! key by key: general patterns go first, exceptions after them.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use moka::sync::Cache;
use serde_json::{Map, Value};

use super::backend::Backend;
use super::route::TOOL_NAME;
use super::sections::HOUR;
use crate::glob::Glob;
use crate::health::{Mode, Policy};
use crate::rules::target::TargetSource;
use crate::yaml::{At, Fields};

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
    /// Whether the tool may be called in a probe.
    pub safe_probe: bool,
    /// What it is called with then.
    pub sample: Option<Arc<Map<String, Value>>>,
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
}

struct Settled {
    timeout: Duration,
    kept: Cache<Arc<str>, Arc<ToolSettings>>,
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
}

impl Tools {
    pub(super) fn new(
        mode: Mode,
        overrides: Vec<(Glob, Overrides)>,
        session_tools: Vec<Glob>,
        backends: &[Arc<Backend>],
    ) -> Tools {
        let settled = |backend: &Arc<Backend>| Settled { timeout: backend.timeouts.response, kept: Cache::new(KEPT) };
        let backends = backends.iter().map(|backend| (backend.name.clone(), settled(backend))).collect();
        Tools { inner: Arc::new(Inner { mode, overrides, session_tools, backends }) }
    }

    /// What holds for a tool. A backend that is not configured has the defaults.
    pub fn settings(&self, backend: &str, tool: &str) -> Arc<ToolSettings> {
        match self.inner.backends.get(backend) {
            Some(settled) if tool.len() <= TOOL_NAME => match settled.kept.get(tool) {
                Some(known) => known,
                None => {
                    let settings = Arc::new(self.inner.settle(settled.timeout, tool));
                    settled.kept.insert(Arc::from(tool), settings.clone());
                    settings
                }
            },
            Some(settled) => Arc::new(self.inner.settle(settled.timeout, tool)),
            None => Arc::new(self.inner.settle(LEASE_MAX, tool)),
        }
    }

    /// What judge and gate go by for a tool.
    pub fn policy(&self, backend: &str, tool: &str) -> Arc<Policy> {
        self.settings(backend, tool).policy.clone()
    }

    /// Whether the tool is provided by the session itself, so that its faults stay there.
    pub fn is_session_tool(&self, tool: &str) -> bool {
        self.inner.session_tools.iter().any(|glob| glob.matches(tool))
    }
}

impl Inner {
    fn settle(&self, timeout: Duration, tool: &str) -> ToolSettings {
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
        let safe_probe = set.safe_probe.unwrap_or(false);
        ToolSettings { policy: Arc::new(policy), target, timeout, safe_probe, sample: set.sample }
    }
}

impl Overrides {
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
    }
}

impl fmt::Debug for Tools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let patterns: Vec<&str> = self.inner.overrides.iter().map(|(glob, _)| glob.as_str()).collect();
        f.debug_struct("Tools").field("patterns", &patterns).finish_non_exhaustive()
    }
}

pub(super) fn overrides(at: At<'_>) -> Option<Vec<(Glob, Overrides)>> {
    let read = at.entries(|pattern, at| {
        let glob = Glob::new(pattern).ok().or_else(|| {
            at.fail_key("this is no name pattern: 1 to 256 bytes without control characters", |problem| problem)
        });
        let overrides = at.map(tool);
        Some((glob?, overrides?))
    })?;
    Some(read.into_iter().map(|(_, pair)| pair).collect())
}

const MODE: &str = "`observe` lets every call pass, whatever health says.";
const FIRST: &str = "DOWN on the first failure that counts.";
const TARGET: &str = "Where the target of a call stands in its arguments, whose failure is not the tool's: \
    `auto` is any URL or host, `/pointer` a JSON pointer, `off` none.";
const SLOW: &str = "A call that takes longer is slow; enough slow ones make DEGRADED. Default `off`.";
const ADVICE: &str = "Words that end the answer to a call that was not made.";
const SAFETY: &str = "`SAFE_PROBE`: may be called in a probe, since calling it changes nothing.";
const SAMPLE: &str = "The arguments that the tool is called with in a probe.";
const TIMEOUT: &str = "For the head of the answer; default: the backend's `timeouts.response`.";

fn tool(f: &Fields<'_>) -> Overrides {
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
