//! Hints in members of the body, of `structuredContent`, of the error's `data`, or of JSON within the text.

use std::time::Duration;

use serde_json::Value;

use super::amount::{duration_of, moment_or_wait, number_or_epoch, seconds, until_date};
use crate::clock::Wall;
use crate::rules::codes::normal;
use crate::rules::exchange::Answer;
use crate::rules::facts::Facts;

/// Members that hold seconds, a duration or a moment, in the normal form of names.
const WAITS: [&str; 23] = [
    "retryafter",
    "retryafterseconds",
    "retryaftersecs",
    "retryaftersec",
    "retryafters",
    "retryin",
    "retryinseconds",
    "retrydelay",
    "retrydelayseconds",
    "resetafter",
    "resetinseconds",
    "resetsinseconds",
    "secondsuntilreset",
    "secondsuntilretry",
    "waitseconds",
    "waittime",
    "etaseconds",
    "backoffseconds",
    "cooldownseconds",
    "retryat",
    "resetat",
    "resetsat",
    "nextretryat",
];
/// Members that hold milliseconds.
const WAITS_IN_MILLIS: [&str; 8] = [
    "retryafterms",
    "retryaftermillis",
    "retryaftermilliseconds",
    "retryinms",
    "retrydelayms",
    "resetinms",
    "waitms",
    "backoffms",
];
/// How many values are looked at.
const NODES_MAX: usize = 4_000;

pub(super) fn wait(facts: &Facts<'_>, base: Wall) -> Option<Duration> {
    let exchange = facts.exchange;
    let in_answer = match &exchange.answer {
        Answer::Result { structured, .. } => structured.as_ref(),
        Answer::Error { data, .. } => data.as_ref(),
        Answer::None => None,
    };
    [exchange.json.as_ref(), in_answer]
        .into_iter()
        .flatten()
        .find_map(|value| within(value, base))
        .or_else(|| facts.embedded().iter().find_map(|value| within(value, base)))
}

fn within(value: &Value, base: Wall) -> Option<Duration> {
    let mut pending = vec![value];
    for _ in 0..NODES_MAX {
        match pending.pop()? {
            Value::Object(members) => {
                let mut named = members.iter().filter_map(|(name, value)| stated(&normal(name), value, base));
                if let Some(wait) = named.next() {
                    return Some(wait);
                }
                pending.extend(members.values().rev());
            }
            Value::Array(items) => pending.extend(items.iter().rev()),
            _ => {}
        }
    }
    None
}

fn stated(name: &str, value: &Value, base: Wall) -> Option<Duration> {
    if WAITS_IN_MILLIS.contains(&name) {
        let millis = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())?;
        return seconds(millis / 1000.0);
    }
    if !WAITS.contains(&name) {
        return None;
    }
    match value {
        Value::Number(number) => number_or_epoch(number.as_f64()?, base),
        Value::String(text) => {
            moment_or_wait(text, base).or_else(|| duration_of(text)).or_else(|| until_date(text, base))
        }
        Value::Object(parts) => seconds(parts.get("seconds")?.as_f64()?),
        _ => None,
    }
}
