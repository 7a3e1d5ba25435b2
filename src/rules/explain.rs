//! Why an outcome was judged as it was: what decided, and for each earlier rule the first clause that did not hold.

use std::sync::Arc;

use serde::Serialize;

use super::exchange::Exchange;
use super::matcher::Clause;
use super::table::Table;
use super::verdict::{Finding, Verdict};
use super::vocabulary::DispatchCode;

/// The judgement on one exchange with its reasons.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// What decided.
    pub basis: Basis,
    /// The rules that stand before the one that decided, in their order; all rules where none decided.
    pub earlier: Vec<Unmet>,
    /// What is said.
    pub verdict: Verdict,
}

/// What decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Basis {
    /// The call was cancelled by its caller, so no rule was asked.
    Cancelled,
    /// A task was started or more input is asked for: not yet an outcome, so no rule was asked.
    NotYetAnOutcome,
    /// By structure it is a success, and no rule says otherwise.
    Success,
    /// A rule.
    Rule,
    /// No rule matched; what then holds is UNCLEAR.
    NoRule,
    /// A rule, and then the fact that the tool which the backend calls unknown stands in its own list.
    KnownTool,
}

/// A rule that did not match.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unmet {
    /// Its id.
    pub rule: Arc<str>,
    /// The first clause that did not hold, by its name in the file; `success` where a rule that names no success was not
    /// asked about one.
    pub clause: Clause,
}

impl Table {
    /// Judges an exchange and says why.
    pub fn explain(&self, exchange: &Exchange) -> Explanation {
        let verdict = self.judge(exchange);
        let asked = !exchange.cancelled && !exchange.answer.is_not_yet_an_outcome();
        let unmet = if asked { self.unmet_clauses(exchange) } else { Vec::new() };
        let earlier: Vec<Unmet> = unmet.into_iter().map(|(rule, clause)| Unmet { rule, clause }).collect();
        let basis = match &verdict.finding {
            _ if exchange.cancelled => Basis::Cancelled,
            _ if !asked => Basis::NotYetAnOutcome,
            None => Basis::Success,
            Some(_) if earlier.len() == self.rules().len() => Basis::NoRule,
            Some(finding) if self.is_overruled(finding) => Basis::KnownTool,
            Some(_) => Basis::Rule,
        };
        Explanation { basis, earlier, verdict }
    }

    /// The rule of this id.
    pub fn rule(&self, id: &str) -> Option<&super::Rule> {
        self.rules().iter().find(|rule| &*rule.id == id)
    }

    fn is_overruled(&self, finding: &Finding) -> bool {
        let said = self.rule(&finding.rule).and_then(|rule| rule.then.dispatch_code);
        said == Some(DispatchCode::NotRegistered) && finding.dispatch_code != DispatchCode::NotRegistered
    }
}
