//! What waits to be written: the newest change per place, bounded, and who waits to hear of it. Pure.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::sync::Arc;

use tokio::sync::oneshot;

use super::report::CommitError;
use crate::health::{Document, Key};

/// So many waiting documents are written without waiting for the end of the window (DESIGN 8).
pub(super) const GROUP: usize = 64;

/// What is written to: a health document, or a record of another part of the program under its name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Place {
    Document(Key),
    Record(String),
}

/// What is to happen at one place.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Put(Box<Document>),
    Keep(Vec<u8>),
    Delete,
}

/// How a change was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pushed {
    /// It waits, maybe in place of an older one of the same document.
    Taken,
    /// There was no room.
    Dropped,
}

pub(super) type Waiter = oneshot::Sender<Result<(), CommitError>>;
pub(super) type Changes = HashMap<Place, Change>;

/// What goes into one transaction, and who waits for it.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) changes: Arc<Changes>,
    pub(super) waiters: Vec<Waiter>,
}

pub(super) struct Queue {
    pending: Changes,
    /// What the writer has taken and not settled yet: still to be found by readers, still counted.
    in_flight: Arc<Changes>,
    waiters: Vec<Waiter>,
    max: usize,
    closing: bool,
    stopped: bool,
}

/// Documents name users; they do not belong into a debug print.
impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("len", &self.len()).field("closing", &self.closing).finish_non_exhaustive()
    }
}

impl Queue {
    pub(super) fn new(max: usize) -> Queue {
        Queue {
            pending: HashMap::new(),
            in_flight: Arc::default(),
            waiters: Vec::new(),
            max: max.max(1),
            closing: false,
            stopped: false,
        }
    }

    /// Documents that wait or are being written. One that is being written and waits again counts twice.
    pub(super) fn len(&self) -> usize {
        self.pending.len() + self.in_flight.len()
    }

    /// Nothing to write and nobody to answer.
    pub(super) fn is_idle(&self) -> bool {
        self.pending.is_empty() && self.waiters.is_empty()
    }

    /// Whether to commit now rather than at the end of the window: somebody waits, a full group waits, or it is the end.
    pub(super) fn is_urgent(&self) -> bool {
        self.closing || self.somebody_waits() || self.pending.len() >= GROUP
    }

    pub(super) fn somebody_waits(&self) -> bool {
        !self.waiters.is_empty()
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing
    }

    pub(super) fn push(&mut self, key: Place, change: Change) -> Pushed {
        if self.closing {
            return Pushed::Dropped;
        }
        let full = self.len() >= self.max;
        match self.pending.entry(key) {
            Entry::Occupied(mut older) => {
                // Two threads that changed one document may arrive here in the other order.
                if !is_stale(&change, older.get()) {
                    older.insert(change);
                }
                Pushed::Taken
            }
            Entry::Vacant(_) if full => Pushed::Dropped,
            Entry::Vacant(room) => {
                room.insert(change);
                Pushed::Taken
            }
        }
    }

    /// Takes all changes or none of them, and somebody who is told when they are written.
    pub(super) fn push_all(&mut self, changes: Vec<(Place, Change)>, waiter: Waiter) -> Result<(), CommitError> {
        if self.closing {
            return Err(CommitError::Closed);
        }
        let new = changes.iter().filter(|(key, _)| !self.pending.contains_key(key)).count();
        if new > 0 && self.len() + new > self.max {
            return Err(CommitError::QueueFull { queued: self.len() });
        }
        for (key, change) in changes {
            self.push(key, change);
        }
        self.waiters.push(waiter);
        Ok(())
    }

    /// Lets nothing more in. The waiter is told when what is there has been written, and is let go if that is over.
    pub(super) fn close(&mut self, waiter: Waiter) {
        self.closing = true;
        if !self.stopped {
            self.waiters.push(waiter);
        }
    }

    /// The writer is gone: whoever still waits is let go.
    pub(super) fn stop(&mut self) {
        self.closing = true;
        self.stopped = true;
        self.waiters.clear();
    }

    /// What waits for a document: `Some(None)` says that it is being deleted.
    pub(super) fn find(&self, key: &Key) -> Option<Option<Document>> {
        let place = Place::Document(key.clone());
        let change = self.pending.get(&place).or_else(|| self.in_flight.get(&place))?;
        Some(match change {
            Change::Put(document) => Some((**document).clone()),
            Change::Keep(_) | Change::Delete => None,
        })
    }

    /// Everything that waits, for one transaction. Must be settled before the next is taken.
    pub(super) fn take(&mut self) -> Batch {
        self.in_flight = Arc::new(std::mem::take(&mut self.pending));
        Batch { changes: Arc::clone(&self.in_flight), waiters: std::mem::take(&mut self.waiters) }
    }

    /// The batch is on disk.
    pub(super) fn settle(&mut self) {
        self.in_flight = Arc::default();
    }

    /// The batch is not on disk: its changes wait again, unless newer ones of the same documents already do.
    pub(super) fn give_back(&mut self) {
        let changes = std::mem::take(&mut self.in_flight);
        for (key, change) in Arc::unwrap_or_clone(changes) {
            self.pending.entry(key).or_insert(change);
        }
    }
}

/// Whether a change is older than the one that waits. Versions compare only within one life of a document.
fn is_stale(change: &Change, waiting: &Change) -> bool {
    match (change, waiting) {
        (Change::Put(new), Change::Put(old)) => new.created_at == old.created_at && new.version < old.version,
        _ => false,
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
