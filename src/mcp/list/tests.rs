//! Pages and edits: only the places concerned change.

use proptest::prelude::*;
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::sse::{Framer, Piece};
use super::super::{Format, arbitrary};
use super::*;

const NO_LIST_EDIT: ListEdit = ListEdit { max_ttl_ms: None, private: false };

fn describe(text: &str) -> Edit {
    Edit::Annotate { description: Some(text.to_owned()), health: None }
}

fn mark(health: &str) -> Edit {
    Edit::Annotate { description: None, health: Some(health.to_owned()) }
}

/// A page that holds just these elements.
fn list(elements: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{elements}],"nextCursor":"n"}}}}"#)
}

/// Rewrites a JSON body, giving each tool the edit that is listed under its name.
fn edited(body: &str, edits: &[(&str, Edit)]) -> String {
    let edit = |tool: &Tool<'_>| {
        edits.iter().find(|(name, _)| *name == tool.name).map(|(_, edit)| edit.clone()).unwrap_or_default()
    };
    let bytes = rewrite(body.as_bytes(), Format::Json, NO_LIST_EDIT, edit);
    String::from_utf8(bytes.into_owned()).unwrap()
}

#[track_caller]
fn check(elements: &str, edits: &[(&str, Edit)], expected: &str) {
    assert_eq!(edited(&list(elements), edits), list(expected));
}

#[test]
fn a_description_grows_at_its_end() {
    let edit = [("a", describe(" [\"down\" \u{fc}\n]"))];
    check(
        r#"{"name":"a", "description" : "caf\u00e9 \"x\"" ,"n":1.0}"#,
        &edit,
        r#"{"name":"a", "description" : "caf\u00e9 \"x\" [\"down\" ü\n]" ,"n":1.0}"#,
    );
    check(r#"{"name":"a","description":""}"#, &edit, r#"{"name":"a","description":" [\"down\" ü\n]"}"#);
    check(r#"{"name":"a" }"#, &edit, r#"{"name":"a" ,"description":"[\"down\" ü\n]"}"#);
    check(r#"{"description":null,"name":"a"}"#, &edit, r#"{"description":"[\"down\" ü\n]","name":"a"}"#);
    check(r#"{"name":"a","description":7}"#, &edit, r#"{"name":"a","description":7}"#);
    check(
        r#"{"name":"a","description":"1","d\u0065scription":"2"}"#,
        &[("a", describe("!"))],
        r#"{"name":"a","description":"1","d\u0065scription":"2!"}"#,
    );
}

#[test]
fn health_is_set_in_meta_whatever_is_there() {
    let edit = [("a", mark("{\"s\":\n1}"))];
    for (before, after) in [
        (r#"{"name":"a"}"#, r#"{"name":"a","_meta":{"toolvane/health":{"s": 1}}}"#),
        (r#"{"name":"a","_meta":{}}"#, r#"{"name":"a","_meta":{"toolvane/health":{"s": 1}}}"#),
        (r#"{"name":"a","_meta":{ }}"#, r#"{"name":"a","_meta":{ "toolvane/health":{"s": 1}}}"#),
        (r#"{"_meta":{"x":1},"name":"a"}"#, r#"{"_meta":{"x":1,"toolvane/health":{"s": 1}},"name":"a"}"#),
        (
            r#"{"name":"a","_meta":{"x":{"toolvane/health":0},"toolvane/health": [1] ,"y":2}}"#,
            r#"{"name":"a","_meta":{"x":{"toolvane/health":0},"toolvane/health": {"s": 1} ,"y":2}}"#,
        ),
        (r#"{"name":"a","_meta":null}"#, r#"{"name":"a","_meta":{"toolvane/health":{"s": 1}}}"#),
        (r#"{"name":"a","_meta":"x"}"#, r#"{"name":"a","_meta":"x"}"#),
    ] {
        check(before, &edit, after);
    }
    let both = Edit::Annotate { description: Some(" d".to_owned()), health: Some("1".to_owned()) };
    check(r#"{"name":"a"}"#, &[("a", both)], r#"{"name":"a","description":"d","_meta":{"toolvane/health":1}}"#);
}

#[test]
fn dropped_tools_take_one_comma_along() {
    let tools = r#" {"name":"a"} , {"name":"b"},{"name":"c"} "#;
    for (drop, expected) in [
        ("a", r#" {"name":"b"},{"name":"c"} "#),
        ("b", r#" {"name":"a"},{"name":"c"} "#),
        ("c", r#" {"name":"a"} , {"name":"b"} "#),
        ("ab", r#" {"name":"c"} "#),
        ("ac", r#" {"name":"b"} "#),
        ("bc", r#" {"name":"a"} "#),
        ("abc", "  "),
    ] {
        let edits: Vec<_> =
            ["a", "b", "c"].into_iter().filter(|name| drop.contains(name)).map(|name| (name, Edit::Drop)).collect();
        check(tools, &edits, expected);
    }
}

#[test]
fn nothing_but_tools_of_the_result_is_edited() {
    let look_alikes = r#"{"jsonrpc":"2.0","tools":[{"name":"a"}],"result":{"_meta":{"tools":[{"name":"a"}]},
        "tools":[5,null,{"title":"a"},{"name":7},[{"name":"a"}],{"name":"b","inputSchema":{"name":"a","description":"x"}}]}}"#;
    assert_eq!(edited(look_alikes, &[("a", Edit::Drop)]), look_alikes);
    for body in [
        "",
        "<html>",
        "[]",
        r#"{"result":{"tools":{}}}"#,
        r#"{"result":[{"tools":[]}]}"#,
        r#"{"result":{"tools":[{"name":"a"}]}"#,
    ] {
        assert_eq!(edited(body, &[("a", Edit::Drop)]), body, "what cannot be read stays");
        assert_eq!(page(body.as_bytes(), Format::Json), None);
    }
    let twice = r#"{"result":{"tools":[{"name":"a"}],"tools":[{"name":"a"},{"name":"b"}]}}"#;
    assert_eq!(
        edited(twice, &[("a", Edit::Drop)]),
        r#"{"result":{"tools":[{"name":"a"}],"tools":[{"name":"b"}]}}"#,
        "of two lists the last is the one that clients see"
    );
    let batch = format!("[{},{}]", list(r#"{"name":"a"}"#), list(r#"{"name":"b"}"#));
    let halved = format!("[{},{}]", list(""), list(r#"{"name":"b"}"#));
    assert_eq!(edited(&batch, &[("a", Edit::Drop)]), halved);
}

#[test]
fn names_are_compared_as_they_read_not_as_they_are_spelled() {
    check(r#"{"n\u0061me":"\u0061"}"#, &[("a", Edit::Drop)], "");
}

#[test]
fn the_life_of_a_list_is_shortened_never_prolonged() {
    let whole = ListEdit { max_ttl_ms: Some(5_000), private: true };
    for (before, after) in [
        (
            r#"{"result":{"ttlMs":60000,"tools":[],"cacheScope":"public"}}"#,
            r#"{"result":{"ttlMs":5000,"tools":[],"cacheScope":"private"}}"#,
        ),
        (r#"{"result":{"tools":[],"ttlMs": 6e4 }}"#, r#"{"result":{"tools":[],"ttlMs": 5000 }}"#),
        (r#"{"result":{"tools":[],"ttlMs":1e30}}"#, r#"{"result":{"tools":[],"ttlMs":5000}}"#),
        (
            r#"{"result":{"tools":[],"ttlMs":5000,"cacheScope":"private"}}"#,
            r#"{"result":{"tools":[],"ttlMs":5000,"cacheScope":"private"}}"#,
        ),
        (r#"{"result":{"tools":[],"ttlMs":0}}"#, r#"{"result":{"tools":[],"ttlMs":0}}"#),
        (r#"{"result":{"tools":[],"ttlMs":-1}}"#, r#"{"result":{"tools":[],"ttlMs":-1}}"#),
        (r#"{"result":{"tools":[],"ttlMs":"9999"}}"#, r#"{"result":{"tools":[],"ttlMs":"9999"}}"#),
        (
            r#"{"result":{"tools":[{"name":"a","ttlMs":60000}]}}"#,
            r#"{"result":{"tools":[{"name":"a","ttlMs":60000}]}}"#,
        ),
    ] {
        let bytes = rewrite(before.as_bytes(), Format::Json, whole, |_| Edit::Keep);
        assert_eq!(std::str::from_utf8(&bytes).unwrap(), after);
        assert_eq!(matches!(bytes, Cow::Borrowed(_)), before == after);
    }
}

#[test]
fn a_page_is_read_out_of_json_and_out_of_a_stream() {
    let message = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a","annotations":{"readOnlyHint":true},"_meta":{"x":1}},{"name":"b"}],"nextCursor":""}}"#;
    let stream = format!(
        "data: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}}\n\nid: 4\nevent: message\ndata: {message}\n\n"
    );
    for (body, format) in [(message, Format::Json), (stream.as_str(), Format::EventStream)] {
        let page = page(body.as_bytes(), format).unwrap();
        assert_eq!(page.message, message.as_bytes());
        assert_eq!(page.next_cursor.as_deref(), Some(""));
        let [a, b] = page.tools.as_slice() else { panic!("{:?}", page.tools) };
        assert_eq!((a.name.as_str(), a.annotations.as_deref()), ("a", Some(r#"{"readOnlyHint":true}"#)));
        assert_eq!((a.meta.as_deref(), b.name.as_str(), b.meta.as_deref()), (Some(r#"{"x":1}"#), "b", None));
    }
    assert_eq!(page(message.as_bytes(), Format::Other), None);
}

#[test]
fn the_framing_of_a_stream_stays() {
    let stream = concat!(
        ": hi\r\n\r\n",
        "id: 1\r\nretry: 9\r\n\r\n",
        "event: ping\ndata: {\"result\":{\"tools\":[{\"name\":\"a\"}]}}\n\n",
        "id: 2\r\nevent: message\r\ndata: {\"result\":{\"tools\":[{\"name\":\"a\",\r\ndata:\"description\":\"d\"},\r\n: c\r\n",
        "data: {\"name\":\r\ndata:  \"b\"}, {\"name\":\"c\"}]}}\r\n\r\n",
        "data: {\"result\":{\"tools\":[{\"name\":\"a\"}]}}\n"
    );
    let expected = concat!(
        ": hi\r\n\r\n",
        "id: 1\r\nretry: 9\r\n\r\n",
        "event: ping\ndata: {\"result\":{\"tools\":[{\"name\":\"a\"}]}}\n\n",
        "id: 2\r\nevent: message\r\ndata: {\"result\":{\"tools\":[{\"name\":\"a\",\r\ndata:\"description\":\"d!\"}\r\n: c\r\n",
        "data: \r\ndata: , {\"name\":\"c\"}]}}\r\n\r\n",
        "data: {\"result\":{\"tools\":[{\"name\":\"a\"}]}}\n"
    );
    let bytes = rewrite(stream.as_bytes(), Format::EventStream, NO_LIST_EDIT, |tool| match &*tool.name {
        "a" => describe("!"),
        "b" => Edit::Drop,
        _ => Edit::Keep,
    });
    assert_eq!(std::str::from_utf8(&bytes).unwrap(), expected);
}

#[derive(Clone, Debug)]
struct Case {
    before: String,
    elements: Vec<String>,
    separator: String,
    after: String,
    edits: Vec<Edit>,
}

impl Case {
    fn body(&self) -> String {
        format!("{}[{}]{}", self.before, self.elements.join(&self.separator), self.after)
    }

    fn rewrite(&self, body: &str, format: Format) -> String {
        let mut edits = self.edits.iter();
        let bytes = rewrite(body.as_bytes(), format, NO_LIST_EDIT, |_| edits.next().unwrap().clone());
        String::from_utf8(bytes.into_owned()).unwrap()
    }
}

fn tool() -> impl Strategy<Value = String> {
    let named = (arbitrary::object_of(arbitrary::json()), arbitrary::string_token(any::<String>()), any::<bool>());
    named.prop_map(|(object, name, first)| {
        let inside = object.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap();
        match (inside.trim().is_empty(), first) {
            (true, _) => format!("{{ \"name\" :{name}}}"),
            // The name comes last, so that it counts whatever other names there are.
            (false, _) => format!("{{{inside},\"name\":{name} }}"),
        }
    })
}

fn edit() -> impl Strategy<Value = Edit> {
    let text = prop::option::of(any::<String>());
    let annotate = (text, prop::option::of(arbitrary::json()));
    prop_oneof![
        2 => Just(Edit::Keep),
        1 => Just(Edit::Drop),
        2 => annotate.prop_map(|(description, health)| Edit::Annotate { description, health }),
    ]
}

fn case() -> impl Strategy<Value = Case> {
    let tools = prop::collection::vec((tool(), edit()), 0..6);
    (tools, arbitrary::space(), arbitrary::space(), arbitrary::json()).prop_map(|(tools, space, more, json)| {
        let (elements, edits) = tools.into_iter().unzip();
        Case {
            before: format!("{space}{{\"x\":{json},{more}\"result\":{{\"_meta\":{json},\"tools\":{space}"),
            elements,
            separator: format!("{space},{more}"),
            after: format!("{space},\"nextCursor\":{json}}}{more},\"y\":{json}}}{space}"),
            edits,
        }
    })
}

/// Checks one annotated tool: its members are what they were, but for the description and our key.
fn check_annotated(old: &str, new: &str, description: Option<&str>, health: Option<&str>) {
    let (before, after): (Value, Value) = (serde_json::from_str(old).unwrap(), serde_json::from_str(new).unwrap());
    let mut expected = before;
    if let Some(text) = description.filter(|text| !text.is_empty()) {
        expected["description"] = match expected.get("description") {
            None | Some(Value::Null) => Value::from(text.trim_start()),
            Some(Value::String(old)) => Value::from(format!("{old}{text}")),
            Some(other) => other.clone(),
        };
    }
    if let (Some(health), None | Some(Value::Null | Value::Object(_))) = (health, expected.get("_meta")) {
        expected["_meta"]["toolvane/health"] = serde_json::from_str(health).unwrap();
    }
    assert_eq!(after, expected, "{old} became {new}");
}

/// The data of each event, without line breaks, which in these texts stand between tokens only.
fn payloads(stream: &str) -> Vec<String> {
    let (mut payloads, mut data) = (Vec::new(), String::new());
    Framer::new().push(stream.as_bytes(), |piece| match piece {
        Piece::Data { bytes, .. } => data += std::str::from_utf8(bytes).unwrap(),
        Piece::NextLine => {}
        Piece::End(_) => payloads.push(std::mem::take(&mut data)),
    });
    payloads
}

#[test]
fn of_five_thousand_tools_each_that_is_not_concerned_keeps_its_bytes_and_its_place() {
    let odd = [
        r#""n":123456789012345678901234567890,"f":1.10e-3"#,
        r#""description":"caf\u00e9 \ud83d\ude00 \/ \"""#,
        r#""description":"1","description":"😀 日本""#,
        r#""inputSchema":{"$ref":"x","properties":{"name":{"description":"[tools]"}}}"#,
        r#""_meta":{ "x" : [ ] } , "unknown":null"#,
    ];
    let tool = |n: usize| format!("{{{},\"name\":\"t{n}\"}}", odd[n % odd.len()]);
    let body = list(&(0..5_000).map(tool).collect::<Vec<_>>().join(", "));
    let edit = |tool: &Tool<'_>| match tool.name.trim_start_matches('t').parse::<usize>().unwrap() % 7 {
        0 => Edit::Drop,
        1 => describe(" [down]"),
        _ => Edit::Keep,
    };
    for (format, body) in [(Format::Json, body.clone()), (Format::EventStream, format!("id: 1\ndata: {body}\n\n"))] {
        let rewritten = rewrite(body.as_bytes(), format, NO_LIST_EDIT, edit);
        let mut rest = std::str::from_utf8(&rewritten).unwrap();
        for n in (0..5_000).filter(|n| n % 7 > 1) {
            let found = rest.split_once(&tool(n));
            rest = found.unwrap_or_else(|| panic!("t{n} is not there, or not in its place")).1;
        }
        assert_eq!(page(&rewritten, format).unwrap().tools.len(), (0..5_000).filter(|n| n % 7 > 0).count());
    }
}

proptest! {
    #[test]
    fn only_what_is_edited_changes(case in case()) {
        let rewritten = case.rewrite(&case.body(), Format::Json);
        let inside = rewritten.strip_prefix(&case.before).and_then(|rest| rest.strip_suffix(&case.after));
        prop_assert!(inside.is_some(), "{} became {}", case.body(), rewritten);
        let elements: Vec<&RawValue> = serde_json::from_str(inside.unwrap()).unwrap();
        let kept = case.elements.iter().zip(&case.edits).filter(|(_, edit)| **edit != Edit::Drop);
        prop_assert_eq!(elements.len(), kept.clone().count());
        for (new, (old, edit)) in elements.iter().zip(kept) {
            match edit {
                Edit::Annotate { description, health } => {
                    check_annotated(old, new.get(), description.as_deref(), health.as_deref());
                }
                _ => prop_assert_eq!(new.get(), old.as_str()),
            }
        }
    }

    #[test]
    fn a_list_that_nobody_edits_comes_back_as_the_same_bytes(case in case()) {
        let body = case.body();
        let bytes = rewrite(body.as_bytes(), Format::Json, NO_LIST_EDIT, |_| Edit::Keep);
        prop_assert!(matches!(bytes, Cow::Borrowed(same) if same == body.as_bytes()));
    }

    #[test]
    fn a_stream_is_edited_as_its_messages_are(case in case(), crlf in any::<bool>()) {
        let end = if crlf { "\r\n" } else { "\n" };
        let body = case.body().replace("\r\n", "\n");
        let lines = body.replace('\n', &format!("{end}data: "));
        let stream = format!(": x{end}id: 1{end}data: {lines}{end}{end}data: {{}}{end}{end}");
        let rewritten = case.rewrite(&stream, Format::EventStream);
        let alone = case.rewrite(&body, Format::Json).replace('\n', "");
        prop_assert_eq!(payloads(&rewritten), [alone, "{}".to_owned()]);
        let frames = |stream: &str| {
            let frame = |line: &str| if line.starts_with("data: ") { "data: ".to_owned() } else { line.to_owned() };
            stream.split(end).map(frame).collect::<Vec<_>>()
        };
        prop_assert_eq!(frames(&rewritten), frames(&stream));
    }

    #[test]
    fn no_bytes_make_it_panic(case in case(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut body = case.body().into_bytes();
        let at = at.index(body.len());
        body[at] = byte;
        for format in [Format::Json, Format::EventStream, Format::Other] {
            rewrite(&body, format, NO_LIST_EDIT, |_| Edit::Drop);
            page(&body, format);
        }
    }
}
