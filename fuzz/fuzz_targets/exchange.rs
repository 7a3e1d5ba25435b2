//! Bytes of an answer become an exchange and a verdict: never a panic, whatever the chunks the same, and what is recorded of it
//! can be read again.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use toolvane::clock::Now;
use toolvane::mcp::Format;
use toolvane::mcp::answer::{Reader, Seen};
use toolvane::rules::{BackendKind, Exchange, Limits, Outcome, Table, case, load};

static TABLE: LazyLock<Table> = LazyLock::new(|| load(&[], Limits::default()).unwrap());

fn exchange(format: Format, body: &[u8], chunk: usize, status: u16) -> Exchange {
    let mut exchange = Exchange { status: Some(status), ..Exchange::default() };
    let mut seen = Vec::new();
    let mut reader = Reader::new(format, 4_096);
    for piece in body.chunks(chunk.max(1)) {
        reader.push(piece, |item| seen.push(item));
    }
    reader.finish(|item| seen.push(item));
    for item in &seen {
        match item {
            Seen::Answer(answer) => exchange.take_answer(answer, false),
            Seen::Trouble(trouble) => exchange.take_trouble(trouble),
            _ => continue,
        }
        break;
    }
    exchange
}

fuzz_target!(|data: &[u8]| {
    let [kind, chunk, status, body @ ..] = data else { return };
    let format = match kind % 3 {
        0 => Format::Json,
        1 => Format::EventStream,
        _ => Format::Other,
    };
    let status = 200 + u16::from(*status) * 2;
    let whole = exchange(format, body, body.len(), status);
    let pieces = exchange(format, body, usize::from(*chunk), status);
    let verdict = TABLE.judge(&whole);
    assert_eq!(verdict, TABLE.judge(&pieces), "chunks change the verdict");
    let explained = TABLE.explain(&whole);
    assert_eq!(verdict, explained.verdict);

    let mut http = Exchange { kind: BackendKind::Http, status: Some(status), ..Exchange::default() };
    http.take_body(String::from_utf8_lossy(body).into_owned());
    TABLE.judge(&http);

    let line = serde_json::to_string(&Outcome::from(&whole)).unwrap();
    let again: Outcome = serde_json::from_str(&line).unwrap();
    TABLE.judge(&again.into_exchange(Now::default()));
    let _ = case::read(&String::from_utf8_lossy(body), Now::default());
});
