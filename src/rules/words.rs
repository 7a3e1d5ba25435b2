//! The words of a failure's reason, in one form for sentences and machine codes: `TOKEN_EXPIRED`, `tokenExpired` and "Token
//! has expired." all read `token … expired`. Addresses and paths are left out: their words are names, not reasons.

use std::borrow::Cow;

/// How much of one part of a failure is taken apart, in bytes: head and tail of one half each.
pub(crate) const PART_BOUND: usize = 8 * 1024;
/// What stands between two clauses; no phrase reaches across it.
const STOP: &str = ".";

/// The longest name of a member.
const MEMBER_MAX: usize = 64;

/// The longest name that is quoted, in characters.
const QUOTED_MAX: usize = 60;
/// What stands for a name.
const NAME: &str = "name";
/// What is quoted after these words is a reason rather than a name.
const INTRODUCING: [&str; 12] = [
    "error",
    "code",
    "reason",
    "message",
    "status",
    "says",
    "said",
    "response",
    "exception",
    "with",
    "failed",
    "returned",
];

/// Collects words.
#[derive(Debug, Default)]
pub(crate) struct Words(String);

impl Words {
    /// Takes a text apart and ends with a stop.
    pub(crate) fn add(&mut self, text: &str) {
        let plain = if is_page(text) { Cow::Owned(without_tags(text)) } else { Cow::Borrowed(text) };
        let chars: Vec<char> = plain.chars().collect();
        let mut at = 0;
        while let Some(c) = chars.get(at) {
            at = match c {
                c if c.is_alphanumeric() => self.word(&chars, at),
                '/' if begins_path(&chars, at) => end_of_name(&chars, at),
                '"' | '\'' | '`' | '\u{201c}' => self.quote(&chars, at),
                '\n' | ';' | '!' | '?' | '|' => self.stop(at),
                '.' if chars.get(at + 1).is_none_or(|next| !next.is_alphanumeric()) => self.stop(at),
                ',' if at > 0 && chars.get(at - 1) == Some(&'"') => self.stop(at),
                _ => at + 1,
            };
        }
        self.stop(at);
    }

    /// The words, with one space between them and stops between clauses.
    pub(crate) fn finish(self) -> String {
        self.0
    }

    fn stop(&mut self, at: usize) -> usize {
        if !self.0.is_empty() && !self.0.ends_with(STOP) {
            self.push(STOP);
        }
        at + 1
    }

    fn push(&mut self, word: &str) {
        if !self.0.is_empty() {
            self.0.push(' ');
        }
        self.0.extend(word.chars().flat_map(char::to_lowercase));
    }

    /// Begins a clause with a member, puts a placeholder where a name is quoted, or passes over the quote.
    fn quote(&mut self, chars: &[char], at: usize) -> usize {
        if let Some(end) = end_of_member(chars, at) {
            return self.stop(end);
        }
        let said = self.0.rsplit(' ').next().unwrap_or("");
        match end_of_quoted_name(chars, at).filter(|_| !INTRODUCING.contains(&said)) {
            Some(end) => {
                self.push(NAME);
                end
            }
            None => at + 1,
        }
    }

    /// Takes the word that begins here, or leaves out the address.
    fn word(&mut self, chars: &[char], from: usize) -> usize {
        if let Some(end) = end_of_named(chars, from) {
            self.push(NAME);
            return end;
        }
        let mut end = from;
        let mut word = String::new();
        while let Some(c) = chars.get(end).filter(|c| c.is_alphanumeric()) {
            if word.chars().nth(1).is_some() && begins_hump(chars, end) {
                self.push(&std::mem::take(&mut word));
            }
            word.push(*c);
            end += 1;
        }
        if chars.get(end..end + 3) == Some(&[':', '/', '/']) {
            return end_of_name(chars, end);
        }
        let negated =
            matches!(chars.get(end..end + 2), Some(['\'' | '\u{2019}', 't' | 'T'])) && word.ends_with(['n', 'N']);
        match word.to_lowercase().as_str() {
            "can" if negated => self.push("can not"),
            "won" if negated => self.push("will not"),
            "cannot" => self.push("can not"),
            _ if negated => {
                word.pop();
                self.push(&word);
                self.push("not");
            }
            _ => self.push(&word),
        }
        if negated { end + 2 } else { end }
    }
}

/// Where a new word begins within `tokenExpired` and `HTTPError`.
fn begins_hump(chars: &[char], at: usize) -> bool {
    let is = |at: usize, fits: fn(char) -> bool| chars.get(at).is_some_and(|c| fits(*c));
    is(at, char::is_uppercase)
        && (is(at - 1, char::is_lowercase) || (is(at - 1, char::is_uppercase) && is(at + 1, char::is_lowercase)))
}

/// Whether the slash begins a path rather than standing between two words.
fn begins_path(chars: &[char], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|at| chars.get(at));
    before.is_none_or(|c| c.is_whitespace() || matches!(c, '"' | '\'' | '(' | '=' | '`' | '~' | '.' | ':'))
}

/// Where the name of a member ends that begins with this quote: `"code":`, also within a text of its own. The names of
/// members are no reasons, they begin one.
fn end_of_member(chars: &[char], from: usize) -> Option<usize> {
    let quote = chars.get(from)?;
    let name = chars.iter().skip(from + 1).take(MEMBER_MAX);
    let length = name.take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.')).count();
    let mut end = from + 1 + length;
    end += chars.iter().skip(end).take_while(|c| **c == '\\').count();
    if length == 0 || chars.get(end) != Some(quote) {
        return None;
    }
    end += 1;
    end += chars.iter().skip(end).take_while(|c| **c == ' ').count();
    (chars.get(end) == Some(&':')).then_some(end)
}

/// Where a name ends that a sentence quotes: `Issue 'Rate limit' not found`. A value of JSON is none, its quote follows no word.
fn end_of_quoted_name(chars: &[char], from: usize) -> Option<usize> {
    let is = |at: Option<usize>, fits: fn(char) -> bool| at.and_then(|at| chars.get(at)).is_some_and(|c| fits(*c));
    let after_word = is(from.checked_sub(1), |c| c == ' ') && is(from.checked_sub(2), char::is_alphanumeric);
    let ends = |c: &char| matches!(c, '\'' | '"' | '`' | '\u{201c}' | '\u{201d}' | '\n');
    let length = chars.iter().skip(from + 1).take(QUOTED_MAX + 1).position(ends).filter(|length| *length > 0)?;
    let end = from + 1 + length;
    let inner_spaces = is(Some(from + 1), char::is_whitespace) || is(Some(end - 1), char::is_whitespace);
    let closed = !is(Some(end), |c| c == '\n') && !is(Some(end + 1), char::is_alphanumeric);
    (after_word && closed && !inner_spaces).then_some(end + 1)
}

/// Where a name ends that is one by its form: `user@host`, `owner/some-thing`.
fn end_of_named(chars: &[char], from: usize) -> Option<usize> {
    let opens = |c: &char| c.is_whitespace() || matches!(c, '\'' | '"' | '`' | '(' | '<');
    if from.checked_sub(1).and_then(|at| chars.get(at)).is_some_and(|c| !opens(c)) {
        return None;
    }
    let part = |c: &char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '@' | '+');
    let token: Vec<char> = chars.iter().skip(from).take_while(|c| part(c)).copied().collect();
    let inner = |wanted: char| {
        let at = token.iter().position(|c| *c == wanted)?;
        token.get(at + 1).filter(|next| next.is_alphanumeric())
    };
    let thing = inner('/').is_some() && token.iter().any(|c| *c == '-' || c.is_ascii_digit());
    (inner('@').is_some() || thing).then_some(from + token.len())
}

/// Where an address or path ends.
fn end_of_name(chars: &[char], from: usize) -> usize {
    let ends = |c: &char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | ')' | '>' | '<' | ',' | '}' | ']' | '\\');
    chars.iter().skip(from).position(ends).map_or(chars.len(), |length| from + length)
}

fn is_page(text: &str) -> bool {
    let start: String = text.trim_start().chars().take(200).collect::<String>().to_ascii_lowercase();
    start.starts_with('<') && (start.contains("<html") || start.contains("<!doctype") || start.contains("<h1"))
}

/// The text of a page: tags end a clause, scripts and styles are left out.
fn without_tags(page: &str) -> String {
    let mut text = String::new();
    let mut rest = page;
    while let Some((before, from)) = rest.split_once('<') {
        text.push_str(before);
        text.push('\n');
        let hidden = ["script", "style"]
            .into_iter()
            .find(|name| from.get(..name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name)));
        let after = match hidden {
            Some(name) => from.find(&format!("</{name}")).and_then(|at| from.get(at + 2..)).unwrap_or(""),
            None => from,
        };
        rest = after.split_once('>').map_or("", |(_, after)| after);
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> String {
        let mut words = Words::default();
        words.add(text);
        words.finish()
    }

    #[test]
    fn codes_and_sentences_read_alike() {
        for (text, expected) in [
            ("TOKEN_EXPIRED", "token expired ."),
            ("tokenExpired", "token expired ."),
            ("The token's expired.", "the token s expired ."),
            ("HTTPError: 503", "http error 503 ."),
            ("OAuth isn't set; can't go on", "oauth is not set . can not go on ."),
            ("you cannot", "you can not ."),
            ("see https://a.test/rate-limit/x, now", "see now ."),
            ("open '/etc/not-found' failed", "open name failed ."),
            ("and/or a.b.TimeoutException", "and or a b timeout exception ."),
            (r#"{"token":"one","b-c": "two"}"#, "one . two ."),
            (r#"failed: {\"token\":\"one\"}"#, "failed . one ."),
            ("{'error': 'x y'}", "x y ."),
            ("<html><head><style>p{}</style></head><h1>Bad Gateway</h1>\n<hr>edge", "bad gateway . edge ."),
            ("Issue 'Rate limit' not found", "issue name not found ."),
            ("failed with 'invalid token'", "failed with invalid token ."),
            ("'none' has no `x`", "none has no name ."),
            ("mail rate-limit@a.test to acme/rate-limit", "mail name to name ."),
            ("", ""),
        ] {
            assert_eq!(words(text), expected, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_can_be_taken_apart(text in "\\PC{0,200}") {
            let words = words(&text);
            assert!(!words.contains("  ") && !words.starts_with(' '), "{words:?}");
        }
    }
}
