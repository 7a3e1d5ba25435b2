//! What follows from a rule and the exchange that it matched: code, evidence, what is disproved, and the scope to write to
//! (DESIGN 4, 5 and 7; STATE 4.3). No text is looked at here.

use super::exchange::{Answer, BackendKind, Exchange};
use super::rule::{Cooldown, Then};
use super::verdict::{Disproves, Evidence, Finding, Kind};
use super::vocabulary::{Classification, DispatchCode, Scope, TransportFault};

/// The code of JSON-RPC internal errors, which count as a 5xx does.
const INTERNAL_ERROR: i64 = -32603;

/// How an outcome of this class counts.
pub(crate) fn kind(then: &Then) -> Kind {
    match then.classification {
        Classification::Working => Kind::Success,
        _ if then.neutral => Kind::Neutral,
        Classification::UserPermission | Classification::UserInput => Kind::Neutral,
        Classification::TechnicallyBroken
        | Classification::UserSpecificTechnical
        | Classification::Intermittent
        | Classification::Unclear => Kind::Failure,
    }
}

/// The code of a failure whose rule states none.
pub(crate) fn dispatch_code(exchange: &Exchange) -> DispatchCode {
    let edge = matches!(exchange.status, Some(502..=504)) && exchange.answer == Answer::None;
    let own_503 = exchange.status == Some(503) && exchange.kind == BackendKind::Http && exchange.json.is_some();
    // What came, but is no valid answer, was sent by something that is there.
    let unreachable = exchange.fault.as_ref().is_some_and(|fault| fault.kind != TransportFault::Protocol);
    if unreachable || (edge && !own_503) { DispatchCode::BackendUnreachable } else { DispatchCode::BackendFailed }
}

/// What the outcome counts towards in the evidence judge (DESIGN 7).
pub(crate) fn evidence(then: &Then, exchange: &Exchange) -> Evidence {
    use Classification as C;
    if then.neutral
        || matches!(then.classification, C::UserPermission | C::UserInput | C::Working | C::UserSpecificTechnical)
    {
        return Evidence::Nothing;
    }
    if let Some(fault) = &exchange.fault {
        use TransportFault as F;
        return match fault.kind {
            F::ConnectRefused | F::Dns | F::Tls | F::ChildExited => Evidence::Transport,
            F::Reset | F::Timeout | F::BodyTruncated | F::StreamEnded | F::Protocol => Evidence::Down,
        };
    }
    match then.classification {
        C::Intermittent if is_throttling(then, exchange) => Evidence::Degraded,
        C::Unclear if !is_server_error(exchange) => Evidence::Nothing,
        _ => Evidence::Down,
    }
}

/// Which earlier causes the outcome disproves. A gateway's 502, 503 or 504 disproves nothing.
pub(crate) fn disproves(then: &Then, exchange: &Exchange) -> Disproves {
    use Classification as C;
    if then.classification == C::Working {
        return Disproves::TransportAndServerError;
    }
    let answered =
        exchange.fault.as_ref().is_none_or(|f| f.kind == TransportFault::Protocol && exchange.status.is_some());
    if !answered || dispatch_code(exchange) == DispatchCode::BackendUnreachable {
        return Disproves::Nothing;
    }
    let broken = matches!(then.classification, C::TechnicallyBroken | C::Intermittent);
    if broken || (is_server_error(exchange) && !is_callers(then)) {
        Disproves::Transport
    } else {
        Disproves::TransportAndServerError
    }
}

/// Whether the fault is that of the credential which the call carried (DESIGN 5).
pub(crate) fn credential_fault(then: &Then, exchange: &Exchange) -> bool {
    exchange.credentialed && (matches!(exchange.status, Some(401 | 402 | 429)) || is_throttling(then, exchange))
}

/// Where a finding is written when nothing else is known (DESIGN 5): an explicit scope of the rule, the session of a
/// session tool, the user of a USER_* fault or of a credential's fault, else the project. Widening, anonymous callers and
/// missing sessions are the matter of health.
pub fn default_scope(finding: &Finding, session_tool: bool) -> Scope {
    use Classification as C;
    if let Some(scope) = finding.scope {
        return scope;
    }
    let users = matches!(finding.classification, C::UserSpecificTechnical | C::UserPermission | C::UserInput);
    if session_tool {
        Scope::Session
    } else if users || finding.credential_fault {
        Scope::User
    } else {
        Scope::Project
    }
}

/// 429, or an answer whose rule takes the answer's own hint for INTERMITTENT: throttling, in whatever dress.
fn is_throttling(then: &Then, exchange: &Exchange) -> bool {
    then.classification == Classification::Intermittent
        && (exchange.status == Some(429) || then.cooldown == Cooldown::Hint)
        && !matches!(exchange.status, Some(500 | 502 | 504))
}

fn is_server_error(exchange: &Exchange) -> bool {
    exchange.status.is_some_and(|status| status >= 500) || exchange.rpc_code() == Some(INTERNAL_ERROR)
}

fn is_callers(then: &Then) -> bool {
    use Classification as C;
    matches!(then.classification, C::UserPermission | C::UserInput | C::UserSpecificTechnical)
}
