//! What is seen in answers, whatever the framing and the chunking.

use proptest::prelude::*;
use serde_json::Value;

use super::super::{Format, arbitrary};
use super::*;

pub(super) fn read_with(limit: usize, format: Format, chunks: &[&[u8]]) -> Vec<Seen> {
    let (mut reader, mut seen) = (Reader::new(format, limit), Vec::new());
    chunks.iter().for_each(|chunk| reader.push(chunk, |item| seen.push(item)));
    reader.finish(|item| seen.push(item));
    seen
}

fn read(format: Format, body: &str) -> Vec<Seen> {
    read_with(EXCERPT_LIMIT, format, &[body.as_bytes()])
}

/// The only answer in a JSON body.
fn answer(body: &str) -> Answer {
    match read(Format::Json, body).as_slice() {
        [Seen::Answer(answer)] => Answer::clone(answer),
        other => panic!("{body} is {other:?}"),
    }
}

fn outcome(result: &str) -> Outcome {
    match answer(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#)).kind {
        Kind::Result(outcome) => outcome,
        Kind::Error(error) => panic!("{error:?}"),
    }
}

fn notification(message: &str) -> Notification {
    match read(Format::Json, message).as_slice() {
        [Seen::Notification(notification)] => Notification::clone(notification),
        other => panic!("{message} is {other:?}"),
    }
}

/// One word per item, for streams.
pub(super) fn words(seen: &[Seen]) -> Vec<String> {
    let id = |id: &Option<String>| id.clone().unwrap_or_default();
    seen.iter()
        .map(|item| match item {
            Seen::Answer(answer) => format!("answer {}", id(&answer.id)),
            Seen::Success(id) => format!("answer {id}"),
            Seen::Request(request) => format!("{} {}", request.method, id(&request.id)),
            Seen::Notification(notification) => notification.method.clone(),
            Seen::EventId(id) => format!("id {id}"),
            Seen::Endpoint(url) => format!("endpoint {url}"),
            Seen::ErrorEvent(text) => format!("error event {}", text.text()),
            Seen::Trouble(trouble) => format!("{:?} {}", trouble.kind, trouble.text.text()),
        })
        .collect()
}

#[test]
fn an_error_event_and_what_was_logged_as_an_error_are_no_messages_but_tell_why() {
    let seen = read(Format::EventStream, "event: error\ndata: overloaded\n\nevent: ping\ndata: 1\n\n");
    assert_eq!(words(&seen), ["error event overloaded"]);
    let logged = |level: &str| {
        let message =
            r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"LEVEL","data":"no disk"}}"#;
        notification(&message.replace("LEVEL", level)).logged_error().map(str::to_owned)
    };
    assert_eq!(logged("error").as_deref(), Some("\"no disk\""));
    assert_eq!((logged("warning"), logged("info")), (None, None));
}

#[test]
fn a_result_is_an_error_only_by_its_own_is_error() {
    for (result, is_error) in [
        (r#"{"content":[],"isError":true}"#, true),
        (r#"{"isErr\u006fr" : true}"#, true),
        (r#"{"isError":false}"#, false),
        (r#"{"isError":"true"}"#, false),
        (r#"{"isError":null}"#, false),
        (r#"{"content":[{"type":"text","text":"\"isError\":true"}]}"#, false),
        (r#"{"structuredContent":{"isError":true}}"#, false),
        (r#"{"isError":true,"isError":false}"#, false),
        (r#"{"isError":false,"isError":true}"#, true),
        ("[]", false),
        ("null", false),
    ] {
        assert_eq!(outcome(result).is_error, is_error, "{result}");
    }
    let twice = answer(r#"{"jsonrpc":"2.0","id":1,"result":{"isError":true,"resultType":"task"},"result":{}}"#);
    assert_eq!(twice.kind, Kind::Result(Outcome::default()), "of two results the last counts, whole");
    let task = r#"{"taskId":"t","status":"failed","task":{"taskId":"t","status":"working"}}"#;
    for last in ["{}", "null"] {
        let twice = answer(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{task},"result":{last}}}"#));
        assert_eq!(twice.kind, Kind::Result(Outcome::default()), "nothing of the first is left");
    }
    let twice = format!(r#"{{"jsonrpc":"2.0","method":"m","params":{task},"params":{{}}}}"#);
    assert_eq!(notification(&twice).task, None);
}

#[test]
fn a_result_tells_its_type() {
    for (result, result_type) in [
        ("{}", ResultType::Absent),
        (r#"{"resultType":"complete"}"#, ResultType::Complete),
        (r#"{"resultType":"input_required","inputRequests":{}}"#, ResultType::InputRequired),
        (r#"{"resultType":"task","taskId":"t","status":"working"}"#, ResultType::Task),
        (r#"{"resultType":"tas\u006b"}"#, ResultType::Task),
        (r#"{"resultType":"surprise"}"#, ResultType::Other),
        (r#"{"resultType":5}"#, ResultType::Other),
    ] {
        assert_eq!(outcome(result).result_type, result_type, "{result}");
    }
}

#[test]
fn a_task_in_the_params_is_none_of_the_result_and_the_other_way_round() {
    let task = r#"{"taskId":"t","status":"completed"}"#;
    for (text, expected) in [
        (format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{}},"params":{task}}}"#), "result false None"),
        (format!(r#"{{"jsonrpc":"2.0","id":1,"params":{task},"result":null}}"#), "result false None"),
        (format!(r#"{{"jsonrpc":"2.0","id":1,"params":{{}},"result":{task}}}"#), r#"result false Some("t")"#),
        (format!(r#"{{"jsonrpc":"2.0","id":1,"result":{task},"params":{{}}}}"#), r#"result false Some("t")"#),
    ] {
        assert_eq!(summary(&read(Format::Json, &text)[0]), expected, "{text}");
    }
    let ended = format!(r#"{{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{task},"result":{{}}}}"#);
    assert!(matches!(&read(Format::Json, &ended)[0], Seen::Notification(told) if told.task.is_some()));
}

#[test]
fn tasks_are_read_in_every_shape() {
    let task = |status, created, end| Some(Task { id: "t".to_owned(), status, created, end });
    let rpc = |code, message: &str| Some(TaskEnd::Error(RpcError { code: Some(code), message: message.to_owned() }));
    for (result, expected) in [
        (r#"{"task":{"taskId":"t","status":"working","ttl":1}}"#, task(TaskStatus::Working, true, None)),
        (
            r#"{"resultType":"task","taskId":"t","status":"input_required"}"#,
            task(TaskStatus::InputRequired, true, None),
        ),
        (r#"{"taskId":"t","status":"completed"}"#, task(TaskStatus::Completed, false, None)),
        (
            r#"{"resultType":"complete","taskId":"t","status":"completed","result":{"content":[{"isError":false}],"isError":true}}"#,
            task(TaskStatus::Completed, false, Some(TaskEnd::Result { is_error: true })),
        ),
        (
            r#"{"result":{"content":[]},"status":"completed","taskId":"t"}"#,
            task(TaskStatus::Completed, false, Some(TaskEnd::Result { is_error: false })),
        ),
        (
            r#"{"taskId":"t","status":"failed","error":{"message":"no","code":-32603}}"#,
            task(TaskStatus::Failed, false, rpc(-32603, "no")),
        ),
        (r#"{"taskId":"t","status":"cancelled","error":null}"#, task(TaskStatus::Cancelled, false, None)),
        (r#"{"taskId":"t","status":"paused"}"#, task(TaskStatus::Other, false, None)),
        (r#"{"content":[],"status":"completed"}"#, None),
        (r#"{"content":[],"task":"t","taskId":7,"status":"completed"}"#, None),
        (r#"{"structuredContent":{"task":{"taskId":"t","status":"failed"}}}"#, None),
    ] {
        assert_eq!(outcome(result).task, expected, "{result}");
        assert!(!outcome(result).is_error, "an error of the task's result is the task's: {result}");
    }
}

#[test]
fn the_answer_to_initialize_tells_version_and_capabilities() {
    let outcome = outcome(
        r#"{"protocolVersion":"2025-11-25","capabilities":{"prompts":{"listChanged":true},"tools":{"listChanged":true}}}"#,
    );
    assert_eq!(outcome.protocol_version.as_deref(), Some("2025-11-25"));
    assert!(outcome.tools_list_changed);
    assert!(!self::outcome(r#"{"capabilities":{"prompts":{"listChanged":true},"tools":{}}}"#).tools_list_changed);
}

#[test]
fn errors_are_read_with_code_and_message() {
    for (error, code, message) in [
        (r#"{"code":-32603,"message":"no \u00fc","data":{"code":1,"message":"x"}}"#, Some(-32603), "no ü"),
        (r#"{"data":[{"code":1}],"message":"m"}"#, None, "m"),
        (r#"{"code":-3.2603e4}"#, Some(-32603), ""),
        (r#"{"code":"-32603"}"#, None, ""),
        (r#"{"code":1.5}"#, None, ""),
        (r#"{"code":1e400}"#, None, ""),
        (
            r#""just text, of a server that does not know the shape of an error, and quite long too""#,
            None,
            "just text, of a server that does not know the shape of an error, and quite long too",
        ),
    ] {
        let answer = answer(&format!(r#"{{"error":{error},"id":null,"jsonrpc":"2.0"}}"#));
        assert_eq!(answer.id.as_deref(), Some("null"));
        assert_eq!(answer.kind, Kind::Error(RpcError { code, message: message.to_owned() }), "{error}");
    }
}

#[test]
fn an_error_of_null_is_none() {
    assert!(matches!(answer(r#"{"jsonrpc":"2.0","id":1,"error":null,"result":{}}"#).kind, Kind::Result(_)));
    assert!(matches!(answer(r#"{"jsonrpc":"2.0","id":1,"result":null,"error":{}}"#).kind, Kind::Error(_)));
    assert!(words(&read(Format::Json, r#"{"jsonrpc":"2.0","id":1,"error":null}"#))[0].starts_with("NotJsonRpc"));
}

#[test]
fn ids_are_raw_tokens_wherever_they_stand() {
    for id in ["0", "\"0\"", "9007199254740993", "-1.0e2", r#""\u0041""#] {
        let first = format!(r#"{{"id":{id},"jsonrpc":"2.0","result":{{"id":5}}}}"#);
        let last = format!(r#"{{"jsonrpc":"2.0","result":{{"id":5}},"id": {id} }}"#);
        assert_eq!(answer(&first).id.as_deref(), Some(id));
        assert_eq!(answer(&last).id.as_deref(), Some(id));
    }
    let long = format!(r#"{{"jsonrpc":"2.0","id":"{}","result":{{}}}}"#, "x".repeat(2_000));
    assert_eq!(answer(&long).id, None, "an id beyond the bound is not half an id");
    assert_eq!(answer(r#"{"jsonrpc":"2.0","result":{}}"#).id, None);
}

#[test]
fn notifications_tell_what_they_are_about() {
    let cancelled = notification(
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0,"reason":"\"requestId\":1"}}"#,
    );
    assert_eq!(cancelled.request_id.as_deref(), Some("0"));
    let progress = notification(
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":0.5}}"#,
    );
    assert_eq!(progress.progress_token.as_deref(), Some("\"p\""));
    let log = notification(
        r#"{"method":"notifications/message","params":{"level":"error","data":{"level":"x"}},"jsonrpc":"2.0"}"#,
    );
    assert_eq!((log.level.as_deref(), log.data.as_deref()), (Some("error"), Some(r#"{"level":"x"}"#)));
    let status = notification(
        r#"{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"t","status":"failed"}}"#,
    );
    assert_eq!(status.task, Some(Task { id: "t".to_owned(), status: TaskStatus::Failed, created: false, end: None }));
    let listened = notification(
        r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":7}}}"#,
    );
    assert_eq!(listened.subscription.as_deref(), Some("7"));
}

#[test]
fn a_stream_is_read_event_by_event() {
    let stream = concat!(
        ": hello\n\n",
        "id: 1\ndata:\nretry: 5\n\n",
        "event: message\r\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\r\n\r\n",
        "data: {\"jsonrpc\":\"2.0\",\ndata: \"id\":0,\"method\":\"sampling/createMessage\"}\n\n",
        "event: ping\ndata: not json\n\n",
        "data: {\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}\nid: 2\n\n",
        "data: [{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}},{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}]\n\n",
        "data: oops\n\n",
        "data: {\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}\n",
    );
    assert_eq!(
        words(&read(Format::EventStream, stream)),
        [
            "id 1",
            "notifications/progress",
            "sampling/createMessage 0",
            "id 2",
            "answer 0",
            "answer 1",
            "answer 2",
            "NotJson oops",
        ],
        "the last event never got its blank line"
    );
}

#[test]
fn the_old_transport_names_its_endpoint() {
    let stream = "event: endpoint\ndata: /messages?session=1\n\ndata: https://x/\nevent: endpoint\n\n";
    assert_eq!(words(&read(Format::EventStream, stream)), ["endpoint /messages?session=1", "endpoint https://x/"]);
}

#[test]
fn a_batch_is_read_member_by_member() {
    let batch = r#"[{"jsonrpc":"2.0","id":1,"result":{"isError":true}}, {"jsonrpc":"2.0","id":"b","error":{"code":1}},
                    {"jsonrpc":"2.0","method":"notifications/x"}]"#;
    let seen = read(Format::Json, batch);
    assert_eq!(words(&seen), ["answer 1", "answer \"b\"", "notifications/x"]);
    match &seen[0] {
        Seen::Answer(answer) => {
            assert_eq!(answer.text.text(), r#"{"jsonrpc":"2.0","id":1,"result":{"isError":true}}"#);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_no_message_is_told_with_its_text() {
    for (format, body, expected) in [
        (Format::Json, "", "Empty "),
        (Format::Json, " \n", "Empty  \n"),
        (Format::Json, "<html>502</html>", "NotJson <html>502</html>"),
        (Format::Json, r#"{"jsonrpc":"2.0","id":1,"#, r#"Truncated {"jsonrpc":"2.0","id":1,"#),
        (Format::Json, r#"{"error":"expired_token"}"#, r#"NotJsonRpc {"error":"expired_token"}"#),
        (Format::Json, r#"{"error":{"code":401},"id":1}"#, r#"NotJsonRpc {"error":{"code":401},"id":1}"#),
        (Format::Json, r#"{"jsonrpc":"2.0","id":1}"#, r#"NotJsonRpc {"jsonrpc":"2.0","id":1}"#),
        (Format::Json, "5", "NotJsonRpc 5"),
        (Format::Json, "[]", "NotJsonRpc []"),
        (Format::Json, r#"{"jsonrpc":"2.0","id":1,"result":{}} x"#, "NotJson  x"),
        (Format::Other, "bad gateway", "ContentType bad gateway"),
        (Format::Other, "", "Empty "),
    ] {
        assert_eq!(words(&read(format, body)), [expected], "{format:?} {body}");
    }
    assert!(read(Format::EventStream, "").is_empty());
}

#[test]
fn a_huge_answer_is_read_without_being_held() {
    const CHUNK: usize = 64 * 1024;
    for format in [Format::Json, Format::EventStream] {
        let mut reader = Reader::new(format, 1_024);
        let mut seen = Vec::new();
        let lead = if format == Format::EventStream { "data: " } else { "" };
        reader.push(format!(r#"{lead}{{"jsonrpc":"2.0","result":{{"content":[{{"text":"HEAD"#).as_bytes(), |_| {});
        let chunk = vec![b'x'; CHUNK];
        (0..256).for_each(|_| reader.push(&chunk, |_| {}));
        assert!(format!("{reader:?}").len() < 64 * 1024, "the reader holds no more than its bounds");
        reader.push(b"TAIL\"}],\"isError\":true},\"id\":7}\n\n", |item| seen.push(item));
        reader.finish(|item| seen.push(item));
        match seen.as_slice() {
            [Seen::Answer(answer)] => {
                assert_eq!(answer.id.as_deref(), Some("7"));
                assert!(matches!(&answer.kind, Kind::Result(outcome) if outcome.is_error));
                assert!(answer.text.is_truncated() && answer.text.total() > 256 * CHUNK as u64);
                let text = answer.text.text();
                assert!(text.len() < 1_100 && text.contains("HEAD") && text.contains("TAIL"));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn ten_thousand_events_are_ten_thousand_items_and_leave_nothing_behind() {
    let mut reader = Reader::new(Format::EventStream, EXCERPT_LIMIT);
    let mut answers = 0;
    for index in 0..10_000 {
        let event = format!("id: {index}\ndata: {{\"jsonrpc\":\"2.0\",\"id\":{index},\"result\":{{}}}}\n\n");
        reader.push(event.as_bytes(), |item| answers += usize::from(matches!(item, Seen::Answer(_))));
        assert!(reader.at_boundary());
    }
    assert_eq!(answers, 10_000);
    assert!(format!("{reader:?}").len() < 4_096);
}

#[test]
fn deep_nesting_and_endless_strings_do_no_harm() {
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{"structuredContent":{}{},"isError":true}}}}"#,
        "[".repeat(64 * 1024),
        "]".repeat(64 * 1024)
    );
    assert!(matches!(answer(&deep).kind, Kind::Result(outcome) if outcome.is_error));
    assert!(words(&read(Format::Json, &"[".repeat(64 * 1024)))[0].starts_with("Truncated"));
    let endless = format!(r#"{{"jsonrpc":"2.0","id":"{}"#, "\\".repeat(64 * 1024));
    assert!(words(&read(Format::Json, &endless))[0].starts_with("Truncated"));
}

fn message() -> impl Strategy<Value = String> {
    let jsonrpc = prop_oneof![9 => Just(r#""jsonrpc":"2.0","#), 1 => Just("")];
    (jsonrpc, arbitrary::object_of(arbitrary::json())).prop_map(|(jsonrpc, object)| {
        let inside = object.strip_prefix('{').unwrap().trim_start();
        if inside == "}" { format!("{{{}}}", jsonrpc.trim_end_matches(',')) } else { format!("{{{jsonrpc}{inside}") }
    })
}

/// What a client would take the message for.
fn expected(text: &str) -> String {
    let message: Value = serde_json::from_str(text).unwrap();
    let result = &message["result"];
    match (
        message.get("method").and_then(Value::as_str),
        message.get("error").filter(|error| !error.is_null()),
        message.get("result"),
    ) {
        _ if message["jsonrpc"] != "2.0" => "trouble".to_owned(),
        (Some(method), ..) if message.get("id").is_some() => format!("request {method}"),
        (Some(method), ..) => format!("notification {method}"),
        (None, Some(error), _) => {
            format!("error {:?}", error["message"].as_str().or(error.as_str()).unwrap_or_default())
        }
        (None, None, Some(_)) => {
            let task = result["taskId"].as_str().filter(|_| result.get("status").is_some());
            let created = result["task"]["taskId"].as_str().filter(|_| result["task"].get("status").is_some());
            format!("result {} {:?}", result["isError"] == true, created.or(task))
        }
        (None, None, None) => "trouble".to_owned(),
    }
}

fn summary(seen: &Seen) -> String {
    match seen {
        Seen::Request(request) => format!("request {}", request.method),
        Seen::Notification(notification) => format!("notification {}", notification.method),
        Seen::Answer(answer) => match &answer.kind {
            Kind::Error(error) => format!("error {:?}", error.message),
            Kind::Result(outcome) => {
                let task = outcome.task.as_ref().map(|task| task.id.as_str());
                format!("result {} {task:?}", outcome.is_error)
            }
        },
        _ => "trouble".to_owned(),
    }
}

/// A stream of random messages and of things that go wrong.
fn stream() -> impl Strategy<Value = String> {
    let event = prop_oneof![
        4 => (message(), prop::sample::select(vec!["", "id: 5\n", "event: message\r\n", ": c\n", "event: x\n"]))
            .prop_map(|(message, line)| {
                let message = message.replace("\r\n", "\n").replace('\n', "\ndata: ");
                format!("{line}data: {message}\n\n")
            }),
        1 => Just("event: endpoint\ndata: /m\n\n".to_owned()),
        1 => arbitrary::json().prop_map(|json| format!("data: {}\r\n\r\n", json.replace(['\r', '\n'], " "))),
        1 => Just("data: {\"torn\n".to_owned()),
    ];
    prop::collection::vec(event, 0..6).prop_map(|events| events.concat())
}

proptest! {
    #[test]
    fn any_message_is_read_as_serde_json_reads_it(text in message()) {
        let seen = read(Format::Json, &text);
        prop_assert_eq!(seen.len(), 1);
        prop_assert_eq!(summary(&seen[0]), expected(&text), "{}", text);
    }

    #[test]
    fn chunking_never_shows_in_a_stream(stream in stream(), cuts in arbitrary::cuts(), limit in 0usize..200) {
        let bytewise: Vec<&[u8]> = stream.as_bytes().chunks(1).collect();
        let whole = read_with(limit, Format::EventStream, &[stream.as_bytes()]);
        prop_assert_eq!(&read_with(limit, Format::EventStream, &bytewise), &whole);
        prop_assert_eq!(&read_with(limit, Format::EventStream, &arbitrary::chunks(stream.as_bytes(), &cuts)), &whole);
    }

    #[test]
    fn chunking_never_shows_in_a_json_body(
        members in prop::collection::vec(message(), 1..4),
        batch in any::<bool>(),
        cuts in arbitrary::cuts(),
        limit in 0usize..200,
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut body = if batch { format!("[{}]", members.join(" ,")) } else { members[0].clone() }.into_bytes();
        body.truncate(cut.map_or(body.len(), |cut| cut.index(body.len())));
        let bytewise: Vec<&[u8]> = body.chunks(1).collect();
        let whole = read_with(limit, Format::Json, &[&body]);
        prop_assert_eq!(&read_with(limit, Format::Json, &bytewise), &whole);
        prop_assert_eq!(&read_with(limit, Format::Json, &arbitrary::chunks(&body, &cuts)), &whole);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), cuts in arbitrary::cuts()) {
        for format in [Format::Json, Format::EventStream, Format::Other] {
            read_with(64, format, &arbitrary::chunks(&bytes, &cuts));
        }
    }
}
