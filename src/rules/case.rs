//! Cases: finished calls written down as one JSON object each, for `toolvane classify` and for tests. Three forms are read,
//! that of an HTTP API (`request`, `response` or `transport`), that of an MCP server (`server`, `tool`, `arguments`, `wire`,
//! `exchange`, `transport`), and that of a recording (`outcome`). Unknown members are ignored.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue};
use schemars::JsonSchema;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::derive::default_scope;
use super::exchange::{Answer, BackendKind, Exchange, Fault};
use super::outcome::Outcome;
use super::target::{TargetSource, hosts};
use super::verdict::{Kind, Verdict};
use super::vocabulary::{Classification, HealthAction, Scope, TransportFault};
use crate::clock::{Now, Wall};
use crate::json::{self, Misfit};
use crate::mcp::Format;
use crate::mcp::answer::{EXCERPT_LIMIT, Reader, Seen, Trouble};
use crate::yaml::nearest;

/// A case as it was read.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its id, copied into the decision.
    pub id: Value,
    /// The call.
    pub exchange: Exchange,
}

/// Why a line is no case.
#[derive(Debug, thiserror::Error)]
pub enum BadCase {
    /// Not JSON, or a member of the wrong type.
    #[error("not a case: {source}, at column {}", .source.position.1)]
    Json {
        /// What is wrong, and where.
        #[from]
        source: Misfit,
    },
    /// A member that is nearly one that cases have.
    #[error("not a case: unknown member `{name}`, did you mean `{meant}`? Read are {}", MEMBERS.map(|name| format!("`{name}`")).join(", "))]
    Member {
        /// As it is written.
        name: String,
        /// What was probably meant.
        meant: &'static str,
    },
    /// Nothing to judge.
    #[error("a case needs one of `response`, `exchange`, `transport` and `outcome`")]
    Empty,
    /// A transport kind that is not known.
    #[error("the transport kind `{0}` is not known")]
    Kind(String),
}

/// The judgement on one case, in the form in which `toolvane classify` writes it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// The case's own id.
    pub id: Value,
    /// The rule that matched, if one did.
    pub rule: Option<Arc<str>>,
    /// `None` where rules cannot decide.
    pub classification: Option<Classification>,
    /// The kind of failure.
    pub signature: Option<Arc<str>>,
    /// Where the effect would be written by default.
    pub scope: Option<Scope>,
    /// How the failure is named to the caller.
    pub dispatch_code: Option<super::DispatchCode>,
    /// The answer's own hint, in whole seconds, rounded up.
    pub retry_after_seconds: Option<u64>,
    /// What the rule does to the status at once.
    pub health_action: HealthAction,
}

/// The members of a case that are read. Whatever else stands there is its writer's own, such as what is expected of it.
const MEMBERS: [&str; 11] =
    ["id", "service", "server", "tool", "arguments", "request", "response", "exchange", "transport", "outcome", "at"];

/// A case as it is written down. One of `response`, `exchange`, `transport` and `outcome` must be there.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "Case")]
pub struct Raw {
    /// Copied into the decision.
    #[serde(default)]
    id: Value,
    /// The backend, if it is an HTTP API.
    #[serde(default)]
    service: Option<Arc<str>>,
    /// The backend, if it is an MCP server.
    #[serde(default)]
    server: Option<Arc<str>>,
    /// The tool.
    #[serde(default)]
    tool: Option<Arc<str>>,
    /// What the tool was called with: hosts in it are the call's targets.
    #[serde(default)]
    arguments: Value,
    /// The request: whether it carried a credential counts.
    #[serde(default)]
    request: Option<RawRequest>,
    /// The answer of an HTTP API.
    #[serde(default)]
    response: Option<RawAnswer>,
    /// The answer of an MCP server, its body as it came: JSON, or a stream of events. Without a `content-type` it is read as
    /// what it looks like.
    #[serde(default)]
    exchange: Option<RawAnswer>,
    /// Why no answer came, or not all of it.
    #[serde(default)]
    transport: Option<RawTransport>,
    /// An outcome as `record` writes it, instead of all of this.
    #[serde(default)]
    outcome: Option<Outcome>,
    /// When it was received; matters for hints that name a time.
    #[serde(default)]
    at: Option<Wall>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "recordings of calls hold them; nothing follows from them")]
struct RawRequest {
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    method: Value,
    #[serde(default)]
    path: Value,
    #[serde(default)]
    body: Value,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RawAnswer {
    #[serde(default)]
    status: Option<u16>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    body: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "recordings of processes hold more than is judged")]
struct RawTransport {
    /// Such as `connect_refused`, `timeout`, `dns_failure`, `tls_error`, `connection_reset`, `body_truncated`,
    /// `sse_ended_without_response`, `child_exited`, `client_cancelled`.
    kind: String,
    #[serde(default)]
    detail: Option<String>,
    #[serde(default)]
    stderr_tail: Option<String>,
    #[serde(default)]
    after_s: Value,
    #[serde(default)]
    exit_code: Value,
    #[serde(default)]
    signal: Value,
}

/// Reads one case; `now` stands in for the time of receipt.
///
/// # Errors
/// If the line is no JSON object of one of the three forms, or has a member that is not known.
pub fn read(line: &str, now: Now) -> Result<Case, BadCase> {
    let raw = json::read::<Raw>(line.as_bytes())?;
    misspelt(line).map_or_else(|| raw.into_case(now), Err)
}

/// The first member that is not known and nearly one that is.
fn misspelt(line: &str) -> Option<BadCase> {
    let members: BTreeMap<String, IgnoredAny> = serde_json::from_str(line).ok()?;
    members.into_keys().filter(|name| !MEMBERS.contains(&&**name)).find_map(|name| {
        let meant = nearest(&name, MEMBERS.into_iter())?;
        Some(BadCase::Member { name, meant })
    })
}

impl Raw {
    /// The case; `now` stands in for the time of receipt.
    ///
    /// # Errors
    /// If there is nothing to judge in it.
    pub fn into_case(self, now: Now) -> Result<Case, BadCase> {
        if let Some(outcome) = self.outcome {
            let now = self.at.map_or(now, |wall| Now { wall, ..now });
            return Ok(Case { id: self.id, exchange: outcome.into_exchange(now) });
        }
        if self.response.is_none() && self.exchange.is_none() && self.transport.is_none() {
            return Err(BadCase::Empty);
        }
        let is_mcp = self.response.is_none() && (self.exchange.is_some() || self.server.is_some());
        let answer = self.response.or(self.exchange).unwrap_or_default();
        let body = answer.body.unwrap_or_default();
        let mut exchange = Exchange {
            backend: self.service.or(self.server).unwrap_or_default(),
            tool: self.tool.unwrap_or_default(),
            kind: if is_mcp || is_json_rpc(&body) { BackendKind::Mcp } else { BackendKind::Http },
            now,
            status: answer.status,
            headers: header_map(&answer.headers),
            credentialed: self.request.is_some_and(|request| has_credential(&request.headers)),
            targets: hosts(&self.arguments, &TargetSource::Auto),
            ..Exchange::default()
        };
        match exchange.kind {
            BackendKind::Http => exchange.take_body(body),
            BackendKind::Mcp => take_messages(&mut exchange, &body, self.transport.is_some()),
        }
        if let Some(transport) = self.transport.filter(|_| exchange.answer == Answer::None) {
            take_fault(&mut exchange, transport)?;
        }
        Ok(Case { id: self.id, exchange })
    }
}

impl Case {
    /// The line that says what was decided.
    pub fn decision(&self, verdict: &Verdict) -> Decision {
        let finding = verdict.finding.as_ref();
        let classification = match (verdict.kind, finding.map(|finding| finding.classification)) {
            (Kind::Success, None) => Some(Classification::Working),
            (_, Some(Classification::Unclear) | None) => None,
            (_, known) => known,
        };
        Decision {
            id: self.id.clone(),
            rule: finding.map(|finding| finding.rule.clone()),
            classification,
            signature: finding.map(|finding| finding.signature.clone()),
            scope: finding
                .filter(|finding| finding.classification != Classification::Working)
                .map(|finding| default_scope(finding, self.exchange.session_tool)),
            dispatch_code: finding
                .filter(|finding| finding.classification != Classification::Working)
                .map(|finding| finding.dispatch_code),
            retry_after_seconds: finding
                .and_then(|finding| finding.hint)
                .map(|hint| hint.as_secs() + u64::from(hint.subsec_nanos() > 0)),
            health_action: finding.map(|finding| finding.health_action).unwrap_or_default(),
        }
    }
}

fn is_json_rpc(body: &str) -> bool {
    let message: Option<Value> = if body.starts_with('{') { serde_json::from_str(body).ok() } else { None };
    message.is_some_and(|message| message.get("jsonrpc").is_some())
}

fn header_map(fields: &BTreeMap<String, String>) -> HeaderMap {
    let valid = |(name, value): (&String, &String)| {
        Some((HeaderName::try_from(name.as_str()).ok()?, HeaderValue::from_str(value).ok()?))
    };
    fields.iter().filter_map(valid).collect()
}

fn has_credential(fields: &BTreeMap<String, String>) -> bool {
    fields.keys().any(|name| name.eq_ignore_ascii_case("authorization") || name.eq_ignore_ascii_case("x-api-key"))
}

/// The messages of an MCP body: of an HTTP answer by its content type, of a child process one a line.
fn take_messages(exchange: &mut Exchange, body: &str, broke_off: bool) {
    let seen = match exchange.status {
        Some(_) => messages(
            exchange.header("content-type").map_or_else(|| looks_like(body), |kind| Format::of(Some(kind))),
            body,
            broke_off,
        ),
        None => body.lines().flat_map(|line| messages(Format::Json, line, false)).collect(),
    };
    let mut trouble: Option<&Trouble> = None;
    for item in &seen {
        match item {
            Seen::Answer(answer) => {
                exchange.take_answer(answer, true);
                return;
            }
            Seen::Trouble(found) => trouble = Some(found),
            Seen::ErrorEvent(text) => exchange.take_log(&text.text()),
            Seen::Notification(notification) => {
                if let Some(line) = notification.logged_error() {
                    exchange.take_log(line);
                }
            }
            _ => {}
        }
    }
    match trouble {
        Some(trouble) if exchange.status.is_some() && !broke_off => exchange.take_trouble(trouble),
        _ => {}
    }
}

/// The framing of a body of which nobody says what it is.
fn looks_like(body: &str) -> Format {
    let start = body.trim_start();
    let is_event = |field: &&str| start.starts_with(*field);
    if start.starts_with(['{', '[']) {
        Format::Json
    } else if ["data:", "event:", "id:", "retry:", ":"].iter().any(is_event) {
        Format::EventStream
    } else {
        Format::Other
    }
}

fn messages(format: Format, body: &str, broke_off: bool) -> Vec<Seen> {
    let mut seen = Vec::new();
    let mut reader = Reader::new(format, EXCERPT_LIMIT);
    reader.push(body.as_bytes(), |item| seen.push(item));
    if !broke_off {
        reader.finish(|item| seen.push(item));
    }
    seen
}

fn take_fault(exchange: &mut Exchange, transport: RawTransport) -> Result<(), BadCase> {
    use TransportFault as F;
    let kind = match transport.kind.as_str() {
        "client_cancelled" => {
            exchange.cancelled = true;
            return Ok(());
        }
        "connect_refused" | "connect_failed" | "network_unreachable" => F::ConnectRefused,
        "connect_timeout" | "read_timeout" | "timeout" => F::Timeout,
        "connection_reset" | "closed_before_headers" | "reset_before_headers" => F::Reset,
        "dns_failure" => F::Dns,
        "tls_error" | "tls_failure" => F::Tls,
        "body_truncated" | "closed_mid_body" | "reset_mid_body" => F::BodyTruncated,
        "sse_ended_without_response" => F::StreamEnded,
        "child_exited" | "spawn_failed" => F::ChildExited,
        "invalid_http" => F::Protocol,
        _ => return Err(BadCase::Kind(transport.kind)),
    };
    let mut detail = transport.detail.unwrap_or_default();
    if let Some(tail) = transport.stderr_tail {
        detail.push('\n');
        detail.push_str(&tail);
    }
    exchange.fault = Some(Fault { kind, detail });
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rules::{Limits, load};

    /// Classification, dispatch code and signature of a case by the bundled table.
    fn decided(case: &Value) -> (Option<&'static str>, Option<&'static str>, Option<String>) {
        let table = load(&[], Limits::default()).unwrap();
        let case = read(&case.to_string(), Now::default()).unwrap();
        let decision = case.decision(&table.judge(&case.exchange));
        (
            decision.classification.map(Classification::as_str),
            decision.dispatch_code.map(crate::rules::DispatchCode::as_str),
            decision.signature.map(|signature| signature.to_string()),
        )
    }

    fn mcp(status: Option<u16>, content_type: &str, body: &str) -> Value {
        json!({"id": 1, "server": "s", "tool": "t", "arguments": {}, "wire": "http-json",
               "exchange": {"status": status, "headers": {"content-type": content_type}, "body": body}})
    }

    #[test]
    fn answers_are_read_in_every_framing() {
        let ok = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"Error: 503"}]}}"#;
        let bad = r#"{"jsonrpc":"2.0","id":1,"result":{"isError":true,"content":[{"type":"text","text":"permission denied"}]}}"#;
        let error =
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"x","data":{"code":"token_expired"}}}"#;
        let log =
            r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"rate limit"}}"#;
        let json = "application/json";
        let events = "text/event-stream";
        for (case, classification, code, signature) in [
            (mcp(Some(200), json, ok), Some("WORKING"), None, None),
            (mcp(Some(200), events, &format!("data: {log}\n\ndata: {ok}\n\n")), Some("WORKING"), None, None),
            (
                mcp(Some(200), events, &format!("data: {bad}\n\n")),
                Some("USER_PERMISSION"),
                Some("BACKEND_FAILED"),
                Some("denied"),
            ),
            (
                mcp(None, "", &format!("starting up\n{log}\n{bad}\n")),
                Some("USER_PERMISSION"),
                Some("BACKEND_FAILED"),
                Some("denied"),
            ),
            (
                mcp(Some(400), json, error),
                Some("USER_SPECIFIC_TECHNICAL"),
                Some("BACKEND_FAILED"),
                Some("auth-expired"),
            ),
            (
                mcp(Some(200), json, ok.get(..40).unwrap()),
                Some("TECHNICALLY_BROKEN"),
                Some("BACKEND_FAILED"),
                Some("bad-answer"),
            ),
            (
                mcp(Some(200), "text/html", "<p>Sign in</p>"),
                Some("TECHNICALLY_BROKEN"),
                Some("BACKEND_FAILED"),
                Some("bad-answer"),
            ),
            (
                mcp(Some(502), "text/html", "<p>Bad Gateway</p>"),
                Some("INTERMITTENT"),
                Some("BACKEND_UNREACHABLE"),
                Some("http-502"),
            ),
            (mcp(Some(202), "", ""), Some("TECHNICALLY_BROKEN"), Some("BACKEND_FAILED"), Some("bad-answer")),
        ] {
            let expected = (classification, code, signature.map(str::to_owned));
            assert_eq!(decided(&case), expected, "{case}");
        }
    }

    #[test]
    fn a_fault_counts_only_where_no_answer_came_before_it() {
        let ok = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#;
        let mut case = mcp(Some(200), "text/event-stream", &format!("data: {ok}\n\n"));
        case["transport"] = json!({"kind": "reset_mid_body", "detail": "reset"});
        assert_eq!(decided(&case).0, Some("WORKING"));
        case["exchange"]["body"] = json!(": ping\n\n");
        assert_eq!(
            decided(&case),
            (Some("INTERMITTENT"), Some("BACKEND_UNREACHABLE"), Some("body-truncated".to_owned()))
        );
    }

    #[test]
    fn the_members_that_messages_name_are_those_of_the_schema() {
        let schema = serde_json::to_value(schemars::schema_for!(Raw)).unwrap();
        let mut members = MEMBERS;
        members.sort_unstable();
        assert_eq!(schema["properties"].as_object().unwrap().keys().collect::<Vec<_>>(), members);
    }

    #[test]
    fn a_cancelled_call_is_nobodys_fault() {
        let case = json!({"id": 1, "service": "s", "transport": {"kind": "client_cancelled", "detail": "x"}});
        assert_eq!(decided(&case), (None, None, None));
    }
}
