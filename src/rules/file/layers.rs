//! One table out of layers: each lower layer with the next one laid over it, rule by rule.

use std::sync::Arc;

use crate::rules::rule::{Before, FALLBACK, Rule};
use crate::yaml::{self, Node, Place, Problem, Report, Source, nearest};

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
                // Told once: rules that name this one find it.
                insert_before(&mut below, FALLBACK, rule);
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
    unknown(&rule.origin.source, before.place, (&rule.id, id), below.iter().map(|rule| &*rule.id))
}

fn unknown<'n>(
    source: &Arc<Source>,
    place: Place,
    (rule, before): (&str, &str),
    known: impl Iterator<Item = &'n str>,
) -> Problem {
    let message = format!("there is no rule `{before}` below this layer that `{rule}` could come before");
    let unknown = Problem::new(source, place, message);
    match nearest(before, known) {
        Some(close) => unknown.label(format!("did you mean `{close}`?")),
        None => unknown
            .help("`before` takes the id of a bundled rule, of a layer below, or of a rule further up in this file"),
    }
}

/// What `before` names and no file holds, in files that have other problems too and make no table yet.
pub(super) fn unknown_names<'s>(files: impl Iterator<Item = &'s Arc<Source>>, report: &mut Report) {
    let mut known: Vec<Arc<str>> = Vec::new();
    for source in files {
        // Of a file that is no YAML nobody knows which rules it holds.
        let Ok(named) = yaml::read(source, |at| at.node().map(names)) else { return };
        known.extend(named.iter().filter_map(|(id, _)| id.clone()));
        for (id, before) in &named {
            if let (Some(id), Some((before, place))) = (id, before)
                && !known.contains(before)
            {
                report.push(unknown(source, *place, (id, before), known.iter().map(|id| &**id)));
            }
        }
    }
}

/// An id, and what `before` says and where.
type Names = (Option<Arc<str>>, Option<(Arc<str>, Place)>);

fn names(root: &Node) -> Vec<Names> {
    let text = |rule: &Node, key: &str| {
        let node = rule.get(key)?;
        node.text().map(|text| (Arc::clone(text), node.place))
    };
    let of = |rule: &Arc<Node>| (text(rule, "id").map(|(id, _)| id), text(rule, "before"));
    root.get("patterns").map(|patterns| patterns.items().iter().map(of).collect()).unwrap_or_default()
}
