//! The labels: which sets of them exist, the closed words that fill them, and the bound on those that are not closed.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus::encoding::{EncodeLabel, EncodeLabelSet, LabelSetEncoder};

use crate::rules::Kind;

/// What names beyond a bound share.
pub(super) const OTHER: &str = "other";

/// A name from the configuration, a rule table or a backend's list; never a user's or a session's.
pub(super) type Name = Arc<str>;
/// A word of a closed set.
pub(super) type Word = &'static str;

macro_rules! label_sets {
    ($($name:ident { $($field:ident: $type:ty),+ })+) => {$(
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub(super) struct $name { $(pub(super) $field: $type),+ }

        impl EncodeLabelSet for $name {
            fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> fmt::Result {
                $((stringify!($field), AsRef::<str>::as_ref(&self.$field)).encode(encoder.encode_label())?;)+
                Ok(())
            }
        }
    )+};
}

label_sets! {
    Backend { backend: Name }
    BackendKind { backend: Name, kind: Word }
    BackendReason { backend: Name, reason: Word }
    BackendResult { backend: Name, result: Word }
    BackendClassification { backend: Name, classification: Word }
    Tool { backend: Name, tool: Name }
    ToolStateLabels { backend: Name, tool: Name, state: Word }
    Call { backend: Name, tool: Name, outcome: Word, code: Word }
    ShortCircuit { backend: Name, tool: Name, reason: Word }
    Failure { backend: Name, classification: Word, signature: Name }
    Transition { backend: Name, scope: Word, from: Word, to: Word }
    Rule { rule: Name }
    OneResult { result: Word }
    What { what: Word }
    Limit { limit: Word }
    Listener { listener: Word }
    Place { place: Word }
    Label { label: Word }
    Build { version: String, revision: String }
    Config { hash: String }
}

/// A closed set of label values, whose position is the index of a resolved handle.
pub(super) trait Words: Copy {
    fn word(self) -> Word;
    fn index(self) -> usize;
}

macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident => $word:literal),+ $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$doc])* $variant),+ }

        impl $name {
            /// All of them.
            pub const ALL: &[$name] = &[$($name::$variant),+];

            /// The value of the label.
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word),+ }
            }
        }

        impl Words for $name {
            fn word(self) -> Word { self.as_str() }
            fn index(self) -> usize { self as usize }
        }
    };
}

words! {
    /// What one call came to (DESIGN 4).
    Outcome {
        /// It clears.
        Success => "success",
        /// It counts, or may count, against the tool.
        Failure => "failure",
        /// It neither trips nor clears.
        Neutral => "neutral",
        /// Downstream went away, drain, or our own fault.
        Abandoned => "abandoned",
    }
}

words! {
    /// Why an answer was given without the upstream (DESIGN 9).
    Reason {
        /// The tool is DOWN for this caller.
        Down => "down",
        /// The whole backend is DOWN.
        BackendDown => "backend_down",
        /// Somebody else holds the trial.
        Retesting => "retesting",
        /// A credential is missing.
        CredentialsMissing => "credentials_missing",
        /// The integration is not set up.
        IntegrationUnconfigured => "integration_unconfigured",
        /// An allow or deny list excludes the tool, or the caller lacks the role.
        Disallowed => "disallowed",
        /// One of our own limits.
        Limit => "limit",
        /// We are draining.
        Draining => "draining",
    }
}

words! {
    /// What a request is. Calls of tools are judged, the rest passes.
    RequestKind {
        /// A call of a tool.
        ToolCall => "tool_call",
        /// `tools/list`.
        ToolList => "tool_list",
        /// `initialize` or `server/discover`.
        Handshake => "handshake",
        /// Any other MCP request.
        OtherRequest => "other_request",
        /// An MCP notification or response.
        Notification => "notification",
        /// A GET stream, its resumption, or a subscription.
        Stream => "stream",
        /// The DELETE of a session.
        SessionEnd => "session_end",
        /// Several messages in one body.
        Batch => "batch",
        /// A request that no route names, an upgrade, or what is not MCP.
        Passthrough => "passthrough",
    }
}

words! {
    /// Why a call of a tool, or what may have been one, was not judged.
    Unjudged {
        /// The request's body is past the peek limit.
        PeekLimit => "peek_limit",
        /// The answer's body is in an encoding that we do not read.
        Encoding => "encoding",
        /// The answer never came by: its stream is read elsewhere.
        AnswerElsewhere => "answer_elsewhere",
        /// Too many calls wait for their answers already.
        TooMany => "too_many",
        /// Not readable as what it claims to be.
        Unreadable => "unreadable",
    }
}

words! {
    /// How the one trial of a tool that is DOWN went (DESIGN 8, RETESTING).
    TrialResult {
        /// A call was let through.
        Started => "started",
        /// It succeeded, or disproved the cause.
        Succeeded => "succeeded",
        /// It failed with the same class.
        Failed => "failed",
        /// It said nothing, was cancelled, or its lease ran out; the permit went back.
        GivenBack => "given_back",
    }
}

words! {
    /// What was done to an answer to `tools/list` (DESIGN 10).
    ListResult {
        /// Passed byte for byte.
        Unchanged => "unchanged",
        /// Something was added.
        Annotated => "annotated",
        /// Answered from the last good copy, the backend being down.
        LastGood => "last_good",
        /// Larger than the limit, passed unread.
        TooLarge => "too_large",
        /// Not readable as a list, passed as it was.
        Unreadable => "unreadable",
    }
}

impl From<Kind> for Outcome {
    fn from(kind: Kind) -> Outcome {
        match kind {
            Kind::Success => Outcome::Success,
            Kind::Failure => Outcome::Failure,
            Kind::Neutral => Outcome::Neutral,
        }
    }
}

/// A bounded set of names: the first `max` keep theirs, the rest share [`OTHER`].
#[derive(Debug)]
pub(super) struct Names {
    max: usize,
    seen: Mutex<HashSet<Name>>,
}

impl Names {
    pub(super) fn new(max: usize) -> Names {
        Names { max, seen: Mutex::default() }
    }

    /// The label for a name, and whether the bound took it away.
    pub(super) fn admit(&self, name: &str) -> (Name, bool) {
        let name = harmless(name);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = seen.get(name.as_str()) {
            return (Arc::clone(known), false);
        }
        if seen.len() >= self.max {
            return (Arc::from(OTHER), true);
        }
        let name: Name = Arc::from(name);
        seen.insert(Arc::clone(&name));
        (name, false)
    }
}

/// A name as a label: at most 128 characters, control characters replaced.
pub(super) fn harmless(name: &str) -> String {
    name.chars().take(128).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_beyond_the_bound_share_other_and_known_ones_keep_theirs() {
        let names = Names::new(2);
        assert_eq!(names.admit("a"), (Arc::from("a"), false));
        assert_eq!(names.admit("b"), (Arc::from("b"), false));
        assert_eq!(names.admit("c"), (Arc::from("other"), true));
        assert_eq!(names.admit("a"), (Arc::from("a"), false));
    }

    #[test]
    fn names_become_short_and_printable() {
        assert_eq!(harmless("a\nb\u{1b}[31m"), "a\u{fffd}b\u{fffd}[31m");
        assert_eq!(harmless(&"x".repeat(10_000)).len(), 128);
    }
}
