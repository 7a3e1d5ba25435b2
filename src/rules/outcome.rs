//! An exchange written down as it was judged, redacted and bounded, so that it can be judged again (`toolvane replay`).

use std::collections::BTreeMap;
use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::exchange::{Answer, BackendKind, Exchange, Fault, JSON_BOUND};
use super::redact::{redact_value, redacted};
use super::secrets::is_secret_name;
use super::text::bounded;
use super::vocabulary::TransportFault;
use crate::clock::Now;

/// How much of a text is written, in bytes, head and tail.
const TEXT_BOUND: usize = 16 * 1024;
/// The longest value of a header field that is written, in bytes, and how many fields are.
const VALUE_BOUND: usize = 256;
const HEADERS_MAX: usize = 64;
/// What stands in place of a secret.
const MASK: &str = "***";

/// What was judged. Arguments of the call are not part of it, only the hosts that they name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Outcome {
    backend: Arc<str>,
    tool: Arc<str>,
    kind: BackendKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<RecordedFault>,
    #[serde(skip_serializing_if = "is_false")]
    cancelled: bool,
    status: Option<u16>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    headers: BTreeMap<String, Vec<String>>,
    answer: RecordedAnswer,
    #[serde(skip_serializing_if = "String::is_empty")]
    text: String,
    /// The text is a body in JSON.
    #[serde(skip_serializing_if = "is_false")]
    is_json: bool,
    #[serde(skip_serializing_if = "is_false")]
    disguised: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    log: String,
    #[serde(skip_serializing_if = "is_false")]
    credentialed: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    targets: Vec<String>,
    backend_host: Option<Arc<str>>,
    #[serde(skip_serializing_if = "is_false")]
    listed: bool,
    #[serde(skip_serializing_if = "is_false")]
    session_tool: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RecordedFault {
    kind: TransportFault,
    #[serde(default)]
    detail: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
enum RecordedAnswer {
    #[default]
    None,
    #[serde(rename_all = "camelCase")]
    Result {
        is_error: bool,
        #[serde(default)]
        result_type: Option<String>,
        #[serde(default)]
        task_started: bool,
        #[serde(default)]
        structured: Option<Value>,
    },
    Error {
        code: i64,
        #[serde(default)]
        message: String,
        #[serde(default)]
        data: Option<Value>,
    },
}

impl From<&Exchange> for Outcome {
    /// Masks secrets and cuts what is long.
    fn from(exchange: &Exchange) -> Outcome {
        Outcome {
            backend: Arc::clone(&exchange.backend),
            tool: Arc::clone(&exchange.tool),
            kind: exchange.kind,
            fault: exchange
                .fault
                .as_ref()
                .map(|fault| RecordedFault { kind: fault.kind, detail: short(&fault.detail) }),
            cancelled: exchange.cancelled,
            status: exchange.status,
            headers: headers(&exchange.headers),
            answer: answer(&exchange.answer),
            text: short(&exchange.text),
            is_json: exchange.json.is_some(),
            disguised: exchange.disguised,
            log: short(&exchange.log),
            credentialed: exchange.credentialed,
            targets: exchange.targets.clone(),
            backend_host: exchange.backend_host.clone(),
            listed: exchange.listed,
            session_tool: exchange.session_tool,
        }
    }
}

impl Outcome {
    /// The exchange again, as far as it was written; `now` is when it ended.
    pub fn into_exchange(self, now: Now) -> Exchange {
        let json = if self.is_json && self.text.len() <= JSON_BOUND {
            serde_json::from_str(self.text.trim_start()).ok()
        } else {
            None
        };
        Exchange {
            backend: self.backend,
            tool: self.tool,
            kind: self.kind,
            now,
            fault: self.fault.map(|fault| Fault { kind: fault.kind, detail: fault.detail }),
            cancelled: self.cancelled,
            status: self.status,
            headers: header_map(&self.headers),
            answer: match self.answer {
                RecordedAnswer::None => Answer::None,
                RecordedAnswer::Result { is_error, result_type, task_started, structured } => {
                    Answer::Result { is_error, result_type, task_started, structured }
                }
                RecordedAnswer::Error { code, message, data } => Answer::Error { code, message, data },
            },
            json,
            text: self.text,
            disguised: self.disguised,
            log: self.log,
            credentialed: self.credentialed,
            targets: self.targets,
            backend_host: self.backend_host,
            listed: self.listed,
            session_tool: self.session_tool,
        }
    }
}

fn answer(answer: &Answer) -> RecordedAnswer {
    match answer {
        Answer::None => RecordedAnswer::None,
        Answer::Result { is_error, result_type, task_started, structured } => RecordedAnswer::Result {
            is_error: *is_error,
            result_type: result_type.clone(),
            task_started: *task_started,
            structured: structured.as_ref().and_then(value),
        },
        Answer::Error { code, message, data } => {
            RecordedAnswer::Error { code: *code, message: short(message), data: data.as_ref().and_then(value) }
        }
    }
}

/// A value with its secrets masked; nothing if it is too long, since a cut value is none.
fn value(value: &Value) -> Option<Value> {
    let mut value = value.clone();
    redact_value(&mut value);
    (value.to_string().len() <= TEXT_BOUND).then_some(value)
}

fn short(text: &str) -> String {
    bounded(&redacted(text), TEXT_BOUND).into_owned()
}

/// Every name stays, so that a rule that asks whether a field is there decides as before.
fn headers(map: &HeaderMap) -> BTreeMap<String, Vec<String>> {
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in map.iter().take(HEADERS_MAX) {
        let text = value.to_str().unwrap_or(MASK);
        let shown = if is_secret_name(name.as_str()) || name.as_str().contains("session") {
            MASK.to_owned()
        } else {
            bounded(&redacted(text), VALUE_BOUND).replace('\n', " ")
        };
        all.entry(name.as_str().to_owned()).or_default().push(shown);
    }
    all
}

fn header_map(fields: &BTreeMap<String, Vec<String>>) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, values) in fields {
        let Ok(name) = HeaderName::try_from(name.as_str()) else { continue };
        for value in values.iter().filter_map(|value| HeaderValue::from_str(value).ok()) {
            map.append(name.clone(), value);
        }
    }
    map
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference over")]
fn is_false(flag: &bool) -> bool {
    !flag
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rules::{Limits, load};

    #[test]
    fn what_was_recorded_of_each_bundled_test_is_judged_as_it_was() {
        let table = load(&[], Limits::default()).unwrap();
        let mut seen = 0;
        for test in table.rules().iter().flat_map(|rule| &rule.tests) {
            let line = serde_json::to_string(&Outcome::from(&test.exchange)).unwrap();
            let again = serde_json::from_str::<Outcome>(&line).unwrap().into_exchange(Now::default());
            assert_eq!(table.judge(&again), table.judge(&test.exchange), "{line}");
            seen += 1;
        }
        assert!(seen > 100, "{seen}");
    }

    #[test]
    fn everything_that_rules_look_at_is_written_and_nothing_that_is_secret() {
        let mut exchange = Exchange {
            backend: "b".into(),
            tool: "t".into(),
            fault: Some(Fault { kind: TransportFault::Timeout, detail: "password=hunter2".to_owned() }),
            status: Some(503),
            answer: Answer::Error {
                code: -32603,
                message: "bob@example.com".to_owned(),
                data: Some(json!({"apiKey": "k", "code": "denied"})),
            },
            text: "x".repeat(100_000),
            credentialed: true,
            targets: vec!["h.test".to_owned()],
            listed: true,
            session_tool: true,
            ..Exchange::default()
        };
        for (name, value) in [("retry-after", "30"), ("set-cookie", "sid=1"), ("mcp-session-id", "s1")] {
            exchange.headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let line = serde_json::to_string(&Outcome::from(&exchange)).unwrap();
        for secret in ["hunter2", "bob", "sid=1", "\"s1\"", "\"k\""] {
            assert!(!line.contains(secret), "{secret} in {line}");
        }
        assert!(line.len() < 20_000, "{}", line.len());
        let again = serde_json::from_str::<Outcome>(&line).unwrap().into_exchange(Now::default());
        assert_eq!(again.header("retry-after"), Some("30"));
        assert_eq!(again.header("set-cookie"), Some(MASK));
        assert_eq!(
            (again.status, again.rpc_code(), again.listed, again.session_tool),
            (Some(503), Some(-32603), true, true)
        );
        assert_eq!((again.credentialed, again.targets), (true, exchange.targets));
        assert!(matches!(again.answer, Answer::Error { data: Some(data), .. } if data["code"] == "denied"));
    }
}
