//! Which sets of labels exist, and the bound on names that are not closed sets.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus::encoding::{EncodeLabel, EncodeLabelSet, LabelSetEncoder};

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
    IntegrationResult { integration: Name, result: Word }
    IntegrationStateLabels { integration: Name, state: Word }
    OneResult { result: Word }
    What { what: Word }
    WhatResult { what: Word, result: Word }
    ReasonAlone { reason: Word }
    Limit { limit: Word }
    Listener { listener: Word }
    Place { place: Word }
    Label { label: Word }
    Build { version: String, revision: String }
    Config { hash: String }
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
