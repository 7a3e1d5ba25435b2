//! What a client posts: shapes, doubles, and what is no message.

use proptest::prelude::*;
use serde_json::Value;

use super::super::arbitrary;
use super::{Era, MAX_BATCH, Malformed, Message, Notification, Request, Response, parse};

fn request(body: &str) -> Request<'_> {
    match parse(body.as_bytes()) {
        Message::Request(request) => request,
        other => panic!("{body} is {other:?}"),
    }
}

#[test]
fn a_tool_call_is_read_whole() {
    let call = request(
        r#"{"jsonrpc":"2.0","id":"a\u0031","method":"tools/call","params":{"_meta":{"progressToken":0,
        "io.modelcontextprotocol/protocolVersion":"2026-07-28"},"name":"s\u00fcch","arguments": {"q": "x", "id":9} ,"task":{"ttl":1}}}"#,
    );
    assert_eq!(call.id, r#""a\u0031""#, "the id stays as it is spelled");
    assert_eq!(call.tool(), Some("süch"));
    assert_eq!(call.params.arguments, Some(br#"{"q": "x", "id":9}"#.as_slice()));
    assert_eq!(call.params.meta.progress_token, Some("0"));
    assert_eq!(call.era(), Era::Modern);
    assert!(call.params.has_task && !call.params.is_continuation && !call.ambiguous);
}

#[test]
fn ids_are_raw_tokens() {
    for id in ["0", "-1", "9007199254740993", "123456789012345678901234567890", "1.0", "\"\"", "\"0\"", r#""\ud83d""#] {
        assert_eq!(request(&format!(r#"{{"id": {id} ,"method":"ping"}}"#)).id, id);
    }
    for id in ["null", "true", "{}", "[1]"] {
        let body = format!(r#"{{"id":{id},"method":"ping"}}"#);
        assert_eq!(parse(body.as_bytes()), Message::Malformed(Malformed::BadId), "{id}");
    }
}

#[test]
fn each_method_shows_what_matters_of_its_params() {
    let continued = request(r#"{"id":1,"method":"tools/call","params":{"name":"a","requestState":"x"}}"#);
    assert!(continued.params.is_continuation);
    assert!(request(r#"{"id":1,"method":"tools/call","params":{"inputResponses":{}}}"#).params.is_continuation);
    assert_eq!(request(r#"{"id":1,"method":"tools/list","params":{"cursor":""}}"#).params.cursor.as_deref(), Some(""));
    assert_eq!(
        request(r#"{"id":1,"method":"tasks/get","params":{"taskId":"t"}}"#).params.task_id.as_deref(),
        Some("t")
    );
    let initialize = request(r#"{"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#);
    assert_eq!(initialize.params.protocol_version.as_deref(), Some("2025-11-25"));
    let listen = r#"{"id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true}}}"#;
    assert!(request(listen).params.listens_to_tools);
    assert!(!request(&listen.replace("true", "1")).params.listens_to_tools);
    let prompt = request(r#"{"id":1,"method":"prompts/get","params":{"name":"a"}}"#);
    assert_eq!((prompt.tool(), prompt.params.name.as_deref()), (None, Some("a")), "a prompt is no tool");
    assert!(!request(r#"{"id":1,"method":"tools/call","params":{"name":"a","task":null}}"#).params.has_task);
}

#[test]
fn the_era_is_what_the_request_itself_says() {
    for (version, era) in [
        ("\"2026-07-28\"", Era::Modern),
        ("\"2027-01-01\"", Era::Modern),
        ("\"2026-07-27\"", Era::Legacy),
        ("\"2025-11-25\"", Era::Legacy),
        ("\"draft\"", Era::Legacy),
        ("\"2026-07-28-RC\"", Era::Legacy),
        ("20260728", Era::Legacy),
    ] {
        let body = format!(
            r#"{{"id":1,"method":"x","params":{{"_meta":{{"io.modelcontextprotocol/protocolVersion":{version}}}}}}}"#
        );
        assert_eq!(request(&body).era(), era, "{version}");
    }
    assert_eq!(
        request(r#"{"id":1,"method":"initialize","params":{"protocolVersion":"2026-07-28"}}"#).era(),
        Era::Legacy
    );
}

#[test]
fn notifications_responses_and_batches_are_told_from_requests() {
    let cancelled = br#"{"method":"notifications/cancelled","params":{"requestId":"7"}}"#;
    match parse(cancelled) {
        Message::Notification(Notification { method, params, ambiguous }) => {
            assert_eq!((&*method, params.request_id, ambiguous), ("notifications/cancelled", Some("\"7\""), false));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(parse(br#"{"id":0,"result":{}}"#), Message::Response(Response { id: "0", is_error: false }));
    assert_eq!(parse(br#"{"id":0,"error":{}}"#), Message::Response(Response { id: "0", is_error: true }));
    match parse(br#" [{"id":1,"method":"ping"},{"method":"m"},{"id":2,"result":1},5,[]] "#) {
        Message::Batch(members) => {
            assert!(matches!(members[0], Message::Request(_)) && matches!(members[1], Message::Notification(_)));
            assert!(matches!(members[2], Message::Response(_)));
            assert_eq!(members[3..], [(); 2].map(|()| Message::Malformed(Malformed::NotJsonRpc)));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_no_message_is_malformed_with_the_reason() {
    let nested = |depth: usize| format!(r#"{{"id":1,"method":"m","x":{}{}}}"#, "[".repeat(depth), "]".repeat(depth));
    let batch = |count: usize| format!("[{}1]", "1,".repeat(count - 1));
    for (body, reason) in [
        (String::new(), Malformed::Syntax(0)),
        ("<html>".to_owned(), Malformed::Syntax(0)),
        (r#"{"id":1,"method":"m""#.to_owned(), Malformed::Syntax(20)),
        (r#"{"id":1,"method":"m"} x"#.to_owned(), Malformed::Syntax(22)),
        (r#"{"id":1,"method":"unterminated"#.to_owned(), Malformed::Syntax(30)),
        ("[".repeat(64 * 1024), Malformed::TooDeep),
        (nested(64 * 1024), Malformed::TooDeep),
        (nested(128), Malformed::TooDeep),
        ("5".to_owned(), Malformed::NotJsonRpc),
        ("null".to_owned(), Malformed::NotJsonRpc),
        ("{}".to_owned(), Malformed::NotJsonRpc),
        ("[]".to_owned(), Malformed::NotJsonRpc),
        (r#"{"id":1}"#.to_owned(), Malformed::NotJsonRpc),
        (r#"{"result":1}"#.to_owned(), Malformed::NotJsonRpc),
        (r#"{"id":1,"method":5}"#.to_owned(), Malformed::NotJsonRpc),
        (batch(MAX_BATCH + 1), Malformed::TooManyMembers),
    ] {
        let shown: String = body.chars().take(60).collect();
        assert_eq!(parse(body.as_bytes()), Message::Malformed(reason), "{shown}");
    }
    assert!(matches!(parse(nested(127).as_bytes()), Message::Request(_)));
    assert!(matches!(parse(batch(MAX_BATCH).as_bytes()), Message::Batch(_)));
}

#[test]
fn a_second_reading_makes_a_request_ambiguous_and_the_last_member_counts() {
    for (body, tool) in [
        (r#"{"id":1,"method":"tools/call","params":{"name":"a","name":"b"}}"#, Some("b")),
        (r#"{"id":1,"method":"tools/call","params":{"name":"a","n\u0061me":"b"}}"#, Some("b")),
        (r#"{"id":1,"method":"tools/call","params":{"name":"a","Name":"b"}}"#, Some("a")),
        (r#"{"id":1,"method":"tools/call","params":{"name":"a"},"paramſ":{"name":"b"}}"#, Some("a")),
        (r#"{"id":1,"method":"tools/call","params":{"name":"a"},"params":{"name":"b"}}"#, Some("b")),
        (r#"{"id":1,"method":"tools/call","params":{"name":"a"},"params":null}"#, None),
        (r#"{"id":1,"method":"ping","method":"tools/call","params":{"name":"a"}}"#, Some("a")),
        (r#"{"id":1,"ID":2,"method":"tools/call","params":{"name":"a"}}"#, Some("a")),
        (r#"{"id":2,"id":1,"method":"tools/call","params":{"name":"a"}}"#, Some("a")),
        (r#"{"id":1,"method":"tools/call","params":{"name":"a\ud800"}}"#, Some("a\u{fffd}")),
        (r#"{"id":1,"method":"tools/call","params":{"name":"a","tasK":{},"task":null}}"#, Some("a")),
    ] {
        let call = request(body);
        assert_eq!((call.tool(), call.ambiguous, call.id), (tool, true, "1"), "{body}");
    }
    for body in [
        r#"{"id":1,"method":"tools/call","name":"x","task":{},"params":{"id":2,"name":"a","arguments":{"name":"b","name":"c"}}}"#,
        r#"{"id":1,"method":"tools/call","params":{"name":"a","x":1,"x":2,"_meta":{"name":"b","Name":"c"}}}"#,
    ] {
        assert!(!request(body).ambiguous, "{body}");
    }
    let mut body = br#"{"id":1,"method":"tools/call","params":{"name":"aX"}}"#.to_vec();
    *body.iter_mut().find(|byte| **byte == b'X').unwrap() = 0xff;
    assert!(matches!(parse(&body), Message::Request(Request { ambiguous: true, .. })));
}

#[test]
fn strings_with_escapes_or_not_are_borrowed_where_they_can_be() {
    let call = request(r#"{"id":1,"method":"tools/call","params":{"name":"plain"}}"#);
    assert!(matches!(call.params.name, Some(std::borrow::Cow::Borrowed("plain"))));
}

proptest! {
    #[test]
    fn any_json_reads_as_serde_json_reads_it(text in arbitrary::object_of(arbitrary::json())) {
        let value: Value = serde_json::from_str(&text).unwrap();
        let parsed = parse(text.as_bytes());
        let (id, method, params) = match &parsed {
            Message::Request(request) => (Some(request.id), Some(&*request.method), Some(&request.params)),
            Message::Notification(notification) => (None, Some(&*notification.method), Some(&notification.params)),
            Message::Response(response) => (Some(response.id), None, None),
            other => {
                let good_id = value["id"].is_number() || value["id"].is_string();
                prop_assert!(!good_id || !value["method"].is_string(), "{:?} of {}", other, text);
                return Ok(());
            }
        };
        prop_assert_eq!(method, value["method"].as_str());
        if let Some(id) = id {
            prop_assert_eq!(serde_json::from_str::<Value>(id).unwrap(), value["id"].clone());
        }
        if let Some(params) = params {
            prop_assert_eq!(params.name.as_deref(), value["params"]["name"].as_str());
            prop_assert_eq!(params.task_id.as_deref(), value["params"]["taskId"].as_str());
            prop_assert_eq!(params.has_task, value["params"]["task"].is_object());
        }
    }

    #[test]
    fn no_bytes_make_it_panic(body in prop::collection::vec(any::<u8>(), 0..200), text in arbitrary::json(), cut in any::<prop::sample::Index>()) {
        parse(&body);
        parse(&text.as_bytes()[..cut.index(text.len())]);
    }
}
