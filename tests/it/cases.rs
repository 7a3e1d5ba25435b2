//! The bundled rules, scored on cases that are data: recorded from real servers, SDKs and edges (`tests/cases/recorded.jsonl`, by
//! `tests/cases/record/record.py`), in the general shapes of specifications, frameworks and libraries (`shapes.jsonl`), and as APIs
//! and tools put it, also where that misleads (`said.jsonl`). Each case says where it comes from, which answers are right, and which
//! would do harm.

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use toolvane::clock::Now;
use toolvane::rules::{Limits, Table, case, file, load};
use toolvane::yaml::Source;

#[derive(Deserialize)]
struct Labelled {
    id: String,
    origin: String,
    expect: Expected,
}

#[derive(Deserialize)]
struct Expected {
    /// What is right, the preferred first; null where only a diagnosis can tell.
    classification: Vec<Option<String>>,
    must_not: Vec<String>,
    dispatch_code: Option<String>,
    /// Null says that no wait may be read; left out, it is not looked at.
    #[serde(default, deserialize_with = "stated")]
    retry_after_s: Option<Option<u64>>,
}

fn stated<'de, D: serde::Deserializer<'de>>(reader: D) -> Result<Option<Option<u64>>, D::Error> {
    Option::deserialize(reader).map(Some)
}

#[derive(Debug, Default)]
struct Score {
    cases: usize,
    right: usize,
    undecided: usize,
    harmful: Vec<String>,
    wrong: Vec<String>,
}

impl Score {
    fn percent(&self, part: usize) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a few hundred cases")]
        let percent = 100.0 * part as f64 / self.cases as f64;
        percent
    }
}

fn judge(file: &str, table: &Table, score: &mut Score) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    for line in text.lines() {
        let labelled: Labelled = serde_json::from_str(line).unwrap_or_else(|error| panic!("{file}: {error}: {line}"));
        assert!(!labelled.origin.is_empty(), "{}", labelled.id);
        let read = case::read(line, Now::default()).unwrap_or_else(|error| panic!("{}: {error}", labelled.id));
        let decision = serde_json::to_value(read.decision(&table.judge(&read.exchange))).unwrap();
        count(&labelled, &decision, score);
    }
}

fn count(labelled: &Labelled, decision: &Value, score: &mut Score) {
    let Labelled { id, expect, .. } = labelled;
    let class = decision["classification"].as_str().map(str::to_owned);
    let told = format!("{id}: {class:?} by {}, not one of {:?}", decision["rule"], expect.classification);
    score.cases += 1;
    score.undecided += usize::from(class.is_none());
    let hint = expect.retry_after_s.is_none_or(|wait| decision["retryAfterSeconds"].as_u64() == wait);
    let code = expect.dispatch_code.as_deref().is_none_or(|code| decision["dispatchCode"] == code);
    if class.as_ref().is_some_and(|class| expect.must_not.contains(class)) {
        score.harmful.push(told);
    } else if !expect.classification.contains(&class) {
        score.wrong.push(told);
    } else if !hint || !code {
        score.wrong.push(format!("{id}: wait {} or code {}", decision["retryAfterSeconds"], decision["dispatchCode"]));
    } else {
        score.right += 1;
    }
}

#[test]
fn the_bundled_rules_are_right_and_do_no_harm() {
    let table = load(&[], Limits::default()).unwrap();
    for (file, at_least) in [("recorded.jsonl", 150), ("shapes.jsonl", 250), ("said.jsonl", 250)] {
        let mut score = Score::default();
        judge(file, &table, &mut score);
        let told = score.harmful.iter().chain(&score.wrong).cloned().collect::<Vec<_>>().join("\n");
        assert!(score.cases >= at_least, "{file} holds {} cases", score.cases);
        assert!(score.harmful.is_empty(), "{file}: harmful answers:\n{told}");
        assert!(score.percent(score.right) >= 99.0, "{file}: {:.1} % right\n{told}", score.percent(score.right));
        assert!(score.percent(score.undecided) <= 15.0, "{file}: {:.1} % undecided", score.percent(score.undecided));
    }
}

#[test]
fn every_pack_lies_over_the_bundled_table_and_keeps_its_own_tests() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/packs");
    let mut packs: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    packs.sort();
    assert_eq!(packs.len(), 3, "{packs:?}");
    for pack in packs {
        let source = Source::load(&pack).unwrap_or_else(|report| panic!("{report}"));
        let own: Vec<_> = file::read(&source).unwrap().into_iter().map(|rule| rule.id).collect();
        let table = load(&[source], Limits::default()).unwrap_or_else(|report| panic!("{report}"));
        for rule in table.rules().iter().filter(|rule| own.contains(&rule.id)) {
            assert!(rule.tests.iter().any(|test| test.expect_match), "{} has no test that it matches", rule.id);
            for test in &rule.tests {
                let found = table.judge(&test.exchange).finding.map(|finding| finding.rule);
                assert_eq!(found.as_ref() == Some(&rule.id), test.expect_match, "{}: {found:?}", rule.id);
            }
        }
    }
}
