//! Hints in words: "try again in 20s", "please wait at least 5 minutes", "retry after 2026-03-02T10:00:40Z".

use std::time::Duration;

use super::amount::{leading_duration, leading_number, seconds, until_date};
use crate::clock::Wall;

/// Words after which a wait may be stated.
const ANCHORS: [&str; 6] = ["try again", "retry", "wait", "reset", "available again", "back in"];
/// Words that may stand between an anchor and the amount.
const FILLERS: [&str; 30] = [
    "in",
    "after",
    "for",
    "about",
    "approximately",
    "approx",
    "around",
    "at",
    "least",
    "again",
    "another",
    "please",
    "the",
    "a",
    "your",
    "request",
    "requests",
    "within",
    "to",
    "be",
    "will",
    "of",
    "until",
    "limit",
    "time",
    "is",
    "and",
    "s",
    "ing",
    "try",
];
/// How many anchors of a text are tried, and words after each.
const ANCHORS_MAX: usize = 64;
const WORDS_MAX: usize = 7;

/// The first stated wait of a folded text.
pub(super) fn wait(text: &str, base: Wall) -> Option<Duration> {
    let mut places: Vec<usize> = ANCHORS
        .iter()
        .flat_map(|anchor| text.match_indices(anchor).take(ANCHORS_MAX).map(|(at, found)| at + found.len()))
        .collect();
    places.sort_unstable();
    places.into_iter().find_map(|at| after_anchor(text.get(at..)?, base))
}

fn after_anchor(text: &str, base: Wall) -> Option<Duration> {
    let mut rest = text;
    let mut after = false;
    for _ in 0..WORDS_MAX {
        let before = rest;
        rest = rest.trim_start_matches([' ', ':', '=', '-', '_', '~', '"', '(', '\'']);
        if rest.starts_with(|c: char| c.is_ascii_digit()) {
            let negative = before.strip_suffix(rest).is_some_and(|skipped| skipped.ends_with('-'));
            return if negative { None } else { amount(rest, after, base) };
        }
        let end = rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len());
        let (word, beyond) = rest.split_at_checked(end)?;
        if !FILLERS.contains(&word) {
            return None;
        }
        after = after || word == "after";
        rest = beyond;
    }
    None
}

/// A date, a duration, or (only right after "retry after") bare seconds.
fn amount(text: &str, after: bool, base: Wall) -> Option<Duration> {
    let word_end = text.find(|c: char| c.is_whitespace() || matches!(c, '"' | ')' | ',')).unwrap_or(text.len());
    let word = text.get(..word_end)?.trim_end_matches('.');
    if word.len() >= 20 {
        return until_date(word, base);
    }
    if let Some((wait, _)) = leading_duration(text) {
        return Some(wait);
    }
    let (number, beyond) = leading_number(text)?;
    let ends = !beyond.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '-' | '/' | ':' | '%'));
    let words_follow = beyond.trim_start_matches(' ').starts_with(char::is_alphabetic);
    if after && ends && !words_follow { seconds(number) } else { None }
}
