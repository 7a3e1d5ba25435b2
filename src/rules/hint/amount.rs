//! One stated amount: seconds, a duration with units, a moment as date or epoch.

use std::time::Duration;

use crate::clock::Wall;

/// Numbers from here on are epoch seconds, not seconds to wait (2001-09-09).
const EPOCH_SECONDS: f64 = 1e9;
/// Numbers from here on are epoch milliseconds.
const EPOCH_MILLIS: f64 = 1e12;

/// The wait that a header or member states in whatever form: seconds, duration, date, epoch seconds or milliseconds.
pub(super) fn moment_or_wait(text: &str, base: Wall) -> Option<Duration> {
    let text = text.trim();
    match text.parse::<f64>() {
        Ok(number) => number_or_epoch(number, base),
        Err(_) => duration_of(text).or_else(|| until_date(text, base)),
    }
}

/// Told apart by size: epoch milliseconds, epoch seconds, or seconds from now.
pub(super) fn number_or_epoch(number: f64, base: Wall) -> Option<Duration> {
    if number >= EPOCH_MILLIS {
        until(number, base)
    } else if number >= EPOCH_SECONDS {
        until(number * 1000.0, base)
    } else {
        seconds(number)
    }
}

/// A number of seconds, rounded up to whole milliseconds; `None` for what is negative, NaN or zero.
pub(super) fn seconds(number: f64) -> Option<Duration> {
    (number > 0.0).then(|| Duration::try_from_secs_f64(number).unwrap_or(Duration::MAX))
}

/// The wait until a date in RFC 9110 or RFC 3339 form.
pub(super) fn until_date(text: &str, base: Wall) -> Option<Duration> {
    let moment = match httpdate::parse_http_date(text) {
        Ok(time) => Wall::from(time),
        Err(_) => rfc3339(text)?,
    };
    let ahead = moment.0.checked_sub(base.0)?;
    u64::try_from(ahead).ok().filter(|ms| *ms > 0).map(Duration::from_millis)
}

/// `2026-03-02T10:00:40Z`, with fractions and offsets.
fn rfc3339(text: &str) -> Option<Wall> {
    let text = text.trim();
    if !text.is_ascii() || text.len() < 20 {
        return None;
    }
    let (date_time, zone) = text.split_at_checked(text.rfind(['Z', 'z', '+', '-'])?)?;
    let wall: Wall = format!("{date_time}Z").to_ascii_uppercase().parse().ok()?;
    if zone.eq_ignore_ascii_case("z") {
        return Some(wall);
    }
    let (hours, minutes) = zone.get(1..)?.split_once(':')?;
    let minutes = hours.parse::<i64>().ok()?.checked_mul(60)?.checked_add(minutes.parse().ok()?)?;
    let offset = minutes.checked_mul(60_000)?;
    Some(wall.plus_millis(if zone.starts_with('-') { offset } else { -offset }))
}

fn until(epoch_millis: f64, base: Wall) -> Option<Duration> {
    #[expect(clippy::cast_precision_loss, reason = "milliseconds of this era are exact in a float")]
    let ahead = epoch_millis - base.0 as f64;
    seconds(ahead / 1000.0)
}

/// A duration of numbers with units and nothing else: `30s`, `1m30.5s`, `2h 5m`, `450ms`, `5 minutes`.
pub(super) fn duration_of(text: &str) -> Option<Duration> {
    let (wait, rest) = leading_duration(text.trim())?;
    rest.trim().is_empty().then_some(wait)
}

/// The duration at the start of a text and what comes after it.
pub(super) fn leading_duration(text: &str) -> Option<(Duration, &str)> {
    let mut total = 0.0;
    let mut rest = text;
    let mut any = false;
    while let Some((number, after)) = leading_number(rest) {
        let letters = after.trim_start_matches(' ');
        let end = letters.find(|c: char| !c.is_alphabetic()).unwrap_or(letters.len());
        let (unit, beyond) = letters.split_at_checked(end)?;
        let Some(factor) = unit_seconds(unit) else { break };
        total += number * factor;
        any = true;
        rest = beyond.trim_start_matches([' ']);
    }
    if any { seconds(total).map(|wait| (wait, rest)) } else { None }
}

/// The number at the start of a text and what comes after it.
pub(super) fn leading_number(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, rest) = text.split_at_checked(end)?;
    let trimmed = number.trim_end_matches('.');
    let value = trimmed.parse().ok()?;
    Some((value, text.get(trimmed.len()..).unwrap_or(rest)))
}

fn unit_seconds(unit: &str) -> Option<f64> {
    Some(match unit.to_ascii_lowercase().as_str() {
        "ms" | "msec" | "msecs" | "millis" | "millisecond" | "milliseconds" => 0.001,
        "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3600.0,
        "d" | "day" | "days" => 86_400.0,
        _ => return None,
    })
}
