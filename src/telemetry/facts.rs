//! What happened to our belief about tools, as facts for those who follow.

use serde_json::{Map, Value, json};

use super::bus::Kind;
use crate::health::{Effect, Key};

/// The kind and the facts of an effect; `None` for what nobody outside needs to know.
pub(super) fn of_effect(effect: &Effect) -> Option<(Kind, Map<String, Value>)> {
    let (kind, key, facts) = match effect {
        Effect::Transition(change) => (
            Kind::Transition,
            &change.key,
            json!({
                "from": change.from, "to": change.to, "classification": change.classification,
                "signature": change.signature, "origin": change.origin, "by": change.by, "note": change.note,
                "expectedRecoveryAt": change.expected_recovery_at, "lastedMs": change.lasted_ms,
                "userActionHint": change.user_action_hint,
            }),
        ),
        Effect::TrialFailed { key, level, next_trial_at } => {
            (Kind::Trial, key, json!({"result": "failed", "level": level, "nextTrialAt": next_trial_at}))
        }
        Effect::CooldownSet { key, signature, user, classification, until, level } => (
            Kind::Cooldown,
            key,
            json!({
                "change": "set", "signature": signature, "userId": user, "classification": classification,
                "nextSpawnAllowedAt": until, "level": level,
            }),
        ),
        Effect::Cleared { key, cooldowns } => {
            (Kind::Cooldown, key, json!({"change": "cleared", "cooldowns": cooldowns}))
        }
        Effect::Claimed(claim) => (
            Kind::Diagnosis,
            &claim.key,
            json!({"change": "claimed", "signature": claim.signature, "userId": claim.user}),
        ),
        Effect::DiagnosisThrottled { key } => (Kind::Diagnosis, key, json!({"change": "throttled"})),
        Effect::Widened { key, signature, users } => {
            (Kind::Transition, key, json!({"change": "widened", "signature": signature, "users": users}))
        }
        Effect::Overridden { key, decision } => (Kind::Override, key, json!({"change": "set", "override": decision})),
        Effect::OverrideEnded { key, decision } => {
            (Kind::Override, key, json!({"change": "ended", "override": decision}))
        }
        Effect::Deleted { key, status } => (Kind::Deleted, key, json!({"status": status})),
        Effect::ConfirmBackend { .. } | Effect::Evicted { .. } => return None,
    };
    let Value::Object(mut facts) = facts else { return None };
    facts.extend(of_key(key));
    Some((kind, facts))
}

fn of_key(key: &Key) -> Map<String, Value> {
    match serde_json::to_value(key) {
        Ok(Value::Object(members)) => members,
        _ => Map::new(),
    }
}
