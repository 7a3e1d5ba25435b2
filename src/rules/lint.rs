//! What is odd about rules that are valid all the same: rules that can never decide, needles and regexes that say too
//! little, cooldowns that the configuration cuts.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::cover::{alternatives, covers};
use super::never::{contradiction, empty_lists};
use super::prefilter::required;
use super::rule::{Cooldown, FALLBACK, Rule, When};
use crate::yaml::{Problem, Source, duration_text};

/// What kind of oddity it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Its fields exclude each other: no outcome fits.
    Contradiction,
    /// A field is a list without a value, which nothing fits.
    EmptyList,
    /// Earlier rules match whatever it matches.
    Unreachable,
    /// Earlier rules match whatever one of its alternatives matches.
    Shadowed,
    /// It matches everything, so that no rule behind it decides.
    CatchAll,
    /// It matches whatever several rules of the layers below match, so that those decide nothing.
    Swallows,
    /// A regex that says so little that it is tried on every text, or fits ordinary words.
    WideRegex,
    /// A cooldown above `cooldown.max`.
    LongCooldown,
    /// A class name that is not known and stands for any error of a tool, where a kind of fault or more clauses were meant.
    UnknownException,
    /// A needle that is a bare number: numbers stand in texts for many things.
    BareNumber,
    /// A needle of one or two characters: it stands in nearly every text.
    ShortNeedle,
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

/// From how many rules of the layers below on it is worth a word that a rule leaves nothing to them, and how many are named.
/// To go before a single one is what `before` is for.
const SWALLOWED_MIN: usize = 2;
const SWALLOWED_SHOWN: usize = 3;

/// Looks at the rules of one table, in their order. Only rules that `of` accepts are reported; all count as earlier ones.
pub fn lint(rules: &[Rule], cooldown_max: Duration, of: impl Fn(&Arc<Source>) -> bool) -> Vec<Lint> {
    let mut found = Vec::new();
    for (at, rule) in rules.iter().enumerate().filter(|(_, rule)| of(&rule.origin.source)) {
        let (earlier, later) = (rules.get(..at).unwrap_or_default(), rules.get(at + 1..).unwrap_or_default());
        let never = never(rule);
        if never.is_empty() {
            found.extend(reach(rule, earlier));
            found.extend(catches_all(rule, later).or_else(|| swallows(rule, later, &of)));
        }
        found.extend(never);
        found.extend(excludes_nothing(rule));
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

/// Why no outcome fits the rule; empty if one may.
fn never(rule: &Rule) -> Vec<Lint> {
    let empty = empty_lists(&rule.when).into_iter().map(|field| {
        let message =
            format!("`{field}` of the rule `{}` is an empty list, which nothing fits: it never decides", rule.id);
        warning(rule, Kind::EmptyList, message, format!("say what `{field}` may be, or remove it"))
    });
    let fields = contradiction(&rule.when).map(|found| {
        let message = format!("the rule `{}` can never match: {}", rule.id, found.why);
        warning(rule, Kind::Contradiction, message, found.help)
    });
    empty.chain(fields).collect()
}

fn excludes_nothing(rule: &Rule) -> Vec<Lint> {
    let empty = rule.when.not.iter().flat_map(|not| empty_lists(not));
    empty
        .map(|field| {
            let message =
                format!("`{field}` under `not` of the rule `{}` is an empty list, which excludes nothing", rule.id);
            warning(rule, Kind::EmptyList, message, format!("say what `{field}` may not be, or remove it"))
        })
        .collect()
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
        if let Some(never) = contradiction(&one) {
            let message = format!("`{field}: {value}` of the rule `{}` can never match: {}", rule.id, never.why);
            found.push(warning(rule, Kind::Contradiction, message, "remove it here, or what excludes it"));
        } else if let Some(by) = earlier.iter().find(|earlier| covers(&earlier.when, &one)) {
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

/// Rules of the file itself that it leaves nothing to are reported where they stand.
fn swallows(rule: &Rule, later: &[Rule], of: impl Fn(&Arc<Source>) -> bool) -> Option<Lint> {
    let below = later.iter().filter(|later| *later.id != *FALLBACK && !of(&later.origin.source));
    let all: Vec<&Rule> = below.filter(|later| covers(&rule.when, &later.when)).collect();
    if all.len() < SWALLOWED_MIN {
        return None;
    }
    let first = all.iter().take(SWALLOWED_SHOWN).map(|rule| format!("`{}`", rule.id)).collect::<Vec<_>>().join(", ");
    let more = match all.len().saturating_sub(SWALLOWED_SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let message = format!(
        "the rule `{}` matches all that {} rules behind it match, which then decide nothing: {first}{more}",
        rule.id,
        all.len()
    );
    let help = format!(
        "add to `match` what tells this failure from theirs, or leave out `before`: then a new rule goes right before `{FALLBACK}`"
    );
    Some(warning(rule, Kind::Swallows, message, help))
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
    all.filter_map(|needle| {
        let bare = needle.trim().chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | ',' | '-'));
        let (kind, what, help) = if bare {
            let help =
                "numbers stand in texts for many things; ask `httpStatus` or `errorCode`, or add the words beside it";
            (Kind::BareNumber, "a bare number", help)
        } else if is_short(needle.trim()) {
            let help =
                "so little stands in nearly every text, within other words too; write the words that tell the failure";
            (Kind::ShortNeedle, "very short", help)
        } else {
            return None;
        };
        let message = format!("the needle `{needle}` of the rule `{}` is {what}", rule.id);
        Some(warning(rule, kind, message, help))
    })
    .collect()
}

/// One or two characters of a script that spells its words; where a sign is a syllable or a word, two say something.
fn is_short(needle: &str) -> bool {
    needle.chars().count() <= 2 && needle.chars().all(|c| c < '\u{1100}')
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
