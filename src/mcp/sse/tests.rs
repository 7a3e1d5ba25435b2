//! The framing of event streams, under any chunking.

use proptest::prelude::*;

use super::super::arbitrary;
use super::{Framer, Piece};

/// An event as a client sees it: name, id, data; and where it ends in the stream.
type Event = (String, Option<String>, Option<String>, usize);

fn events(chunks: &[&[u8]]) -> Vec<Event> {
    let mut framer = Framer::new();
    let (mut events, mut data, mut base) = (Vec::new(), Vec::new(), 0);
    for chunk in chunks {
        framer.push(chunk, |piece| match piece {
            Piece::Data { at, bytes } => {
                assert_eq!(&chunk[at..at + bytes.len()], bytes);
                data.extend_from_slice(bytes);
            }
            Piece::NextLine => data.push(b'\n'),
            Piece::End(end) => {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                let data = text(&std::mem::take(&mut data));
                events.push((text(end.name), end.id.map(text), end.has_data.then_some(data), base + end.at));
            }
        });
        base += chunk.len();
    }
    events
}

#[track_caller]
fn check(stream: &str, expected: &[(&str, Option<&str>, Option<&str>)]) {
    let seen = events(&[stream.as_bytes()]);
    let seen: Vec<_> = seen.iter().map(|(name, id, data, _)| (name.as_str(), id.as_deref(), data.as_deref())).collect();
    assert_eq!(seen, expected, "{stream:?}");
}

#[test]
fn events_are_read_as_the_standard_says() {
    check("data: a\n\n", &[("", None, Some("a"))]);
    check("data:a\r\rdata:  b\r\n\r\ndata\n\n", &[("", None, Some("a")), ("", None, Some(" b")), ("", None, Some(""))]);
    check("event: message\nid: 7\ndata: a\ndata: b\ndata:\n\n", &[("message", Some("7"), Some("a\nb\n"))]);
    check(": hi\n\n:\n\n\n\n", &[]);
    check("\u{feff}data: a\n\n", &[("", None, Some("a"))]);
    check("\u{feff}\ndata: a\n\n", &[("", None, Some("a"))]);
    check("data: a\n\n\u{feff}data: b\n\n", &[("", None, Some("a")), ("", None, None)]);
    check("id: 1\n\nid\n\n", &[("", Some("1"), None), ("", Some(""), None)]);
    check("id: 1\0\ndata: a\n\n", &[("", None, Some("a"))]);
    check("event: x\nevent: y\ndata: a\n\ndata: b\n\n", &[("y", None, Some("a")), ("", None, Some("b"))]);
    check("retry: 10\nnonsense: 1\ndatax: 2\n Data: 3\ndata: a: b\n\n", &[("", None, Some("a: b"))]);
    check("data: never finished\n", &[]);
}

#[test]
fn a_stream_knows_where_another_event_may_be_put_in() {
    for (stream, boundary) in [
        ("", true),
        ("data: a\n\n", true),
        ("data: a\r\n\r\n", true),
        ("data: a\r\n\r", true),
        (": comment\n", true),
        ("\n", true),
        ("data: a\n", false),
        ("data: a\r\n", false),
        ("data: ", false),
        ("da", false),
        ("id: 1\n", false),
        (": comm", false),
        ("retry: 5\n", false),
    ] {
        let mut framer = Framer::new();
        framer.push(stream.as_bytes(), |_| {});
        assert_eq!(framer.at_boundary(), boundary, "{stream:?}");
        assert_eq!(framer.abandon().is_empty(), boundary, "{stream:?}");
    }
}

#[test]
fn the_last_boundary_of_a_chunk_is_known_also_inside_of_it() {
    let mut framer = Framer::new();
    for (chunk, boundary) in [
        ("data: a\n\ndata: b\n\ndata: c", Some(18)),
        ("c", None),
        ("\r\n\r", Some(3)),
        ("\n", Some(1)),
        (": x", None),
        ("\nid", Some(1)),
        (": 1\n", None),
        ("", None),
        ("\n", Some(1)),
    ] {
        framer.push(chunk.as_bytes(), |_| {});
        assert_eq!(framer.last_boundary(), boundary, "{chunk:?}");
    }
}

#[test]
fn an_event_put_in_at_a_boundary_is_seen_and_changes_no_other() {
    let stream = ": ping\r\n\r\nid: 1\r\ndata: a\r\n\r\ndata: b\n\n: x\rid: 2\r\rdata: c\r\n\r\n";
    let alone: Vec<_> = events(&[stream.as_bytes()]).into_iter().map(|(name, id, data, _)| (name, id, data)).collect();
    let mut places = 0;
    for at in 0..=stream.len() {
        let mut framer = Framer::new();
        framer.push(&stream.as_bytes()[..at], |_| {});
        if !framer.at_boundary() {
            continue;
        }
        places += 1;
        let (before, after) = stream.split_at(at);
        let mixed = [before, "data: OURS\n\n", after].concat();
        let mut seen: Vec<_> =
            events(&[mixed.as_bytes()]).into_iter().map(|(name, id, data, _)| (name, id, data)).collect();
        let before = seen.len();
        seen.retain(|(_, _, data)| data.as_deref() != Some("OURS"));
        assert_eq!((before - seen.len(), &seen), (1, &alone), "put in at {at}");
    }
    assert!(places >= 8, "only {places} places");
}

#[test]
fn a_torso_is_abandoned_under_a_name_of_its_own() {
    for torso in ["data: {\"half", "data: x\n", "ev", "id: 4\nevent: message\ndata: y\r"] {
        let mut framer = Framer::new();
        framer.push(torso.as_bytes(), |_| {});
        let stream = [torso.as_bytes(), framer.abandon(), b"data: OURS\n\n"].concat();
        let seen = events(&[&stream]);
        assert_eq!(seen.len(), 2, "{torso:?}");
        assert_eq!((seen[0].0.as_str(), seen[1].2.as_deref()), ("discarded", Some("OURS")), "{torso:?}");
    }
}

#[test]
fn names_ids_and_fields_are_held_within_bounds() {
    let mut framer = Framer::new();
    for field in ["event: ", "\nid: ", "\n", "\ndata: "] {
        framer.push(field.as_bytes(), |_| {});
        (0..1_000).for_each(|_| framer.push(&[b'x'; 1_000], |_| {}));
    }
    assert!(framer.name.len() <= 64 && framer.id.as_ref().unwrap().len() <= 1_024 && framer.field.len() <= 8);
}

fn stream() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "data",
        "data:",
        "data: ",
        "event: message",
        "event: x",
        "id: 1",
        "id:",
        "retry: 5",
        ": c",
        "foo",
        "{\"a\":1}",
        "\n",
        "\r",
        "\r\n",
        "\n\n",
        "\r\n\r\n",
        "\r\r",
        "\u{feff}",
        " ",
        "é",
    ]);
    prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn chunking_never_shows(stream in stream(), cuts in arbitrary::cuts()) {
        let stream = stream.as_bytes();
        let without_ends = |events: Vec<Event>| {
            events.into_iter().map(|(name, id, data, _)| (name, id, data)).collect::<Vec<_>>()
        };
        let bytewise: Vec<&[u8]> = stream.chunks(1).collect();
        let whole = without_ends(events(&[stream]));
        prop_assert_eq!(without_ends(events(&bytewise)), whole.clone());
        prop_assert_eq!(without_ends(events(&arbitrary::chunks(stream, &cuts))), whole);
    }
}
