//! What happens behind the tools: counts of calls that really arrived, and switches that make tools fail on the wire.
//!
//! - `GET /control/stats`: `{"calls": {tool: n}, "methods": {method: n}, "finished": {…}, "left": {…}, "cancelled": {…}}`.
//!   `left` counts answers whose client went away before the end, `cancelled` those that the tool itself saw cancelled.
//! - `/control/fail?tool=echo&mode=http-503&times=3`: the next `times` calls of the tool (`*`: of any tool; no `times`:
//!   until told otherwise) fail in that [`Mode`]; `mode=ok` ends it.
//! - `/control/reset`: forgets counts and switches.

use std::collections::{BTreeMap, HashMap};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{Query, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body_util::{BodyExt, Limited};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Bodies above this never reach a tool: the limit of the SDK itself.
const MAX_BODY_BYTES: usize = 4 * 1024 * 1024;

/// How a tool fails when told to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Mode {
    /// It does not.
    Ok,
    /// A tool result with `isError`.
    Error,
    /// A JSON-RPC error -32603.
    Rpc,
    /// HTTP 500 with a line of text.
    #[serde(rename = "http-500")]
    Http500,
    /// HTTP 503 with a line of text.
    #[serde(rename = "http-503")]
    Http503,
    /// HTTP 429 with `Retry-After: 20`.
    #[serde(rename = "http-429")]
    Http429,
    /// The head of an answer, some bytes, then the connection is cut.
    Truncate,
    /// No answer, until the client leaves.
    Hang,
    /// The answer's SSE stream ends after its first event; a session's client resumes it with `Last-Event-ID`.
    Cut,
}

/// Shared counters and switches; clones are handles to the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Backstage(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    counts: Counts,
    switches: HashMap<String, Switch>,
    departed: Vec<String>,
    flaky_calls: u64,
}

#[derive(Clone, Debug, Default, Serialize)]
struct Counts {
    calls: BTreeMap<String, u64>,
    methods: BTreeMap<String, u64>,
    finished: BTreeMap<String, u64>,
    left: BTreeMap<String, u64>,
    cancelled: BTreeMap<String, u64>,
}

#[derive(Debug)]
struct Switch {
    mode: Mode,
    times: Option<u64>,
}

impl Backstage {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the tool saw its call cancelled.
    pub(crate) fn cancelled(&self, tool: &str) {
        *self.inner().counts.cancelled.entry(tool.to_owned()).or_default() += 1;
    }

    /// The running number of calls to the flaky tool, from 0.
    pub(crate) fn next_flaky(&self) -> u64 {
        let mut inner = self.inner();
        inner.flaky_calls += 1;
        inner.flaky_calls - 1
    }

    /// Says whether the provider of session tools has left this session.
    pub(crate) fn has_departed(&self, session: &str) -> bool {
        self.inner().departed.iter().any(|known| known == session)
    }

    /// Lets the provider of session tools leave this session, or come back.
    pub(crate) fn set_departed(&self, session: &str, departed: bool) {
        let mut inner = self.inner();
        inner.departed.retain(|known| known != session);
        if departed {
            inner.departed.push(session.to_owned());
        }
    }

    /// Counts one message that arrived and takes the mode that it shall fail in.
    fn arrive(&self, message: &Message) -> Mode {
        let mut inner = self.inner();
        *inner.counts.methods.entry(message.method.clone()).or_default() += 1;
        let Some(tool) = &message.tool else { return Mode::Ok };
        *inner.counts.calls.entry(tool.clone()).or_default() += 1;
        let key = if inner.switches.contains_key(tool) { tool.as_str() } else { "*" };
        let Some(switch) = inner.switches.get_mut(key) else { return Mode::Ok };
        match &mut switch.times {
            None => switch.mode,
            Some(0) => Mode::Ok,
            Some(left) => {
                *left -= 1;
                switch.mode
            }
        }
    }

    fn ended(&self, tool: &str, finished: bool) {
        let mut inner = self.inner();
        let counts = if finished { &mut inner.counts.finished } else { &mut inner.counts.left };
        *counts.entry(tool.to_owned()).or_default() += 1;
    }
}

/// `GET /control/stats`.
pub(crate) async fn stats(State(backstage): State<Backstage>) -> impl IntoResponse {
    Json(json!(backstage.inner().counts.clone()))
}

/// The query of `/control/fail`.
#[derive(Debug, Deserialize)]
pub(crate) struct FailQuery {
    #[serde(default = "every_tool")]
    tool: String,
    mode: Mode,
    times: Option<u64>,
}

fn every_tool() -> String {
    "*".to_owned()
}

/// `/control/fail`.
pub(crate) async fn fail(State(backstage): State<Backstage>, Query(query): Query<FailQuery>) -> impl IntoResponse {
    let mut inner = backstage.inner();
    if query.mode == Mode::Ok {
        inner.switches.remove(&query.tool);
    } else {
        inner.switches.insert(query.tool.clone(), Switch { mode: query.mode, times: query.times });
    }
    format!("{} is now {:?}\n", query.tool, query.mode)
}

/// `/control/reset`.
pub(crate) async fn reset(State(backstage): State<Backstage>) -> impl IntoResponse {
    *backstage.inner() = Inner::default();
    "all tools work; counts are zero\n"
}

/// The little of a JSON-RPC message that the backstage looks at.
#[derive(Debug)]
struct Message {
    method: String,
    tool: Option<String>,
    id: Value,
}

impl Message {
    fn read(body: &[u8]) -> Option<Message> {
        let value: Value = serde_json::from_slice(body).ok()?;
        let method = value.get("method")?.as_str()?.to_owned();
        let name = value.pointer("/params/name").and_then(Value::as_str).map(str::to_owned);
        let tool = if method == "tools/call" { name } else { None };
        Some(Message { method, tool, id: value.get("id").cloned().unwrap_or(Value::Null) })
    }
}

/// Stands in front of the MCP endpoint: counts each message, fails those it is told to, and sees how each answer ended.
pub(crate) async fn watch(State(backstage): State<Backstage>, request: Request, next: Next) -> Response {
    if request.method() != Method::POST || !request.uri().path().starts_with("/mcp") {
        return next.run(request).await;
    }
    let (head, body) = request.into_parts();
    let bytes = match Limited::new(body, MAX_BODY_BYTES).collect().await {
        Ok(collected) => collected.to_bytes(),
        Err(error) => return (StatusCode::BAD_REQUEST, format!("unreadable body: {error}\n")).into_response(),
    };
    let Some(message) = Message::read(&bytes) else {
        return next.run(Request::from_parts(head, Body::from(bytes))).await;
    };
    let mode = backstage.arrive(&message);
    let Some(tool) = message.tool.clone() else {
        return next.run(Request::from_parts(head, Body::from(bytes))).await;
    };
    // Made before the answer exists: a client that leaves before the head drops this very future.
    let watcher = Watcher { backstage, tool, finished: false };
    let response = match mode {
        Mode::Ok | Mode::Cut => next.run(Request::from_parts(head, Body::from(bytes))).await,
        Mode::Hang => std::future::pending().await,
        failing => failing.answer(&message.id),
    };
    let (head, body) = response.into_parts();
    let cut = mode == Mode::Cut && is_event_stream(&head.headers);
    Response::from_parts(head, Body::new(Watched { body, watcher, cut }))
}

fn is_event_stream(headers: &HeaderMap) -> bool {
    headers.get(header::CONTENT_TYPE).is_some_and(|value| value.as_bytes().starts_with(b"text/event-stream"))
}

impl Mode {
    fn answer(self, id: &Value) -> Response {
        match self {
            Mode::Error => Json(json!({"jsonrpc": "2.0", "id": id, "result": {
                "resultType": "complete", "isError": true,
                "content": [{"type": "text", "text": "the reporting service does not answer (connection timed out)"}],
            }}))
            .into_response(),
            Mode::Rpc => Json(json!({"jsonrpc": "2.0", "id": id, "error": {
                "code": -32603, "message": "internal error: database is locked",
            }}))
            .into_response(),
            Mode::Http503 => (StatusCode::SERVICE_UNAVAILABLE, "upstream connect error\n").into_response(),
            Mode::Http429 => {
                (StatusCode::TOO_MANY_REQUESTS, [(header::RETRY_AFTER, "20")], "too many requests\n").into_response()
            }
            Mode::Truncate => {
                let head = [(header::CONTENT_TYPE, "application/json"), (header::CONTENT_LENGTH, "4096")];
                (head, Body::new(Broken(Some(Bytes::from_static(b"{\"jsonrpc\":\"2.0\","))))).into_response()
            }
            _ => (StatusCode::INTERNAL_SERVER_ERROR, "panic: index out of range\n").into_response(),
        }
    }
}

/// Sends what it holds, then breaks off.
struct Broken(Option<Bytes>);

impl http_body::Body for Broken {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, std::io::Error>>> {
        Poll::Ready(Some(match self.0.take() {
            Some(bytes) => Ok(http_body::Frame::data(bytes)),
            None => Err(std::io::Error::other("cut on purpose")),
        }))
    }
}

/// Tells the backstage once whether an answer ended, or its client left first.
struct Watcher {
    backstage: Backstage,
    tool: String,
    finished: bool,
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.backstage.ended(&self.tool, self.finished);
    }
}

/// A body that is watched to its end; a `cut` one ends after its first frame.
struct Watched {
    body: Body,
    watcher: Watcher,
    cut: bool,
}

impl http_body::Body for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, axum::Error>>> {
        if self.cut && self.watcher.finished {
            return Poll::Ready(None);
        }
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if matches!(polled, Poll::Ready(None)) || (self.cut && polled.is_ready()) {
            self.watcher.finished = true;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        false
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}
