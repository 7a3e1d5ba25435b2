//! Every answer that the proxy makes by itself (DESIGN 9). Each carries `x-toolvane` with the reason.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderName, HeaderValue, Response, StatusCode};

use super::facts::{Facts, Reason};
use super::net::Body;
use crate::http::problem::Problem;
use crate::mcp::reply;

/// Marks an answer as ours.
const MARK: HeaderName = HeaderName::from_static("x-toolvane");

/// The JSON-RPC code of a call that cannot be carried out (MCP.md 7).
const INTERNAL_ERROR: i64 = -32603;

/// A `tools/call` that was not carried out, in the one shape that leaves every client's session alive.
pub(super) fn tool_result(id: &str, words: &str, facts: &Facts, reason: Reason) -> Response<Body> {
    json(StatusCode::OK, reply::tool_result(id, words, &facts.json()), reason)
}

/// The same for a call that asked for a task: such a client cannot read a plain result.
pub(super) fn task_error(id: &str, words: &str, facts: &Facts, reason: Reason) -> Response<Body> {
    json(StatusCode::OK, reply::error(id, INTERNAL_ERROR, words, Some(&facts.json())), reason)
}

/// Any other request of a running session.
pub(super) fn rpc_error(status: StatusCode, id: &str, words: &str, reason: Reason) -> Response<Body> {
    json(status, reply::error(id, INTERNAL_ERROR, words, None), reason)
}

/// A message of ours as JSON.
pub(super) fn json(status: StatusCode, message: Vec<u8>, reason: Reason) -> Response<Body> {
    let mut response = Response::new(Body::full(Bytes::from(message)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    marked(response, reason)
}

/// Accepted: the answer comes on the session's stream (old transport).
pub(super) fn accepted(reason: Reason) -> Response<Body> {
    empty(StatusCode::ACCEPTED, reason)
}

/// A status and nothing else, where there is nobody to read more.
pub(super) fn empty(status: StatusCode, reason: Reason) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    marked(response, reason)
}

/// An HTTP tool that was not called, or gave no answer.
pub(super) fn http_tool(status: StatusCode, words: String, facts: &Facts, reason: Reason) -> Response<Body> {
    let mut problem = Problem::new(status, "tool unavailable").detail(words);
    if let Ok(serde_json::Value::Object(members)) = serde_json::to_value(facts) {
        for (name, value) in members {
            // `status` is the HTTP status in a problem document.
            let name = if name == "status" { "toolStatus".to_owned() } else { name };
            problem = problem.with(name, value);
        }
    }
    let mut response: Response<Body> = problem.response();
    if let Some(wait) = facts.retry_after_seconds {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(wait));
    }
    marked(response, reason)
}

/// Anything else that could not be carried out, in words.
pub(super) fn problem(status: StatusCode, title: &str, detail: impl Into<String>, reason: Reason) -> Response<Body> {
    marked(Problem::new(status, title).detail(detail).response(), reason)
}

fn marked(mut response: Response<Body>, reason: Reason) -> Response<Body> {
    response.headers_mut().insert(MARK, HeaderValue::from_static(reason.as_str()));
    response
}
