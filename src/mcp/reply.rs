//! The messages that toolvane writes itself (DESIGN 9; the shapes are those that every measured client copes with, MCP.md 7).
//!
//! Ids come and go as raw JSON tokens, and what is handed in as JSON must be JSON: it is written as it stands.

use serde_json::Value;

use super::json::{Cursor, Raw};

/// A `tools/call` that was not carried out, as a result that the model reads: `isError`, one text block, the facts under
/// `_meta["toolvane/health"]`. The only shape that leaves every client's session alive.
pub fn tool_result(id: &str, text: &str, health: &str) -> Vec<u8> {
    let text = quoted(text);
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"resultType\":\"complete\",\"isError\":true,\
         \"content\":[{{\"type\":\"text\",\"text\":{text}}}],\"_meta\":{{\"toolvane/health\":{health}}}}}}}"
    )
    .into_bytes()
}

/// A JSON-RPC error; `data` is JSON.
pub fn error(id: &str, code: i64, text: &str, data: Option<&str>) -> Vec<u8> {
    let text = quoted(text);
    let data = data.map(|data| format!(",\"data\":{data}")).unwrap_or_default();
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":{code},\"message\":{text}{data}}}}}").into_bytes()
}

/// A message as one server-sent event. It has no `id` line, so that no client ever asks the backend to resume from it.
pub fn event(message: &[u8]) -> Vec<u8> {
    let mut event = Vec::with_capacity(message.len() + 32);
    event.extend_from_slice(b"event: message\ndata: ");
    // Outside of strings a line break is space like any other; inside JSON has none.
    event.extend(message.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }));
    event.extend_from_slice(b"\n\n");
    event
}

/// `notifications/tools/list_changed` as an event; on 2026-07-28 it names the listen request that it belongs to.
pub fn tools_changed(subscription: Option<&str>) -> Vec<u8> {
    let params =
        subscription.map(|id| format!(",\"params\":{{\"_meta\":{{\"io.modelcontextprotocol/subscriptionId\":{id}}}}}"));
    let params = params.unwrap_or_default();
    event(format!("{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"{params}}}").as_bytes())
}

/// A stored response under another request's id; `None` if it is no JSON object with an id.
pub fn relabelled(message: &[u8], id: &str) -> Option<Vec<u8>> {
    let mut cursor = Cursor::new(message);
    let mut old: Option<Raw<'_>> = None;
    cursor
        .object(|cursor, key| {
            let value = cursor.value()?;
            if key.text == "id" {
                old = Some(value);
            }
            Ok(())
        })
        .ok()?;
    let old = old?;
    let (before, after) = (message.get(..old.start)?, message.get(old.end()..)?);
    Some([before, id.as_bytes(), after].concat())
}

/// A text as a JSON string.
pub(super) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}
