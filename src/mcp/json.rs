//! A pull reader over a JSON text that is all there: borrowed, one pass, no recursion, bounded depth.
//!
//! It checks the structure (brackets, separators, literals, numbers, escapes). Control characters and bytes that are not
//! UTF-8 inside strings pass; a reader of such a string learns that it is not [`Text::exact`].

mod text;

use memchr::memchr2;

use text::hex;
pub(crate) use text::{Text, string, unescape};

/// How deep containers may nest, counted from the top of the text; the limit of `serde_json` too.
const MAX_DEPTH: u32 = 128;

/// Why a text cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Not JSON, from this offset on.
    Syntax(usize),
    /// Containers nest deeper than [`MAX_DEPTH`].
    Depth,
}

/// A value as it stands in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Raw<'a> {
    /// Offset of its first byte.
    pub(crate) start: usize,
    /// Its bytes, without the space around it.
    pub(crate) bytes: &'a [u8],
}

impl<'a> Raw<'a> {
    /// Offset just past its last byte.
    pub(crate) fn end(self) -> usize {
        self.start + self.bytes.len()
    }

    /// Its first byte, which tells the kind of the value.
    pub(crate) fn first(self) -> u8 {
        self.bytes.first().copied().unwrap_or_default()
    }

    /// Its text, if it is a string.
    pub(crate) fn text(self) -> Option<Text<'a>> {
        string(self.bytes)
    }

    /// The raw token as text, if it is UTF-8.
    pub(crate) fn token(self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes).ok()
    }

    /// Whether it is a number or a string: what a JSON-RPC id may be.
    pub(crate) fn is_id(self) -> bool {
        matches!(self.first(), b'"' | b'-' | b'0'..=b'9')
    }
}

/// Most strings of a message are shorter: a search that looks at many bytes at once takes longer to begin than they take to
/// read.
const SHORT: usize = 24;

/// Where the next quote or backslash stands.
pub(super) fn quote_or_escape(rest: &[u8]) -> Option<usize> {
    let (near, far) = rest.split_at_checked(SHORT).unwrap_or((rest, &[]));
    let is_one = |byte: &u8| matches!(byte, b'"' | b'\\');
    near.iter().position(is_one).or_else(|| memchr2(b'"', b'\\', far).map(|found| near.len() + found))
}

/// Reads a text from its beginning. After a [`Fault`] its position means nothing.
#[derive(Debug)]
pub(crate) struct Cursor<'a> {
    text: &'a [u8],
    /// What is added to offsets in `text` to make them offsets in the whole text.
    base: usize,
    at: usize,
    depth: u32,
}

impl<'a> Cursor<'a> {
    /// Stands before the first value of `text`.
    pub(crate) fn new(text: &'a [u8]) -> Cursor<'a> {
        Cursor { text, base: 0, at: 0, depth: 0 }
    }

    /// Stands before a value that was read already, to read what is in it; offsets stay those of the text.
    pub(crate) fn within(value: Raw<'a>) -> Cursor<'a> {
        Cursor { text: value.bytes, base: value.start, at: 0, depth: 0 }
    }

    /// The first byte of the next value, or what stands in its place; 0 at the end of the text.
    pub(crate) fn peek(&mut self) -> u8 {
        while let Some(b' ' | b'\n' | b'\t' | b'\r') = self.text.get(self.at) {
            self.at += 1;
        }
        self.text.get(self.at).copied().unwrap_or_default()
    }

    /// Walks an object. `member` is called for each member with its key and must read exactly one value.
    pub(crate) fn object(
        &mut self,
        mut member: impl FnMut(&mut Cursor<'a>, Text<'a>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        self.open(b'{')?;
        if !self.takes(b'}') {
            loop {
                let key = self.key()?;
                member(self, key)?;
                if !self.takes(b',') {
                    break self.expect(b'}')?;
                }
            }
        }
        self.depth -= 1;
        Ok(())
    }

    /// Walks an array. `element` is called before each element and must read exactly one value.
    pub(crate) fn array(&mut self, mut element: impl FnMut(&mut Cursor<'a>) -> Result<(), Fault>) -> Result<(), Fault> {
        self.open(b'[')?;
        if !self.takes(b']') {
            loop {
                element(self)?;
                if !self.takes(b',') {
                    break self.expect(b']')?;
                }
            }
        }
        self.depth -= 1;
        Ok(())
    }

    /// Reads past one value of any kind.
    pub(crate) fn value(&mut self) -> Result<Raw<'a>, Fault> {
        self.peek();
        let start = self.at;
        let base = self.depth;
        // One bit per container that is entered here: whether it is an object. MAX_DEPTH bits suffice.
        let mut objects: u128 = 0;
        loop {
            let opened = match self.peek() {
                open @ (b'{' | b'[') => {
                    self.open(open)?;
                    objects = objects << 1 | u128::from(open == b'{');
                    true
                }
                _ => {
                    self.scalar()?;
                    false
                }
            };
            if self.leave(&mut objects, base, opened)? {
                return Ok(Raw { start: self.base + start, bytes: self.text.get(start..self.at).unwrap_or_default() });
            }
        }
    }

    /// Fails unless only space is left.
    pub(crate) fn end(&mut self) -> Result<(), Fault> {
        self.peek();
        if self.at == self.text.len() { Ok(()) } else { self.fault() }
    }

    /// After a value (or an opening bracket): closes what ends here and moves to the next value. True once `base` is
    /// reached again.
    fn leave(&mut self, objects: &mut u128, base: u32, opened: bool) -> Result<bool, Fault> {
        let mut opened = opened;
        loop {
            if self.depth == base {
                return Ok(true);
            }
            let object = *objects & 1 == 1;
            if self.takes(if object { b'}' } else { b']' }) {
                self.depth -= 1;
                *objects >>= 1;
                opened = false;
                continue;
            }
            if !opened {
                self.expect(b',')?;
            }
            if object {
                self.key()?;
            }
            return Ok(false);
        }
    }

    fn open(&mut self, bracket: u8) -> Result<(), Fault> {
        self.expect(bracket)?;
        self.depth += 1;
        if self.depth > MAX_DEPTH { Err(Fault::Depth) } else { Ok(()) }
    }

    fn key(&mut self) -> Result<Text<'a>, Fault> {
        if self.peek() != b'"' {
            return self.fault();
        }
        let start = self.at;
        let has_escapes = self.quoted()?;
        let inside = self.text.get(start + 1..self.at - 1).unwrap_or_default();
        self.expect(b':')?;
        Ok(if has_escapes { unescape(inside) } else { text::plain(inside) })
    }

    fn scalar(&mut self) -> Result<(), Fault> {
        match self.peek() {
            b'"' => self.quoted().map(drop),
            b't' => self.literal(b"true"),
            b'f' => self.literal(b"false"),
            b'n' => self.literal(b"null"),
            _ => self.number(),
        }
    }

    /// Reads past a string; its opening quote comes next. Tells whether there are escapes in it.
    fn quoted(&mut self) -> Result<bool, Fault> {
        self.at += 1;
        let mut has_escapes = false;
        loop {
            let Some(found) = quote_or_escape(self.text.get(self.at..).unwrap_or_default()) else {
                return Err(Fault::Syntax(self.text.len()));
            };
            self.at += found;
            if self.text.get(self.at) == Some(&b'"') {
                self.at += 1;
                return Ok(has_escapes);
            }
            has_escapes = true;
            self.at += match self.text.get(self.at + 1) {
                Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => 2,
                Some(b'u') if hex(self.text.get(self.at..).unwrap_or_default(), 0).is_some() => 6,
                _ => return self.fault(),
            };
        }
    }

    fn literal(&mut self, word: &[u8]) -> Result<(), Fault> {
        if self.text.get(self.at..).is_some_and(|rest| rest.starts_with(word)) {
            self.at += word.len();
            return Ok(());
        }
        self.fault()
    }

    fn number(&mut self) -> Result<(), Fault> {
        self.at += usize::from(self.text.get(self.at) == Some(&b'-'));
        let zero = self.text.get(self.at) == Some(&b'0');
        if self.digits()? > 1 && zero {
            return self.fault();
        }
        if self.text.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.text.get(self.at) {
            self.at += 1;
            self.at += usize::from(matches!(self.text.get(self.at), Some(b'+' | b'-')));
            self.digits()?;
        }
        Ok(())
    }

    /// Reads past one or more digits and says how many.
    fn digits(&mut self) -> Result<usize, Fault> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        if count == 0 { self.fault() } else { Ok(count) }
    }

    fn takes(&mut self, byte: u8) -> bool {
        let there = self.peek() == byte && self.at < self.text.len();
        self.at += usize::from(there);
        there
    }

    fn expect(&mut self, byte: u8) -> Result<(), Fault> {
        if self.takes(byte) { Ok(()) } else { self.fault() }
    }

    fn fault<T>(&self) -> Result<T, Fault> {
        Err(Fault::Syntax(self.at))
    }
}

#[cfg(test)]
mod tests;
