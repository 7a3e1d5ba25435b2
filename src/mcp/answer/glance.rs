//! A glance at a whole message of a server: whether it is one of those that most are, and that nobody has to look into.
//!
//! A glance reads the message once, copies nothing and never guesses: what it does not recognise (a failure, a task, a
//! member that is spelled with escapes or there twice) is `None`, for the [`Reader`](super::Reader) to read. What it does
//! recognise, the reader would read in the same way: it asks no less of the JSON than the reader does.

use super::super::json::quote_or_escape;

/// Longest id that counts as one, in bytes of raw JSON; as in the reader.
const ID_MAX: usize = 1_024;

/// What a message turned out to be at a glance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Glance<'a> {
    /// The result of a request that succeeded: no error, no task, nothing left to be asked.
    Success(Success<'a>),
    /// A notification from which nothing follows: progress, or a log line below `error`.
    Nothing,
}

/// The result of a request that succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Success<'a> {
    /// The id as a raw token.
    pub id: &'a [u8],
    /// The raw token of what may be a JSON object that is the whole of the result: its one text, or its
    /// `structuredContent` where there is no other content. Such an object may be an error in disguise.
    pub sole: Option<&'a [u8]>,
}

/// Says of a message that is a success by its structure whether nothing in it has to be looked into.
pub type IsPlain = fn(&[u8], &Success<'_>) -> bool;

/// Looks at one message, all of which is there.
pub fn glance(message: &[u8]) -> Option<Glance<'_>> {
    let mut eye = Eye { text: message, at: 0 };
    let seen = eye.message()?;
    eye.space();
    (eye.at == message.len()).then_some(seen)
}

/// A place in the text. Every step is `None` where the text does not go on as it should.
struct Eye<'a> {
    text: &'a [u8],
    at: usize,
}

/// What was seen of a message so far.
#[derive(Default)]
struct Message<'a> {
    version: bool,
    id: Option<&'a [u8]>,
    method: Option<&'a [u8]>,
    result: Option<Content<'a>>,
    params: Option<Params<'a>>,
}

/// What was seen of a result.
#[derive(Default)]
struct Content<'a> {
    /// How many blocks it has, and the text of the last one.
    blocks: Option<(usize, Option<&'a [u8]>)>,
    structured: Option<&'a [u8]>,
}

/// What was seen of the params of a notification.
#[derive(Default)]
struct Params<'a> {
    level: Option<&'a [u8]>,
}

impl<'a> Eye<'a> {
    fn message(&mut self) -> Option<Glance<'a>> {
        let mut seen = Message::default();
        self.members(|eye, key| {
            match key {
                b"jsonrpc" if !seen.version => seen.version = eye.value()? == b"\"2.0\"",
                b"id" => put(&mut seen.id, eye.value()?)?,
                b"method" => put(&mut seen.method, eye.value()?)?,
                b"result" => put(&mut seen.result, eye.result()?)?,
                b"params" => put(&mut seen.params, eye.params()?)?,
                b"jsonrpc" | b"error" => return None,
                _ => drop(eye.value()?),
            }
            Some(())
        })?;
        if !seen.version { None } else { seen.means() }
    }

    fn result(&mut self) -> Option<Content<'a>> {
        let mut seen = Content::default();
        self.members(|eye, key| {
            match key {
                b"isError" if eye.value()? == b"true" => return None,
                b"isError" => {}
                b"resultType" if eye.value()? == b"\"complete\"" => {}
                b"content" => put(&mut seen.blocks, eye.blocks()?)?,
                b"structuredContent" => put(&mut seen.structured, eye.value()?)?,
                // A task, or what the reader looks for elsewhere in one; the answer to an `initialize`.
                b"resultType" | b"task" | b"taskId" | b"result" | b"error" | b"capabilities" => return None,
                _ => drop(eye.value()?),
            }
            Some(())
        })?;
        Some(seen)
    }

    /// How many blocks the content has, and the text of the last one.
    fn blocks(&mut self) -> Option<(usize, Option<&'a [u8]>)> {
        self.space();
        if self.peek() != b'[' {
            return self.value().map(|_| (0, None));
        }
        let (mut count, mut text) = (0, None);
        self.items(b']', |eye| {
            count += 1;
            eye.space();
            text = if eye.peek() == b'{' { eye.block()? } else { eye.value().map(|_| None)? };
            Some(())
        })?;
        Some((count, text))
    }

    /// The text of a block: its own, or that of the resource in it.
    fn block(&mut self) -> Option<Option<&'a [u8]>> {
        let mut text = None;
        self.members(|eye, key| {
            match key {
                b"text" => put(&mut text, eye.value()?)?,
                b"resource" => {
                    eye.space();
                    if eye.peek() != b'{' {
                        return eye.value().map(drop);
                    }
                    if let Some(inner) = eye.block()? {
                        put(&mut text, inner)?;
                    }
                }
                _ => drop(eye.value()?),
            }
            Some(())
        })?;
        Some(text)
    }

    fn params(&mut self) -> Option<Params<'a>> {
        let mut seen = Params::default();
        self.members(|eye, key| {
            match key {
                b"level" => put(&mut seen.level, eye.value()?)?,
                b"taskId" => return None,
                _ => drop(eye.value()?),
            }
            Some(())
        })?;
        Some(seen)
    }

    /// Walks an object; `member` reads the value of each key. A key with an escape in it may be any.
    fn members(&mut self, mut member: impl FnMut(&mut Eye<'a>, &'a [u8]) -> Option<()>) -> Option<()> {
        self.space();
        if self.peek() != b'{' {
            return None;
        }
        self.items(b'}', |eye| {
            eye.space();
            let start = eye.at + 1;
            if eye.peek() != b'"' || eye.string()? {
                return None;
            }
            let key = eye.text.get(start..eye.at - 1)?;
            eye.takes(b':')?;
            member(eye, key)
        })
    }

    /// Walks what stands between an opening bracket, which comes next, and its `end`.
    fn items(&mut self, end: u8, mut item: impl FnMut(&mut Eye<'a>) -> Option<()>) -> Option<()> {
        self.at += 1;
        self.space();
        if self.peek() == end {
            self.at += 1;
            return Some(());
        }
        loop {
            item(self)?;
            self.space();
            let next = self.peek();
            self.at += 1;
            if next != b',' {
                return (next == end).then_some(());
            }
        }
    }

    /// Reads past a value and gives its raw token.
    fn value(&mut self) -> Option<&'a [u8]> {
        self.space();
        let start = self.at;
        match self.peek() {
            b'"' => drop(self.string()?),
            b'{' | b'[' => self.container()?,
            b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => {
                while self.peek().is_ascii_alphanumeric() || matches!(self.peek(), b'-' | b'+' | b'.') {
                    self.at += 1;
                }
            }
            _ => return None,
        }
        self.text.get(start..self.at)
    }

    /// Reads past a container, in which nothing but quotes and the number of brackets counts.
    fn container(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            match self.text.get(self.at)? {
                b'"' => {
                    self.string()?;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return Some(());
            }
        }
    }

    /// Reads past a string, whose opening quote comes next, and says whether it holds an escape.
    fn string(&mut self) -> Option<bool> {
        self.at += 1;
        let mut escaped = false;
        loop {
            self.at += quote_or_escape(self.text.get(self.at..)?)? + 1;
            if self.text.get(self.at - 1) == Some(&b'"') {
                return Some(escaped);
            }
            (self.at, escaped) = (self.at + 1, true);
        }
    }

    fn takes(&mut self, byte: u8) -> Option<()> {
        self.space();
        let there = self.peek() == byte;
        self.at += 1;
        there.then_some(())
    }

    fn space(&mut self) {
        while let b' ' | b'\n' | b'\t' | b'\r' = self.peek() {
            self.at += 1;
        }
    }

    /// The next byte; 0 at the end of the text.
    fn peek(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or_default()
    }
}

impl<'a> Message<'a> {
    fn means(self) -> Option<Glance<'a>> {
        match (self.id, self.method, self.result, self.params) {
            (Some(id), None, Some(content), None) => {
                let is_id = id.len() <= ID_MAX && std::str::from_utf8(id).is_ok();
                is_id.then(|| Glance::Success(Success { id, sole: content.sole() }))
            }
            (None, Some(b"\"notifications/progress\""), None, Some(_)) => Some(Glance::Nothing),
            (None, Some(b"\"notifications/message\""), None, Some(params)) => {
                let harmless = [b"\"debug\"".as_slice(), b"\"info\"", b"\"notice\"", b"\"warning\""];
                harmless.contains(&params.level?).then_some(Glance::Nothing)
            }
            _ => None,
        }
    }
}

impl<'a> Content<'a> {
    fn sole(self) -> Option<&'a [u8]> {
        match self.blocks {
            None | Some((0, _)) => self.structured.filter(|object| object.starts_with(b"{")),
            Some((1, text)) => text.filter(|text| may_begin_object(text)),
            Some(_) => None,
        }
    }
}

/// Whether the text behind a raw token may be a JSON object with space around it.
fn may_begin_object(token: &[u8]) -> bool {
    match token {
        // Space beyond ASCII begins with one of these bytes.
        [b'"', first, ..] => matches!(first, b'{' | b'\\' | 0xC2 | 0xE1..=0xE3) || first.is_ascii_whitespace(),
        _ => false,
    }
}

/// Puts in what must be there once at most.
fn put<T>(place: &mut Option<T>, value: T) -> Option<()> {
    if place.is_some() {
        return None;
    }
    *place = Some(value);
    Some(())
}
