//! What looks like a secret or a person is masked before a text is written anywhere. The words that rules look for stay.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::Value;

use super::secrets::{PREFIXES, is_secret_name};

/// What stands in place of what was masked.
const MASK: &str = "***";
/// A word of letters and digits that is longer is an id, a key or a token. In bytes.
const OPAQUE_MIN: usize = 20;
/// A longer run of digits is no time and no size, but a card, an account or a phone.
const DIGITS_MAX: usize = 14;

/// In all of them an escape of JSON is taken whole or not at all, and no quote without its twin.
struct Patterns {
    /// `name: value`, `name=value`, `"name": "value"`, of any name.
    pair: Regex,
    userinfo: Regex,
    query: Regex,
    email: Regex,
    scheme: Regex,
    word: Regex,
}

/// `None` only if a pattern does not compile; then everything is masked.
static PATTERNS: LazyLock<Option<Patterns>> = LazyLock::new(|| {
    let regex = |text: &str| Regex::new(text).ok();
    Some(Patterns {
        pair: regex(
            r#"([A-Za-z][A-Za-z0-9_-]{2,40})("?\s*[:=]\s*)("(?:[^"\\]|\\.)*"|\\"[^"\\]*\\"|'[^'"\\]*'|[^\s,;&"'{}\[\]\\]+)"#,
        )?,
        userinfo: regex(r#"://[^\s/@"\\]+@"#)?,
        query: regex(r#"(://[^\s?"'<>\\]+)\?[^\s"'<>\\]*"#)?,
        email: regex(r"(\\u[0-9A-Fa-f]{4}|\\.)|[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+")?,
        scheme: regex(r"(?i)\b(bearer|basic)\s+([A-Za-z0-9._~+/=-]{8,})")?,
        word: regex(r"(\\u[0-9A-Fa-f]{4}|\\.)|[A-Za-z0-9._~+=-]{12,}")?,
    })
});

/// A text with its secrets, addresses of people and long ids masked. JSON stays JSON.
pub fn redacted(text: &str) -> Cow<'_, str> {
    let Some(patterns) = &*PATTERNS else { return Cow::Borrowed(MASK) };
    let text = patterns.pair.replace_all(text, pair);
    let text = then(text, |text| patterns.userinfo.replace_all(text, "://***@"));
    let text = then(text, |text| patterns.query.replace_all(text, "$1?***"));
    let text = then(text, |text| patterns.email.replace_all(text, email));
    let text = then(text, |text| patterns.scheme.replace_all(text, scheme));
    then(text, |text| patterns.word.replace_all(text, word))
}

/// [`redacted`] for every text within a JSON value, and for the members whose names say that they are secret.
pub(super) fn redact_value(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(masked) = redacted(text) {
                *text = masked;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(redact_value),
        Value::Object(members) => {
            for (name, member) in members.iter_mut() {
                if is_secret_name(name) && !member.is_null() {
                    *member = Value::from(MASK);
                } else {
                    redact_value(member);
                }
            }
        }
        _ => {}
    }
}

fn then<'t>(text: Cow<'t, str>, step: impl Fn(&str) -> Cow<'_, str>) -> Cow<'t, str> {
    match step(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(changed) => Cow::Owned(changed),
    }
}

fn part<'c>(found: &'c Captures<'_>, at: usize) -> &'c str {
    found.get(at).map_or("", |part| part.as_str())
}

fn pair(found: &Captures<'_>) -> String {
    let (name, between, value) = (part(found, 1), part(found, 2), part(found, 3));
    let bare = value.trim_matches(['"', '\'', '\\']);
    // `token expired` is what rules look for; `token=8f3…` is a token.
    let says_something = bare.chars().all(|c| c.is_ascii_lowercase() || matches!(c, '_' | '-' | ' '));
    if !is_secret_name(name)
        || (says_something && name.eq_ignore_ascii_case("token"))
        || bare.eq_ignore_ascii_case("bearer")
    {
        return part(found, 0).to_owned();
    }
    let quote = match value.as_bytes() {
        [b'"', ..] => "\"",
        [b'\\', ..] => "\\\"",
        [b'\'', ..] => "'",
        // A number in JSON.
        _ if between.starts_with('"') => "\"",
        _ => "",
    };
    format!("{name}{between}{quote}{MASK}{quote}")
}

fn email(found: &Captures<'_>) -> String {
    if found.get(1).is_some() { part(found, 0).to_owned() } else { format!("{MASK}@{MASK}") }
}

fn scheme(found: &Captures<'_>) -> String {
    let (scheme, word) = (part(found, 1), part(found, 2));
    let is_word = word.chars().all(|c| c.is_ascii_lowercase() || matches!(c, '_' | '-' | '.'));
    if is_word { part(found, 0).to_owned() } else { format!("{scheme} {MASK}") }
}

fn word(found: &Captures<'_>) -> String {
    let word = part(found, 0);
    if found.get(1).is_some() {
        return word.to_owned();
    }
    // A number in JSON stays one.
    let mask = if word.parse::<f64>().is_ok() { "0" } else { MASK };
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let letters = word.bytes().filter(u8::is_ascii_alphabetic).count();
    let opaque = word.len() >= OPAQUE_MIN && letters > 0 && digits > 3;
    let number = digits > DIGITS_MAX && mask == "0";
    let known = PREFIXES.iter().any(|start| word.starts_with(start)) && digits > 0;
    if opaque || number || known { mask.to_owned() } else { word.to_owned() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_and_people_are_masked() {
        for (text, expected) in [
            ("password=hunter2 failed", "password=*** failed"),
            (r#"{"api_key": "k-1", "code": "denied"}"#, r#"{"api_key": "***", "code": "denied"}"#),
            ("Authorization: Bearer abc123def456", "Authorization: Bearer ***"),
            ("mail bob.b@example.co.uk now", "mail ***@*** now"),
            ("GET https://u:p@h.test/a?sig=abc&x=1 gave 403", "GET https://***@h.test/a?*** gave 403"),
            ("key sk-abcdef123456 is invalid", "key *** is invalid"),
            ("request 7f9c24e8-3b3f-4b9e-9f59-6a1f0e0c8d11 failed", "request *** failed"),
            ("card 4111111111111111 refused", "card 0 refused"),
            ("token: 8f3a", "token: ***"),
        ] {
            assert_eq!(redacted(text), expected);
        }
    }

    #[test]
    fn the_words_that_rules_look_for_stay() {
        for text in [
            "token expired",
            "error: invalid_token",
            r#"{"error":"token_expired","retry_after":20}"#,
            "try again in 20s",
            "resets at 2026-03-02T10:00:40Z",
            "x-ratelimit-reset: 1767225600000",
            "com.example.tools.ToolException: missing argument",
            "connect ECONNREFUSED 127.0.0.1:9000",
            "Bearer authentication required",
            "unknown session",
        ] {
            assert_eq!(redacted(text), text);
        }
    }

    #[test]
    fn members_with_secret_names_are_masked_whatever_they_hold() {
        let mut value =
            json!({"Access-Token": 7, "user": {"password": {"a": 1}}, "list": ["a@b.test"], "secret": null});
        redact_value(&mut value);
        assert_eq!(
            value,
            json!({"Access-Token": "***", "user": {"password": "***"}, "list": ["***@***"], "secret": null})
        );
    }

    proptest! {
        #[test]
        fn json_stays_json(name in "[a-z_]{3,12}", value in "\\PC{0,40}", number in any::<i64>()) {
            let text = json!({name: value, "password": value, "n": number, "list": [value]}).to_string();
            let masked = redacted(&text);
            prop_assert!(serde_json::from_str::<Value>(&masked).is_ok(), "{} became {}", text, masked);
        }

        #[test]
        fn a_secret_does_not_survive(secret in "[A-Za-z]{8}[0-9]{6}[a-z]{8}", before in "[a-z ,]{0,12}", after in "[ ,;.\"]{0,3}[a-z ]{0,9}") {
            let text = format!("{before} {secret}{after}");
            prop_assert!(!redacted(&text).contains(&secret));
        }
    }
}
