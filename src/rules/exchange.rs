//! One finished call as the rules see it: what was asked, how it ended, and what the answer said.

use std::sync::Arc;

use http::header::{AsHeaderName, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::envelope::ENVELOPE_BOUND;
use super::vocabulary::TransportFault;
use crate::clock::Now;

/// Bound of a failure's text unless the configuration says otherwise, in bytes: head and tail of one half each.
pub const TEXT_BOUND: usize = 64 * 1024;

/// Up to which size, in bytes, an answer's body is parsed as JSON for the rules that look into it.
pub const JSON_BOUND: usize = 256 * 1024;

/// How much of a call's log is kept, in bytes.
pub const LOG_BOUND: usize = 4 * 1024;

/// The header field, or trailer, in which gRPC states how a call ended.
pub(crate) static GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// What a backend speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BackendKind {
    /// The Model Context Protocol.
    #[default]
    Mcp,
    /// Plain HTTP routes.
    Http,
}

/// A finished call, ready to be judged. Everything is optional but what is known of every call.
#[derive(Clone, Debug, Default)]
pub struct Exchange {
    /// The backend's name in the configuration.
    pub backend: Arc<str>,
    /// The tool's name.
    pub tool: Arc<str>,
    /// What the backend speaks.
    pub kind: BackendKind,
    /// Both clocks at the end of the call; dates in hints are read against it where the answer has no `Date`.
    pub now: Now,
    /// Why no complete answer arrived, if none did.
    pub fault: Option<Fault>,
    /// The call was cancelled by its caller: nobody's fault.
    pub cancelled: bool,
    /// The HTTP status, where there was an HTTP answer. `None` on stdio.
    pub status: Option<u16>,
    /// Header fields of the answer, with trailers such as `grpc-status` folded in.
    pub headers: HeaderMap,
    /// What the MCP answer for the call's id was.
    pub answer: Answer,
    /// The text of a failure within [`TEXT_BOUND`]: the content of an `isError` result, or the body of an HTTP answer
    /// that is no success. May stay empty for a success.
    pub text: String,
    /// The body of an HTTP answer as JSON, where it is JSON within [`JSON_BOUND`].
    pub json: Option<Value>,
    /// The answer calls itself a success and is an error envelope by its structure: members of an error and nothing else.
    pub disguised: bool,
    /// What the server logged and the error events that it sent while it worked on the call, within [`LOG_BOUND`].
    pub log: String,
    /// Whether the call carried a credential of its caller.
    pub credentialed: bool,
    /// Hosts named in the call's arguments (see [`super::target`]), lower case.
    pub targets: Vec<String>,
    /// The backend's own host, lower case, where it has one.
    pub backend_host: Option<Arc<str>>,
    /// Whether the tool stands in the last good `tools/list`.
    pub listed: bool,
    /// Whether the tool matches `session_tools`.
    pub session_tool: bool,
}

/// Why no complete answer arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The kind of fault.
    pub kind: TransportFault,
    /// What the client library said of it; matched as text.
    pub detail: String,
}

/// The MCP answer to the call.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Answer {
    /// None was read: an HTTP tool, an HTTP error without a JSON-RPC body, or a broken answer.
    #[default]
    None,
    /// A result.
    Result {
        /// `isError`.
        is_error: bool,
        /// `resultType`, where the server is of the era that has it.
        result_type: Option<String>,
        /// The result only says that a task was started; its terminal state is judged instead.
        task_started: bool,
        /// `structuredContent`, where it is within [`JSON_BOUND`].
        structured: Option<Value>,
    },
    /// A JSON-RPC error.
    Error {
        /// Its code.
        code: i64,
        /// Its message.
        message: String,
        /// Its `data`, where that is within [`JSON_BOUND`].
        data: Option<Value>,
    },
}

/// The few facts of an outcome that a person writes down: in the tests of a rule, or on a command line.
#[derive(Clone, Debug, Default)]
pub struct Described {
    /// What the backend speaks; left out, MCP if an MCP answer is described, else HTTP.
    pub kind: Option<BackendKind>,
    /// HTTP status of the answer.
    pub status: Option<u16>,
    /// Header fields of the answer.
    pub headers: HeaderMap,
    /// Body of the answer, text of an MCP error, or what the client library said of a fault.
    pub body: String,
    /// The answer is an MCP result with this `isError`.
    pub mcp_error: Option<bool>,
    /// The answer is a JSON-RPC error with this code.
    pub rpc_code: Option<i64>,
    /// No answer came.
    pub fault: Option<TransportFault>,
    /// Name of the tool.
    pub tool: Arc<str>,
    /// Name of the backend.
    pub backend: Arc<str>,
    /// Hosts that the arguments name, lower case.
    pub targets: Vec<String>,
}

impl Described {
    /// Why there is no such outcome: facts of which one excludes the other.
    pub fn contradiction(&self) -> Option<String> {
        let is_mcp = self.mcp_error.is_some() || self.rpc_code.is_some();
        if self.mcp_error.is_some() && self.rpc_code.is_some() {
            return Some("an answer is an MCP result or a JSON-RPC error, not both".to_owned());
        }
        if is_mcp && self.kind == Some(BackendKind::Http) {
            return Some("a backend of kind http gives no MCP result and no JSON-RPC error".to_owned());
        }
        let fault = self.fault?;
        let part = match self.status {
            _ if is_mcp => "an MCP result or error",
            Some(_) if fault.is_before_any_answer() => "a status",
            None if fault.is_before_any_answer() && !self.headers.is_empty() => "a header field",
            _ => return None,
        };
        Some(format!("{part} comes with an answer, and with the fault {fault} none does"))
    }

    /// The exchange that is meant.
    pub fn into_exchange(self) -> Exchange {
        let is_mcp = self.mcp_error.is_some() || self.rpc_code.is_some();
        let answer = match (self.mcp_error, self.rpc_code) {
            (_, Some(code)) => Answer::Error { code, message: self.body.clone(), data: None },
            (Some(is_error), None) => {
                Answer::Result { is_error, result_type: None, task_started: false, structured: None }
            }
            (None, None) => Answer::None,
        };
        let mut exchange = Exchange {
            backend: self.backend,
            tool: self.tool,
            kind: self.kind.unwrap_or(if is_mcp { BackendKind::Mcp } else { BackendKind::Http }),
            fault: self.fault.map(|kind| Fault { kind, detail: self.body.clone() }),
            status: self.status,
            headers: self.headers,
            answer,
            targets: self.targets,
            ..Exchange::default()
        };
        if exchange.answer == Answer::None && exchange.fault.is_none() {
            exchange.take_body(self.body);
        } else {
            exchange.text = self.body;
        }
        exchange
    }
}

impl Answer {
    /// Whether the call is not over yet: a task was started, or the tool asks for more input (DESIGN 4).
    pub fn is_not_yet_an_outcome(&self) -> bool {
        match self {
            Answer::Result { result_type, task_started, .. } => {
                *task_started || result_type.as_deref() == Some("input_required")
            }
            _ => false,
        }
    }
}

impl Exchange {
    /// Whether the same is judged of both: they are the same outcome and ended within the same second, so that dates in them
    /// mean the same.
    pub fn is_judged_as(&self, other: &Exchange) -> bool {
        // A field that is added must be compared too: until it is, this does not compile.
        let Exchange {
            backend,
            tool,
            kind,
            now,
            fault,
            cancelled,
            status,
            headers,
            answer,
            text,
            json,
            disguised,
            log,
            credentialed,
            targets,
            backend_host,
            listed,
            session_tool,
        } = self;
        *text == other.text
            && *status == other.status
            && now.wall.unix_seconds() == other.now.wall.unix_seconds()
            && (*kind, *cancelled, *disguised) == (other.kind, other.cancelled, other.disguised)
            && (*credentialed, *listed, *session_tool) == (other.credentialed, other.listed, other.session_tool)
            && (backend, tool, backend_host) == (&other.backend, &other.tool, &other.backend_host)
            && (fault, answer, json) == (&other.fault, &other.answer, &other.json)
            && (log, targets, headers) == (&other.log, &other.targets, &other.headers)
    }

    /// About how many bytes it takes to keep it; those of JSON are not known.
    pub fn size(&self) -> Option<usize> {
        let has_json = match &self.answer {
            Answer::None => false,
            Answer::Result { structured, .. } => structured.is_some(),
            Answer::Error { data, .. } => data.is_some(),
        };
        let headers = self.headers.iter().map(|(name, value)| name.as_str().len() + value.len());
        let texts = self.text.len() + self.log.len() + self.targets.iter().map(String::len).sum::<usize>();
        (!has_json && self.json.is_none()).then(|| texts + headers.sum::<usize>())
    }

    /// The JSON-RPC error code, if the answer is an error.
    pub fn rpc_code(&self) -> Option<i64> {
        match self.answer {
            Answer::Error { code, .. } => Some(code),
            _ => None,
        }
    }

    /// `isError` of the result, if the answer is a result.
    pub fn is_error(&self) -> Option<bool> {
        match self.answer {
            Answer::Result { is_error, .. } => Some(is_error),
            _ => None,
        }
    }

    /// The value of a header field as text, the first one where there are several.
    pub fn header(&self, name: impl AsHeaderName) -> Option<&str> {
        self.headers.get(name).and_then(|v| v.to_str().ok())
    }

    /// Whether the body of this HTTP answer may turn out to be an error envelope, going by its head. (MCP results are read
    /// in any case.)
    pub fn may_hold_envelope(&self) -> bool {
        let length = self.header(CONTENT_LENGTH).and_then(|length| length.trim().parse::<usize>().ok());
        let kind = self.content_type();
        self.kind == BackendKind::Http
            && length.is_none_or(|length| length <= ENVELOPE_BOUND)
            && (kind.is_empty()
                || kind.to_ascii_lowercase().ends_with("json")
                || kind.to_ascii_lowercase().ends_with("xml"))
    }

    /// Whether the answer calls itself a success and is an error by its structure.
    pub fn is_envelope(&self) -> bool {
        self.disguised || self.grpc_failed()
    }

    /// Whether that is an MCP result.
    pub(crate) fn is_mcp_envelope(&self) -> bool {
        self.disguised && self.kind == BackendKind::Mcp
    }

    /// Whether a gRPC status says that the call failed.
    fn grpc_failed(&self) -> bool {
        self.header(&GRPC_STATUS).is_some_and(|status| status.trim() != "0")
    }

    /// The media type of the answer, without parameters; empty if none is given.
    pub fn content_type(&self) -> &str {
        self.header(CONTENT_TYPE).and_then(|v| v.split(';').next()).unwrap_or("").trim()
    }

    /// Whether the call succeeded by structure alone (DESIGN 4): an MCP result without `isError`, or a 2xx or 3xx of an
    /// HTTP tool, and neither an error envelope nor a gRPC status that is not zero. Text is not looked at.
    pub fn succeeded(&self) -> bool {
        if self.fault.is_some() || self.cancelled || self.disguised || self.grpc_failed() {
            return false;
        }
        match (self.kind, &self.answer) {
            (_, Answer::Result { is_error, .. }) => !is_error,
            (_, Answer::Error { .. }) | (BackendKind::Mcp, Answer::None) => false,
            (BackendKind::Http, Answer::None) => self.status.is_some_and(|s| (100..400).contains(&s)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Tick, Wall};

    #[test]
    fn an_outcome_that_differs_in_anything_is_judged_anew() {
        let failed = || Exchange {
            backend: "b".into(),
            tool: "t".into(),
            status: Some(503),
            text: "busy".to_owned(),
            now: Now { tick: Tick(7), wall: Wall(5_500) },
            ..Exchange::default()
        };
        let same_second = Exchange { now: Now { tick: Tick(9), wall: Wall(5_999) }, ..failed() };
        assert!(failed().is_judged_as(&same_second));
        let changes: [fn(&mut Exchange); 19] = [
            |e| e.backend = "other".into(),
            |e| e.tool = "other".into(),
            |e| e.kind = BackendKind::Mcp,
            |e| e.kind = BackendKind::Http,
            |e| e.now.wall = Wall(6_000),
            |e| e.fault = Some(Fault { kind: TransportFault::Reset, detail: String::new() }),
            |e| e.cancelled = true,
            |e| e.status = None,
            |e| drop(e.headers.insert("retry-after", http::HeaderValue::from_static("5"))),
            |e| e.answer = Answer::Error { code: 1, message: String::new(), data: None },
            |e| e.text.push('.'),
            |e| e.json = Some(Value::Null),
            |e| e.disguised = true,
            |e| e.log.push('.'),
            |e| e.credentialed = true,
            |e| e.targets.push("host".to_owned()),
            |e| e.backend_host = Some("host".into()),
            |e| e.listed = true,
            |e| e.session_tool = true,
        ];
        let differing = changes.iter().filter(|change| {
            let mut other = failed();
            change(&mut other);
            !failed().is_judged_as(&other)
        });
        // One of the two kinds is the one that it has.
        assert_eq!(differing.count(), changes.len() - 1);
    }
}
