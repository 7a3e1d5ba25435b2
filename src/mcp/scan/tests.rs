//! The incremental scanner against serde_json, under any chunking.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::Value;

use super::super::arbitrary;
use super::{Ending, Found, Node, Scanner};

const fn value(key: &'static str, field: &'static str) -> Node<&'static str> {
    Node { key, field, keep: 1 << 20, inside: &[] }
}

static TREE: Node<&str> = Node {
    key: "",
    field: "",
    keep: 0,
    inside: &[
        value("id", "/id"),
        value("params", "/params"),
        Node {
            key: "result",
            field: "/result",
            keep: 1 << 20,
            inside: &[
                value("isError", "/result/isError"),
                Node {
                    key: "task",
                    field: "/result/task",
                    keep: 1 << 20,
                    inside: &[value("status", "/result/task/status")],
                },
            ],
        },
    ],
};

/// One line per thing found, with offsets in the whole text.
fn scan(chunks: &[&[u8]]) -> (Vec<String>, Ending) {
    let mut scanner = Scanner::new(&TREE);
    let (mut lines, mut base) = (Vec::new(), 0);
    for chunk in chunks {
        scanner.push(chunk, &mut |found| {
            lines.push(match found {
                Found::Begin(at) => format!("begin {}", base + at),
                Found::End(at) => format!("end {}", base + at),
                Found::Entered(field) => format!("in {field}"),
                Found::Value { field, raw, whole } => format!("{field} {} {whole}", String::from_utf8_lossy(raw)),
                Found::Stray => "stray".to_owned(),
            });
        });
        base += chunk.len();
    }
    (lines, scanner.ending())
}

#[track_caller]
fn check(text: &str, lines: &[&str], ending: Ending) {
    assert_eq!(scan(&[text.as_bytes()]), (lines.iter().map(|line| (*line).to_owned()).collect(), ending), "{text}");
}

#[test]
fn members_are_found_at_their_own_place_only() {
    check(
        r#"{"x":{"id":1},"y":["id",{"result":{"isError":true}}],"z":"\"isError\":true","id":2,"result":{"content":[{"isError":true}],"isError":false}}"#,
        &["begin 0", "/id 2 true", "in /result", "/result/isError false true", "end 139"],
        Ending::Whole,
    );
}

#[test]
fn the_spelling_of_a_key_does_not_matter() {
    check(
        r#"{"\u0069d":1,"res\u0075lt" : {"isErr\u006fr":true}}"#,
        &["begin 0", "/id 1 true", "in /result", "/result/isError true true", "end 51"],
        Ending::Whole,
    );
}

#[test]
fn an_object_that_is_asked_for_may_be_another_kind_of_value() {
    check(
        r#"{"result":[{"isError":true}]}"#,
        &["begin 0", r#"/result [{"isError":true}] true"#, "end 29"],
        Ending::Whole,
    );
    check(r#"{"result":null}"#, &["begin 0", "/result null true", "end 15"], Ending::Whole);
    check(r#"{"result":{"task":{}}}"#, &["begin 0", "in /result", "in /result/task", "end 22"], Ending::Whole);
}

#[test]
fn a_batch_is_several_messages() {
    check(
        r#" [ {"id":1} , {"id":"a"},[{"id":3}], 4] "#,
        &["begin 3", "/id 1 true", "end 11", "begin 14", "/id \"a\" true", "end 24", "stray", "stray"],
        Ending::Whole,
    );
    check("[]", &[], Ending::Whole);
}

#[test]
fn a_text_ends_whole_or_cut_or_broken_or_empty() {
    for (text, ending) in [
        ("", Ending::Empty),
        (" \r\n", Ending::Empty),
        ("\u{feff}{}", Ending::Whole),
        ("{}\n", Ending::Whole),
        ("12", Ending::Whole),
        ("\"a\"", Ending::Whole),
        ("[12", Ending::Cut),
        ("{", Ending::Cut),
        (r#"{"id"#, Ending::Cut),
        (r#"{"id":"#, Ending::Cut),
        (r#"{"id":1"#, Ending::Cut),
        (r#"{"id":"\"#, Ending::Cut),
        (r#"{"x":[["#, Ending::Cut),
        ("<html>", Ending::Broken),
        ("Service Unavailable", Ending::Broken),
        ("{}{}", Ending::Broken),
        (r#"{"id" 1}"#, Ending::Broken),
        (r#"{"id":1 2}"#, Ending::Broken),
        (r#"{"id":1,}"#, Ending::Broken),
        ("[{},]", Ending::Broken),
        ("[1}", Ending::Broken),
        (r#"{"id":1]"#, Ending::Broken),
    ] {
        assert_eq!(scan(&[text.as_bytes()]).1, ending, "{text}");
    }
}

#[test]
fn nesting_costs_nothing_however_deep() {
    let text = format!(r#"{{"x":{}{},"id":7}}"#, "[".repeat(64 * 1024), "]".repeat(64 * 1024));
    assert_eq!(scan(&[text.as_bytes()]).0[1], "/id 7 true");
    assert_eq!(scan(&["[".repeat(64 * 1024).as_bytes()]).1, Ending::Cut);
}

#[test]
fn no_value_or_key_is_held_beyond_its_bound() {
    static SMALL: Node<&str> =
        Node { key: "", field: "", keep: 0, inside: &[Node { key: "a", field: "a", keep: 4, inside: &[] }] };
    let mut scanner = Scanner::new(&SMALL);
    let mut values = Vec::new();
    let mut push = |scanner: &mut Scanner<_>, text: &str| {
        scanner.push(text.as_bytes(), &mut |found| {
            if let Found::Value { raw, whole, .. } = found {
                values.push((String::from_utf8_lossy(raw).into_owned(), whole));
            }
        });
    };
    push(&mut scanner, r#"{"a":"#);
    push(&mut scanner, "\"123");
    (0..1_000).for_each(|_| push(&mut scanner, &"x".repeat(1_000)));
    push(&mut scanner, "\",\"");
    (0..1_000).for_each(|_| push(&mut scanner, &"k".repeat(1_000)));
    assert!(scanner.kept.capacity() <= 64 && scanner.key.capacity() <= 1_024);
    push(&mut scanner, r#"":1,"a":1234}"#);
    assert_eq!(scanner.ending(), Ending::Whole);
    assert_eq!(values, [("\"123".to_owned(), false), ("1234".to_owned(), true)]);
}

/// What `serde_json` finds under the wanted paths; of an object that is looked into only that it is one.
fn wanted(text: &str) -> BTreeMap<&'static str, Value> {
    let message: Value = serde_json::from_str(text).unwrap();
    let paths = ["/id", "/params", "/result", "/result/isError", "/result/task", "/result/task/status"];
    let looked_into = |path: &str, value: &Value| value.is_object() && matches!(path, "/result" | "/result/task");
    paths
        .into_iter()
        .filter_map(|path| Some((path, message.pointer(path)?)))
        .map(|(path, value)| (path, if looked_into(path, value) { Value::from("object") } else { value.clone() }))
        .collect()
}

fn found(text: &str) -> BTreeMap<&'static str, Value> {
    let mut all = BTreeMap::new();
    Scanner::new(&TREE).push(text.as_bytes(), &mut |found| match found {
        Found::Entered(field) => {
            all.retain(|path: &&str, _| !path.starts_with(field));
            all.insert(field, Value::from("object"));
        }
        Found::Value { field, raw, .. } => {
            all.retain(|path: &&str, _| !path.starts_with(field));
            all.insert(field, serde_json::from_slice(raw).unwrap());
        }
        _ => {}
    });
    all
}

proptest! {
    #[test]
    fn what_is_found_is_what_serde_json_finds(text in arbitrary::object_of(arbitrary::json())) {
        prop_assert_eq!(found(&text), wanted(&text));
        prop_assert_eq!(scan(&[text.as_bytes()]).1, Ending::Whole);
    }

    #[test]
    fn chunking_never_shows(
        text in arbitrary::json(),
        cuts in arbitrary::cuts(),
        damage in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
    ) {
        let mut text = text.into_bytes();
        if let Some((at, byte)) = damage {
            let at = at.index(text.len());
            text[at] = byte;
        }
        let bytewise: Vec<&[u8]> = text.chunks(1).collect();
        let whole = scan(&[&text]);
        prop_assert_eq!(scan(&bytewise), whole.clone());
        prop_assert_eq!(scan(&arbitrary::chunks(&text, &cuts)), whole);
    }
}
