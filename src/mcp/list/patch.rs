//! Changing a few places of a body: in a JSON text directly, in an event stream through the lines that carry the text.

use std::borrow::Cow;

use super::super::Format;
use super::super::json::Raw;
use super::super::sse::{Framer, Piece};

/// A change: the bytes from `start` to `end` become `with`.
#[derive(Debug)]
pub(super) struct Patch {
    start: usize,
    end: usize,
    with: String,
}

impl Patch {
    pub(super) fn replace(old: Raw<'_>, with: String) -> Patch {
        Patch { start: old.start, end: old.end(), with }
    }

    pub(super) fn insert(at: usize, with: String) -> Patch {
        Patch { start: at, end: at, with }
    }

    pub(super) fn delete(start: usize, end: usize) -> Patch {
        Patch { start, end, with: String::new() }
    }
}

/// A JSON text in a body, and where its bytes stand there.
#[derive(Debug)]
pub(super) struct Text<'a> {
    pub(super) json: Cow<'a, [u8]>,
    lines: Vec<Line>,
}

/// A run of a text's bytes that stand together in the body.
#[derive(Clone, Copy, Debug)]
struct Line {
    in_text: usize,
    in_body: usize,
    length: usize,
}

/// The JSON texts in a body: itself, or the data of each message event.
pub(super) fn texts(body: &[u8], format: Format) -> Vec<Text<'_>> {
    match format {
        Format::Json => {
            let lines = vec![Line { in_text: 0, in_body: 0, length: body.len() }];
            vec![Text { json: Cow::Borrowed(body), lines }]
        }
        Format::EventStream => events(body),
        Format::Other => Vec::new(),
    }
}

fn events(body: &[u8]) -> Vec<Text<'_>> {
    let mut texts = Vec::new();
    let (mut json, mut lines) = (Vec::new(), Vec::new());
    Framer::new().push(body, |piece| match piece {
        Piece::Data { at, bytes } => {
            lines.push(Line { in_text: json.len(), in_body: at, length: bytes.len() });
            json.extend_from_slice(bytes);
        }
        Piece::NextLine => json.push(b'\n'),
        Piece::End(end) => {
            let (json, lines) = (std::mem::take(&mut json), std::mem::take(&mut lines));
            if end.is_message() {
                texts.push(Text { json: Cow::Owned(json), lines });
            }
        }
    });
    texts
}

impl Text<'_> {
    /// Turns changes of the text into changes of the body. What is taken out of several lines leaves their framing, which
    /// makes line breaks between tokens: space in JSON.
    pub(super) fn place(&self, patches: Vec<Patch>, placed: &mut Vec<Patch>) {
        for mut patch in patches {
            for line in &self.lines {
                let (start, end) = (patch.start.max(line.in_text), patch.end.min(line.in_text + line.length));
                if start <= end && (start < end || !patch.with.is_empty()) {
                    let to_body = |at: usize| at - line.in_text + line.in_body;
                    let with = std::mem::take(&mut patch.with);
                    placed.push(Patch { start: to_body(start), end: to_body(end), with });
                }
            }
        }
    }
}

/// Applies changes that do not overlap; those at one place in the order given.
pub(super) fn apply(body: &[u8], mut patches: Vec<Patch>) -> Cow<'_, [u8]> {
    if patches.is_empty() {
        return Cow::Borrowed(body);
    }
    patches.sort_by_key(|patch| patch.start);
    let added: usize = patches.iter().map(|patch| patch.with.len()).sum();
    let mut changed = Vec::with_capacity(body.len() + added);
    let mut copied = 0;
    for patch in patches {
        changed.extend_from_slice(body.get(copied..patch.start).unwrap_or_default());
        changed.extend_from_slice(patch.with.as_bytes());
        copied = patch.end;
    }
    changed.extend_from_slice(body.get(copied..).unwrap_or_default());
    Cow::Owned(changed)
}
