//! Recovery times that answers state: never a panic, always within [1 s, `hint.max`], or what the rule allows (`hintMax`).

#![no_main]

use std::sync::LazyLock;

use http::{HeaderName, HeaderValue};
use libfuzzer_sys::fuzz_target;
use toolvane::clock::Wall;
use toolvane::rules::{BackendKind, Exchange, Limits, Table, hint, load};

static TABLE: LazyLock<Table> = LazyLock::new(|| load(&[], Limits::default()).unwrap());

const NAMES: [&str; 8] = [
    "retry-after",
    "retry-after-ms",
    "x-ratelimit-reset",
    "x-ratelimit-remaining",
    "ratelimit",
    "x-ratelimit-reset-requests",
    "x-ratelimit-remaining-requests",
    "date",
];

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    if let Some(wait) = hint::retry_after(&text, Wall(1_767_225_600_000), hint::HINT_MAX) {
        assert!((hint::HINT_MIN..=hint::HINT_MAX).contains(&wait), "{wait:?}");
    }
    let mut exchange = Exchange { kind: BackendKind::Http, status: Some(429), ..Exchange::default() };
    let mut parts = text.split('\u{1}');
    for (name, part) in NAMES.iter().zip(parts.by_ref()) {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(*name), HeaderValue::from_str(part)) {
            exchange.headers.append(name, value);
        }
    }
    exchange.take_body(parts.next().unwrap_or(&text).to_owned());
    for status in [429, 503] {
        exchange.status = Some(status);
        let Some(finding) = TABLE.judge(&exchange).finding else { continue };
        let rule = TABLE.rules().iter().find(|rule| rule.id == finding.rule).unwrap();
        let bounds = hint::HINT_MIN..=rule.then.hint_max.unwrap_or(hint::HINT_MAX);
        assert!(finding.hint.is_none_or(|wait| bounds.contains(&wait)), "{finding:?}");
    }
});
