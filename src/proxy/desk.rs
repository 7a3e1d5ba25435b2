//! What one worker keeps for itself of what all share: so that a call touches no counter, lock or cache line that another
//! core is using at the same time, and asks once where it would otherwise ask for every call.

use std::collections::{HashMap, HashSet};
use std::ops::Deref;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use http::HeaderMap;

use super::gate::Wanted;
use super::net::{CallLimit, Workers};
use super::shared::{Backend, Shared};
use crate::clock::Now;
use crate::health::Caller;

/// Callers, and tools of one backend, that a worker remembers; when there are more it starts afresh.
const MOST: usize = 1_024;

type Fast<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// The desks of all workers. A desk is set up when its worker carries its first call.
#[derive(Debug)]
pub(super) struct Desks {
    shared: Arc<Shared>,
    desks: [OnceLock<Arc<Desk>>; Workers::MOST],
}

impl Desks {
    pub(super) fn new(shared: Arc<Shared>) -> Desks {
        Desks { shared, desks: std::array::from_fn(|_| OnceLock::new()) }
    }

    /// What everybody shares.
    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The desk of the calling worker.
    pub(super) fn here(&self) -> Arc<Desk> {
        let new = || Arc::new(Desk::new(&self.shared));
        self.desks.get(Workers::here()).map_or_else(new, |desk| Arc::clone(desk.get_or_init(new)))
    }
}

/// What one worker works with.
#[derive(Debug)]
pub(super) struct Desk {
    shared: Arc<Shared>,
    backends: Vec<Arc<NearBackend>>,
    callers: Mutex<Callers>,
    /// Room for calls, taken without counting references to what all share.
    pub(super) room: Arc<CallLimit>,
}

/// Callers that were seen, so that who calls again is the same value.
#[derive(Debug, Default)]
struct Callers {
    by_headers: Fast<Box<[u8]>, Arc<Caller>>,
    all: HashSet<Arc<Caller>, foldhash::fast::RandomState>,
}

impl Callers {
    fn intern(&mut self, caller: Caller) -> Arc<Caller> {
        if let Some(known) = self.all.get(&caller) {
            return Arc::clone(known);
        }
        if self.all.len() >= MOST {
            self.all.clear();
            self.by_headers.clear();
        }
        // Names that no other worker shares.
        let apart = Caller { project: Arc::from(&*caller.project), tenant: Arc::from(&*caller.tenant), ..caller };
        let caller = Arc::new(apart);
        self.all.insert(Arc::clone(&caller));
        caller
    }
}

impl Deref for Desk {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.shared
    }
}

impl Desk {
    fn new(shared: &Arc<Shared>) -> Desk {
        let near =
            |backend: &Arc<Backend>| Arc::new(NearBackend { whole: Arc::clone(backend), tools: Mutex::default() });
        Desk {
            shared: Arc::clone(shared),
            backends: shared.backends.iter().map(near).collect(),
            callers: Mutex::default(),
            room: Arc::new(shared.calls.clone()),
        }
    }

    /// What everybody shares.
    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The backend that a request goes to.
    pub(super) fn backend_for(&self, host: Option<&str>, path: &str) -> Option<&Arc<NearBackend>> {
        self.shared.backend_for(host, path).and_then(|at| self.backends.get(at))
    }

    /// The caller of a request with these headers.
    pub(super) fn caller(&self, headers: &HeaderMap, trusted: bool, now: Now) -> Arc<Caller> {
        let identifier = &self.shared.identifier;
        let key = identifier.key(headers, trusted);
        let mut known = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(caller) = key.as_deref().and_then(|key| known.by_headers.get(key)) {
            return Arc::clone(caller);
        }
        let caller = known.intern(identifier.caller(headers, trusted, now));
        if let Some(key) = key {
            if known.by_headers.len() >= MOST {
                known.by_headers.clear();
            }
            known.by_headers.insert(key.into(), Arc::clone(&caller));
        }
        caller
    }
}

/// A backend as one worker holds it.
#[derive(Debug)]
pub(super) struct NearBackend {
    whole: Arc<Backend>,
    /// The tools that have a name in the metrics, which bounds them.
    tools: Mutex<Fast<Arc<str>, Arc<Wanted>>>,
}

impl Deref for NearBackend {
    type Target = Backend;

    fn deref(&self) -> &Backend {
        &self.whole
    }
}

impl NearBackend {
    /// What is known of a tool and still holds.
    pub(super) fn known(&self, tool: &str, holds: impl Fn(&Wanted) -> bool) -> Option<Arc<Wanted>> {
        let tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        tools.get(tool).filter(|wanted| holds(wanted)).cloned()
    }

    /// Remembers what was found out about a tool.
    pub(super) fn remember(&self, wanted: &Arc<Wanted>) {
        let mut tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        if tools.len() >= MOST {
            tools.clear();
        }
        tools.insert(Arc::clone(&wanted.at.tool), Arc::clone(wanted));
    }
}
