//! The audit log: who wrote what, what was there before and what is there now; and who was refused.

use axum::http::{Method, StatusCode, Uri};
use serde_json::{Value, json};

use super::Admin;
use super::principal::Principal;
use crate::telemetry::bus::Kind;
use crate::telemetry::events::Audited;

/// What a handler says about its write; an extension of its answer.
#[derive(Clone, Debug, Default)]
pub(super) struct Changed {
    /// What was there before, if anything.
    pub(super) before: Option<Value>,
    /// What is there now, if anything.
    pub(super) after: Option<Value>,
    /// Why.
    pub(super) reason: Option<String>,
    /// It was no write after all, or has been told already.
    pub(super) silent: bool,
}

/// Tells of a write, or of one that was refused.
pub(super) fn tell(
    admin: &Admin,
    who: &Principal,
    (method, uri): (&Method, &Uri),
    status: StatusCode,
    changed: Option<Changed>,
) {
    let what = format!("{method} {uri}");
    let changed = changed.unwrap_or_default();
    record(admin, who, &what, &format!("HTTP {}", status.as_u16()), (status.is_success(), changed));
}

/// The same for whatever came in another way than as a request of its own.
pub(super) fn record(admin: &Admin, who: &Principal, what: &str, outcome: &str, (done, changed): (bool, Changed)) {
    let facts = json!({
        "who": &*who.name, "what": what, "done": done, "outcome": outcome, "reason": changed.reason,
        "before": changed.before, "after": changed.after,
    });
    let brief = |value: &Option<Value>| value.as_ref().map(Value::to_string);
    admin.telemetry.emit(Audited {
        who: &who.name,
        what,
        done,
        outcome,
        reason: changed.reason.as_deref(),
        before: brief(&changed.before).as_deref(),
        after: brief(&changed.after).as_deref(),
    });
    admin.telemetry.publish(Kind::Audit, admin.clock.now().wall, facts);
}
