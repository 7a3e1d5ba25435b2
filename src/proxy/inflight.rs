//! Calls whose answer is still to come, by session and JSON-RPC id: so that an answer is matched wherever it arrives, and a
//! cancellation finds its call (DESIGN 3).
//!
//! A call is held by the observer of its own response and, within a session, by this table. Whoever sees the answer first
//! takes the ticket out; a ticket that nobody can take any more is dropped, which abandons the call.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::gate::JudgedBefore;
use super::net::{Cause, Whole};
use super::observe::Place;
use super::reading::Reading;
use super::ticket::{Judged, Ticket};
use crate::clock::{Now, Tick};

/// How long the answer to a call whose own stream has ended may take to arrive on another one.
const RESUMABLE_FOR: Duration = Duration::from_secs(3600);

/// Calls that wait at once; beyond it a call is matched on its own response only.
const MOST: usize = 100_000;

const SHARDS: usize = 64;

/// One call between its request and its answer.
pub(super) struct Waiting {
    /// The id of the request, as a raw JSON token.
    pub(super) id: Box<str>,
    /// Whether the session itself provides the tool: then "unknown tool" may mean that its provider has left.
    pub(super) is_session_tool: bool,
    place: Arc<Place>,
    since: Tick,
    ticket: Mutex<Option<Ticket>>,
}

impl Waiting {
    pub(super) fn new(id: &str, place: &Arc<Place>, ticket: Ticket) -> Arc<Waiting> {
        Arc::new(Waiting {
            id: id.into(),
            is_session_tool: ticket.is_session_tool(),
            place: Arc::clone(place),
            since: ticket.started().tick,
            ticket: Mutex::new(Some(ticket)),
        })
    }

    /// Judges the call, unless it has been already.
    pub(super) fn judge(&self, reading: Reading) -> Option<Judged> {
        self.take().map(|ticket| ticket.judge(reading))
    }

    /// Whether it takes no more than the structure of its answer to judge it.
    pub(super) fn takes_structure(&self) -> bool {
        self.ticket.lock().unwrap_or_else(PoisonError::into_inner).as_ref().is_some_and(Ticket::takes_structure)
    }

    /// The call succeeded, and nothing is left to be judged about that.
    pub(super) fn succeeded(&self) {
        if let Some(ticket) = self.take() {
            ticket.succeeded();
        }
    }

    /// What was judged of this very answer when another call got it, if that holds for this one.
    pub(super) fn judged_before(&self, whole: &Whole) -> Option<(Arc<JudgedBefore>, Now)> {
        let ticket = self.ticket.lock().unwrap_or_else(PoisonError::into_inner);
        ticket.as_ref()?.judged_before(whole, &self.id)
    }

    /// The call failed as another one did.
    pub(super) fn failed_again(&self, judged: &JudgedBefore, now: Now) {
        if let Some(ticket) = self.take() {
            ticket.failed_again(judged, now);
        }
    }

    /// The call came to nothing that says anything about the tool.
    pub(super) fn neutral(&self) {
        if let Some(ticket) = self.take() {
            ticket.neutral();
        }
    }

    /// Nobody waits for the answer any more.
    pub(super) fn abandon(&self) {
        drop(self.take());
    }

    /// This proxy itself gives the call up, unless it has been judged already; gives the tool's name.
    pub(super) fn given_up(&self, cause: Cause) -> Option<Arc<str>> {
        let ticket = self.take()?;
        let tool = ticket.tool();
        ticket.given_up(cause);
        Some(tool)
    }

    fn take(&self) -> Option<Ticket> {
        self.ticket.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Whether nobody has taken it yet.
    pub(super) fn is_open(&self) -> bool {
        self.ticket.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    fn is_of(&self, backend: &str, session: &str) -> bool {
        *self.place.backend.name == *backend && self.place.session.as_deref() == Some(session)
    }
}

impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiting").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Calls by the hash of their address. Should two addresses ever share one, the later call takes the place of the earlier,
/// which is then matched on its own response only.
type Shard = HashMap<u64, Arc<Waiting>, foldhash::fast::RandomState>;

/// All calls of all sessions that wait for their answer.
#[derive(Debug)]
pub(super) struct Inflight {
    shards: [Mutex<Shard>; SHARDS],
    hasher: foldhash::quality::RandomState,
}

impl Default for Inflight {
    fn default() -> Inflight {
        Inflight {
            shards: std::array::from_fn(|_| Mutex::default()),
            hasher: foldhash::quality::RandomState::default(),
        }
    }
}

impl Inflight {
    /// Makes a call findable, if it belongs to a session. An id that is used again replaces the call before it, as it does
    /// at the client.
    pub(super) fn insert(&self, call: &Arc<Waiting>) {
        let Some(session) = &call.place.session else { return };
        let address = self.address(&call.place.backend.name, session, &call.id);
        let mut shard = self.shard(address);
        if shard.len() < MOST / SHARDS {
            shard.insert(address, Arc::clone(call));
        }
    }

    /// The call that waits under this id, taken out of the table.
    pub(super) fn remove(&self, backend: &str, session: &str, id: &str) -> Option<Arc<Waiting>> {
        let address = self.address(backend, session, id);
        match self.shard(address).entry(address) {
            Entry::Occupied(found) if *found.get().id == *id && found.get().is_of(backend, session) => {
                Some(found.remove())
            }
            _ => None,
        }
    }

    /// Takes a call out of the table whose answer nobody looks for any more.
    pub(super) fn forget(&self, call: &Arc<Waiting>) {
        let Some(session) = &call.place.session else { return };
        let address = self.address(&call.place.backend.name, session, &call.id);
        if let Entry::Occupied(found) = self.shard(address).entry(address)
            && Arc::ptr_eq(found.get(), call)
        {
            found.remove();
        }
    }

    /// All calls of a session, taken out of the table.
    pub(super) fn take_session(&self, backend: &str, session: &str) -> Vec<Arc<Waiting>> {
        let mut taken = Vec::new();
        for shard in &self.shards {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            taken.extend(shard.extract_if(|_, call| call.is_of(backend, session)).map(|(_, call)| call));
        }
        taken
    }

    /// Drops what has waited too long or has been judged on its own response.
    pub(super) fn sweep(&self, now: Tick) {
        for shard in &self.shards {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            shard.retain(|_, call| call.is_open() && now.since(call.since) < RESUMABLE_FOR);
        }
    }

    fn address(&self, backend: &str, session: &str, id: &str) -> u64 {
        self.hasher.hash_one((backend, session, id))
    }

    fn shard(&self, address: u64) -> MutexGuard<'_, Shard> {
        let at = usize::try_from(address % SHARDS as u64).unwrap_or(0);
        let [first, ..] = &self.shards;
        self.shards.get(at).unwrap_or(first).lock().unwrap_or_else(PoisonError::into_inner)
    }
}
