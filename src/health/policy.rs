//! What the operator set for one tool, resolved by `config` from globs and defaults; an argument of every decision.

use std::sync::Arc;
use std::time::Duration;

/// Settings of one tool that judge and gate go by.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// Enforce, or only show (DESIGN 7).
    pub mode: Mode,
    /// Matches `session_tools`: faults go to SESSION.
    pub session_tool: bool,
    /// DOWN on the first failure that counts, without the judge's thresholds.
    pub down_on_first_failure: bool,
    /// The tool reaches targets named in its arguments: failures count only if two or more different ones failed.
    pub has_targets: bool,
    /// Slower than this counts as slow, and enough slow calls as DEGRADED; `None` never.
    pub slow_call: Option<Duration>,
    /// How long a trial may hold its permit; at most 30 s.
    pub trial_lease: Duration,
    /// Operator's words that end a short-circuit answer.
    pub advice: Option<Arc<str>>,
}

/// Whether the gate acts on what health says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Short-circuit tools that are DOWN.
    #[default]
    Enforce,
    /// Judge, show and count, but let every call pass.
    Observe,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            mode: Mode::Enforce,
            session_tool: false,
            down_on_first_failure: false,
            has_targets: false,
            slow_call: None,
            trial_lease: Duration::from_secs(30),
            advice: None,
        }
    }
}

/// Numbers of the state machine that the configuration may change; the defaults are DESIGN's.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuning {
    /// Entries kept in a document's history (`history.size`, 20).
    pub history_size: usize,
    /// Longest cooldown (`cooldown.max`, 24 h).
    pub cooldown_max: Duration,
    /// Distinct users with the same signature that widen a USER fault to PROJECT (`widen_after_users`, 3).
    pub widen_after_users: usize,
    /// Documents held in memory; idle ones beyond it live in the store alone (50,000).
    pub documents_max: usize,
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning {
            history_size: 20,
            cooldown_max: Duration::from_secs(24 * 3600),
            widen_after_users: 3,
            documents_max: 50_000,
        }
    }
}
