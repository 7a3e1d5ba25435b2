//! The incremental reader over one response body.

use super::super::Format;
use super::super::excerpt::Clip;
use super::super::scan::{Ending, Found, Scanner};
use super::super::sse::{End, Framer, Piece};
use super::draft::Draft;
use super::glance::{Glance, IsPlain, glance};
use super::tree::{Field, MESSAGE};
use super::{Seen, Trouble, TroubleKind};

/// How much of a message's text is kept unless told otherwise, in bytes.
pub const EXCERPT_LIMIT: usize = 64 * 1024;

/// Reads along with one response body. Feed it the chunks in order, then say that it ended.
#[derive(Debug)]
pub struct Reader {
    format: Format,
    framer: Framer,
    text: TextReader,
    /// Whether events are glanced at first.
    glances: Option<IsPlain>,
}

impl Reader {
    /// Reads a body of that format, keeping at most `excerpt_limit` bytes of a message's text.
    pub fn new(format: Format, excerpt_limit: usize) -> Reader {
        Reader { format, framer: Framer::new(), text: TextReader::new(excerpt_limit), glances: None }
    }

    /// Takes no more than a glance at events for which that is enough: what succeeds plainly is [`Seen::Success`], and
    /// notifications from which nothing follows are not seen at all.
    #[must_use]
    pub fn glancing(mut self, is_plain: IsPlain) -> Reader {
        self.glances = Some(is_plain);
        self
    }

    /// Takes the next chunk and hands out what is complete by now.
    pub fn push(&mut self, chunk: &[u8], mut see: impl FnMut(Seen)) {
        let (text, see) = (&mut self.text, &mut see as &mut dyn FnMut(Seen));
        match self.format {
            Format::Json => text.push(chunk, see),
            Format::Other => text.clip.add(chunk),
            Format::EventStream => {
                // The data of the event at hand, as long as it is one line of this chunk that nobody has read yet.
                let mut line: Option<&[u8]> = None;
                let glances = self.glances;
                self.framer.push(chunk, |piece| match piece {
                    Piece::Data { at, bytes } if glances.is_some() && line.is_none() && !text.has_begun => {
                        line = chunk.get(at..at + bytes.len());
                    }
                    Piece::Data { bytes, .. } => {
                        text.push(line.take().unwrap_or_default(), see);
                        text.push(bytes, see);
                    }
                    Piece::NextLine => {
                        text.push(line.take().unwrap_or_default(), see);
                        text.push(b"\n", see);
                    }
                    Piece::End(end) => {
                        let line = line.take();
                        if !line.is_some_and(|line| glanced(line, end, glances, see)) {
                            text.push(line.unwrap_or_default(), see);
                            text.event_end(end, see);
                        }
                    }
                });
                text.push(line.unwrap_or_default(), see);
            }
        }
    }

    /// The body ended, properly or not; nothing may be pushed after that. An event that is not complete by now counts as
    /// never sent.
    pub fn finish(&mut self, mut see: impl FnMut(Seen)) {
        match self.format {
            Format::Json => self.text.finish(&mut see),
            Format::EventStream => {}
            Format::Other => {
                let text = self.text.clip.take();
                let kind = if text.total() == 0 { TroubleKind::Empty } else { TroubleKind::ContentType };
                see(Seen::Trouble(Trouble { kind, text }));
            }
        }
    }

    /// Whether the stream stands between two events, so that one may be put in here; never in a body of another format.
    pub fn at_boundary(&self) -> bool {
        self.format == Format::EventStream && self.framer.at_boundary()
    }

    /// The last place in the chunk pushed last where an event may be put in: see [`Framer::last_boundary`].
    pub fn last_boundary(&self) -> Option<usize> {
        if self.format == Format::EventStream { self.framer.last_boundary() } else { None }
    }

    /// What to write before an event of one's own after the stream broke off: see [`Framer::abandon`].
    pub fn abandon(&self) -> &'static [u8] {
        if self.format == Format::EventStream { self.framer.abandon() } else { b"" }
    }
}

/// Whether a glance at the one line of an event is enough; what is seen of it is handed out.
fn glanced(line: &[u8], end: End<'_>, is_plain: Option<IsPlain>, see: &mut dyn FnMut(Seen)) -> bool {
    let (Some(is_plain), true) = (is_plain, end.is_message()) else { return false };
    let success = match glance(line) {
        Some(Glance::Success(success)) if is_plain(line, &success) => String::from_utf8(success.id.to_vec()).ok(),
        Some(Glance::Nothing) => None,
        _ => return false,
    };
    see_event_id(end, see);
    if let Some(id) = success {
        see(Seen::Success(id));
    }
    true
}

fn see_event_id(end: End<'_>, see: &mut dyn FnMut(Seen)) {
    if let Some(id) = end.id.filter(|id| !id.is_empty()) {
        see(Seen::EventId(String::from_utf8_lossy(id).into_owned()));
    }
}

/// Reads one JSON text: a body, or the data of one event after the other.
#[derive(Debug)]
struct TextReader {
    scanner: Scanner<Field>,
    assembly: Assembly,
    clip: Clip,
    /// Some of the text at hand was read.
    has_begun: bool,
}

/// Puts messages together.
#[derive(Debug, Default)]
struct Assembly {
    draft: Draft,
    /// The last complete message. It is held back until it is known that the text goes on as JSON.
    held: Option<Seen>,
    found_any: bool,
    stray: bool,
}

impl TextReader {
    fn new(excerpt_limit: usize) -> TextReader {
        TextReader {
            scanner: Scanner::new(&MESSAGE),
            assembly: Assembly::default(),
            clip: Clip::new(excerpt_limit),
            has_begun: false,
        }
    }

    fn push(&mut self, chunk: &[u8], see: &mut dyn FnMut(Seen)) {
        self.has_begun |= !chunk.is_empty();
        let TextReader { scanner, assembly, clip, .. } = self;
        let mut clipped = 0;
        scanner.push(chunk, &mut |found| match found {
            Found::Begin(at) => {
                clip.clear();
                clipped = at;
                assembly.begin(see);
            }
            Found::Entered(field) => assembly.draft.entered(field),
            Found::Value { field, raw, whole } => assembly.draft.value(field, raw, whole),
            Found::End(at) => {
                clip.add(chunk.get(clipped..at).unwrap_or_default());
                clipped = at;
                assembly.end(clip);
            }
            Found::Stray => assembly.stray = true,
        });
        clip.add(chunk.get(clipped..).unwrap_or_default());
    }

    fn event_end(&mut self, end: End<'_>, see: &mut dyn FnMut(Seen)) {
        see_event_id(end, see);
        if end.is_message() && self.scanner.ending() != Ending::Empty {
            self.finish(see);
        } else if end.has_data && end.name == b"endpoint" {
            let text = self.clip.take();
            if !text.is_truncated() {
                see(Seen::Endpoint(text.text().into_owned()));
            }
        } else if end.has_data && end.name == b"error" {
            see(Seen::ErrorEvent(self.clip.take()));
        }
        self.scanner.reset();
        self.clip.clear();
        self.assembly = Assembly::default();
        self.has_begun = false;
    }

    /// The text is complete, or will never be.
    fn finish(&mut self, see: &mut dyn FnMut(Seen)) {
        let Assembly { held, found_any, stray, .. } = std::mem::take(&mut self.assembly);
        let trouble = match self.scanner.ending() {
            Ending::Empty => Some(TroubleKind::Empty),
            Ending::Cut => Some(TroubleKind::Truncated),
            Ending::Broken => Some(TroubleKind::NotJson),
            Ending::Whole => (stray || !found_any).then_some(TroubleKind::NotJsonRpc),
        };
        if let Some(held) = held.filter(|_| matches!(trouble, None | Some(TroubleKind::NotJsonRpc))) {
            see(held);
        }
        if let Some(kind) = trouble {
            see(Seen::Trouble(Trouble { kind, text: self.clip.take() }));
        }
    }
}

impl Assembly {
    fn begin(&mut self, see: &mut dyn FnMut(Seen)) {
        self.draft = Draft::default();
        self.found_any = true;
        if let Some(held) = self.held.take() {
            see(held);
        }
    }

    fn end(&mut self, clip: &mut Clip) {
        self.held = Some(std::mem::take(&mut self.draft).finish(clip.take()));
    }
}
