//! What one answer of a service means, by what the configuration says of statuses, faults and bodies.

use serde_json::Value;

use super::verdict::Finding;
use crate::config::{Condition, Meaning, ProbeFault, Statuses, Wanted};
use crate::telemetry::ProbeResult;

/// How a question ended.
#[derive(Clone, Debug)]
pub(super) enum Reply {
    /// With an answer; the body only where a condition looks into it, and only if it is JSON.
    Answer(u16, Option<Value>),
    /// Without one.
    Fault(ProbeFault),
}

/// Whether some condition looks into the body.
pub(super) fn reads_body(meaning: &Meaning) -> bool {
    classes(meaning)
        .into_iter()
        .any(|(_, conditions)| conditions.iter().any(|condition| matches!(condition, Condition::Body { .. })))
}

/// What the reply means. Conditions on the body go first, whatever class they belong to: they say more.
pub(super) fn judge(meaning: &Meaning, reply: &Reply) -> Finding {
    let detail = match reply {
        Reply::Answer(status, _) => format!("HTTP {status}"),
        Reply::Fault(ProbeFault::Timeout) => "no answer in time".to_owned(),
        Reply::Fault(ProbeFault::Connect) => "no connection, or it broke".to_owned(),
    };
    for on_body in [true, false] {
        for (result, conditions) in classes(meaning) {
            let of_this_kind = |condition: &&Condition| matches!(condition, Condition::Body { .. }) == on_body;
            if conditions.iter().filter(of_this_kind).any(|condition| fits(condition, reply)) {
                return Finding::new(result, detail);
            }
        }
    }
    Finding::new(ProbeResult::Error, detail)
}

fn classes(meaning: &Meaning) -> [(ProbeResult, &[Condition]); 4] {
    [
        (ProbeResult::Unconfigured, &meaning.unconfigured),
        (ProbeResult::AuthFailed, &meaning.auth_failed),
        (ProbeResult::Transient, &meaning.transient),
        (ProbeResult::Ok, &meaning.ok),
    ]
}

fn fits(condition: &Condition, reply: &Reply) -> bool {
    match (condition, reply) {
        (Condition::Fault(wanted), Reply::Fault(fault)) => wanted == fault,
        (Condition::Status(statuses), Reply::Answer(status, _)) => statuses.contains(*status),
        (Condition::Body { status: wanted, json }, Reply::Answer(status, Some(body))) => {
            let within = |statuses: &Statuses| statuses.contains(*status);
            (wanted.is_empty() || wanted.iter().any(within))
                && json.iter().all(|(pointer, wanted)| stands(body.pointer(pointer), wanted))
        }
        _ => false,
    }
}

fn stands(value: Option<&Value>, wanted: &Wanted) -> bool {
    let Wanted::OneOf(globs) = wanted else { return value.is_some_and(|value| !value.is_null()) };
    let text = match value {
        Some(Value::String(text)) => text.clone(),
        Some(value @ (Value::Bool(_) | Value::Number(_))) => value.to_string(),
        _ => return false,
    };
    globs.iter().any(|glob| glob.matches(&text))
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::config::Config;
    use crate::yaml::Source;

    fn meaning(keys: &str) -> Meaning {
        let text = format!(
            "backends: [{{name: a, kind: mcp, url: 'http://h/mcp'}}]\n\
             integrations: {{it: {{probe: {{request: 'GET http://h/', {keys}}}}}}}\n"
        );
        let config = Config::read(&Arc::new(Source::new("t.yaml", text)), Path::new("")).unwrap();
        config.integrations["it"].probe.as_ref().unwrap().meaning.clone()
    }

    #[track_caller]
    fn check(meaning: &Meaning, status: u16, body: Option<Value>, expected: ProbeResult) {
        assert_eq!(judge(meaning, &Reply::Answer(status, body)).result, expected, "{status}");
    }

    #[test]
    fn by_default_2xx_is_ok_401_and_403_are_refused_and_blips_are_blips() {
        let meaning = meaning("");
        for (status, expected) in [
            (200, ProbeResult::Ok),
            (204, ProbeResult::Ok),
            (302, ProbeResult::Error),
            (401, ProbeResult::AuthFailed),
            (403, ProbeResult::AuthFailed),
            (404, ProbeResult::Error),
            (429, ProbeResult::Transient),
            (503, ProbeResult::Transient),
        ] {
            check(&meaning, status, None, expected);
        }
        for fault in [ProbeFault::Timeout, ProbeFault::Connect] {
            assert_eq!(judge(&meaning, &Reply::Fault(fault)).result, ProbeResult::Transient);
        }
        assert!(!reads_body(&meaning));
    }

    #[test]
    fn a_condition_on_the_body_goes_before_the_status() {
        let meaning = meaning(
            "auth_failed: [401, {status: 200, json: {/ok: false, /error: ['*_auth', token_revoked]}}], \
             unconfigured: [{json: {/accounts: '0'}}, 404]",
        );
        assert!(reads_body(&meaning));
        check(&meaning, 200, Some(json!({"ok": true})), ProbeResult::Ok);
        check(&meaning, 200, Some(json!({"ok": false, "error": "invalid_auth"})), ProbeResult::AuthFailed);
        check(&meaning, 200, Some(json!({"ok": false, "error": "fatal_error"})), ProbeResult::Ok);
        check(&meaning, 500, Some(json!({"ok": false, "error": "invalid_auth"})), ProbeResult::Transient);
        check(&meaning, 200, Some(json!({"accounts": 0})), ProbeResult::Unconfigured);
        check(&meaning, 404, None, ProbeResult::Unconfigured);
    }
}
