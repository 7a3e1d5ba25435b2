//! The words of a reason taken apart letter by letter, as plainly as can be: what the quick reader is held to.

use std::borrow::Cow;

use super::{INTRODUCING, MEMBER_MAX, NAME, QUOTED_MAX, STOP, is_page, without_tags};

/// The words of one text.
pub(super) fn words(text: &str) -> String {
    let mut words = Words::default();
    words.add(text);
    words.0
}

/// Collects words.
#[derive(Debug, Default)]
struct Words(String);

fn at(chars: &[char], at: usize) -> Option<char> {
    chars.get(at).copied()
}

fn before(chars: &[char], place: usize) -> Option<char> {
    at(chars, place.checked_sub(1)?)
}

/// How many characters from a place on are of a kind.
fn run(chars: &[char], from: usize, fits: impl Fn(char) -> bool) -> usize {
    chars.iter().skip(from).take_while(|letter| fits(**letter)).count()
}

impl Words {
    /// Takes a text apart and ends with a stop.
    fn add(&mut self, text: &str) {
        let plain = if is_page(text) { Cow::Owned(without_tags(text)) } else { Cow::Borrowed(text) };
        self.add_all(&plain.chars().collect::<Vec<char>>());
    }

    fn add_all(&mut self, chars: &[char]) {
        let mut place = 0;
        while let Some(c) = at(chars, place) {
            place = match c {
                ' ' => place + 1,
                c if c.is_alphanumeric() => self.word(chars, place),
                '/' if begins_path(chars, place) => end_of_name(chars, place),
                '"' | '\'' | '`' | '\u{201c}' => self.quote(chars, place),
                '\n' | ';' | '!' | '?' | '|' => self.stop(place),
                '.' if at(chars, place + 1).is_none_or(|next| !next.is_alphanumeric()) => self.stop(place),
                ',' if before(chars, place) == Some('"') => self.stop(place),
                _ => place + 1,
            };
        }
        self.stop(place);
    }

    fn stop(&mut self, at: usize) -> usize {
        if !self.0.is_empty() && !self.0.ends_with(char::from(STOP)) {
            self.push(".");
        }
        at + 1
    }

    fn push(&mut self, word: &str) {
        self.push_letters(word.chars());
    }

    fn push_letters(&mut self, word: impl Iterator<Item = char>) {
        if !self.0.is_empty() {
            self.0.push(' ');
        }
        for letter in word {
            if letter.is_ascii() {
                self.0.push(letter.to_ascii_lowercase());
            } else {
                self.0.extend(letter.to_lowercase());
            }
        }
    }

    /// Begins a clause with a member, puts a placeholder where a name is quoted, or passes over the quote.
    fn quote(&mut self, chars: &[char], at: usize) -> usize {
        if let Some(end) = end_of_member(chars, at) {
            return self.stop(end);
        }
        let said = self.0.rsplit(' ').next().unwrap_or("");
        match end_of_quoted_name(chars, at).filter(|_| !INTRODUCING.contains(&said.as_bytes())) {
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
        let part = |from: usize, end: usize| chars.get(from..end).unwrap_or_default().iter().copied();
        let (mut start, mut end) = (from, from);
        while at(chars, end).is_some_and(char::is_alphanumeric) {
            if end >= start + 2 && begins_hump(chars, end) {
                self.push_letters(part(start, end));
                start = end;
            }
            end += 1;
        }
        if stands_at(chars, end, "://") {
            return end_of_name(chars, end);
        }
        let is = |word: &str| end - start == word.len() && stands_at(chars, start, word);
        let negated = matches!(at(chars, end), Some('\'' | '\u{2019}'))
            && matches!(at(chars, end + 1), Some('t' | 'T'))
            && matches!(before(chars, end), Some('n' | 'N'));
        if is("cannot") || (negated && is("can")) {
            self.push("can not");
        } else if negated && is("won") {
            self.push("will not");
        } else if negated {
            if end - 1 > start {
                self.push_letters(part(start, end - 1));
            }
            self.push("not");
        } else {
            self.push_letters(part(start, end));
        }
        if negated { end + 2 } else { end }
    }
}

/// Whether this plain word stands here, in whatever case.
fn stands_at(chars: &[char], from: usize, word: &str) -> bool {
    word.chars().zip(from..).all(|(letter, place)| at(chars, place).is_some_and(|c| c.eq_ignore_ascii_case(&letter)))
}

/// Where a new word begins within `tokenExpired` and `HTTPError`.
fn begins_hump(chars: &[char], place: usize) -> bool {
    let is = |place: usize, fits: fn(char) -> bool| at(chars, place).is_some_and(fits);
    is(place, char::is_uppercase)
        && (is(place - 1, char::is_lowercase)
            || (is(place - 1, char::is_uppercase) && is(place + 1, char::is_lowercase)))
}

/// Whether the slash begins a path rather than standing between two words.
fn begins_path(chars: &[char], at: usize) -> bool {
    before(chars, at).is_none_or(|c| c.is_whitespace() || matches!(c, '"' | '\'' | '(' | '=' | '`' | '~' | '.' | ':'))
}

/// Where the name of a member ends that begins with this quote: `"code":`, also within a text of its own. The names of
/// members are no reasons, they begin one.
fn end_of_member(chars: &[char], from: usize) -> Option<usize> {
    let name = chars.get(from + 1..).unwrap_or_default();
    let name = name.get(..MEMBER_MAX).unwrap_or(name);
    let length = run(name, 0, |c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'));
    let mut end = from + 1 + length;
    end += run(chars, end, |c| c == '\\');
    if length == 0 || at(chars, end) != at(chars, from) {
        return None;
    }
    end += 1;
    end += run(chars, end, |c| c == ' ');
    (at(chars, end) == Some(':')).then_some(end)
}

/// Where a name ends that a sentence quotes: `Issue 'Rate limit' not found`. A value of JSON is none, its quote follows no word.
fn end_of_quoted_name(chars: &[char], from: usize) -> Option<usize> {
    let is = |place: Option<usize>, fits: fn(char) -> bool| place.and_then(|place| at(chars, place)).is_some_and(fits);
    if !is(from.checked_sub(1), |c| c == ' ') || !is(from.checked_sub(2), char::is_alphanumeric) {
        return None;
    }
    let ends = |c: char| matches!(c, '\'' | '"' | '`' | '\u{201c}' | '\u{201d}' | '\n');
    let name = chars.get(from + 1..).unwrap_or_default();
    let length = name.iter().take(QUOTED_MAX + 1).position(|c| ends(*c)).filter(|length| *length > 0)?;
    let end = from + 1 + length;
    let inner_spaces = is(Some(from + 1), char::is_whitespace) || is(Some(end - 1), char::is_whitespace);
    let closed = !is(Some(end), |c| c == '\n') && !is(Some(end + 1), char::is_alphanumeric);
    (closed && !inner_spaces).then_some(end + 1)
}

/// Where a name ends that is one by its form: `user@host`, `owner/some-thing`.
fn end_of_named(chars: &[char], from: usize) -> Option<usize> {
    let opens = |c: char| c.is_whitespace() || matches!(c, '\'' | '"' | '`' | '(' | '<');
    if before(chars, from).is_some_and(|c| !opens(c)) {
        return None;
    }
    let (mut at_sign, mut slash, mut is_thing) = (None, None, false);
    let mut end = from;
    while let Some(c) = at(chars, end).filter(|c| c.is_alphanumeric() || "_-./@+".contains(*c)) {
        match c {
            '@' => at_sign = at_sign.or(Some(end)),
            '/' => slash = slash.or(Some(end)),
            _ => is_thing |= c == '-' || c.is_ascii_digit(),
        }
        end += 1;
    }
    let goes_on = |place: usize| place + 1 < end && at(chars, place + 1).is_some_and(char::is_alphanumeric);
    (at_sign.is_some_and(goes_on) || (is_thing && slash.is_some_and(goes_on))).then_some(end)
}

/// Where an address or path ends.
fn end_of_name(chars: &[char], from: usize) -> usize {
    let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | ')' | '>' | '<' | ',' | '}' | ']' | '\\');
    from + run(chars, from, |c| !ends(c))
}
