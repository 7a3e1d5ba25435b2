//! JSON strings as text.

use std::borrow::Cow;

/// A string with its escapes resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Text<'a> {
    /// What it says; lone surrogates and bytes that are not UTF-8 are replaced by U+FFFD.
    pub(crate) text: Cow<'a, str>,
    /// Whether nothing had to be replaced.
    pub(crate) exact: bool,
}

/// The text of a raw string token. A token that is cut short gives what is there of it, as inexact.
pub(crate) fn string(token: &[u8]) -> Option<Text<'_>> {
    let inside = token.strip_prefix(b"\"")?;
    let (inside, closed) = match inside.strip_suffix(b"\"") {
        Some(inside) => (inside, true),
        None => (inside, false),
    };
    let mut text = unescape(inside);
    text.exact &= closed;
    Some(text)
}

/// Resolves the escapes of what stands between the quotes of a string.
pub(crate) fn unescape(inside: &[u8]) -> Text<'_> {
    if memchr::memchr(b'\\', inside).is_none() {
        return plain(inside);
    }
    let (mut bytes, mut exact) = (Vec::with_capacity(inside.len()), true);
    let mut rest = inside;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        let (plain, escape) = rest.split_at_checked(at).unwrap_or((rest, &[]));
        bytes.extend_from_slice(plain);
        let (resolved, length) = resolve(escape);
        exact &= resolved.is_some();
        let mut utf8 = [0; 4];
        bytes.extend_from_slice(resolved.unwrap_or(char::REPLACEMENT_CHARACTER).encode_utf8(&mut utf8).as_bytes());
        rest = escape.get(length..).unwrap_or_default();
    }
    bytes.extend_from_slice(rest);
    match String::from_utf8(bytes) {
        Ok(text) => Text { text: Cow::Owned(text), exact },
        Err(error) => Text { text: Cow::Owned(String::from_utf8_lossy(error.as_bytes()).into_owned()), exact: false },
    }
}

/// What stands between the quotes of a string without escapes.
pub(super) fn plain(inside: &[u8]) -> Text<'_> {
    match std::str::from_utf8(inside) {
        Ok(text) => Text { text: Cow::Borrowed(text), exact: true },
        Err(_) => Text { text: String::from_utf8_lossy(inside), exact: false },
    }
}

/// The character that an escape stands for, if it is one, and how many bytes it takes.
fn resolve(escape: &[u8]) -> (Option<char>, usize) {
    let simple = match escape.get(1) {
        Some(b'n') => '\n',
        Some(b't') => '\t',
        Some(b'r') => '\r',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(&plain @ (b'"' | b'\\' | b'/')) => char::from(plain),
        Some(b'u') => return resolve_unicode(escape),
        _ => return (None, 2),
    };
    (Some(simple), 2)
}

fn resolve_unicode(escape: &[u8]) -> (Option<char>, usize) {
    let Some(first) = hex(escape, 0) else { return (None, escape.len().min(6)) };
    if let Some(simple) = char::from_u32(first) {
        return (Some(simple), 6);
    }
    let pair = (first < 0xDC00).then(|| hex(escape, 6)).flatten().filter(|low| (0xDC00..0xE000).contains(low));
    match pair {
        Some(low) => (char::from_u32(0x1_0000 + ((first - 0xD800) << 10) + (low - 0xDC00)), 12),
        None => (None, 6),
    }
}

/// The four hexadecimal digits of the `\uXXXX` at `at`.
pub(super) fn hex(escape: &[u8], at: usize) -> Option<u32> {
    let digits = escape.get(at..at + 6)?.strip_prefix(b"\\u")?;
    digits.iter().try_fold(0, |sum, digit| Some(sum * 16 + char::from(*digit).to_digit(16)?))
}
