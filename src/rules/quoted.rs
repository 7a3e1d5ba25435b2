//! What a failure's text quotes: HTTP statuses in the position of a status, and the innermost JSON-RPC code. A number
//! anywhere else is a number.

use http::StatusCode;

use super::envelope;

/// The most statuses that are taken from one text.
const STATUSES_MAX: usize = 8;
/// How far before a number its position is judged, in bytes.
const BEFORE_MAX: usize = 48;
/// How far after a number, in characters.
const AFTER_MAX: usize = 48;
/// After these words a number is a status.
const STRONG: [&str; 12] = [
    "status",
    "status code",
    "statuscode",
    "status_code",
    "status-code",
    "http",
    "http code",
    "http error",
    "httperror",
    "http status",
    "response code",
    "http response",
];
/// After these words it is one if nothing follows that it could count.
const WEAK: [&str; 12] = [
    "code",
    "error",
    "error code",
    "errorcode",
    "returned",
    "responded",
    "responded with",
    "response",
    "failed with",
    "failed",
    "answered with",
    "answered",
];

/// The statuses from 400 to 599 that the text quotes, each once, in their order.
pub(crate) fn statuses(text: &str) -> Vec<u16> {
    let mut found = Vec::new();
    let bytes = text.as_bytes();
    let is_part =
        |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    for at in memchr::memchr2_iter(b'4', b'5', bytes) {
        if found.len() == STATUSES_MAX || is_part(at.checked_sub(1)) || is_part(Some(at + 3)) {
            continue;
        }
        let Some(number) = text.get(at..at + 3).and_then(|digits| digits.parse::<u16>().ok()) else { continue };
        let (before, after) = (text.get(..at).unwrap_or(""), text.get(at + 3..).unwrap_or(""));
        if !found.contains(&number) && is_status(number, before, after) {
            found.push(number);
        }
    }
    found
}

/// The last JSON-RPC code that the text quotes: of an error that was wrapped again and again, the one at its heart.
pub(crate) fn rpc_code(text: &str) -> Option<i64> {
    text.rmatch_indices("-32").find_map(|(at, _)| {
        let code = text.get(at..at + 6)?;
        let after = text.as_bytes().get(at + 6);
        let before = at.checked_sub(1).and_then(|at| text.as_bytes().get(at));
        let alone = !after.is_some_and(u8::is_ascii_alphanumeric) && !before.is_some_and(u8::is_ascii_alphanumeric);
        code.parse().ok().filter(|_| alone)
    })
}

fn is_status(number: u16, before: &str, after: &str) -> bool {
    let start = before.char_indices().rev().nth(BEFORE_MAX).map_or(0, |(at, _)| at);
    let near = before.get(start..).unwrap_or("").to_ascii_lowercase();
    let end = after.char_indices().nth(AFTER_MAX).map_or(after.len(), |(at, _)| at);
    let after = after.get(..end).unwrap_or("");
    let spaced = near.ends_with(' ');
    let line_start = near.is_empty() || near.ends_with('\n');
    let introduced = near.ends_with(": ");
    let near = near.trim_end_matches([' ', ':', '=', '(', '[', '"', '\'', '#', '`', '-', '<']);
    let reason = begins_with_reason(number, after);
    if reason || ends_with(near, &STRONG) || ends_with_version(near) || (spaced && ends_with_address(near)) {
        return true;
    }
    let closed = counts_nothing(after);
    (closed && (ends_with(near, &WEAK) || ends_with_reason(number, near)))
        || (line_start && begins_report(after))
        || (introduced && precedes_body(after))
}

/// `404 Not Found`, `404: Not Found`, `404 Client Error`.
fn begins_with_reason(number: u16, after: &str) -> bool {
    let said = after.trim_start_matches([' ', ':', '-', ')', ']', ',', '\'', '"', '_']).to_ascii_lowercase();
    let spaced = after.len() > said.len();
    let reason = reason_of(number);
    let is_word = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric());
    let begins = |with: &str| said.strip_prefix(with).is_some_and(is_word);
    let kinds = ["client error", "server error", "page not found", "error"];
    spaced && ((!reason.is_empty() && begins(&reason)) || kinds.into_iter().any(begins))
}

/// `Forbidden (403)`.
fn ends_with_reason(number: u16, near: &str) -> bool {
    let reason = reason_of(number);
    !reason.is_empty() && near.ends_with(&reason)
}

fn reason_of(number: u16) -> String {
    let reason = StatusCode::from_u16(number).ok().and_then(|status| status.canonical_reason());
    reason.unwrap_or("").to_ascii_lowercase()
}

/// The last words are one of these, as words of their own.
fn ends_with(near: &str, words: &[&str]) -> bool {
    words.iter().any(|word| {
        let before = near.strip_suffix(word);
        before.is_some_and(|before| !before.ends_with(|c: char| c.is_alphanumeric()))
    })
}

/// `HTTP/1.1`.
fn ends_with_version(near: &str) -> bool {
    near.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').ends_with("http/")
}

/// `GET https://a.test/b: 404`.
fn ends_with_address(near: &str) -> bool {
    near.rsplit(char::is_whitespace).next().is_some_and(|word| word.contains("://"))
}

/// Nothing follows that a number could count.
fn counts_nothing(after: &str) -> bool {
    let after = after.trim_start_matches(['\'', '"', '`', ')', ']']);
    let ends_clause = after == "." || after.starts_with(". ") || after.starts_with(": ");
    let goes_on = after.starts_with(['.', '-', ':']);
    let rest = after.trim_start_matches(' ');
    let is_counted = rest.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '/' | '%')) && !is_joint(rest);
    rest.is_empty() || ends_clause || (!goes_on && !is_counted)
}

fn is_joint(rest: &str) -> bool {
    ["from", "when", "while", "for", "on", "at", "by", "with", "after", "because"]
        .iter()
        .any(|word| rest.strip_prefix(word).is_some_and(|rest| rest.starts_with(' ')))
}

/// A report that begins with its status: `429 {"error"…`, `401: no`, `503 - busy`.
fn begins_report(after: &str) -> bool {
    [": ", " {", " - ", " \"", ", "].iter().any(|start| after.starts_with(start))
}

/// A body in JSON follows that begins as errors do: `upstream: 403 {"message"…`, not `pages: 403 {"first"…`.
fn precedes_body(after: &str) -> bool {
    [" {", ": {", " - {"].iter().find_map(|start| after.strip_prefix(start)).is_some_and(envelope::begins_as_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_a_status_where_a_status_stands() {
        for (text, expected) in [
            ("Request failed with status code 503", vec![503]),
            ("GET https://a.test/x: 404 Not Found []", vec![404]),
            ("GET https://a.test/x: 410", vec![410]),
            ("HTTP/1.1 502 Bad Gateway", vec![502]),
            ("HTTP 429", vec![429]),
            ("http error! status: 403", vec![403]),
            ("403 Client Error: Forbidden for url: https://a.test/500", vec![403]),
            ("Client error '404 Not Found' for url 'https://a.test'", vec![404]),
            ("Error code: 429 - {'error': 1}", vec![429]),
            ("429 {\"error\": 1}", vec![429]),
            ("{\"statusCode\":401,\"size\":500}", vec![401]),
            ("Forbidden (403)", vec![403]),
            ("API returned 500.", vec![500]),
            ("HTTP Error 500: x; then HTTP Error 401: y", vec![500, 401]),
            ("stock: 403 {\"message\": \"no\"}", vec![403]),
            ("stock: 404: {\"message\": \"no\"}", vec![404]),
            ("call of stock: 500 - {}", vec![500]),
            ("stock: 403 {\\\"errorCode\\\": 7}", vec![403]),
            ("stock: 403 {'detail': 'no'}", vec![403]),
            ("pages: 403 {\"first\": 1}", vec![]),
            ("listed 404 rows", vec![]),
            ("rows: 404 of {\"all\": 9}", vec![]),
            ("rows: 404", vec![]),
            ("stock 403 {\"message\": \"no\"}", vec![]),
            ("stock:403{}", vec![]),
            ("there were 404 errors", vec![]),
            ("error: 404 rows are broken", vec![]),
            ("returned 500 items", vec![]),
            ("row 503 is bad", vec![]),
            ("error 404.5", vec![]),
            ("took 500ms, 500 ms, port 10.0.0.1:500", vec![]),
            ("status 200", vec![]),
            ("déjà status 404", vec![404]),
        ] {
            assert_eq!(statuses(text), expected, "{text}");
        }
    }

    #[test]
    fn of_nested_errors_the_innermost_code_counts() {
        for (text, expected) in [
            ("MCP error -32603: call failed: MCP error -32001: Request timed out", Some(-32001)),
            ("{\"error\":{\"code\":-32602,\"message\":\"x\"}}", Some(-32602)),
            ("-32000", Some(-32000)),
            ("a-32000b, id-320011, 1-32000", None),
            ("", None),
        ] {
            assert_eq!(rpc_code(text), expected, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_can_be_looked_through(text in "(status |code |[4-5][0-9]{2}|-32[0-9]{3}|\\PC){0,30}") {
            assert!(statuses(&text).iter().all(|status| (400..600).contains(status)));
            let _ = rpc_code(&text);
        }
    }
}
