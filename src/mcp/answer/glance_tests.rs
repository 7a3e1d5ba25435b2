//! What is told by a glance is what the reader says.

use proptest::prelude::*;

use super::super::{Format, arbitrary};
use super::tests::{read_with, words};
use super::*;

/// What the reader makes of a message that a glance has settled.
fn assert_the_reader_agrees(message: &[u8]) -> bool {
    let seen = read_with(EXCERPT_LIMIT, Format::Json, &[message]);
    match (glance(message), seen.as_slice()) {
        (None, _) => return false,
        (Some(Glance::Success(success)), [Seen::Answer(answer)]) => {
            assert_eq!(answer.id.as_deref().map(str::as_bytes), Some(success.id));
            let Kind::Result(outcome) = &answer.kind else { panic!("{answer:?}") };
            let result_type = outcome.result_type;
            assert!(matches!(result_type, ResultType::Absent | ResultType::Complete), "{answer:?}");
            let protocol_version = outcome.protocol_version.clone();
            assert_eq!(*outcome, Outcome { result_type, protocol_version, ..Outcome::default() });
        }
        (Some(Glance::Nothing), [Seen::Notification(notification)]) => {
            assert_eq!((&notification.task, notification.logged_error()), (&None, None));
        }
        (Some(glance), other) => panic!("{glance:?}, but {other:?} in {}", String::from_utf8_lossy(message)),
    }
    true
}

/// Messages that a glance should settle, with random JSON where anything may stand.
fn usual_message() -> impl Strategy<Value = String> {
    let (space, json) = (arbitrary::space, arbitrary::json);
    let text = arbitrary::string_token(any::<String>());
    let content = (text, json(), any::<bool>()).prop_map(|(text, meta, more)| {
        let block = format!(r#"{{"type":"text","text":{text},"annotations":{meta}}}"#);
        if more { format!("[{block},{block}]") } else { format!("[{block}]") }
    });
    let result = (content, json(), space()).prop_map(|(content, structured, space)| {
        format!(r#"{{"content":{content}{space},"structuredContent":{structured},"isError":{space}false}}"#)
    });
    let result = prop_oneof![3 => result, 1 => arbitrary::object_of(arbitrary::json())];
    prop_oneof![
        result.clone().prop_map(|result| format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#)),
        result.prop_map(|result| format!(r#"{{"result":{result} , "jsonrpc":"2.0","id":"x"}}"#)),
        json().prop_map(|data| {
            format!(r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","data":{data}}}}}"#)
        }),
        arbitrary::object_of(json()),
    ]
}

proptest! {
    #[test]
    fn a_glance_sees_nothing_that_the_reader_does_not(
        message in usual_message(),
        damage in prop::option::weighted(0.5, (any::<prop::sample::Index>(), any::<u8>(), 0usize..3)),
    ) {
        let mut bytes = message.into_bytes();
        assert_the_reader_agrees(&bytes);
        if let Some((at, byte, how)) = damage {
            let at = at.index(bytes.len());
            match how {
                0 => bytes[at] = byte,
                1 => drop(bytes.remove(at)),
                _ => bytes.insert(at, b"\"\\{}[],: "[usize::from(byte) % 9]),
            }
            assert_the_reader_agrees(&bytes);
        }
    }
}

#[test]
fn a_glance_settles_what_servers_usually_say() {
    let notification = |method: &str, params: &str| {
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/{method}","params":{params}}}"#)
    };
    for message in [
        r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"a \"quoted\" \u00fc"}],"isError":false}}"#,
        r#"{"result":{"content":[{"type":"text","text":"x"}],"structuredContent":{"isError":true}},"jsonrpc":"2.0","id":"a"}"#,
        r#" {"jsonrpc":"2.0","id":-1.5e3,"result":{"content":[],"resultType":"complete","_meta":{"a":[1,{}]}}} "#,
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        &notification("progress", r#"{"progressToken":1,"progress":3,"total":20,"message":"step"}"#),
        &notification("message", r#"{"level":"info","data":{"a":"b"}}"#),
    ] {
        assert!(assert_the_reader_agrees(message.as_bytes()), "{message}");
    }
    for message in [
        r#"{"jsonrpc":"2.0","id":1,"result":{"isError":true}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{"isErr\u006fr":true}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{"isError":false,"isError":true}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{"task":{"taskId":"t","status":"working"}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{"capabilities":{"tools":{"listChanged":true}}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"no"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}"#,
        r#"{"jsonrpc":"1.0","id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","result":{}}"#,
        r#"[{"jsonrpc":"2.0","id":1,"result":{}}]"#,
        "",
        &notification("message", r#"{"level":"error","data":"no disk"}"#),
        &notification("progress", r#"{"taskId":"t","status":"failed"}"#),
        &notification("tasks/status", r#"{"progress":1}"#),
    ] {
        assert_eq!(glance(message.as_bytes()), None, "{message}");
    }
}

#[test]
fn a_glance_gives_what_may_be_one_object_and_the_whole_of_a_result() {
    let sole = |result: &str| {
        let message = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
        match glance(message.as_bytes()) {
            Some(Glance::Success(success)) => success.sole.map(|token| String::from_utf8_lossy(token).into_owned()),
            other => panic!("{message} is {other:?}"),
        }
    };
    for (result, expected) in [
        (r#"{"content":[{"type":"text","text":"words"}]}"#, None),
        (r#"{"content":[{"type":"text","text":"{\"a\":1}"}]}"#, Some(r#""{\"a\":1}""#)),
        (r#"{"content":[{"type":"text","text":" {}"}]}"#, Some(r#"" {}""#)),
        (r#"{"content":[{"type":"text","text":"\u007b}"}]}"#, Some(r#""\u007b}""#)),
        (r#"{"content":[{"type":"resource","resource":{"text":"{}"}}]}"#, Some(r#""{}""#)),
        (r#"{"content":[{"text":"{}"},{"text":"{}"}]}"#, None),
        (r#"{"content":[],"structuredContent":{"a":1}}"#, Some(r#"{"a":1}"#)),
        (r#"{"structuredContent":{"a":1}}"#, Some(r#"{"a":1}"#)),
        (r#"{"structuredContent":[1]}"#, None),
        (r#"{"content":[{"type":"text","text":"x"}],"structuredContent":{"a":1}}"#, None),
    ] {
        assert_eq!(sole(result).as_deref(), expected, "{result}");
    }
}

proptest! {
    #[test]
    fn a_reader_that_glances_sees_what_one_that_reads_does(
        messages in prop::collection::vec((usual_message(), 0usize..5), 1..6),
        cuts in arbitrary::cuts(),
    ) {
        let mut stream = String::new();
        for (message, how) in messages {
            let line = message.replace(['\r', '\n'], " ");
            stream += &match how {
                0 => format!("event: message\ndata: {line}\n\n"),
                1 => format!("id: 7\ndata:{line}\r\n\r\n"),
                2 => format!("event: other\ndata: {line}\n\n"),
                3 => format!("data: {line}\ndata: {line}\n\n"),
                _ => format!(": comment\ndata: {line}\nid: 8\n\n"),
            };
        }
        let chunks = arbitrary::chunks(stream.as_bytes(), &cuts);
        let mut seen = Vec::new();
        let mut reader = Reader::new(Format::EventStream, EXCERPT_LIMIT).glancing(|_, success| success.sole.is_none());
        chunks.iter().for_each(|chunk| reader.push(chunk, |item| seen.push(item)));
        reader.finish(|item| seen.push(item));
        let of_note = |seen: &[Seen]| {
            let mut words = words(seen);
            words.retain(|word| word != "notifications/message");
            words
        };
        prop_assert_eq!(of_note(&seen), of_note(&read_with(EXCERPT_LIMIT, Format::EventStream, &chunks)));
    }
}

#[test]
fn a_reader_that_glances_hands_out_successes_and_nothing_else_of_what_is_usual() {
    let mut reader = Reader::new(Format::EventStream, EXCERPT_LIMIT).glancing(|_, _| true);
    let mut seen = Vec::new();
    let stream = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progress\":1}}\n\n\
                  data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n";
    reader.push(stream.as_bytes(), |item| seen.push(item));
    assert_eq!(seen, [Seen::Success("1".to_owned())]);
}
