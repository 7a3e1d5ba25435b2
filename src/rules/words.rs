//! The words of a failure's reason, in one form for sentences and machine codes: `TOKEN_EXPIRED`, `tokenExpired` and "Token
//! has expired." all read `token … expired`. Addresses and paths are left out: their words are names, not reasons.

use std::borrow::Cow;

#[cfg(test)]
mod oracle;

/// How much of one part of a failure is taken apart, in bytes: head and tail of one half each.
pub(crate) const PART_BOUND: usize = 8 * 1024;
/// What stands between two clauses; no phrase reaches across it.
const STOP: u8 = b'.';

/// The longest name of a member.
const MEMBER_MAX: usize = 64;

/// The longest name that is quoted, in characters.
const QUOTED_MAX: usize = 60;
/// What stands for a name.
const NAME: &str = "name";
/// What is quoted after these words is a reason rather than a name.
const INTRODUCING: [&[u8]; 12] = [
    b"error",
    b"code",
    b"reason",
    b"message",
    b"status",
    b"says",
    b"said",
    b"response",
    b"exception",
    b"with",
    b"failed",
    b"returned",
];

/// What a byte is for the reader; all but the ends of words are of ASCII.
mod is {
    /// A letter or a digit.
    pub(super) const WORD: u8 = 1;
    /// It stands within a name such as `user@host`, besides letters and digits.
    pub(super) const JOINT: u8 = 1 << 1;
    /// A digit or a hyphen, as names of things have.
    pub(super) const THING: u8 = 1 << 2;
    /// It stands within the name of a member.
    pub(super) const MEMBER: u8 = 1 << 3;
    /// It ends an address or path.
    pub(super) const END: u8 = 1 << 4;
    /// A word that ends before it may be more than a word.
    pub(super) const MORE: u8 = 1 << 5;
    /// Between words, it may be more than a space.
    pub(super) const SIGN: u8 = 1 << 6;
    /// A part of a letter beyond ASCII.
    pub(super) const WIDE: u8 = 1 << 7;
}

/// What each byte is.
const KINDS: [u8; 256] = {
    let mut kinds = [is::WIDE | is::MORE; 256];
    let (ascii, _) = kinds.split_at_mut(128);
    let (mut rest, mut at) = (ascii, 0_u8);
    while let Some((kind, others)) = rest.split_first_mut() {
        let word = if at.is_ascii_alphanumeric() { is::WORD | is::MEMBER } else { 0 };
        let joint = if matches!(at, b'_' | b'-' | b'.' | b'/' | b'@' | b'+') { is::JOINT | is::MORE } else { 0 };
        let thing = if at.is_ascii_digit() || at == b'-' { is::THING } else { 0 };
        let member = if matches!(at, b'_' | b'-' | b'.') { is::MEMBER } else { 0 };
        let end = matches!(at, 9..=13 | b' ' | b'"' | b'\'' | b'`' | b')' | b'>' | b'<' | b',' | b'}' | b']' | b'\\');
        let more = if matches!(at, b':' | b'\'') { is::MORE } else { 0 };
        let sign = matches!(at, b'/' | b'"' | b'\'' | b'`' | b'\n' | b';' | b'!' | b'?' | b'|' | b'.' | b',');
        let (end, sign) = (if end { is::END } else { 0 }, if sign { is::SIGN } else { 0 });
        *kind = word | joint | thing | member | end | more | sign;
        (rest, at) = (others, at + 1);
    }
    kinds
};

fn kind(byte: u8) -> u8 {
    KINDS.get(usize::from(byte)).copied().unwrap_or(is::WIDE)
}

/// What the byte at a place is; nothing after the end.
fn kind_at(text: &str, at: usize) -> u8 {
    byte_at(text, at).map_or(0, kind)
}

fn byte_at(text: &str, at: usize) -> Option<u8> {
    text.as_bytes().get(at).copied()
}

fn char_at(text: &str, at: usize) -> Option<char> {
    match byte_at(text, at)? {
        byte if byte.is_ascii() => Some(byte.into()),
        _ => text.get(at..)?.chars().next(),
    }
}

fn char_before(text: &str, at: usize) -> Option<char> {
    match byte_at(text, at.checked_sub(1)?)? {
        byte if byte.is_ascii() => Some(byte.into()),
        _ => text.get(..at)?.chars().next_back(),
    }
}

/// Where the character after this one begins.
fn after(text: &str, at: usize) -> usize {
    at + char_at(text, at).map_or(1, char::len_utf8)
}

/// Collects words.
#[derive(Debug, Default)]
pub(crate) struct Words(Vec<u8>);

impl Words {
    /// Takes a text apart and ends with a stop.
    pub(crate) fn add(&mut self, text: &str) {
        let plain = if is_page(text) { Cow::Owned(without_tags(text)) } else { Cow::Borrowed(text) };
        self.0.reserve(plain.len() + 16);
        self.add_all(&plain);
    }

    /// The words, with one space between them and stops between clauses.
    pub(crate) fn finish(self) -> String {
        String::from_utf8(self.0).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
    }

    fn add_all(&mut self, text: &str) {
        let mut place = 0;
        while let Some(byte) = byte_at(text, place) {
            let kind = kind(byte);
            place = if kind & is::WORD != 0 {
                let end = self.plain_word(text, place).unwrap_or_else(|| self.word(text, place));
                end + usize::from(byte_at(text, end) == Some(b' '))
            } else if kind & is::SIGN != 0 {
                self.sign(byte, text, place)
            } else if kind & is::WIDE != 0 {
                match char_at(text, place) {
                    Some(letter) if letter.is_alphanumeric() => self.word(text, place),
                    Some('\u{201c}') => self.quote(text, place),
                    _ => after(text, place),
                }
            } else {
                place + 1
            };
        }
        self.stop(place);
    }

    fn sign(&mut self, sign: u8, text: &str, at: usize) -> usize {
        match sign {
            b'/' if begins_path(text, at) => end_of_name(text, at),
            b'"' | b'\'' | b'`' => self.quote(text, at),
            b'\n' | b';' | b'!' | b'?' | b'|' => self.stop(at),
            b'.' if char_at(text, at + 1).is_none_or(|next| !next.is_alphanumeric()) => self.stop(at),
            b',' if char_before(text, at) == Some('"') => self.stop(at),
            _ => at + 1,
        }
    }

    fn stop(&mut self, at: usize) -> usize {
        if self.0.last().is_some_and(|last| *last != STOP) {
            self.0.extend_from_slice(&[b' ', STOP]);
        }
        at + 1
    }

    fn space(&mut self) {
        if !self.0.is_empty() {
            self.0.push(b' ');
        }
    }

    fn push(&mut self, word: &str) {
        self.space();
        self.0.extend_from_slice(word.as_bytes());
    }

    fn push_lower(&mut self, word: &str) {
        self.space();
        if word.is_ascii() {
            self.0.extend(word.bytes().map(|letter| letter.to_ascii_lowercase()));
        } else {
            let letters = word.chars().flat_map(char::to_lowercase);
            letters.for_each(|letter| self.0.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes()));
        }
    }

    /// Begins a clause with a member, puts a placeholder where a name is quoted, or passes over the quote.
    fn quote(&mut self, text: &str, at: usize) -> usize {
        if let Some(end) = end_of_member(text, at) {
            return self.stop(end);
        }
        match end_of_quoted_name(text, at).filter(|_| !self.introduces()) {
            Some(end) => {
                self.push(NAME);
                end
            }
            None => after(text, at),
        }
    }

    /// Whether the last word introduces a reason.
    fn introduces(&self) -> bool {
        let said = self.0.get(memchr::memrchr(b' ', &self.0).map_or(0, |space| space + 1)..).unwrap_or_default();
        INTRODUCING.contains(&said)
    }

    /// Takes the word of ASCII that begins here, eight letters at a time, if it is one word and no more: without humps, no
    /// name, no address and no negation.
    fn plain_word(&mut self, text: &str, from: usize) -> Option<usize> {
        let before = self.0.len();
        self.space();
        let start = self.0.len();
        let mut end = from;
        // A capital that begins the word begins no hump.
        let mut counted = !0xff;
        loop {
            let letters = eight(text, end);
            let alphabetic = within(letters | SMALL, b'a', b'z');
            let capitals = alphabetic & !(letters << 2);
            let others = HIGHS ^ (alphabetic | within(letters, b'0', b'9'));
            let inside = others.wrapping_sub(1) & !others;
            if capitals & inside & counted != 0 {
                self.0.truncate(before);
                return None;
            }
            counted = u64::MAX;
            let length = others.trailing_zeros() as usize / 8;
            self.0.extend_from_slice(&(letters | capitals >> 2).to_le_bytes());
            end += length;
            if length < 8 {
                break;
            }
        }
        let length = end - from;
        if kind_at(text, end) & is::MORE != 0 && is_more(text, from, end)
            || length == CANNOT.len() && self.0.get(start..start + length) == Some(CANNOT)
        {
            self.0.truncate(before);
            return None;
        }
        self.0.truncate(start + length);
        Some(end)
    }

    /// Takes the word that begins here, or leaves out the address.
    fn word(&mut self, text: &str, from: usize) -> usize {
        if let Some(end) = end_of_named(text, from) {
            self.push(NAME);
            return end;
        }
        let part = |from: usize, end: usize| text.get(from..end).unwrap_or_default();
        let (mut start, mut end) = (from, from);
        let (mut letters, mut last) = (0, '\0');
        while let Some(letter) = char_at(text, end).filter(|letter| letter.is_alphanumeric()) {
            let next = end + letter.len_utf8();
            if letters >= 2 && begins_hump(last, letter, || char_at(text, next)) {
                self.push_lower(part(start, end));
                (start, letters) = (end, 0);
            }
            (end, last) = (next, letter);
            letters += 1;
        }
        let rest = text.get(end..).unwrap_or_default();
        if rest.starts_with("://") {
            return end_of_name(text, end);
        }
        let word = part(start, end);
        let is = |other: &[u8]| word.as_bytes().eq_ignore_ascii_case(other);
        let negation =
            rest.strip_prefix(['\'', '\u{2019}']).and_then(|rest| rest.strip_prefix(['t', 'T'])).map(str::len);
        let negation = negation.filter(|_| matches!(last, 'n' | 'N'));
        if is(CANNOT) || (negation.is_some() && is(b"can")) {
            self.push("can not");
        } else if negation.is_some() && is(b"won") {
            self.push("will not");
        } else if negation.is_some() {
            // Of a negation that stands by itself nothing is left.
            if end - 1 > start {
                self.push_lower(part(start, end - 1));
            }
            self.push("not");
        } else {
            self.push_lower(word);
        }
        negation.map_or(end, |left| text.len() - left)
    }
}

/// The word that is two.
const CANNOT: &[u8] = b"cannot";

const ONES: u64 = u64::MAX / 0xff;
/// The highest bit of each byte.
const HIGHS: u64 = ONES << 7;
/// The bit that tells small letters from capitals, two below the highest one, of each byte.
const SMALL: u64 = ONES * 0x20;

/// The eight bytes from here on, the first one lowest; zeros after the end.
fn eight(text: &str, from: usize) -> u64 {
    let rest = text.as_bytes().get(from..).unwrap_or_default();
    match rest.first_chunk::<8>() {
        Some(bytes) => u64::from_le_bytes(*bytes),
        None => rest.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte)),
    }
}

/// The highest bit of each byte that lies in a range of ASCII.
fn within(bytes: u64, first: u8, last: u8) -> u64 {
    let low = bytes & !HIGHS;
    let reached = low + ONES * u64::from(0x80 - first);
    let passed = low + ONES * u64::from(0x7f - last);
    reached & !passed & !bytes & HIGHS
}

/// Whether the word of ASCII is more than a word, going by what follows it.
fn is_more(text: &str, from: usize, end: usize) -> bool {
    match byte_at(text, end) {
        Some(b':') => text.get(end..).is_some_and(|rest| rest.starts_with("://")),
        Some(b'\'') => matches!(byte_at(text, end + 1), Some(b't' | b'T')),
        Some(byte) if byte.is_ascii() => {
            let goes_on = kind_at(text, end + 1) & (is::WORD | is::JOINT | is::WIDE) != 0;
            (goes_on || matches!(byte, b'@' | b'/')) && end_of_named(text, from).is_some()
        }
        _ => true,
    }
}

/// Whether a new word begins with this letter, as within `tokenExpired` and `HTTPError`.
fn begins_hump(last: char, letter: char, next: impl Fn() -> Option<char>) -> bool {
    letter.is_uppercase() && (last.is_lowercase() || (last.is_uppercase() && next().is_some_and(char::is_lowercase)))
}

/// Whether the slash begins a path rather than standing between two words.
fn begins_path(text: &str, at: usize) -> bool {
    char_before(text, at)
        .is_none_or(|c| c.is_whitespace() || matches!(c, '"' | '\'' | '(' | '=' | '`' | '~' | '.' | ':'))
}

/// Where the name of a member ends that begins with this quote: `"code":`, also within a text of its own. The names of
/// members are no reasons, they begin one.
fn end_of_member(text: &str, from: usize) -> Option<usize> {
    let start = after(text, from);
    let mut end = start;
    for _ in 0..MEMBER_MAX {
        match kind_at(text, end) {
            kind if kind & is::MEMBER != 0 => end += 1,
            kind if kind & is::WIDE != 0 => {
                let Some(letter) = char_at(text, end).filter(|letter| letter.is_alphanumeric()) else { break };
                end += letter.len_utf8();
            }
            _ => break,
        }
    }
    let named = end > start;
    while byte_at(text, end) == Some(b'\\') {
        end += 1;
    }
    if !named || char_at(text, end) != char_at(text, from) {
        return None;
    }
    end = after(text, end);
    while byte_at(text, end) == Some(b' ') {
        end += 1;
    }
    (byte_at(text, end) == Some(b':')).then_some(end)
}

/// Where a name ends that a sentence quotes: `Issue 'Rate limit' not found`. A value of JSON is none, its quote follows no word.
fn end_of_quoted_name(text: &str, from: usize) -> Option<usize> {
    let space = from.checked_sub(1).filter(|at| byte_at(text, *at) == Some(b' '))?;
    if !char_before(text, space).is_some_and(char::is_alphanumeric) {
        return None;
    }
    let start = after(text, from);
    let ends = |c: char| matches!(c, '\'' | '"' | '`' | '\u{201c}' | '\u{201d}' | '\n');
    let mut letters = text.get(start..)?.char_indices().take(QUOTED_MAX + 1);
    let (length, closing) = letters.find(|(_, c)| ends(*c)).filter(|(length, _)| *length > 0)?;
    let end = start + length;
    let inner_spaces = char_at(text, start).is_some_and(char::is_whitespace)
        || char_before(text, end).is_some_and(char::is_whitespace);
    let next = end + closing.len_utf8();
    let closed = closing != '\n' && !char_at(text, next).is_some_and(char::is_alphanumeric);
    (closed && !inner_spaces).then_some(next)
}

/// Where a name ends that is one by its form: `user@host`, `owner/some-thing`.
fn end_of_named(text: &str, from: usize) -> Option<usize> {
    let opens = |c: char| c.is_whitespace() || matches!(c, '\'' | '"' | '`' | '(' | '<');
    if char_before(text, from).is_some_and(|c| !opens(c)) {
        return None;
    }
    let (mut at_sign, mut slash, mut seen) = (None, None, 0);
    let mut end = from;
    while let Some(byte) = byte_at(text, end) {
        let kind = kind(byte);
        if kind & (is::WORD | is::JOINT) != 0 {
            match byte {
                b'@' => at_sign = at_sign.or(Some(end)),
                b'/' => slash = slash.or(Some(end)),
                _ => {}
            }
            seen |= kind;
            end += 1;
        } else if kind & is::WIDE != 0 {
            let Some(letter) = char_at(text, end).filter(|letter| letter.is_alphanumeric()) else { break };
            end += letter.len_utf8();
        } else {
            break;
        }
    }
    let goes_on = |place: usize| place + 1 < end && char_at(text, place + 1).is_some_and(char::is_alphanumeric);
    let is_thing = seen & is::THING != 0;
    (at_sign.is_some_and(goes_on) || (is_thing && slash.is_some_and(goes_on))).then_some(end)
}

/// Where an address or path ends.
fn end_of_name(text: &str, from: usize) -> usize {
    let mut end = from;
    while let Some(byte) = byte_at(text, end) {
        let kind = kind(byte);
        if kind & is::END != 0 {
            break;
        }
        if kind & is::WIDE == 0 {
            end += 1;
            continue;
        }
        match char_at(text, end).filter(|letter| !letter.is_whitespace()) {
            Some(letter) => end += letter.len_utf8(),
            None => break,
        }
    }
    end
}

fn is_page(text: &str) -> bool {
    let start = text.trim_start();
    if !start.starts_with('<') {
        return false;
    }
    let start = start.chars().take(200).collect::<String>().to_ascii_lowercase();
    start.contains("<html") || start.contains("<!doctype") || start.contains("<h1")
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
    use proptest::prelude::*;

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
            ("is N'T", "is not ."),
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

    /// Texts in which everything that the reader looks for stands beside anything else.
    fn texts() -> impl Strategy<Value = String> {
        let pieces = prop_oneof![
            "[a-zA-Z0-9]{1,12}",
            "[-_./@+:'\"`(<>),;!?|\\\\{}\\[\\] \n\t\u{b}=~]{1,3}",
            "[\u{201c}\u{201d}\u{2018}\u{2019}\u{a0}\u{3000}äÖßЖж\u{130}\u{1f600}٣]{1,2}",
            "(://|n't|N\u{2019}T|can't|Won't|cannot|CANNOT|tokenExpired|HTTPError|a@b|o/some-thing|\"code\": ?|\\\\\"a\\\\\":)",
            "(error|with|said) ['\"`\u{201c}][a-z é]{0,4}['\"`\u{201d}\n]",
            "[a-z]{50,70}",
            "\\PC",
        ];
        prop::collection::vec(pieces, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn words_are_those_of_the_plain_reader(text in texts(), quoted in "[\"'\u{201c}]?", from in 0usize..4) {
            let text: String = quoted.chars().chain(text.chars().skip(from)).collect();
            prop_assert_eq!(words(&text), oracle::words(&text), "{:?}", text);
        }

        #[test]
        fn any_text_can_be_taken_apart(text in "\\PC{0,200}") {
            let words = words(&text);
            assert!(!words.contains("  ") && !words.starts_with(' '), "{words:?}");
        }
    }
}
