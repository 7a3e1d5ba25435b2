//! Hints in header fields: `Retry-After` and its milliseconds form, then the reset time of the rate-limit windows that
//! are empty.

use std::time::Duration;

use super::amount::{duration_of, leading_number, moment_or_wait, seconds, until_date};
use crate::clock::Wall;
use crate::rules::exchange::Exchange;

/// Header fields with milliseconds to wait.
const MILLIS: [&str; 2] = ["retry-after-ms", "x-ms-retry-after-ms"];

pub(super) fn wait(exchange: &Exchange, base: Wall) -> Option<Duration> {
    let in_millis = MILLIS.iter().find_map(|name| exchange.header(*name)?.trim().parse::<f64>().ok());
    in_millis
        .and_then(|millis| seconds(millis / 1000.0))
        .or_else(|| exchange.header("retry-after").and_then(|value| retry_after(value, base)))
        .or_else(|| exchange.header("x-retry-after").and_then(|value| retry_after(value, base)))
        .or_else(|| structured_window(exchange))
        .or_else(|| reset_of_empty_window(exchange, base))
}

/// `Retry-After`: seconds, saturating, or a date; some servers write a duration with units.
pub(super) fn retry_after(value: &str, base: Wall) -> Option<Duration> {
    let value = value.trim();
    let is_number = !value.is_empty() && value.chars().all(|c| c.is_ascii_digit() || c == '.');
    if is_number {
        return value.parse().ok().and_then(seconds);
    }
    until_date(value, base).or_else(|| duration_of(value))
}

/// `RateLimit: "burst";r=0;t=30, "daily";r=5;t=3600`: the longest wait of the windows with nothing remaining.
fn structured_window(exchange: &Exchange) -> Option<Duration> {
    let windows = exchange.headers.get_all("ratelimit").iter().filter_map(|v| v.to_str().ok());
    let waits = windows.flat_map(|value| value.split(',')).filter_map(|item| {
        let parameter = |name: &str| {
            let found = item.split(';').find_map(|part| part.trim().strip_prefix(name)?.strip_prefix('='));
            found.and_then(|value| value.trim().parse::<f64>().ok())
        };
        let remaining = parameter("r")?;
        if remaining > 0.0 { None } else { seconds(parameter("t")?) }
    });
    waits.max()
}

/// `X-RateLimit-Reset` and its many spellings, for each window whose `…Remaining` is zero. Where nothing is said of what
/// remains, a 429 says it.
fn reset_of_empty_window(exchange: &Exchange, base: Wall) -> Option<Duration> {
    let mut any_remaining = false;
    let mut longest = None;
    for (name, value) in &exchange.headers {
        let name = name.as_str();
        let Some(at) = name.find("remaining").filter(|_| is_rate_limit(name)) else { continue };
        any_remaining = true;
        let (before, after) = (name.get(..at).unwrap_or(""), name.get(at + "remaining".len()..).unwrap_or(""));
        let remaining = value.to_str().unwrap_or("");
        let reset = [format!("{before}reset-after{after}"), format!("{before}reset{after}")]
            .iter()
            .find_map(|name| exchange.header(name.as_str()))
            .or_else(|| plain_reset(exchange));
        if let Some(reset) = reset {
            longest = longest.max(paired(remaining, reset, base));
        }
    }
    if any_remaining || exchange.status != Some(429) {
        return longest;
    }
    plain_reset(exchange).and_then(|reset| moment_or_wait(reset, base))
}

/// One value or a list in step with a list of what remains: `0, 49` and `10, 3600`.
fn paired(remaining: &str, reset: &str, base: Wall) -> Option<Duration> {
    let empty = |text: &str| leading_number(text.trim()).is_some_and(|(left, _)| left <= 0.0);
    if remaining.contains(',') && remaining.matches(',').count() == reset.matches(',').count() {
        let pairs = remaining.split(',').zip(reset.split(','));
        return pairs.filter(|(left, _)| empty(left)).filter_map(|(_, at)| moment_or_wait(at, base)).max();
    }
    if empty(remaining) { moment_or_wait(reset, base) } else { None }
}

fn plain_reset(exchange: &Exchange) -> Option<&str> {
    ["x-ratelimit-reset-after", "ratelimit-reset", "x-ratelimit-reset", "x-rate-limit-reset", "rate-limit-reset"]
        .iter()
        .find_map(|name| exchange.header(*name))
}

fn is_rate_limit(name: &str) -> bool {
    name.contains("ratelimit") || name.contains("rate-limit")
}
