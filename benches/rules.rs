//! What one judgement costs, and what a table costs to compile: the bundled rules, and a thousand more. Hostile answers stand
//! beside usual ones. What a table holds in memory is in `tests/it/table_memory.rs`.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use toolvane::rules::{Answer, BackendKind, Exchange, Limits, Table, load};
use toolvane::yaml::Source;

/// A thousand rules of the kind that operators write.
fn thousand_rules() -> Arc<Source> {
    let mut text = String::from("patterns:\n");
    for at in 0..1_000 {
        text.push_str(&format!(
            "  - {{id: r{at}, match: {{httpStatus: {}, bodyContains: ['needle number {at} of many', 'other {at}']}}, \
             signature: s{}, classification: USER_INPUT}}\n",
            400 + at % 200,
            at % 50
        ));
    }
    Arc::new(Source::new("thousand.yaml", text))
}

fn tool_error(text: String) -> Exchange {
    Exchange {
        answer: Answer::Result { is_error: true, result_type: None, task_started: false, structured: None },
        text,
        ..Exchange::default()
    }
}

fn http_body(status: u16, body: String) -> Exchange {
    let mut exchange = Exchange { kind: BackendKind::Http, status: Some(status), ..Exchange::default() };
    exchange.take_body(body);
    exchange
}

fn http_error(status: u16, bytes: usize) -> Exchange {
    let filler = "the quick brown fox jumps over the lazy dog. ".repeat(bytes / 45);
    http_body(status, format!("{{\"error\": {{\"message\": \"{filler}\", \"code\": \"unheard_of\"}}}}"))
}

/// Cut to what the text of a failure holds.
fn bounded(text: &str) -> String {
    text.chars().take(65_536).collect()
}

fn usual() -> Vec<(&'static str, Exchange)> {
    let success = Exchange {
        answer: Answer::Result { is_error: false, result_type: None, task_started: false, structured: None },
        ..Exchange::default()
    };
    vec![
        ("success", success),
        ("http 403, 2 KiB", http_error(403, 2_048)),
        ("http 500, 64 KiB", http_error(500, 65_000)),
        ("tool error, 2 KiB", tool_error("something that no rule knows. ".repeat(68))),
        ("tool error, 64 KiB", tool_error("something that no rule knows. ".repeat(2_180))),
    ]
}

fn hostile() -> Vec<(&'static str, Exchange)> {
    let entries = |n: usize| format!("[{}]", vec!["{\"code\":\"unheard_of\",\"message\":\"no\"}"; n].join(","));
    vec![
        ("tool error, 64 KiB of a", tool_error("a".repeat(65_536))),
        ("deep JSON", http_body(500, format!("{}{}", "[".repeat(120), "]".repeat(120)))),
        ("text of open brackets", tool_error("[{\"a\":".repeat(10_900))),
        (
            "values that never end",
            tool_error(bounded(&format!("{{\"a\":{{\"b\":{{\"c\":{{\"d\":\"{}", "e ".repeat(32_000)))),
        ),
        ("6,000 entries in JSON", http_body(500, entries(6_000))),
        ("10,000 entries cut off", http_body(500, bounded(&entries(10_000)))),
        ("64 KiB of tags", tool_error("<a>".repeat(21_800))),
        ("64 KiB of rate limits", tool_error("rate limit token expired timeout ".repeat(1_980))),
    ]
}

#[expect(clippy::panic, reason = "a benchmark without its table has nothing to measure")]
fn judge(c: &mut Criterion) {
    let tables =
        [("bundled", load(&[], Limits::default())), ("bundled+1000", load(&[thousand_rules()], Limits::default()))];
    for (table_name, table) in tables {
        let table: Table = table.unwrap_or_else(|report| panic!("{report}"));
        for (name, exchange) in usual().iter().chain(&hostile()) {
            c.bench_function(&format!("judge/{table_name}/{name}"), |b| b.iter(|| table.judge(black_box(exchange))));
        }
    }
}

fn compile(c: &mut Criterion) {
    let mut group = c.benchmark_group("compile");
    group.sample_size(10);
    group.bench_function("bundled", |b| b.iter(|| load(&[], Limits::default()).is_ok()));
    let layer = thousand_rules();
    group.bench_function("bundled+1000", |b| b.iter(|| load(std::slice::from_ref(&layer), Limits::default()).is_ok()));
    group.finish();
}

criterion_group!(benches, judge, compile);
criterion_main!(benches);
