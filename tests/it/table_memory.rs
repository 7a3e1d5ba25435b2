//! What a compiled table holds in memory: a table of its own for each of many tenants must be affordable.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "the lint knows test functions, not their helpers")]

use std::fmt::Write;
use std::sync::Arc;

use toolvane::rules::{Limits, load};
use toolvane::yaml::Source;

const MIB: i64 = 1 << 20;

/// Bytes that a table of the bundled rules and so many more holds.
fn held(more: usize) -> i64 {
    let mut text = String::from("patterns:\n");
    for at in 0..more {
        let status = 400 + at % 200;
        writeln!(
            text,
            "  - {{id: r{at}, match: {{httpStatus: {status}, bodyContains: ['needle number {at} of many', 'other {at}']}}, classification: USER_INPUT}}"
        )
        .unwrap();
    }
    let layers: Vec<Arc<Source>> = (more > 0).then(|| Arc::new(Source::new("more.yaml", text))).into_iter().collect();
    let mut table = None;
    let memory = allocation_counter::measure(|| table = load(&layers, Limits::default()).ok());
    assert!(table.is_some());
    eprintln!(
        "bundled + {more} rules: {} KiB held, {} KiB at most while compiling",
        memory.bytes_current / 1024,
        memory.bytes_max / 1024
    );
    memory.bytes_current
}

#[test]
fn a_table_holds_a_few_megabytes_however_many_rules_an_operator_writes() {
    assert!(held(0) < 16 * MIB);
    assert!(held(1_000) < 32 * MIB);
    // Beyond some thousand needles the automaton is built for memory.
    assert!(held(5_000) < 64 * MIB);
}
