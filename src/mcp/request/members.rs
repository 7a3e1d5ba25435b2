//! The members that count in a client's message, and whether each is there once and beyond doubt.

use std::borrow::Cow;

use super::super::json::{Raw, Text};

/// A member that counts, at the top of the message or in its `params`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    Id,
    Method,
    Params,
    Result,
    Error,
    Name,
    Arguments,
    Meta,
    Cursor,
    Task,
    TaskId,
    RequestId,
    ProtocolVersion,
    InputResponses,
    RequestState,
    Notifications,
}

/// A place in the message, as the members that count there.
pub(super) type Level = [(&'static str, Known)];

/// The top of the message.
pub(super) const TOP: &Level = &[
    ("id", Known::Id),
    ("method", Known::Method),
    ("params", Known::Params),
    ("result", Known::Result),
    ("error", Known::Error),
];

/// Inside `params`.
pub(super) const PARAMS: &Level = &[
    ("name", Known::Name),
    ("arguments", Known::Arguments),
    ("_meta", Known::Meta),
    ("cursor", Known::Cursor),
    ("task", Known::Task),
    ("taskId", Known::TaskId),
    ("requestId", Known::RequestId),
    ("protocolVersion", Known::ProtocolVersion),
    ("inputResponses", Known::InputResponses),
    ("requestState", Known::RequestState),
    ("notifications", Known::Notifications),
];

/// Whether a key equals a name under the simple case folding of Unicode; beside the ASCII letters only the long s and the
/// Kelvin sign fold to one of a name's.
fn folds_to(key: &str, name: &str) -> bool {
    if key.is_ascii() {
        return key.eq_ignore_ascii_case(name);
    }
    let folded = key.chars().map(|letter| match letter {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        other => other.to_ascii_lowercase(),
    });
    folded.eq(name.chars().map(|letter| letter.to_ascii_lowercase()))
}

/// Remembers which members were there.
#[derive(Debug, Default)]
pub(super) struct Seen {
    members: u32,
    /// Whether another parser could have read something else.
    pub(super) ambiguous: bool,
}

impl Seen {
    /// Notes a key and gives the member it stands for. A key that only a parser without regard for letter case would take
    /// for one stands for none.
    pub(super) fn note(&mut self, level: &Level, key: &Text<'_>) -> Option<Known> {
        if let Some((_, known)) = level.iter().find(|(name, _)| *name == key.text) {
            let bit = 1 << *known as u32;
            self.ambiguous |= self.members & bit != 0;
            self.members |= bit;
            return Some(*known);
        }
        self.ambiguous |= level.iter().any(|(name, _)| folds_to(&key.text, name));
        None
    }

    /// The text of a string value; one that cannot be read without loss is noted.
    pub(super) fn text<'a>(&mut self, value: Raw<'a>) -> Option<Cow<'a, str>> {
        let text = value.text()?;
        self.ambiguous |= !text.exact;
        Some(text.text)
    }
}
