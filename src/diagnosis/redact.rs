//! What leaves for an engine, or stands in a job, has lost whatever looks like a secret: credentials, tokens, long random
//! words, addresses of people.

use std::sync::LazyLock;

use regex::Regex;

use crate::rules::secrets::{NAMES, PREFIXES};

/// How much of one detail is kept, in bytes.
const DETAIL_MAX: usize = 2_048;

const GONE: &str = "[redacted]";

/// Stricter than what is written down for ourselves, since this leaves.
static COMPILED: LazyLock<Vec<Regex>> =
    LazyLock::new(|| patterns().iter().filter_map(|pattern| Regex::new(pattern).ok()).collect());

/// In this order: a named secret loses its value, whatever that looks like.
fn patterns() -> [String; 6] {
    // `authorization` has a pattern of its own, which keeps the scheme.
    let names = NAMES.iter().filter(|name| **name != "authorization").map(|name| name.replace('_', "[_-]?"));
    let names = names.collect::<Vec<_>>().join("|");
    let starts = PREFIXES.join("|");
    [
        r#"(?i)\b(?P<keep>(?:proxy-)?authorization["']?\s*[:=]\s*["']?(?:[a-z]+ )?)[^\s"',;}]+"#.to_owned(),
        r"(?i)\b(?P<keep>(?:bearer|basic|token)\s+)[A-Za-z0-9._~+/=-]{8,}".to_owned(),
        format!(r#"(?i)(?P<keep>["']?[\w-]*(?:{names}|token|signature)["']?\s*[:=]\s*["']?)[^\s"'&,;}}]+"#),
        r"(?P<keep>[A-Za-z][A-Za-z0-9+.-]*://)[^/\s:@]+:[^/\s@]+@".to_owned(),
        r"(?P<keep>)[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+".to_owned(),
        format!(
            r"(?P<keep>)\b(?:eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?|(?:{starts})[A-Za-z0-9_-]{{12,}}|[A-Fa-f0-9]{{32,}}|[A-Za-z0-9+/_-]{{40,}}={{0,2}})"
        ),
    ]
}

/// The text without what looks like a secret, cut to 2 KiB between characters and on its way made one that logs may hold.
pub fn redact(text: &str) -> String {
    // Twice the bound is enough to read: what is cut off leaves nothing behind.
    let mut text = bounded(text, DETAIL_MAX * 2).to_owned();
    for pattern in COMPILED.iter() {
        text = pattern.replace_all(&text, format!("${{keep}}{GONE}")).into_owned();
    }
    let harmless: String = text.chars().map(|c| if c.is_control() && c != '\n' { ' ' } else { c }).collect();
    bounded(&harmless, DETAIL_MAX).to_owned()
}

fn bounded(text: &str, max: usize) -> &str {
    let mut end = text.len().min(max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        assert_eq!(COMPILED.len(), patterns().len());
    }

    #[test]
    fn whatever_the_table_knows_is_masked_in_what_leaves_and_in_what_is_recorded() {
        for name in NAMES {
            let text = format!("{name}=hunt3r-two failed");
            assert!(!redact(&text).contains("hunt3r"), "{}", redact(&text));
            let recorded = crate::rules::redacted(&text);
            assert!(!recorded.contains("hunt3r"), "{recorded}");
        }
        for start in PREFIXES {
            let text = format!("key {start}ABCDEF0123456789 is invalid");
            assert!(!redact(&text).contains("ABCDEF"), "{}", redact(&text));
            let recorded = crate::rules::redacted(&text);
            assert!(!recorded.contains("ABCDEF"), "{recorded}");
        }
    }

    #[test]
    fn what_looks_like_a_secret_is_gone_and_what_tells_of_the_failure_stays() {
        for (text, gone, stays) in [
            ("Authorization: Bearer abc.def.ghi failed", "abc.def", "failed"),
            (r#"{"error":"denied","access_token":"s3cr3t-value"}"#, "s3cr3t", r#""error":"denied""#),
            ("GET https://api/x?api_key=k-123456&page=2 -> 500", "k-123456", "page=2 -> 500"),
            ("connect postgres://bob:hunter2@db/x refused", "hunter2", "db/x refused"),
            ("no mailbox for carol@example.org here", "carol@", "no mailbox for"),
            ("jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln expired", "eyJhbGci", "expired"),
            ("key sk-proj_ABCDEFGHIJKLMNOP is invalid", "ABCDEFGH", "is invalid"),
            ("hash 0123456789abcdef0123456789abcdef missing", "0123456789abcdef0", "missing"),
            ("password=hunter2; user=bob", "hunter2", "user=bob"),
        ] {
            let shown = redact(text);
            assert!(!shown.contains(gone), "{gone} in {shown}");
            assert!(shown.contains(stays), "no {stays} in {shown}");
            assert!(shown.contains(GONE), "{shown}");
        }
        let plain = "upstream said 503: shard 7 of index orders is read only";
        assert_eq!(redact(plain), plain);
    }

    #[test]
    fn a_detail_is_bounded_and_cut_between_characters() {
        assert!(redact(&"é ".repeat(9_000)).len() <= DETAIL_MAX);
        assert_eq!(redact("a\u{0}b\u{1b}[31m\nc"), "a b [31m\nc");
    }
}
