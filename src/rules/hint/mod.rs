//! Recovery times that an answer states itself (DESIGN 6, Hints; STATE 4.6): header fields first, then members of the
//! body, then phrases. What is negative, past, unreadable or about a window that is not empty is no hint.

mod amount;
mod body;
mod headers;
mod phrase;

#[cfg(test)]
mod tests;

use std::time::Duration;

use super::exchange::Exchange;
use super::facts::Facts;
use crate::clock::Wall;

/// The shortest wait that a hint can come to.
pub const HINT_MIN: Duration = Duration::from_secs(1);
/// How far a hint reaches unless the configuration (`hint.max`) or a rule (`hintMax`) says otherwise.
pub const HINT_MAX: Duration = Duration::from_secs(3600);
/// How far `hint.max` and `hintMax` may reach.
pub const HINT_LIMIT: Duration = Duration::from_secs(24 * 3600);

/// The answer's own hint, within `[1 s, max]`.
pub(crate) fn of(facts: &Facts<'_>, max: Duration) -> Option<Duration> {
    let exchange = facts.exchange;
    let base = base_time(exchange);
    let wait = headers::wait(exchange, base)
        .or_else(|| body::wait(facts, base))
        .or_else(|| phrase::wait(facts.folded(), base))?;
    Some(clamp(wait, max))
}

/// The hint of one named header field, within `[1 s, max]`.
pub(crate) fn of_header(exchange: &Exchange, name: &http::HeaderName, max: Duration) -> Option<Duration> {
    let value = exchange.headers.get(name)?.to_str().ok()?;
    amount::moment_or_wait(value, base_time(exchange)).map(|wait| clamp(wait, max))
}

/// A hint read from one `Retry-After` value against the answer's `Date`, within `[1 s, max]`.
pub fn retry_after(value: &str, date: Wall, max: Duration) -> Option<Duration> {
    headers::retry_after(value, date).map(|wait| clamp(wait, max))
}

fn clamp(wait: Duration, max: Duration) -> Duration {
    wait.max(HINT_MIN).min(max.clamp(HINT_MIN, HINT_LIMIT))
}

/// Dates in hints are measured against the answer's own `Date`, which cancels the skew between the clocks.
fn base_time(exchange: &Exchange) -> Wall {
    let date = exchange.header("date").and_then(|text| httpdate::parse_http_date(text).ok());
    date.map_or(exchange.now.wall, Wall::from)
}
