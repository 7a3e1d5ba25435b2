//! The framing of `text/event-stream`, incremental and in constant memory.
//!
//! [`Framer`] cuts a stream into [`Piece`]s wherever the chunks happen to end: CR, LF and CRLF, a byte order mark,
//! comments, several `data` lines in an event. It holds no data, only the name and the id of the event at hand, each
//! bounded. It also knows where the stream stands *between* events, which is the only place where another event may be
//! put in.

use memchr::memchr2;

/// Longest event name that is kept; a longer one is cut, and is then none that anybody asks for.
const MAX_NAME: usize = 64;
/// Longest event id that is kept; a longer one is cut.
const MAX_ID: usize = 1_024;
/// One byte more than the longest field name that means something.
const MAX_FIELD: usize = 6;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A part of an event, in stream order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Some bytes of a `data` line. Where in the chunk they stand, and the bytes.
    Data {
        /// Offset in the chunk.
        at: usize,
        /// The bytes, at least one.
        bytes: &'a [u8],
    },
    /// A further `data` line begins: a newline in the event's text.
    NextLine,
    /// The event is complete and takes effect.
    End(End<'a>),
}

/// The end of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End<'a> {
    /// Offset in the chunk just past the event's blank line.
    pub at: usize,
    /// The event's name, at most 64 bytes of it; empty means `message`.
    pub name: &'a [u8],
    /// The id that the event sets, at most 1,024 bytes of it; `None` if it sets none.
    pub id: Option<&'a [u8]>,
    /// Whether it has a `data` line. Without one, clients see no event.
    pub has_data: bool,
}

impl End<'_> {
    /// Whether clients take the event's text for a JSON-RPC message.
    pub fn is_message(&self) -> bool {
        self.has_data && matches!(self.name, b"" | b"message")
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    /// In the name of a field.
    Field,
    /// Right after the colon, where one space does not count.
    Colon(Field),
    /// In the value of a field.
    Value(Field),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Data,
    Event,
    Id,
    Ignored,
    Comment,
}

/// Cuts one stream into events. Feed it the chunks in order.
#[derive(Debug)]
pub struct Framer {
    line: Line,
    field: Vec<u8>,
    name: Vec<u8>,
    id: Option<Vec<u8>>,
    has_data: bool,
    in_event: bool,
    first_line: bool,
    after_cr: bool,
    boundary: Option<usize>,
}

impl Default for Framer {
    fn default() -> Framer {
        Framer::new()
    }
}

impl Framer {
    /// At the beginning of a stream.
    pub fn new() -> Framer {
        Framer {
            line: Line::Field,
            field: Vec::new(),
            name: Vec::new(),
            id: None,
            has_data: false,
            in_event: false,
            first_line: true,
            after_cr: false,
            boundary: None,
        }
    }

    /// Whether the stream, as far as it was pushed, stands between two events, so that a whole event can be put in here.
    /// (Between the CR and the LF of a blank line counts: the LF that is left makes one more blank line.)
    pub fn at_boundary(&self) -> bool {
        self.line == Line::Field && self.field.is_empty() && !self.in_event
    }

    /// The last place in the chunk pushed last that stands between two events, as an offset; `None` if it lies wholly
    /// within one. On a busy stream chunks may never end at a boundary while each has one inside.
    pub fn last_boundary(&self) -> Option<usize> {
        self.boundary
    }

    /// What to write before an event of one's own when the stream broke off where it stands: nothing between events;
    /// inside one, an ending that gives the torso a name which no client listens to.
    pub fn abandon(&self) -> &'static [u8] {
        let in_line = self.line != Line::Field || !self.field.is_empty();
        match (in_line, self.in_event) {
            (true, _) => b"\nevent: discarded\n\n",
            (false, true) => b"event: discarded\n\n",
            (false, false) => b"",
        }
    }

    /// Takes the next chunk and hands out its pieces in order.
    pub fn push(&mut self, chunk: &[u8], mut piece: impl FnMut(Piece<'_>)) {
        self.boundary = None;
        let mut at = 0;
        while let Some(&byte) = chunk.get(at) {
            if std::mem::take(&mut self.after_cr) && byte == b'\n' {
                at += 1;
                self.boundary = self.at_boundary().then_some(at);
                continue;
            }
            at = match (self.line, byte) {
                (_, b'\r' | b'\n') => self.line_end(chunk, at, &mut piece),
                (Line::Field, b':') => {
                    self.begin_value(&mut piece);
                    at + 1
                }
                (Line::Field, _) => {
                    self.field_name(byte);
                    at + 1
                }
                (Line::Colon(field), _) => {
                    self.line = Line::Value(field);
                    at + usize::from(byte == b' ')
                }
                (Line::Value(field), _) => self.value(field, chunk, at, &mut piece),
            };
        }
    }

    fn field_name(&mut self, byte: u8) {
        if self.field.len() < MAX_FIELD {
            self.field.push(byte);
        }
        if self.first_line && self.field == BYTE_ORDER_MARK {
            self.field.clear();
            self.first_line = false;
        }
    }

    /// The name of a field is complete.
    fn begin_value(&mut self, piece: &mut impl FnMut(Piece<'_>)) {
        let field = match self.field.as_slice() {
            b"" => Field::Comment,
            b"data" => Field::Data,
            b"event" => Field::Event,
            b"id" => Field::Id,
            _ => Field::Ignored,
        };
        self.line = Line::Colon(field);
        self.in_event |= field != Field::Comment;
        match field {
            Field::Data if self.has_data => piece(Piece::NextLine),
            Field::Data => self.has_data = true,
            Field::Event => self.name.clear(),
            Field::Id => self.id = Some(Vec::new()),
            Field::Ignored | Field::Comment => {}
        }
    }

    /// Reads on in a value, up to the end of the line or of the chunk, and gives the offset reached.
    fn value(&mut self, field: Field, chunk: &[u8], at: usize, piece: &mut impl FnMut(Piece<'_>)) -> usize {
        let rest = chunk.get(at..).unwrap_or_default();
        let bytes = memchr2(b'\r', b'\n', rest).and_then(|length| rest.get(..length)).unwrap_or(rest);
        match field {
            Field::Data => piece(Piece::Data { at, bytes }),
            Field::Event => extend_up_to(&mut self.name, bytes, MAX_NAME),
            Field::Id => {
                if let Some(id) = &mut self.id {
                    extend_up_to(id, bytes, MAX_ID);
                }
            }
            Field::Ignored | Field::Comment => {}
        }
        at + bytes.len()
    }

    /// Handles the CR or LF at `at`, together with the LF of a CRLF if it is in the chunk.
    fn line_end(&mut self, chunk: &[u8], at: usize, piece: &mut impl FnMut(Piece<'_>)) -> usize {
        let mut end = at + 1;
        if chunk.get(at) == Some(&b'\r') {
            match chunk.get(end) {
                Some(b'\n') => end += 1,
                Some(_) => {}
                None => self.after_cr = true,
            }
        }
        let blank = self.line == Line::Field && self.field.is_empty();
        if self.line == Line::Field && !blank {
            self.begin_value(piece);
        }
        self.line = Line::Field;
        self.field.clear();
        self.first_line = false;
        if blank && self.in_event {
            let id = self.id.take().filter(|id| !id.contains(&0));
            piece(Piece::End(End { at: end, name: &self.name, id: id.as_deref(), has_data: self.has_data }));
            self.name.clear();
            self.has_data = false;
            self.in_event = false;
        }
        if !self.in_event {
            self.boundary = Some(end);
        }
        end
    }
}

fn extend_up_to(kept: &mut Vec<u8>, bytes: &[u8], limit: usize) {
    let room = limit.saturating_sub(kept.len()).min(bytes.len());
    kept.extend_from_slice(bytes.get(..room).unwrap_or_default());
}

#[cfg(test)]
mod tests;
