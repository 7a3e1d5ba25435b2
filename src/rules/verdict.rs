//! What the rules say about one outcome: the only thing that health and proxy learn from a rule.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::vocabulary::{Classification, DispatchCode, HealthAction, Scope};

/// The judgement on one call (DESIGN 4).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    /// How the call counts.
    pub kind: Kind,
    /// The answer or transport fault that a failure or neutral outcome is made of; `None` for a plain success.
    pub finding: Option<Finding>,
}

/// How a judged call counts (DESIGN 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Kind {
    /// Clears.
    Success,
    /// Counts, or may count, against the tool.
    Failure,
    /// Neither trips nor clears; at most a cooldown.
    Neutral,
}

/// What a matching rule found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// The `id` of the rule that matched.
    pub rule: Arc<str>,
    /// Short stable name of this kind of failure, from the rule table only, at most 64 characters.
    pub signature: Arc<str>,
    /// What it says about the tool.
    pub classification: Classification,
    /// How it is named to the caller.
    pub dispatch_code: DispatchCode,
    /// What it does to the status at once.
    pub health_action: HealthAction,
    /// An explicit scope of the rule, which goes before the defaults of DESIGN 5.
    pub scope: Option<Scope>,
    /// The rule's own cooldown; `None` takes the classification's (DESIGN 7).
    pub cooldown: Option<Duration>,
    /// A recovery time that the answer itself states, clamped (DESIGN 6, Hints).
    pub hint: Option<Duration>,
    /// Whether the failure counts towards DOWN, towards DEGRADED only, or towards nothing (DESIGN 7, the judge).
    pub evidence: Evidence,
    /// Which earlier causes this outcome disproves (DESIGN 7).
    pub disproves: Disproves,
    /// Whether the fault may be the caller's credential: 401, 402 and 429 on a call that carried one go to USER.
    pub credential_fault: bool,
    /// Whether a 5xx or 429 of a `tools/call` is to be answered in the result shape (`answer: result`).
    pub answer_as_result: bool,
    /// The rule's note, shown in history.
    pub note: Option<Arc<str>>,
}

/// What a failure counts towards in the evidence judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Evidence {
    /// Nothing: the caller's own fault, or a text that no rule knows.
    Nothing,
    /// DEGRADED at most: throttling.
    Degraded,
    /// DOWN: 5xx, -32603, timeouts, broken and missing answers, TECHNICALLY_BROKEN.
    Down,
    /// The backend as a whole (`*`): refused, DNS, TLS, child exited. Confirmed actively before it counts.
    Transport,
}

/// Which causes of a DOWN an outcome disproves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Disproves {
    /// None: no answer of the backend arrived.
    Nothing,
    /// That the backend is unreachable: an answer of any kind arrived.
    Transport,
    /// That it is unreachable or fails by 5xx: it answered sensibly (4xx).
    TransportAndServerError,
}

impl Verdict {
    /// A plain success.
    pub const SUCCESS: Verdict = Verdict { kind: Kind::Success, finding: None };

    /// A protocol answer that says nothing about the tool.
    pub const NEUTRAL: Verdict = Verdict { kind: Kind::Neutral, finding: None };
}
