//! Recovery times that answers state: never a panic, always within [1 s, `hint.max`].

#![no_main]

use std::sync::LazyLock;
use std::time::Duration;

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
    let bounds = Duration::from_secs(1)..=Duration::from_secs(3_600);
    if let Some(wait) = hint::retry_after(&text, Wall(1_767_225_600_000), hint::HINT_MAX) {
        assert!(bounds.contains(&wait), "{wait:?}");
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
        let wait = TABLE.judge(&exchange).finding.and_then(|finding| finding.hint);
        assert!(wait.is_none_or(|wait| bounds.contains(&wait)), "{wait:?}");
    }
});
