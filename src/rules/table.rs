//! A compiled table of rules and the judgement on one exchange: first match wins, order is meaning (DESIGN 6).

use std::sync::Arc;
use std::time::Duration;

use super::derive;
use super::exchange::Exchange;
use super::facts::{Facts, View};
use super::hint;
use super::index::Index;
use super::matcher::{Clause, Matcher, Views};
use super::rule::{Cooldown, FALLBACK, Rule, Then};
use super::search::Search;
use super::verdict::{Evidence, Finding, Kind, Verdict};
use super::vocabulary::{Classification, DispatchCode, HealthAction, Scope};

/// Bounds that an operator sets for all rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How far a hint reaches (`hint.max`), at most 24 h.
    pub hint_max: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { hint_max: hint::HINT_MAX }
    }
}

/// Rules ready to judge. Cheap to share, never changed: a reload makes a new one.
#[derive(Clone, Debug)]
pub struct Table {
    rules: Vec<Rule>,
    matchers: Vec<Matcher>,
    built: Views,
    index: Index,
    limits: Limits,
    unmatched: Then,
    fallback: Arc<str>,
    /// Whether any rule asks about successes.
    asks_about_success: bool,
    /// Whether any rule wants a failure in the result shape.
    reshapes: bool,
}

impl Table {
    /// Compiles rules in their order.
    ///
    /// # Errors
    /// Says which bound the needles or regexes of all rules together exceed.
    pub fn new(rules: Vec<Rule>, limits: Limits) -> Result<Table, String> {
        let (mut text, mut reason) = (Search::new(View::Text), Search::new(View::Reason));
        let matchers: Vec<Matcher> =
            rules.iter().map(|rule| Matcher::new(&rule.when, &mut text, &mut reason)).collect();
        let built = Views { text: text.build()?, reason: reason.build()? };
        let index = Index::new(&matchers, &built);
        Ok(Table {
            asks_about_success: index.asks_about_success(),
            reshapes: rules.iter().any(|rule| rule.then.answer_as_result),
            rules,
            matchers,
            built,
            index,
            limits,
            unmatched: unmatched(),
            fallback: Arc::from(FALLBACK),
        })
    }

    /// The rules in their order.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Whether some rule asks about successes. Where none does, what is a success by its structure needs no judging.
    pub fn asks_about_success(&self) -> bool {
        self.asks_about_success
    }

    /// Whether some rule wants a failure in the result shape.
    pub fn reshapes(&self) -> bool {
        self.reshapes
    }

    /// Judges one exchange, in the order of DESIGN 4: what is not yet an outcome, success by structure, then the rules.
    /// Text is read only in failures, and in successes only by rules that name a success.
    pub fn judge(&self, exchange: &Exchange) -> Verdict {
        if exchange.cancelled || exchange.answer.is_not_yet_an_outcome() {
            return Verdict::NEUTRAL;
        }
        if exchange.succeeded() {
            return self.judge_success(exchange);
        }
        let facts = Facts::new(exchange);
        let candidates = self.index.for_failure(&facts, &self.built);
        let verdict = match self.first_match(candidates.iter(), &facts) {
            // What is an error by its structure alone stays a success where no rule has anything to say on it.
            Some(rule) if exchange.disguised && &*rule.id == FALLBACK => return Verdict::SUCCESS,
            None if exchange.disguised => return Verdict::SUCCESS,
            Some(rule) => self.verdict(&rule.id, &rule.then, &facts),
            None => self.verdict(&self.fallback, &self.unmatched, &facts),
        };
        known_tool(verdict, exchange)
    }

    /// Whether the body of a success must be handed over parsed (`json`, `structured`): it may be an error envelope, or a
    /// rule may look into it.
    pub fn reads_success_body(&self, exchange: &Exchange) -> bool {
        exchange.may_hold_envelope()
            || self.asks_about_success && {
                let rules = self.index.for_success(exchange);
                rules.iter().filter_map(|at| self.matchers.get(at)).any(|matcher| matcher.reads_body_of(exchange))
            }
    }

    /// The first clause of each rule before the matching one that does not hold, for explanations: rule id and clause.
    pub fn unmet_clauses(&self, exchange: &Exchange) -> Vec<(Arc<str>, Clause)> {
        let facts = Facts::new(exchange);
        let mut unmet = Vec::new();
        for (rule, matcher) in self.rules.iter().zip(&self.matchers) {
            if exchange.succeeded() && !rule.when.names_success() {
                unmet.push((rule.id.clone(), "success"));
                continue;
            }
            match matcher.first_unmet(&facts, &self.built) {
                Some(clause) => unmet.push((rule.id.clone(), clause)),
                None => break,
            }
        }
        unmet
    }

    fn judge_success(&self, exchange: &Exchange) -> Verdict {
        if !self.asks_about_success {
            return Verdict::SUCCESS;
        }
        let candidates = self.index.for_success(exchange);
        let facts = Facts::new(exchange);
        match self.first_match(candidates.iter(), &facts) {
            Some(rule) => self.verdict(&rule.id, &rule.then, &facts),
            None => Verdict::SUCCESS,
        }
    }

    fn first_match(&self, mut candidates: impl Iterator<Item = usize>, facts: &Facts<'_>) -> Option<&Rule> {
        let at = candidates.find(|at| {
            self.matchers.get(*at).is_some_and(|matcher| matcher.first_unmet(facts, &self.built).is_none())
        })?;
        self.rules.get(at)
    }

    fn verdict(&self, id: &Arc<str>, then: &Then, facts: &Facts<'_>) -> Verdict {
        let exchange = facts.exchange;
        let hint = self.hint(then, facts);
        let cooldown = match &then.cooldown {
            Cooldown::Default => None,
            Cooldown::Fixed(wait) => Some(*wait),
            Cooldown::Hint | Cooldown::Header(_) => hint,
        };
        let finding = Finding {
            rule: id.clone(),
            signature: then.signature.clone(),
            classification: then.classification,
            dispatch_code: then.dispatch_code.unwrap_or_else(|| derive::dispatch_code(exchange)),
            health_action: then.health_action,
            scope: then.scope,
            cooldown,
            hint,
            evidence: derive::evidence(then, exchange),
            disproves: derive::disproves(then, exchange),
            credential_fault: derive::credential_fault(then, exchange),
            answer_as_result: then.answer_as_result,
            note: then.note.clone(),
        };
        Verdict { kind: derive::kind(then), finding: Some(finding) }
    }

    /// Hints come from 429 and 503 only, and from rules that ask for them (DESIGN 7). They say when something is *back*,
    /// so a fault of the caller's has none.
    fn hint(&self, then: &Then, facts: &Facts<'_>) -> Option<Duration> {
        let exchange = facts.exchange;
        let max = then.hint_max.unwrap_or(self.limits.hint_max);
        let by_class = matches!(
            then.classification,
            Classification::Intermittent | Classification::TechnicallyBroken | Classification::Unclear
        );
        match &then.cooldown {
            Cooldown::Header(name) => hint::of_header(exchange, name, max),
            Cooldown::Hint => hint::of(facts, max),
            _ if by_class && matches!(exchange.status, Some(429 | 503)) => hint::of(facts, max),
            _ => None,
        }
    }
}

/// "Unknown tool" of a tool that stands in the last good list (DESIGN 4): its provider has left, or the backend is at
/// odds with itself. It is no caller's mistake.
fn known_tool(mut verdict: Verdict, exchange: &Exchange) -> Verdict {
    let Some(finding) = verdict.finding.as_mut().filter(|f| f.dispatch_code == DispatchCode::NotRegistered) else {
        return verdict;
    };
    if !exchange.listed {
        return verdict;
    }
    verdict.kind = Kind::Failure;
    if exchange.session_tool {
        finding.dispatch_code = DispatchCode::BackendUnreachable;
        finding.classification = Classification::TechnicallyBroken;
        finding.health_action = HealthAction::MarkUnavailable;
        finding.scope = Some(Scope::Session);
        finding.evidence = Evidence::Down;
    } else {
        finding.dispatch_code = DispatchCode::BackendFailed;
        finding.classification = Classification::Unclear;
        finding.scope = None;
        finding.evidence = Evidence::Nothing;
    }
    finding.disproves = super::verdict::Disproves::Transport;
    verdict
}

/// What holds where no rule matches, which takes a table whose `fallback` was narrowed.
fn unmatched() -> Then {
    Then {
        signature: Arc::from("unknown"),
        classification: Classification::Unclear,
        cooldown: Cooldown::Default,
        hint_max: None,
        health_action: HealthAction::None,
        scope: None,
        dispatch_code: None,
        neutral: false,
        answer_as_result: false,
        note: None,
    }
}
