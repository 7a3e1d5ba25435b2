//! What is odd about rules that are valid all the same: rules that can never decide, needles and regexes that say too
//! little, cooldowns that the configuration cuts.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::cover::{alternatives, covers};
use super::prefilter::required;
use super::rule::{Cooldown, FALLBACK, Rule, When};
use crate::yaml::{Problem, Source, duration_text};

/// What kind of oddity it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Earlier rules match whatever it matches.
    Unreachable,
    /// Earlier rules match whatever one of its alternatives matches.
    Shadowed,
    /// It matches everything, so that no rule behind it decides.
    CatchAll,
    /// A regex that says so little that it is tried on every text, or fits ordinary words.
    WideRegex,
    /// A cooldown above `cooldown.max`.
    LongCooldown,
    /// A class name that is not known and stands for any error of a tool, where a kind of fault or more clauses were meant.
    UnknownException,
    /// A needle that is a bare number: numbers stand in texts for many things.
    BareNumber,
}

/// One finding.
#[derive(Clone, Debug)]
pub struct Lint {
    /// The rule's id.
    pub rule: Arc<str>,
    /// What kind it is.
    pub kind: Kind,
    /// Where and what, as a warning.
    pub problem: Problem,
}

/// Texts that say nothing about a failure. A regex that fits one of them fits almost anything.
const ORDINARY: [&str; 4] = ["ok", "the tool gave an answer", "Error", "0"];

/// Looks at the rules of one table, in their order. Only rules that `of` accepts are reported; all count as earlier ones.
pub fn lint(rules: &[Rule], cooldown_max: Duration, of: impl Fn(&Arc<Source>) -> bool) -> Vec<Lint> {
    let mut found = Vec::new();
    for (at, rule) in rules.iter().enumerate().filter(|(_, rule)| of(&rule.origin.source)) {
        found.extend(reach(rule, rules.get(..at).unwrap_or_default()));
        found.extend(catches_all(rule, rules.get(at + 1..).unwrap_or_default()));
        found.extend(needles(rule));
        found.extend(regexes(rule));
        found.extend(exceptions(rule));
        found.extend(cooldown(rule, cooldown_max));
    }
    found
}

/// The earlier rules that leave nothing to this one; empty if it can decide something.
pub fn covered_by<'r>(rule: &Rule, earlier: &'r [Rule]) -> Vec<&'r Rule> {
    if let Some(one) = earlier.iter().find(|earlier| covers(&earlier.when, &rule.when)) {
        return vec![one];
    }
    let mut fields: HashMap<&str, Vec<Option<&Rule>>> = HashMap::new();
    for (field, _, one) in alternatives(&rule.when) {
        let by = earlier.iter().find(|earlier| covers(&earlier.when, &one));
        fields.entry(field).or_default().push(by);
    }
    let whole = fields.into_values().find_map(|values| values.into_iter().collect::<Option<Vec<&Rule>>>());
    let mut all = whole.unwrap_or_default();
    all.sort_by(|one, other| one.id.cmp(&other.id));
    all.dedup_by(|one, other| one.id == other.id);
    all
}

fn reach(rule: &Rule, earlier: &[Rule]) -> Vec<Lint> {
    let all = covered_by(rule, earlier);
    if !all.is_empty() {
        let names = all.iter().map(|rule| format!("`{}`", rule.id)).collect::<Vec<_>>().join(", ");
        let match_word = if all.len() == 1 { "matches" } else { "together match" };
        let message =
            format!("the rule `{}` can never decide: {names}, before it, {match_word} all that it matches", rule.id);
        return vec![warning(rule, Kind::Unreachable, message, advice(rule, &all))];
    }
    let mut found = Vec::new();
    for (field, value, one) in alternatives(&rule.when) {
        if let Some(by) = earlier.iter().find(|earlier| covers(&earlier.when, &one)) {
            let message = format!(
                "`{field}: {value}` of the rule `{}` never decides: `{}`, before it, matches all that",
                rule.id, by.id
            );
            found.push(warning(rule, Kind::Shadowed, message, format!("remove it here, or narrow `{}`", by.id)));
        }
    }
    found
}

fn catches_all(rule: &Rule, later: &[Rule]) -> Option<Lint> {
    let dead = later.iter().filter(|later| *later.id != *FALLBACK).count();
    if dead == 0 || !covers(&rule.when, &When::default()) {
        return None;
    }
    let what = if dead == 1 {
        "the rule behind it decides nothing".to_owned()
    } else {
        format!("none of the {dead} rules behind it decides anything")
    };
    let message = format!("the rule `{}` matches everything: {what}", rule.id);
    let help = format!("say in `match` what must hold, or leave out `before`: then it goes right before `{FALLBACK}`");
    Some(warning(rule, Kind::CatchAll, message, help))
}

fn advice(rule: &Rule, by: &[&Rule]) -> String {
    let below = by.iter().any(|by| !Arc::ptr_eq(&by.origin.source, &rule.origin.source));
    match by {
        [by] if below => format!(
            "a new rule of a layer goes right before `{FALLBACK}`, behind all rules below it; to come first, add `before: {}`",
            by.id
        ),
        _ => "narrow the earlier rule, or remove this one".to_owned(),
    }
}

fn with_not(when: &When) -> impl Iterator<Item = &When> {
    std::iter::once(when).chain(when.not.as_deref())
}

fn needles(rule: &Rule) -> Vec<Lint> {
    let all = with_not(&rule.when).flat_map(|when| when.contains.iter().flatten());
    let bare = all.filter(|needle| needle.trim().chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | ',' | '-')));
    bare.map(|needle| {
        let message = format!("the needle `{needle}` of the rule `{}` is a bare number", rule.id);
        let help =
            "numbers stand in texts for many things; ask `httpStatus` or `errorCode`, or add the words beside it";
        warning(rule, Kind::BareNumber, message, help)
    })
    .collect()
}

fn regexes(rule: &Rule) -> Vec<Lint> {
    let all = rule.when.regex.iter().flatten();
    all.filter_map(|regex| {
        let fits = ORDINARY.iter().find(|text| regex.is_match(text.as_bytes()));
        let why = match fits {
            Some(text) => format!("fits `{text}`"),
            None if required(regex.as_str()).is_none() => {
                "has no three letters in a row that a text must hold, so it is tried on every failure".to_owned()
            }
            None => return None,
        };
        let message = format!("the regex `{regex}` of the rule `{}` is very wide: it {why}", rule.id);
        Some(warning(rule, Kind::WideRegex, message, "add a word that must be there"))
    })
    .collect()
}

fn exceptions(rule: &Rule) -> Vec<Lint> {
    let library = |class: &str| ["java.", "javax.", "jdk.", "sun."].iter().any(|start| class.starts_with(start));
    let asks_nothing_else = covers(&rule.when, &When { faults: rule.when.faults.clone(), ..When::default() });
    let classes = with_not(&rule.when).flat_map(|when| when.faults.iter().flat_map(|faults| &faults.own_classes));
    let found = classes.filter_map(|class| {
        let (what, help) = if library(class) {
            ("is not known", "name a kind of fault such as `connect-refused` or `timeout` instead")
        } else if asks_nothing_else {
            (
                "is all that it asks for",
                "answers name no classes: add the words or the status of the errors that are meant",
            )
        } else {
            return None;
        };
        let message = format!("the exception type `{class}` of the rule `{}` {what}", rule.id);
        let help = format!("a tool's own class stands for any error that came as an answer; {help}");
        Some(warning(rule, Kind::UnknownException, message, help))
    });
    found.collect()
}

fn cooldown(rule: &Rule, max: Duration) -> Option<Lint> {
    let Cooldown::Fixed(wait) = rule.then.cooldown else { return None };
    if wait <= max {
        return None;
    }
    let (wait, max) = (duration_text(wait), duration_text(max));
    let message = format!("the cooldown {wait} of the rule `{}` is above `cooldown.max`, {max}", rule.id);
    Some(warning(rule, Kind::LongCooldown, message, format!("it is cut to {max}")))
}

fn warning(rule: &Rule, kind: Kind, message: String, help: impl Into<String>) -> Lint {
    let problem = Problem::new(&rule.origin.source, rule.origin.place, message).help(help).warning();
    Lint { rule: Arc::clone(&rule.id), kind, problem }
}
