//! The messages that toolvane writes itself (DESIGN 9; the shapes are those that every measured client copes with, MCP.md 7).
//!
//! Ids come and go as raw JSON tokens, and what is handed in as JSON must be JSON: it is written as it stands.

use serde_json::Value;

use super::json::{Cursor, Raw};

/// A `tools/call` that was not carried out, as a result that the model reads: `isError`, one text block, the facts under
/// `_meta["toolvane/health"]`. The only shape that leaves every client's session alive.
pub fn tool_result(id: &str, text: &str, health: &str) -> Vec<u8> {
    answer(id, &refusal(text, health))
}

/// The `result` of such an answer, to be used more than once.
pub fn refusal(text: &str, health: &str) -> String {
    let text = quoted(text);
    format!(
        "{{\"resultType\":\"complete\",\"isError\":true,\
         \"content\":[{{\"type\":\"text\",\"text\":{text}}}],\"_meta\":{{\"toolvane/health\":{health}}}}}"
    )
}

/// A response with this result, which is JSON.
pub fn answer(id: &str, result: &str) -> Vec<u8> {
    ["{\"jsonrpc\":\"2.0\",\"id\":", id, ",\"result\":", result, "}"].concat().into_bytes()
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn json(bytes: &[u8]) -> Value {
        serde_json::from_slice(bytes).unwrap()
    }

    #[test]
    fn a_refused_call_is_a_result_that_a_model_can_read() {
        let text = "\"jira_search\" is\nunavailable \u{fc}";
        let result = tool_result("9007199254740993", text, r#"{"status":"DOWN"}"#);
        assert!(std::str::from_utf8(&result).unwrap().starts_with(r#"{"jsonrpc":"2.0","id":9007199254740993,"#));
        assert_eq!(
            json(&result)["result"],
            json!({
                "resultType": "complete",
                "isError": true,
                "content": [{"type": "text", "text": text}],
                "_meta": {"toolvane/health": {"status": "DOWN"}},
            })
        );
    }

    #[test]
    fn an_error_carries_its_data_or_none() {
        let with = error("\"a\"", -32603, "no \"x\"", Some("{\"a\":1}"));
        assert_eq!(
            json(&with),
            json!({"jsonrpc": "2.0", "id": "a", "error": {"code": -32603, "message": "no \"x\"", "data": {"a": 1}}})
        );
        assert_eq!(json(&error("0", 1, "x", None))["error"], json!({"code": 1, "message": "x"}));
    }

    #[test]
    fn an_event_has_one_line_of_data_and_no_id() {
        assert_eq!(event(b"{\"a\":\r\n1}"), b"event: message\ndata: {\"a\":  1}\n\n");
    }

    #[test]
    fn a_change_of_the_tools_is_told_to_a_session_or_a_listener() {
        let told = |subscription| String::from_utf8(tools_changed(subscription)).unwrap();
        assert_eq!(
            told(None),
            "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n"
        );
        assert_eq!(
            told(Some("\"7\"")),
            "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\",\
             \"params\":{\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":\"7\"}}}\n\n"
        );
    }

    #[test]
    fn a_stored_response_goes_out_under_another_id_and_is_else_the_same() {
        for (stored, expected) in [
            (
                r#"{"jsonrpc":"2.0","id": 1 ,"result":{"id":1}}"#,
                Some(r#"{"jsonrpc":"2.0","id": "z" ,"result":{"id":1}}"#),
            ),
            (r#"{"result":{"id":[1]},"\u0069d":"long one"}"#, Some(r#"{"result":{"id":[1]},"\u0069d":"z"}"#)),
            (r#"{"result":{"id":1}}"#, None),
            ("[1]", None),
            ("", None),
        ] {
            let relabelled = relabelled(stored.as_bytes(), "\"z\"");
            assert_eq!(relabelled.as_deref(), expected.map(str::as_bytes), "{stored}");
        }
    }
}
