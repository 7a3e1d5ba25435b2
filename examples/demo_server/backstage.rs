//! What happens behind the tools: counts of calls that really arrived, and switches that make tools fail on the wire.
//!
//! - `GET /control/stats`: `{"calls": {tool: n}, "methods": {method: n}, "finished": {…}, "left": {…}, "cancelled": {…}}`.
//!   `left` counts answers whose client went away before the end, `cancelled` those that the tool itself saw cancelled.
//!   Among `methods` are `GET`, `GET to resume` (with `Last-Event-ID`) and `DELETE`.
//! - `/control/fail?tool=echo&mode=http-503&times=3`: the next `times` calls of the tool (`*`: of any tool; no `times`:
//!   until told otherwise) fail in that [`Mode`]; `mode=ok` ends it.
//! - `/control/reset`: forgets counts and switches.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Json;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, Method};
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};
use serde_json::json;

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

    /// Counts one message that arrived; for the call of a tool says the mode that it shall fail in.
    pub(crate) fn arrive(&self, method: &str, tool: Option<&str>) -> Mode {
        let mut inner = self.inner();
        *inner.counts.methods.entry(method.to_owned()).or_default() += 1;
        let Some(tool) = tool else { return Mode::Ok };
        *inner.counts.calls.entry(tool.to_owned()).or_default() += 1;
        let key = if inner.switches.contains_key(tool) { tool } else { "*" };
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

    /// Counts a request that is no message: a stream that is opened or resumed, a session that is ended.
    pub(crate) fn visit(&self, method: &Method, headers: &HeaderMap) {
        let resumes = headers.contains_key("last-event-id");
        let what = if resumes { format!("{method} to resume") } else { method.to_string() };
        *self.inner().counts.methods.entry(what).or_default() += 1;
    }

    /// Counts the end of an answer: seen to its end by the client, or left before.
    pub(crate) fn ended(&self, tool: &str, finished: bool) {
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
