//! Durations and sizes as people write them, both ways.

use std::time::Duration;

const SIZE_UNITS: [(&str, usize); 7] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("B", 1),
];

/// In milliseconds.
const TIME_UNITS: [(&str, u64); 5] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// A duration: `250ms`, `30s`, `5m`, `1h 30m`, `24h`, `2d`, or ISO 8601 with days and time (`PT24H`, `P1DT12H`).
pub fn parse_duration(text: &str) -> Option<Duration> {
    if text.starts_with(['P', 'p']) {
        return parse_iso(text);
    }
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let (number, after) = rest.split_at_checked(rest.find(|char: char| !char.is_ascii_digit())?)?;
        let (unit, after) =
            after.split_at(after.find([' ', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']).unwrap_or(after.len()));
        let millis = TIME_UNITS.iter().find(|known| known.0 == unit)?.1;
        total = total.checked_add(Duration::from_millis(number.parse::<u64>().ok()?.checked_mul(millis)?))?;
        rest = match after.strip_prefix(' ') {
            Some("") => return None,
            Some(next) => next,
            None => after,
        };
    }
    (!text.is_empty()).then_some(total)
}

fn parse_iso(text: &str) -> Option<Duration> {
    let upper = text.to_ascii_uppercase();
    let (days, time) = upper.strip_prefix('P').map(|rest| rest.split_once('T').unwrap_or((rest, "")))?;
    if days.is_empty() && time.is_empty() || upper.ends_with('T') {
        return None;
    }
    let mut total = iso_part(days, &[('D', 86_400)])?;
    total = total.checked_add(iso_part(time, &[('H', 3_600), ('M', 60), ('S', 1)])?)?;
    Some(total)
}

fn iso_part(mut rest: &str, units: &[(char, u64)]) -> Option<Duration> {
    let mut total = Duration::ZERO;
    for (unit, seconds) in units {
        let Some((number, after)) = rest.split_once(*unit) else { continue };
        let (whole, fraction) = number.split_once('.').map_or((number, ""), |parts| parts);
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !digits(whole) || !digits(fraction) || fraction.len() > 9 {
            return None;
        }
        let seconds = whole.parse::<u64>().ok()?.checked_mul(*seconds)?;
        total = total.checked_add(Duration::from_secs(seconds))?;
        if !fraction.is_empty() {
            let nanos = format!("{fraction:0<9}").parse::<u64>().ok()?;
            let scale = u32::try_from(units.iter().find(|known| known.0 == *unit)?.1).ok()?;
            total = total.checked_add(Duration::from_nanos(nanos).checked_mul(scale)?)?;
        }
        rest = after;
    }
    rest.is_empty().then_some(total)
}

/// A duration as this module reads it: `30s`, `1h 30m`, `250ms`; parts below a millisecond are left out.
pub fn duration_text(duration: Duration) -> String {
    let mut millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let mut parts = Vec::new();
    for (unit, size) in TIME_UNITS.iter().rev().filter(|unit| unit.0 != "d") {
        if millis >= *size {
            parts.push(format!("{}{unit}", millis / size));
            millis %= size;
        }
    }
    if parts.is_empty() { "0s".to_owned() } else { parts.join(" ") }
}

/// A size in bytes: `1MiB`, `64KiB`, `10 MB`, or plain bytes.
pub fn parse_size(text: &str) -> Option<usize> {
    let text = text.trim();
    let digits = text.find(|char: char| !char.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(digits)?;
    let unit = unit.trim_start();
    let factor = if unit.is_empty() { 1 } else { SIZE_UNITS.iter().find(|known| known.0 == unit)?.1 };
    number.parse::<usize>().ok()?.checked_mul(factor)
}

/// A size in the largest unit that divides it: `1MiB`, `1500B`.
pub fn size_text(bytes: usize) -> String {
    let binary = [("GiB", 1usize << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match binary.iter().find(|unit| bytes > 0 && bytes.is_multiple_of(unit.1)) {
        Some((unit, factor)) => format!("{}{unit}", bytes / factor),
        None => format!("{bytes}B"),
    }
}
