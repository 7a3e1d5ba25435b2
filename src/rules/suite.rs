//! The tests that stand in rule files and in files of cases: what they expect, and what a table makes of them.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use super::exchange::Exchange;
use super::lint::covered_by;
use super::rule::{Origin, Rule};
use super::table::Table;
use super::verdict::{Kind, Verdict};
use super::vocabulary::{Classification, DispatchCode, HealthAction, Scope};
use crate::yaml::Source;

/// A case of a file of cases.
#[derive(Clone, Debug)]
pub struct Case {
    /// What it is called.
    pub name: Arc<str>,
    /// What is judged.
    pub exchange: Exchange,
    /// What must come of it.
    pub expect: Expect,
    /// Where it is written.
    pub origin: Origin,
}

/// What must come of a case; what is left out may be anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expect {
    /// The rule that decides.
    pub rule: Option<Arc<str>>,
    /// The kind of failure.
    pub signature: Option<Arc<str>>,
    /// What it says about the tool; WORKING for a plain success.
    pub classification: Option<Classification>,
    /// Where it is written by default.
    pub scope: Option<Scope>,
    /// How it is named to the caller.
    pub dispatch_code: Option<DispatchCode>,
    /// What it does to the status at once.
    pub health_action: Option<HealthAction>,
    /// The answer's own hint.
    pub hint: Option<Duration>,
}

/// What one test came to.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The rule or the file that the test belongs to.
    pub suite: Arc<str>,
    /// What the test is called.
    pub name: String,
    /// Where it is written.
    pub origin: Origin,
    /// The rule that decided, if one did.
    pub rule: Option<Arc<str>>,
    /// Why it failed; `None` if it holds.
    pub failure: Option<String>,
}

/// Rules that deserve a look, besides failing tests.
#[derive(Clone, Debug, Default)]
pub struct Gaps {
    /// Rules that no test hits.
    pub untested: Vec<Arc<str>>,
    /// Rules that can never decide, each with the earlier rules that leave nothing to it.
    pub unreachable: Vec<(Arc<str>, Vec<Arc<str>>)>,
}

/// Runs the tests of those rules whose file `of` accepts.
pub fn run_rules(table: &Table, of: impl Fn(&Arc<Source>) -> bool) -> Vec<Checked> {
    let rules = table.rules().iter().filter(|rule| of(&rule.origin.source));
    rules
        .flat_map(|rule| (1..).zip(&rule.tests).map(move |(number, test)| (rule, number, test)))
        .map(|(rule, number, test)| {
            let decided = rule_of(&table.judge(&test.exchange));
            let is_hit = decided.as_ref() == Some(&rule.id);
            let failure = match (is_hit, test.expect_match) {
                (true, true) | (false, false) => None,
                (true, false) => Some(format!("`{}` decides it, and must not", rule.id)),
                (false, true) => Some(miss(table, rule, &test.exchange, decided.as_deref())),
            };
            let origin = Origin { source: Arc::clone(&rule.origin.source), place: test.place };
            Checked { suite: Arc::clone(&rule.id), name: format!("test {number}"), origin, rule: decided, failure }
        })
        .collect()
}

/// Runs cases of a file of cases.
pub fn run_cases(table: &Table, cases: &[Case]) -> Vec<Checked> {
    cases
        .iter()
        .map(|case| {
            let verdict = table.judge(&case.exchange);
            let decided = rule_of(&verdict);
            let wrong = case.expect.unmet_by(&verdict, &case.exchange);
            Checked {
                suite: case.origin.source.name().into(),
                name: case.name.to_string(),
                origin: case.origin.clone(),
                rule: decided,
                failure: (!wrong.is_empty()).then(|| wrong.join("; ")),
            }
        })
        .collect()
}

/// What the tests leave out, of those rules whose file `of` accepts.
pub fn gaps(table: &Table, checked: &[Checked], of: impl Fn(&Arc<Source>) -> bool) -> Gaps {
    let hit: HashSet<&Arc<str>> = checked.iter().filter_map(|checked| checked.rule.as_ref()).collect();
    let mut gaps = Gaps::default();
    for (at, rule) in table.rules().iter().enumerate().filter(|(_, rule)| of(&rule.origin.source)) {
        if !hit.contains(&rule.id) {
            gaps.untested.push(Arc::clone(&rule.id));
        }
        let by = covered_by(rule, table.rules().get(..at).unwrap_or_default());
        if !by.is_empty() {
            let by = by.into_iter().map(|rule| Arc::clone(&rule.id)).collect();
            gaps.unreachable.push((Arc::clone(&rule.id), by));
        }
    }
    gaps
}

fn rule_of(verdict: &Verdict) -> Option<Arc<str>> {
    verdict.finding.as_ref().map(|finding| Arc::clone(&finding.rule))
}

fn miss(table: &Table, rule: &Rule, exchange: &Exchange, decided: Option<&str>) -> String {
    match table.unmet_clauses(exchange).into_iter().find(|(id, _)| *id == rule.id) {
        Some((_, clause)) => format!("its own `{clause}` does not hold; {} decides", named(decided)),
        None => format!("{}, which stands before it, decides", named(decided)),
    }
}

fn named(rule: Option<&str>) -> String {
    rule.map_or_else(|| "no rule".to_owned(), |rule| format!("`{rule}`"))
}

impl Expect {
    /// What is not as expected, each in words.
    fn unmet_by(&self, verdict: &Verdict, exchange: &Exchange) -> Vec<String> {
        let finding = verdict.finding.as_ref();
        let mut wrong = Vec::new();
        let mut differs = |what: &str, expected: Option<String>, found: Option<String>| {
            if let Some(expected) = expected.filter(|expected| found.as_ref() != Some(expected)) {
                wrong.push(format!("{what} is {}, not {expected}", found.as_deref().unwrap_or("none")));
            }
        };
        let text = |text: &Option<Arc<str>>| text.as_ref().map(ToString::to_string);
        let working = || (verdict.kind == Kind::Success).then_some(Classification::Working);
        let class = finding.map(|finding| finding.classification).or_else(working);
        let seconds = |wait: Option<Duration>| wait.map(|wait| format!("{} s", wait.as_secs_f64()));
        differs("rule", text(&self.rule), finding.map(|finding| finding.rule.to_string()));
        differs("signature", text(&self.signature), finding.map(|finding| finding.signature.to_string()));
        differs("classification", self.classification.map(|c| c.to_string()), class.map(|c| c.to_string()));
        let scope = finding.map(|finding| super::default_scope(finding, exchange.session_tool));
        differs("scope", self.scope.map(|s| s.to_string()), scope.map(|s| s.to_string()));
        let code = finding.map(|finding| finding.dispatch_code.to_string());
        differs("dispatchCode", self.dispatch_code.map(|code| code.to_string()), code);
        let action = finding.map(|finding| finding.health_action).unwrap_or_default();
        differs("healthAction", self.health_action.map(|a| a.to_string()), Some(action.to_string()));
        differs("hint", seconds(self.hint), seconds(finding.and_then(|finding| finding.hint)));
        wrong
    }
}
