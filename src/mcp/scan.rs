//! A push scanner that picks a few members out of JSON messages of any size, in constant memory.
//!
//! What to look for is a tree of [`Node`]s: a member is found only at its own place, never by a look-alike deeper down or
//! inside a string, and however its key is spelled. What nobody asked for is skipped without being checked beyond the
//! balance of its brackets and quotes, however deep it nests. A text may be one message or an array of them (a batch).

use memchr::memchr2;

use super::json::unescape;

/// Longest key that is looked at, in bytes as spelled: the longest wanted one with every letter escaped.
const MAX_KEY: usize = 256;

/// A member to look for.
#[derive(Debug)]
pub(crate) struct Node<F: 'static> {
    /// Its key.
    pub(crate) key: &'static str,
    /// What it is called when it is found.
    pub(crate) field: F,
    /// How many bytes of its raw value are kept, if it is not an object that is looked into.
    pub(crate) keep: usize,
    /// What to look for inside it, if it is an object.
    pub(crate) inside: &'static [Node<F>],
}

/// Something that the scanner came across. Offsets are those of the chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found<'a, F> {
    /// A message begins here.
    Begin(usize),
    /// An object that is looked into begins; what was found in an earlier one of that name no longer counts.
    Entered(F),
    /// A wanted value, as a raw token of at most the wanted length.
    Value { field: F, raw: &'a [u8], whole: bool },
    /// The message ended just before here.
    End(usize),
    /// A value stands where a message should.
    Stray,
}

/// How a text ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// There was nothing but space.
    Empty,
    /// It was complete.
    Whole,
    /// It broke off.
    Cut,
    /// It is not JSON.
    Broken,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before the text; this many bytes of a byte order mark were there.
    Start(u8),
    /// Right after the `[` of a batch.
    FirstElement,
    /// Before a value.
    Value,
    /// Right after the `{` of an object that is looked into.
    FirstKey,
    /// After a comma in it.
    NextKey,
    /// In a key.
    Key { escaped: bool },
    /// After a key.
    Colon,
    /// In a string value.
    Text { escaped: bool },
    /// In a number or literal.
    Scalar,
    /// In an array or object that is not looked into.
    Skipped { depth: u64, quoted: bool, escaped: bool },
    /// After a value.
    After,
    /// After the text.
    Done,
    /// After something that is not JSON.
    Broken,
}

/// Scans one text. Feed it the chunks in order.
#[derive(Debug)]
pub(crate) struct Scanner<F: 'static> {
    root: &'static Node<F>,
    state: State,
    batch: bool,
    /// The objects that are being looked into, outermost first; never more than the tree of nodes is high.
    path: Vec<&'static Node<F>>,
    key: Vec<u8>,
    wanted: Option<&'static Node<F>>,
    kept: Vec<u8>,
    whole: bool,
}

impl<F: Copy> Scanner<F> {
    /// Looks for what is inside `root` in every message of a text.
    pub(crate) fn new(root: &'static Node<F>) -> Scanner<F> {
        Scanner {
            root,
            state: State::Start(0),
            batch: false,
            path: Vec::new(),
            key: Vec::new(),
            wanted: None,
            kept: Vec::new(),
            whole: true,
        }
    }

    /// Forgets the text at hand: the next chunk begins a new one.
    pub(crate) fn reset(&mut self) {
        self.state = State::Start(0);
        self.batch = false;
        self.path.clear();
        self.wanted = None;
        self.kept.clear();
    }

    /// Says how the text ended, if it ends here.
    pub(crate) fn ending(&self) -> Ending {
        match self.state {
            State::Start(0) => Ending::Empty,
            State::Done => Ending::Whole,
            State::Scalar if self.path.is_empty() && !self.batch => Ending::Whole,
            State::Broken => Ending::Broken,
            _ => Ending::Cut,
        }
    }

    /// Takes the next chunk of the text and reports what is found in it.
    pub(crate) fn push(&mut self, chunk: &[u8], found: &mut dyn FnMut(Found<'_, F>)) {
        let mut at = 0;
        while let Some(&byte) = chunk.get(at) {
            at = match self.state {
                State::Key { .. } | State::Text { .. } | State::Skipped { .. } | State::Scalar => {
                    let end = self.span(chunk, at);
                    self.keep(chunk.get(at..end).unwrap_or_default());
                    if self.state == State::After {
                        self.value_end(found);
                    }
                    end
                }
                State::Broken => return,
                _ => {
                    self.step(byte, at, found);
                    at + 1
                }
            };
        }
    }

    /// Handles one byte between values.
    fn step(&mut self, byte: u8, at: usize, found: &mut dyn FnMut(Found<'_, F>)) {
        self.state = match (self.state, byte) {
            (State::Start(0), 0xEF) => State::Start(1),
            (State::Start(1), 0xBB) => State::Start(2),
            (State::Start(2), 0xBF) => State::Start(0),
            (State::Start(1 | 2), _) => State::Broken,
            (state, b' ' | b'\n' | b'\t' | b'\r') => state,
            (State::Start(_), b'[') => {
                self.batch = true;
                State::FirstElement
            }
            (State::Start(_) | State::Value | State::FirstElement, byte) => self.begin_value(byte, at, found),
            (State::FirstKey | State::NextKey, b'"') => {
                self.key.clear();
                State::Key { escaped: false }
            }
            (State::Colon, b':') => State::Value,
            (State::FirstKey | State::After, b'}') => self.leave(at, found),
            (State::After, b',') if self.path.is_empty() => State::Value,
            (State::After, b',') => State::NextKey,
            (State::After, b']') if self.path.is_empty() => State::Done,
            _ => State::Broken,
        };
    }

    fn begin_value(&mut self, byte: u8, at: usize, found: &mut dyn FnMut(Found<'_, F>)) -> State {
        let at_top = self.path.is_empty();
        if at_top && byte == b'{' {
            found(Found::Begin(at));
            self.path.push(self.root);
            return State::FirstKey;
        }
        if at_top && byte == b']' && self.state == State::FirstElement {
            return State::Done;
        }
        if let Some(node) = self.wanted.filter(|node| byte == b'{' && !node.inside.is_empty()) {
            self.wanted = None;
            found(Found::Entered(node.field));
            self.path.push(node);
            return State::FirstKey;
        }
        self.kept.clear();
        self.whole = true;
        let state = match byte {
            b'{' | b'[' => State::Skipped { depth: 1, quoted: false, escaped: false },
            b'"' => State::Text { escaped: false },
            b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => State::Scalar,
            _ => return State::Broken,
        };
        self.keep(&[byte]);
        if at_top {
            found(Found::Stray);
        }
        state
    }

    /// Leaves an object that was looked into; its brace stands at `at`.
    fn leave(&mut self, at: usize, found: &mut dyn FnMut(Found<'_, F>)) -> State {
        if self.path.pop().is_none() {
            return State::Broken;
        }
        if self.path.is_empty() {
            found(Found::End(at + 1));
        }
        self.after()
    }

    fn after(&self) -> State {
        if self.path.is_empty() && !self.batch { State::Done } else { State::After }
    }

    /// Reads on in a key or value, up to its end or that of the chunk, and gives the offset reached. A key's closing quote
    /// makes the state [`State::Colon`], a value's end [`State::After`].
    fn span(&mut self, chunk: &[u8], at: usize) -> usize {
        match self.state {
            State::Key { escaped } => {
                let (end, closed, escaped) = string_span(chunk, at, escaped);
                let spelled = chunk.get(at..end - usize::from(closed)).unwrap_or_default();
                let room = (MAX_KEY + 1).saturating_sub(self.key.len()).min(spelled.len());
                self.key.extend_from_slice(spelled.get(..room).unwrap_or_default());
                self.state = State::Key { escaped };
                if closed {
                    self.wanted = self.look_up();
                    self.state = State::Colon;
                }
                end
            }
            State::Text { escaped } => {
                let (end, closed, escaped) = string_span(chunk, at, escaped);
                self.state = if closed { State::After } else { State::Text { escaped } };
                end
            }
            State::Scalar => {
                let length = chunk.iter().skip(at).take_while(|byte| is_scalar(**byte)).count();
                if at + length < chunk.len() {
                    self.state = State::After;
                }
                at + length
            }
            State::Skipped { depth, quoted, escaped } => self.skip(chunk, at, depth, (quoted, escaped)),
            _ => at,
        }
    }

    fn skip(&mut self, chunk: &[u8], at: usize, depth: u64, string: (bool, bool)) -> usize {
        let (mut at, mut depth, (mut quoted, mut escaped)) = (at, depth, string);
        while at < chunk.len() {
            if quoted {
                let (end, closed, open) = string_span(chunk, at, escaped);
                (at, quoted, escaped) = (end, !closed, open);
                continue;
            }
            let rest = chunk.get(at..).unwrap_or_default();
            let Some(length) = rest.iter().position(|byte| matches!(byte, b'"' | b'{' | b'[' | b'}' | b']')) else {
                at = chunk.len();
                break;
            };
            at += length + 1;
            match rest.get(length) {
                Some(b'"') => quoted = true,
                Some(b'{' | b'[') => depth += 1,
                _ => depth -= 1,
            }
            if depth == 0 {
                self.state = State::After;
                return at;
            }
        }
        self.state = State::Skipped { depth, quoted, escaped };
        at
    }

    /// Keeps bytes of a wanted value.
    fn keep(&mut self, bytes: &[u8]) {
        let Some(node) = self.wanted else { return };
        if matches!(self.state, State::Key { .. } | State::Colon) {
            return;
        }
        let room = node.keep.saturating_sub(self.kept.len()).min(bytes.len());
        self.whole &= room == bytes.len();
        self.kept.extend_from_slice(bytes.get(..room).unwrap_or_default());
    }

    /// A value that was not looked into is complete.
    fn value_end(&mut self, found: &mut dyn FnMut(Found<'_, F>)) {
        if let Some(node) = self.wanted.take() {
            found(Found::Value { field: node.field, raw: &self.kept, whole: self.whole });
        }
        self.state = self.after();
    }

    /// The wanted member that the key at hand names.
    fn look_up(&self) -> Option<&'static Node<F>> {
        if self.key.len() > MAX_KEY {
            return None;
        }
        let key = unescape(&self.key);
        self.path.last()?.inside.iter().find(|node| node.key == key.text)
    }
}

/// Reads on in a string and gives the offset reached, whether the closing quote was reached, and whether the next byte is
/// escaped.
fn string_span(chunk: &[u8], at: usize, escaped: bool) -> (usize, bool, bool) {
    let mut at = at + usize::from(escaped);
    loop {
        let rest = chunk.get(at..).unwrap_or_default();
        let Some(length) = memchr2(b'"', b'\\', rest) else { return (chunk.len(), false, false) };
        at += length + 1;
        if rest.get(length) == Some(&b'"') {
            return (at, true, false);
        }
        if at >= chunk.len() {
            return (at, false, true);
        }
        at += 1;
    }
}

fn is_scalar(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.')
}

#[cfg(test)]
mod tests;
