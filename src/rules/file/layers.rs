//! One table out of layers: each lower layer with the next one laid over it, rule by rule.

use std::sync::Arc;

use crate::rules::rule::{Before, FALLBACK, Rule};
use crate::yaml::{Problem, Report, nearest};

/// Lays one layer over the rules below it. A rule goes to the place that it names with `before`; without one it takes the
/// place of the rule with its id whole, and where there is none it goes right before `fallback`, or to the end.
pub(super) fn lay(mut below: Vec<Rule>, layer: Vec<Rule>, report: &mut Report) -> Vec<Rule> {
    let own: Vec<Arc<str>> = layer.iter().map(|rule| rule.id.clone()).collect();
    for rule in layer {
        let known = position(&below, &rule.id);
        match &rule.before {
            None => match known.and_then(|at| below.get_mut(at)) {
                Some(known) => *known = rule,
                None => insert_before(&mut below, FALLBACK, rule),
            },
            Some(before) if position(&below, &before.id).is_none() => {
                report.push(misplaced(&rule, before, &below, &own));
            }
            Some(before) => {
                known.map(|at| below.remove(at));
                let next = before.id.clone();
                insert_before(&mut below, &next, rule);
            }
        }
    }
    below
}

fn position(rules: &[Rule], id: &str) -> Option<usize> {
    rules.iter().position(|rule| &*rule.id == id)
}

fn insert_before(rules: &mut Vec<Rule>, id: &str, rule: Rule) {
    let at = position(rules, id).unwrap_or(rules.len());
    rules.insert(at, rule);
}

/// Rules are laid in the order of their file, so that no two can wait for each other.
fn misplaced(rule: &Rule, before: &Before, below: &[Rule], own: &[Arc<str>]) -> Problem {
    let id = &before.id;
    let problem = |message: String| Problem::new(&rule.origin.source, before.place, message);
    if own.contains(id) {
        let message =
            format!("the rule `{id}` stands further down in this file, so `{}` cannot be put before it", rule.id);
        return problem(message).help(format!(
            "the order within a file is kept: leave out `before` here, and put `before` to `{id}` if both must come earlier"
        ));
    }
    let unknown = problem(format!("there is no rule `{id}` below this layer that `{}` could come before", rule.id));
    match nearest(id, below.iter().map(|rule| &*rule.id)) {
        Some(close) => unknown.label(format!("did you mean `{close}`?")),
        None => unknown
            .help("`before` takes the id of a bundled rule, of a layer below, or of a rule further up in this file"),
    }
}
