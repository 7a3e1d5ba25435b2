//! When a tool list will read differently by itself: a DOWN whose next trial becomes due is listed as usable again (DESIGN 10).

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::clock::{Now, Tick};
use crate::health::{Filter, Key, Registry, Status};

/// Entries that are waited for. Of more the earliest are kept; clients hear of the others with the next change.
const MOST: usize = 10_000;

/// What becomes due, the earliest first.
#[derive(Debug, Default)]
pub(super) struct Dues {
    waiting: Mutex<BTreeSet<(Tick, Key)>>,
}

impl Dues {
    /// Those of everything that is DOWN already.
    pub(super) fn of(registry: &Registry, now: Now) -> Dues {
        let dues = Dues::default();
        for document in registry.documents(&Filter { status: Some(Status::Down), ..Filter::default() }, now) {
            dues.expect(registry, document.key);
        }
        dues
    }

    /// The entry went DOWN, or its trial was put off.
    pub(super) fn expect(&self, registry: &Registry, key: Key) {
        let Some(at) = registry.next_trial(&key) else { return };
        let mut waiting = self.lock();
        waiting.insert((at, key));
        if waiting.len() > MOST {
            waiting.pop_last();
        }
    }

    /// What has become due since it was asked last. An entry that was put off meanwhile goes on waiting; one that has
    /// recovered, or that a probe made due earlier, is dropped: that was told when it happened.
    pub(super) fn take(&self, registry: &Registry, now: Tick) -> Vec<Key> {
        let mut past = Vec::new();
        {
            let mut waiting = self.lock();
            while waiting.first().is_some_and(|(at, _)| *at <= now) {
                past.extend(waiting.pop_first());
            }
        }
        let mut due = Vec::new();
        for (expected, key) in past {
            match registry.next_trial(&key) {
                Some(at) if at == expected => due.push(key),
                Some(at) if at > now => self.expect(registry, key),
                _ => {}
            }
        }
        due
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<(Tick, Key)>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
