//! `toolvane test`: runs the tests of rules and files of cases, and tells which rules no test hits or nothing can reach.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};

use super::args::{Test, TestForm};
use super::rules::{Layered, Streams, refuse, refuse_as_json};
use super::{BAD, FINE, counted, junit};
use crate::rules::file::read_cases;
use crate::rules::suite::{self, Checked, Gaps};
use crate::yaml::{self, Report, Source};

/// Runs the command; gives the exit code.
pub fn test<O: Write, W: Write>(args: &Test, streams: &mut Streams<O, W>) -> u8 {
    let (layers, cases) = match sort(&args.files) {
        Ok(sorted) => sorted,
        Err(report) => return refused(&report, args.output, streams),
    };
    let mut report = Report::new();
    let layered = Layered::load(&layers).map_err(|problems| report.merge(problems)).ok();
    let read = cases.iter().map(|source| read_cases(source).map_err(|problems| report.merge(problems)).ok());
    let cases: Vec<_> = read.collect();
    let (Some(layered), true) = (layered, report.is_empty()) else {
        return refused(&report, args.output, streams);
    };
    // Without a rule file the bundled table is what is tested; a file of cases alone tests itself.
    let of = |source: &Arc<Source>| (!layers.is_empty() || cases.is_empty()) && layered.holds(source);
    let mut checked = suite::run_rules(&layered.table, of);
    checked.extend(cases.iter().flatten().flat_map(|cases| suite::run_cases(&layered.table, cases)));
    let gaps = suite::gaps(&layered.table, &checked, of);
    write(args.output, &checked, &gaps, streams);
    if checked.iter().all(|checked| checked.failure.is_none()) { FINE } else { BAD }
}

fn refused<O: Write, W: Write>(report: &Report, form: TestForm, streams: &mut Streams<O, W>) -> u8 {
    match form {
        TestForm::Json => return refuse_as_json(report, streams),
        TestForm::Junit => drop(streams.data.write_all(junit::broken("toolvane test", report).as_bytes())),
        TestForm::Table => {}
    }
    refuse(report, &mut streams.words, streams.style)
}

/// Rule files by path, and files of cases read: the key at the root tells.
fn sort(files: &[PathBuf]) -> Result<(Vec<PathBuf>, Vec<Arc<Source>>), Report> {
    let mut report = Report::new();
    let (mut layers, mut cases) = (Vec::new(), Vec::new());
    for path in files {
        match Source::load(path) {
            Ok(source) if has_root_key(&source, "cases") => cases.push(source),
            Ok(_) => layers.push(path.clone()),
            Err(problems) => report.merge(problems),
        }
    }
    report.into_result((layers, cases))
}

/// Whether the root of a file is a map with this key, whatever else is wrong with it. A file that is no YAML has none.
pub(super) fn has_root_key(source: &Arc<Source>, key: &str) -> bool {
    let mut has = false;
    let _ = yaml::read(source, |at| {
        has = at.node().is_some_and(|root| root.get(key).is_some());
        Some(())
    });
    has
}

fn write<O: Write, W: Write>(form: TestForm, checked: &[Checked], gaps: &Gaps, streams: &mut Streams<O, W>) {
    let failed: Vec<&Checked> = checked.iter().filter(|checked| checked.failure.is_some()).collect();
    let data = match form {
        TestForm::Json => format!("{}\n", as_json(checked, gaps)),
        TestForm::Junit => junit::document("toolvane test", checked),
        TestForm::Table => {
            let line = |checked: &&Checked| {
                let why = checked.failure.as_deref().unwrap_or_default();
                format!("{}: {} {}: {why}\n", position(checked), checked.suite, checked.name)
            };
            failed.iter().map(line).collect()
        }
    };
    let _ = streams.data.write_all(data.as_bytes());
    let words = &mut streams.words;
    for rule in &gaps.untested {
        let _ = writeln!(words, "untested: no test hits the rule `{rule}`");
    }
    for (rule, by) in &gaps.unreachable {
        let by = by.iter().map(|by| format!("`{by}`")).collect::<Vec<_>>().join(", ");
        let _ = writeln!(words, "unreachable: the rule `{rule}` can never decide, before it stands {by}");
    }
    let (all, bad) = (checked.len(), failed.len());
    let _ = writeln!(words, "{}, {bad} failed", counted(all, "test"));
}

fn position(checked: &Checked) -> String {
    let (line, column) = checked.origin.source.line_column(checked.origin.place);
    format!("{}:{line}:{column}", checked.origin.source.name())
}

fn as_json(checked: &[Checked], gaps: &Gaps) -> Value {
    let tests: Vec<Value> = checked
        .iter()
        .map(|checked| {
            let (line, column) = checked.origin.source.line_column(checked.origin.place);
            json!({
                "suite": checked.suite,
                "name": checked.name,
                "file": checked.origin.source.name(),
                "line": line,
                "column": column,
                "rule": checked.rule,
                "passed": checked.failure.is_none(),
                "failure": checked.failure,
            })
        })
        .collect();
    let unreachable: Vec<Value> =
        gaps.unreachable.iter().map(|(rule, by)| json!({"rule": rule, "coveredBy": by})).collect();
    let failed = checked.iter().filter(|checked| checked.failure.is_some()).count();
    json!({
        "passed": checked.len() - failed,
        "failed": failed,
        "tests": tests,
        "untested": gaps.untested,
        "unreachable": unreachable,
    })
}
