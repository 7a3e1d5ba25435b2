//! Answering as if there were no such tool, for callers who lack its role (DESIGN 12): in the words of the backend itself.
//!
//! Every SDK says it in its own way, so the backend is asked for a tool that it cannot have, with the caller's own request
//! but without his arguments, and the name is put back into what it says. Status, headers and framing are the backend's, and
//! nothing tells the answer from that to a name which really does not exist: no mark of ours, and the same time on the way.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HeaderName, HeaderValue};
use http::{HeaderMap, Response, StatusCode};
use serde_json::value::RawValue;

use super::mcp::Held;
use super::net::{Body, Collected, Fault, Side, collect};
use super::visit::{Visit, gateway_error, whole};
use crate::http::accept;
use crate::mcp::reply;

/// The longest answer to a call of an unknown tool, in bytes.
const LONGEST: usize = 64 * 1024;
/// How long its body may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// JSON-RPC: invalid params, which is how the protocol itself wants unknown tools answered.
const INVALID_PARAMS: i64 = -32602;

const MCP_NAME: HeaderName = HeaderName::from_static("mcp-name");

/// The answer to a call of `tool` for one for whom it does not exist.
pub(super) async fn unknown_tool(visit: &Visit, mut held: Held, id: &str, tool: &str) -> Response<Body> {
    if let Some(endpoint) = &visit.old_transport {
        // The backend's own words would come on the stream, past us.
        let message = reply::error(id, INVALID_PARAMS, &format!("Unknown tool: {tool}"), None);
        if visit.shared.streams.send_to(endpoint, reply::event(&message)) {
            return bare(StatusCode::ACCEPTED, Bytes::new());
        }
    }
    let stand_in = stand_in(visit);
    let Some(body) = renamed(&held.bytes, &stand_in) else { return plain(id, tool) };
    rename_headers(&mut held.parts.headers, &stand_in, body.len());
    held.bytes = body;
    let asked = async {
        let response = visit.forward(held.into_request(), visit.head_timeout()).await?;
        let (parts, body) = response.into_parts();
        Ok::<_, Fault>((parts, collect(body, LONGEST).await?))
    };
    match tokio::time::timeout(PATIENCE + visit.head_timeout().unwrap_or_default(), asked).await {
        Ok(Ok((mut parts, Collected::Whole(bytes, trailers)))) => {
            let bytes = put_back(&bytes, &stand_in, tool);
            if parts.headers.contains_key(CONTENT_LENGTH) {
                parts.headers.insert(CONTENT_LENGTH, bytes.len().into());
            }
            Response::from_parts(parts, whole(bytes, trailers))
        }
        Ok(Err(fault)) if fault.side == Side::Downstream => gateway_error(&fault),
        _ => plain(id, tool),
    }
}

/// A name that no tool has.
fn stand_in(visit: &Visit) -> String {
    let random = || (visit.shared.random)().to_bits() >> 12;
    format!("unknown_{:010x}{:010x}", random() & 0xff_ffff_ffff, random() & 0xff_ffff_ffff)
}

/// The call with another name and no arguments; every other member, the id among them, stays as it is written.
fn renamed(body: &[u8], name: &str) -> Option<Bytes> {
    type Members = BTreeMap<String, Box<RawValue>>;
    let mut message: Members = serde_json::from_slice(body).ok()?;
    let mut params: Members = serde_json::from_str(message.get("params")?.get()).ok()?;
    params.insert("name".to_owned(), RawValue::from_string(serde_json::to_string(name).ok()?).ok()?);
    params.insert("arguments".to_owned(), RawValue::from_string("{}".to_owned()).ok()?);
    message.insert("params".to_owned(), serde_json::value::to_raw_value(&params).ok()?);
    serde_json::to_vec(&message).ok().map(Bytes::from)
}

fn rename_headers(headers: &mut HeaderMap, name: &str, length: usize) {
    accept::ask_identity(headers);
    headers.insert(CONTENT_LENGTH, length.into());
    if headers.contains_key(MCP_NAME)
        && let Ok(name) = HeaderValue::from_str(name)
    {
        headers.insert(MCP_NAME, name);
    }
    // They mirror arguments, of which there are none any more.
    let mirrors: Vec<HeaderName> =
        headers.keys().filter(|name| name.as_str().starts_with("mcp-param-")).cloned().collect();
    for name in mirrors {
        headers.remove(name);
    }
}

/// The backend's words with the real name in them, spelt as JSON spells it.
fn put_back(body: &Bytes, stand_in: &str, tool: &str) -> Bytes {
    let Ok(text) = std::str::from_utf8(body) else { return body.clone() };
    let quoted = serde_json::Value::from(tool).to_string();
    let spelt = quoted.get(1..quoted.len() - 1).unwrap_or_default();
    Bytes::from(text.replace(stand_in, spelt))
}

/// Where the backend says nothing: as the protocol wants it.
fn plain(id: &str, tool: &str) -> Response<Body> {
    let message = reply::error(id, INVALID_PARAMS, &format!("Unknown tool: {tool}"), None);
    let mut response = bare(StatusCode::OK, Bytes::from(message));
    response.headers_mut().insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn bare(status: StatusCode, body: Bytes) -> Response<Body> {
    let mut response = Response::new(if body.is_empty() { Body::empty() } else { Body::full(body) });
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_under_another_name_keeps_its_id_and_what_it_says_of_itself() {
        let call = br#"{"jsonrpc":"2.0","id":123456789012345678901,"method":"tools/call","params":{"name":"secret","arguments":{"all":"of it"},"_meta":{"progressToken":1.0}}}"#;
        let renamed = String::from_utf8(renamed(call, "x").unwrap().to_vec()).unwrap();
        assert!(renamed.contains("123456789012345678901") && renamed.contains("\"progressToken\":1.0"), "{renamed}");
        assert!(renamed.contains("\"name\":\"x\"") && renamed.contains("\"arguments\":{}"), "{renamed}");
        assert!(!renamed.contains("secret") && !renamed.contains("of it"), "{renamed}");
    }

    #[test]
    fn the_real_name_is_spelt_as_json_spells_it() {
        let said = Bytes::from_static(br#"{"message":"Unknown tool: unknown_1"}"#);
        assert_eq!(put_back(&said, "unknown_1", "a\"b"), r#"{"message":"Unknown tool: a\"b"}"#);
    }
}
