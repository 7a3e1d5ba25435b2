//! What clients were shown of tools that may not be set up: to notice that they would see something else now.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::health::StatusReason;

/// Tools that are remembered for one backend.
const MOST: usize = 50_000;

/// Of each backend its tools, each with the reason for which it was not set up when somebody saw it, or none.
#[derive(Debug, Default)]
pub(super) struct Shown {
    backends: Mutex<HashMap<Arc<str>, Tools>>,
}

/// Tools by name, each with why it was not set up.
type Tools = HashMap<String, Option<StatusReason>>;

/// A tool that stands otherwise than before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) tool: String,
    pub(super) to: Option<StatusReason>,
    /// Whether somebody was shown something else: a tool that nobody has seen yet is no news to anybody but the operator.
    pub(super) was_shown: bool,
}

impl Shown {
    /// Somebody is shown these tools. What was shown before stays as it is, so that those who saw it are told of the change.
    /// Gives the tools that are new here and not set up.
    pub(super) fn note<'a>(
        &self,
        backend: &Arc<str>,
        tools: impl Iterator<Item = (&'a str, Option<StatusReason>)>,
    ) -> Vec<Change> {
        let mut backends = self.backends.lock().unwrap_or_else(PoisonError::into_inner);
        let known = backends.entry(Arc::clone(backend)).or_default();
        let mut new = Vec::new();
        for (tool, to) in tools {
            if !known.contains_key(tool) && known.len() < MOST {
                known.insert(tool.to_owned(), to);
                new.extend(to.map(|_| Change { tool: tool.to_owned(), to, was_shown: false }));
            }
        }
        new
    }

    /// Which of these tools stand otherwise than before; from now on they were shown as they are.
    pub(super) fn changes<'a>(
        &self,
        backend: &Arc<str>,
        tools: impl Iterator<Item = (&'a str, Option<StatusReason>)>,
    ) -> Vec<Change> {
        let mut backends = self.backends.lock().unwrap_or_else(PoisonError::into_inner);
        let known = backends.entry(Arc::clone(backend)).or_default();
        let mut changes = Vec::new();
        for (tool, to) in tools {
            let has_room = known.len() < MOST;
            match known.get_mut(tool) {
                Some(before) if *before == to => {}
                Some(before) => {
                    *before = to;
                    changes.push(Change { tool: tool.to_owned(), to, was_shown: true });
                }
                None if has_room => {
                    known.insert(tool.to_owned(), to);
                    changes.extend(to.map(|_| Change { tool: tool.to_owned(), to, was_shown: false }));
                }
                None => {}
            }
        }
        changes
    }

    /// The tools of a backend that somebody was shown.
    pub(super) fn tools(&self, backend: &str) -> Vec<String> {
        let backends = self.backends.lock().unwrap_or_else(PoisonError::into_inner);
        backends.get(backend).into_iter().flat_map(HashMap::keys).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MISSING: Option<StatusReason> = Some(StatusReason::CredentialsMissing);

    #[test]
    fn who_was_shown_something_is_told_of_the_change_whatever_others_were_shown_since() {
        let (shown, backend) = (Shown::default(), Arc::from("b"));
        assert!(shown.note(&backend, [("a", None)].into_iter()).is_empty());
        assert!(shown.note(&backend, [("a", MISSING)].into_iter()).is_empty(), "seen by another caller in between");
        let change = Change { tool: "a".into(), to: MISSING, was_shown: true };
        assert_eq!(shown.changes(&backend, [("a", MISSING)].into_iter()), [change]);
        assert!(shown.changes(&backend, [("a", MISSING)].into_iter()).is_empty());
    }

    #[test]
    fn a_tool_that_is_new_is_no_change_for_clients() {
        let (shown, backend) = (Shown::default(), Arc::from("b"));
        let new = Change { tool: "a".into(), to: MISSING, was_shown: false };
        assert_eq!(shown.note(&backend, [("a", MISSING), ("b", None)].into_iter()), [new]);
        assert!(shown.changes(&backend, [("a", MISSING), ("b", None), ("c", None)].into_iter()).is_empty());
    }
}
