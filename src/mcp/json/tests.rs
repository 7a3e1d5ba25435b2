//! The raw JSON cursor against serde_json.

use proptest::prelude::*;
use serde_json::Value;

use super::super::arbitrary;
use super::{Cursor, Fault, string};

fn check(text: &[u8]) -> Result<(), Fault> {
    let mut cursor = Cursor::new(text);
    let value = cursor.value()?;
    assert_eq!(&text[value.start..value.end()], value.bytes);
    cursor.end()
}

#[test]
fn a_text_is_accepted_exactly_if_it_is_json() {
    for good in ["0", "-0.0e+1", "[]", "{}", " [ ] ", "[[],{}]", r#"{"":{"a":[1,"\u00e9\/"]}}"#, "\"\u{1}\"", "\"\""] {
        assert_eq!(check(good.as_bytes()), Ok(()), "{good}");
    }
    for bad in [
        "",
        " ",
        "00",
        "01",
        "-",
        "1.",
        ".5",
        "1e",
        "+1",
        "tru",
        "nulll",
        "[1,]",
        "[,1]",
        "[1 2]",
        "{,}",
        r#"{"a"}"#,
        r#"{"a":}"#,
        r#"{"a":1,}"#,
        "{1:2}",
        "[}",
        "{]",
        "[1}",
        "[",
        "{",
        r#"""#,
        r#""\"#,
        r#""\x""#,
        r#""\u12g4""#,
        "1 2",
        "<html>",
        "NaN",
        "'a'",
        "[1]]",
        r#"{"a":1}}"#,
        "\u{feff}1",
    ] {
        assert!(matches!(check(bad.as_bytes()), Err(Fault::Syntax(_))), "{bad}");
    }
}

#[test]
fn nesting_is_bounded_at_128_levels_however_it_is_reached() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert_eq!(check(nested(128).as_bytes()), Ok(()));
    assert_eq!(check(nested(129).as_bytes()), Err(Fault::Depth));
    assert_eq!(check("[".repeat(64 * 1024).as_bytes()), Err(Fault::Depth));

    let inside = format!("[{}]", nested(128));
    let mut cursor = Cursor::new(inside.as_bytes());
    let walked = cursor.array(|cursor| cursor.value().map(drop));
    assert_eq!(walked, Err(Fault::Depth), "a container that is walked into counts as well");
}

#[test]
fn escapes_are_resolved_and_what_cannot_be_is_marked() {
    for (token, text, exact) in [
        (r#""plain""#, "plain", true),
        (r#""\"\\\/\b\f\n\r\t""#, "\"\\/\u{8}\u{c}\n\r\t", true),
        (r#""\u0069sError""#, "isError", true),
        (r#""\ud83d\ude00""#, "😀", true),
        (r#""\ud83d""#, "\u{fffd}", false),
        (r#""\ude00x""#, "\u{fffd}x", false),
        (r#""\ud83d\u0041""#, "\u{fffd}A", false),
        (r#""cut"#, "cut", false),
        (r#""cut\"#, "cut\u{fffd}", false),
        (r#""cut\u00"#, "cut\u{fffd}", false),
    ] {
        let read = string(token.as_bytes()).unwrap();
        assert_eq!((&*read.text, read.exact), (text, exact), "{token}");
    }
    let read = string(b"\"\xff\\n\"").unwrap();
    assert_eq!((&*read.text, read.exact), ("\u{fffd}\n", false));
    assert_eq!(string(b"12"), None);
}

proptest! {
    #[test]
    fn every_json_text_is_read_as_one_value(text in arbitrary::json(), space in arbitrary::space()) {
        prop_assert_eq!(check(format!("{space}{text}{space}").as_bytes()), Ok(()));
    }

    #[test]
    fn a_damaged_text_is_accepted_only_if_serde_json_accepts_it_too(
        text in arbitrary::json(),
        at in any::<prop::sample::Index>(),
        byte in prop::sample::select(b"{}[]\",:\\0e-.tu ".to_vec()),
        insert in any::<bool>(),
    ) {
        let mut damaged = text.into_bytes();
        let at = at.index(damaged.len());
        if insert { damaged.insert(at, byte) } else { damaged[at] = byte }
        if let Ok(text) = String::from_utf8(damaged) {
            let theirs: Result<Value, _> = serde_json::from_str(&text);
            // Lone surrogates are refused there; the number range is not checked here.
            if !text.contains("\\ud") && !text.contains('e') {
                prop_assert_eq!(check(text.as_bytes()).is_ok(), theirs.is_ok(), "{}", text);
            }
        }
    }

    #[test]
    fn strings_read_as_serde_json_reads_them(token in arbitrary::string_token(any::<String>())) {
        let read = string(token.as_bytes()).unwrap();
        prop_assert_eq!(&*read.text, serde_json::from_str::<String>(&token).unwrap());
        prop_assert!(read.exact);
    }
}
