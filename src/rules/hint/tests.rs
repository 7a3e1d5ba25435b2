//! What hints come to, as tables, and that no text whatever leaves the bounds.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{HINT_LIMIT, HINT_MIN, of, retry_after};
use crate::clock::{Now, Tick, Wall};
use crate::rules::exchange::{BackendKind, Exchange};
use crate::rules::facts::Facts;

const DAY: Duration = Duration::from_secs(86_400);

fn base() -> Wall {
    "2026-03-02T10:00:00Z".parse().unwrap()
}

fn exchange(headers: &[(&str, &str)], text: &str) -> Exchange {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap());
    }
    Exchange {
        kind: BackendKind::Http,
        status: Some(429),
        headers: map,
        json: serde_json::from_str(text).ok(),
        text: text.to_owned(),
        now: Now { tick: Tick(1), wall: base() },
        ..Exchange::default()
    }
}

fn seconds(exchange: &Exchange, max: Duration) -> Option<f64> {
    of(&Facts::new(exchange), max).map(|wait| wait.as_secs_f64())
}

#[test]
fn header_fields_in_every_known_form() {
    for (headers, expected) in [
        (&[("retry-after", "30")][..], Some(30.0)),
        (&[("retry-after", " 30 ")], Some(30.0)),
        (&[("retry-after", "0.3")], Some(1.0)),
        (&[("retry-after", "0")], None),
        (&[("retry-after", "-5")], None),
        (&[("retry-after", "NaN")], None),
        (&[("retry-after", "inf")], None),
        (&[("retry-after", "soon")], None),
        (&[("retry-after", "")], None),
        (&[("retry-after", "9999999999999999999999")], Some(86_400.0)),
        (&[("retry-after", "Mon, 02 Mar 2026 10:01:00 GMT")], Some(60.0)),
        (&[("retry-after", "Mon, 02 Mar 2026 09:59:00 GMT")], None),
        (&[("retry-after", "Mon, 02 Mar 2026 10:01:00 GMT"), ("date", "Mon, 02 Mar 2026 10:00:50 GMT")], Some(10.0)),
        (&[("retry-after", "2026-03-02T10:00:20Z")], Some(20.0)),
        (&[("retry-after", "1m30s")], Some(90.0)),
        (&[("retry-after-ms", "2500"), ("retry-after", "3")], Some(2.5)),
        (&[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1772445642")], Some(42.0)),
        (&[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1772445642000")], Some(42.0)),
        (&[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "42")], Some(42.0)),
        (&[("x-ratelimit-remaining", "7"), ("x-ratelimit-reset", "1772445642")], None),
        (&[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1772445542")], None),
        (&[("x-ratelimit-reset", "1772445642")], Some(42.0)),
        (&[("ratelimit-remaining", "0"), ("ratelimit-reset", "41")], Some(41.0)),
        (&[("ratelimit-remaining", "0;w=60"), ("ratelimit-reset", "41")], Some(41.0)),
        (&[("x-rate-limit-remaining", "0"), ("x-rate-limit-reset", "15")], Some(15.0)),
        (&[("x-ratelimit-remaining", "0, 40"), ("x-ratelimit-reset", "9, 3600")], Some(9.0)),
        (
            &[
                ("x-ratelimit-remaining-requests", "9"),
                ("x-ratelimit-reset-requests", "8h"),
                ("x-ratelimit-remaining-tokens", "0"),
                ("x-ratelimit-reset-tokens", "6m0s"),
            ],
            Some(360.0),
        ),
        (&[("ratelimit", "\"burst\";r=0;t=30, \"daily\";r=12;t=3600")], Some(30.0)),
        (&[("ratelimit", "\"default\";r=5;t=30")], None),
        (&[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset-after", "64.57")], Some(64.57)),
        (&[("retry-after", "2"), ("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "50")], Some(2.0)),
    ] {
        assert_eq!(seconds(&exchange(headers, ""), DAY), expected, "{headers:?}");
    }
}

#[test]
fn members_of_a_body() {
    for (body, expected) in [
        (json!({"retry_after": 64.57}), Some(64.57)),
        (json!({"retry_after": "20"}), Some(20.0)),
        (json!({"error": {"details": [{"retryDelay": "57s"}]}}), Some(57.0)),
        (json!({"retryDelay": {"seconds": 12}}), Some(12.0)),
        (json!({"retry_after_ms": 1500}), Some(1.5)),
        (json!({"data": {"retryAfterSeconds": 8}}), Some(8.0)),
        (json!({"resetAt": "2026-03-02T10:05:00+00:00"}), Some(300.0)),
        (json!({"reset_at": 1_772_445_660}), Some(60.0)),
        (json!({"status": "warming_up", "eta_seconds": 40}), Some(40.0)),
        (json!({"retry_after": -3}), None),
        (json!({"retry_after": null}), None),
        (json!({"retries": 3, "after": 9}), None),
    ] {
        assert_eq!(seconds(&exchange(&[], &body.to_string()), DAY), expected, "{body}");
    }
}

#[test]
fn phrases() {
    for (text, expected) in [
        ("Please try again in 20s.", Some(20.0)),
        ("Rate limit reached, try again in 6m0.5s", Some(360.5)),
        ("too many requests: retry after 35", Some(35.0)),
        ("Retry after 5m0s.", Some(300.0)),
        ("wait at least 2 minutes before the next call", Some(120.0)),
        ("Please wait 30 seconds", Some(30.0)),
        ("quota resets in 3 hours", Some(10_800.0)),
        ("Retry after 2026-03-02T10:00:40.000Z", Some(40.0)),
        ("retry-after: 12", Some(12.0)),
        ("please try again in 450 ms", Some(1.0)),
        ("please retry your request in 1 day", Some(86_400.0)),
        ("try again in a few minutes", None),
        ("try again later", None),
        ("retry 3 of 5 failed", None),
        ("waiting for 12 locks", None),
        ("retry after 3 attempts", None),
        ("we waited 30 years", None),
        ("call 20s ago", None),
    ] {
        assert_eq!(seconds(&exchange(&[], text), DAY), expected, "{text}");
    }
}

#[test]
fn a_hint_reaches_no_further_than_its_bound() {
    let answer = exchange(&[("retry-after", "7200")], "");
    assert_eq!(seconds(&answer, Duration::from_secs(3600)), Some(3600.0));
    assert_eq!(seconds(&answer, Duration::from_secs(365 * 86_400)), Some(7200.0));
}

fn within_bounds(wait: Option<Duration>, max: Duration) -> bool {
    wait.is_none_or(|wait| wait >= HINT_MIN && wait <= max.clamp(HINT_MIN, HINT_LIMIT))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    /// I18: any Retry-After gives nothing or a value within the bounds.
    #[test]
    fn any_retry_after_is_nothing_or_within_bounds(
        value in prop_oneof!["\\PC{0,40}", "-?[0-9]{0,25}(\\.[0-9]{0,9})?", "[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9:]{8} GMT"],
        max in 0u64..200_000,
        at in any::<i64>(),
    ) {
        let max = Duration::from_secs(max);
        prop_assert!(within_bounds(retry_after(&value, Wall(at), max), max));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_answer_at_all_gives_nothing_or_a_hint_within_bounds(
        name in prop::sample::select(vec![
            "retry-after", "retry-after-ms", "ratelimit", "ratelimit-reset", "x-ratelimit-reset", "x-ratelimit-reset-tokens", "date",
        ]),
        value in "[ -~]{0,40}",
        remaining in prop_oneof![Just("0".to_owned()), "[ -~]{0,12}"],
        text in "(try again in|retry after|wait) ?[0-9.]{0,30} ?\\PC{0,12}",
        number in any::<f64>(),
    ) {
        for body in [text.clone(), json!({"retry_after": number, "error": {"retryDelay": text}}).to_string()] {
            let answer = exchange(&[(name, &value), ("x-ratelimit-remaining", &remaining)], &body);
            prop_assert!(within_bounds(of(&Facts::new(&answer), DAY), DAY));
        }
    }

    #[test]
    fn whole_seconds_are_read_as_they_stand(wait in 1u64..86_400) {
        prop_assert_eq!(retry_after(&wait.to_string(), base(), DAY), Some(Duration::from_secs(wait)));
    }

    #[test]
    fn both_clocks_shifted_alike_change_nothing(wait in 1i64..80_000, shift in -1_000_000_000i64..1_000_000_000) {
        let date = Wall(base().0 + shift * 1000);
        let ahead = date.plus_millis(wait * 1000);
        let text = httpdate::fmt_http_date(std::time::UNIX_EPOCH + Duration::from_secs(ahead.unix_seconds().unsigned_abs()));
        prop_assert_eq!(retry_after(&text, date, DAY), Some(Duration::from_secs(wait.unsigned_abs())));
    }
}

#[test]
fn deep_or_endless_bodies_end() {
    let mut deep = Value::Null;
    for _ in 0..100 {
        deep = json!([deep]);
    }
    let wide = Value::Array((0..100_000).map(Value::from).collect());
    for body in [deep, wide] {
        let mut answer = exchange(&[], "");
        answer.json = Some(body);
        assert_eq!(seconds(&answer, DAY), None);
    }
}
