//! Any text as a rule file: rules or a report, never a panic; and rules that compile judge, explain and lint anything.

#![no_main]

use std::sync::Arc;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use toolvane::rules::file::{load_alone, read_cases};
use toolvane::rules::lint::lint;
use toolvane::rules::{BackendKind, Exchange, Limits, suite};
use toolvane::yaml::Source;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let source = Arc::new(Source::new("fuzz.yaml", &*text));
    if let Err(report) = read_cases(&source) {
        assert!(!report.to_string().is_empty());
    }
    match load_alone(&source, Limits::default()) {
        Err(report) => assert!(!report.is_empty() && !report.to_string().is_empty()),
        Ok(table) => {
            let mut exchange = Exchange { kind: BackendKind::Http, status: Some(403), ..Exchange::default() };
            exchange.take_body(text.chars().take(2_000).collect());
            assert_eq!(table.judge(&exchange), table.explain(&exchange).verdict);
            let rules = lint(table.rules(), Duration::from_secs(3_600), |_| true);
            rules.iter().for_each(|lint| drop(lint.problem.render(toolvane::yaml::Style::Plain)));
            let checked = suite::run_rules(&table, |_| true);
            let gaps = suite::gaps(&table, &checked, |_| true);
            // What can never decide was hit by no test, and not by this outcome either.
            let decided = table.judge(&exchange).finding.map(|finding| finding.rule);
            for (rule, _) in &gaps.unreachable {
                assert!(gaps.untested.contains(rule) && decided.as_ref() != Some(rule), "{rule} is reached");
            }
        }
    }
});
