//! A backend as a whole. A transport fault is confirmed actively before it makes DOWN, and a DOWN of that kind is probed
//! until the backend can be reached again (DESIGN 7, 8).
//!
//! The `*` entry is one per project, but whether a backend can be reached is one fact. So the confirmation is one per backend;
//! it remembers the projects that met the fault and, if three of three attempts fail, writes the entry of each. While the
//! backend stays confirmed dead, a fault that another project meets needs no confirmation of its own.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::cascade::KeyRef;
use super::document::{Key, Origin, Status, WHOLE_BACKEND};
use super::effect::Effect;
use super::entry::{Cause, Change};
use super::registry::{Draw, Registry};
use crate::clock::{Now, Tick};
use crate::rules::{Classification, Finding, Scope};

/// When after the first fault the backend is tried, each time anew.
pub const CONFIRM_AFTER: [Duration; 3] = [Duration::from_millis(300), Duration::from_secs(1), Duration::from_secs(2)];
/// A confirmation of which nothing was heard for this long is given up, and the next fault starts another.
const CONFIRM_LOST: Duration = Duration::from_secs(30);
/// Projects that one confirmation speaks for.
const PROJECTS_MAX: usize = 64;

/// How often a transport DOWN is probed at first, and any other.
const PROBE_TRANSPORT: Duration = Duration::from_secs(1);
const PROBE_OTHER: Duration = Duration::from_secs(5);

/// The result of one attempt to reach a backend.
#[derive(Clone, Debug)]
pub struct Attempt<'a> {
    /// The backend.
    pub backend: &'a str,
    /// Which one of [`CONFIRM_AFTER`], from 0.
    pub number: usize,
    /// Whether it failed.
    pub failed: bool,
}

/// A DOWN that is due for a probe.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbeTarget {
    /// The entry. Of a backend that is DOWN for several projects, one of them.
    pub key: Key,
    /// A backend that cannot be reached: probed by connecting. Otherwise only a SAFE_PROBE of the tool will do.
    pub transport: bool,
}

#[derive(Debug, Default)]
pub(super) struct Backends {
    states: Mutex<HashMap<Arc<str>, Doubt>>,
    /// How many backends are in doubt, so that no answer of a healthy one takes the lock.
    count: AtomicUsize,
    /// When a call of each backend succeeded last; read and written without a lock.
    successes: papaya::HashMap<Arc<str>, AtomicU64>,
}

/// What is suspected of one backend.
#[derive(Debug)]
struct Doubt {
    asked: Now,
    failed: usize,
    confirmed: bool,
    projects: Vec<Project>,
    signature: Arc<str>,
    classification: Classification,
}

/// A tenant and a project of it.
type Project = (Arc<str>, Arc<str>);

/// A backend that has just been confirmed dead.
struct Dead {
    projects: Vec<Project>,
    signature: Arc<str>,
    classification: Classification,
}

/// What a transport fault calls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Suspicion {
    /// A confirmation must be started.
    Confirm,
    /// One is under way.
    UnderWay,
    /// The backend is known to be dead.
    Confirmed,
}

impl Backends {
    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Doubt>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call of this project met a transport fault.
    pub(super) fn suspect(&self, backend: &Arc<str>, project: Project, finding: &Finding, now: Now) -> Suspicion {
        let mut states = self.lock();
        let lost = |doubt: &Doubt| !doubt.confirmed && now.tick.since(doubt.asked.tick) > CONFIRM_LOST;
        if let Some(doubt) = states.get_mut(backend).filter(|doubt| !lost(doubt)) {
            if doubt.confirmed {
                return Suspicion::Confirmed;
            }
            if !doubt.projects.contains(&project) && doubt.projects.len() < PROJECTS_MAX {
                doubt.projects.push(project);
            }
            return Suspicion::UnderWay;
        }
        let doubt = Doubt {
            asked: now,
            failed: 0,
            confirmed: false,
            projects: vec![project],
            signature: Arc::clone(&finding.signature),
            classification: finding.classification,
        };
        states.insert(Arc::clone(backend), doubt);
        self.count.store(states.len(), Ordering::Release);
        Suspicion::Confirm
    }

    /// A call of this backend has succeeded.
    pub(super) fn succeeded(&self, backend: &Arc<str>, now: Tick) {
        let known = self.successes.pin();
        match known.get(&**backend) {
            Some(at) if at.load(Ordering::Relaxed) == now.0 => {}
            Some(at) => at.store(now.0, Ordering::Relaxed),
            None => drop(known.insert(Arc::clone(backend), AtomicU64::new(now.0))),
        }
    }

    /// When a call of this backend succeeded last.
    pub(super) fn last_success(&self, backend: &str) -> Option<Tick> {
        self.successes.pin().get(backend).map(|at| Tick(at.load(Ordering::Relaxed)))
    }

    /// An answer to a call that began at `started` has arrived: the backend can be reached.
    pub(super) fn answered(&self, backend: &str, started: Tick) {
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut states = self.lock();
        if states.get(backend).is_some_and(|doubt| started >= doubt.asked.tick) {
            states.remove(backend);
            self.count.store(states.len(), Ordering::Release);
        }
    }

    /// Counts an attempt; the projects whose `*` entry is to go DOWN, once all attempts have failed.
    fn attempt(&self, attempt: &Attempt<'_>) -> Option<Dead> {
        let mut states = self.lock();
        if !attempt.failed {
            states.remove(attempt.backend);
            self.count.store(states.len(), Ordering::Release);
            return None;
        }
        let doubt = states.get_mut(attempt.backend).filter(|doubt| !doubt.confirmed)?;
        if attempt.number == doubt.failed {
            doubt.failed += 1;
        }
        if doubt.failed < CONFIRM_AFTER.len() {
            return None;
        }
        doubt.confirmed = true;
        let (signature, classification) = (Arc::clone(&doubt.signature), doubt.classification);
        Some(Dead { projects: std::mem::take(&mut doubt.projects), signature, classification })
    }
}

/// The `*` entry of a backend for one project.
pub(super) fn star<'a>(tenant: &'a str, project: &'a str, backend: &'a str) -> KeyRef<'a> {
    KeyRef {
        tenant_id: Some(tenant),
        scope: Scope::Project,
        scope_id: Some(project),
        backend,
        tool_name: WHOLE_BACKEND,
    }
}

impl Registry {
    /// Takes in one attempt of a confirmation that [`Effect::ConfirmBackend`] asked for. The third failure of three makes
    /// the backend's `*` entry DOWN for every project that met the fault.
    pub fn confirm(&self, attempt: &Attempt<'_>, now: Now, draw: Draw<'_>) -> Vec<Effect> {
        let mut effects = Vec::new();
        if self.is_frozen() {
            return effects;
        }
        let Some(dead) = self.backends.attempt(attempt) else { return effects };
        for (tenant, project) in &dead.projects {
            let key = star(tenant, project, attempt.backend);
            effects.extend(self.confirmed_down(key, (&dead.signature, dead.classification), now, draw));
        }
        self.report_evictions(&mut effects);
        effects
    }

    /// Writes that a backend cannot be reached, unless that is known already.
    pub(super) fn confirmed_down(
        &self,
        key: KeyRef<'_>,
        (signature, classification): (&Arc<str>, Classification),
        now: Now,
        draw: Draw<'_>,
    ) -> Option<Effect> {
        self.write(key, now, |slot, inner| {
            let entry = inner.entry_mut(&slot.key, &*self.backing, now);
            if entry.status == Status::Down {
                return None;
            }
            let to = if entry.flap.allows_down(now) { Status::Down } else { Status::Degraded };
            if to == entry.status {
                return None;
            }
            let change = Change {
                to,
                classification,
                signature: Some(Arc::clone(signature)),
                cause: Cause::Transport,
                origin: Origin::Evidence,
                judged: false,
                by: Arc::from("confirmation"),
                note: Arc::from("the backend could not be reached three times in two seconds"),
                as_of: now,
                since: None,
                recovery: None,
                credential: None,
            };
            Some(entry.set(&slot.key, change, now, (self.tuning.history_size, draw())))
        })
    }

    /// The DOWN entries whose probe is due, and puts the next probe of each on the schedule. Those that are RETESTING need
    /// none: the next call is their trial.
    pub fn probe_targets(&self, now: Now) -> Vec<ProbeTarget> {
        let mut targets: Vec<ProbeTarget> = Vec::new();
        if self.unwell() == 0 {
            return targets;
        }
        for slot in self.slots.pin().values().filter(|slot| slot.is_unwell()) {
            let mut inner = slot.lock();
            let Some(entry) = inner.entry.as_deref() else { continue };
            if entry.status != Status::Down || entry.is_due(now) {
                continue;
            }
            let transport = slot.key.tool_name == WHOLE_BACKEND && entry.cause == Cause::Transport;
            let pace = if transport { PROBE_TRANSPORT } else { PROBE_OTHER };
            let since = entry.since;
            let seen =
                transport && targets.iter().any(|target| target.transport && target.key.backend == slot.key.backend);
            if inner.evidence.probing.is_due(since, now.tick, pace) && !seen {
                targets.push(ProbeTarget { key: slot.key.clone(), transport });
            }
        }
        targets
    }

    /// A try of a tool that somebody asked for has worked: what is DOWN for the tool, at any scope that the try speaks for, is
    /// let through to its next real call. A try as one user speaks for that user alone. Returns how many entries that were.
    pub fn open_retest(&self, at: &super::cascade::ToolRef, who: &super::ports::ProbeAs, now: Now) -> usize {
        let concerned = |key: &Key| {
            let theirs = match (who, key.scope) {
                (super::ports::ProbeAs::User(user), Scope::User) => key.scope_id.as_deref() == Some(user),
                (super::ports::ProbeAs::User(_), _) | (_, Scope::User | Scope::Session) => false,
                (super::ports::ProbeAs::System, _) => true,
            };
            theirs && key.backend == *at.backend && key.tool_name == *at.tool
        };
        let keys: Vec<Key> = {
            let pinned = self.slots.pin();
            let slots = pinned.values().filter(|slot| slot.is_unwell() && concerned(&slot.key));
            slots.map(|slot| slot.key.clone()).collect()
        };
        for key in &keys {
            self.probe_succeeded(&ProbeTarget { key: key.clone(), transport: false }, now);
        }
        keys.len()
    }

    /// A request of our own that began at `started` was answered: the backend lives, whatever the answer says. A backend that
    /// was DOWN for not answering is let through to its next real call.
    pub fn answered(&self, backend: &str, started: Now, now: Now) {
        self.backends.answered(backend, started.tick);
        let key = Key {
            tenant_id: None,
            scope: Scope::Project,
            scope_id: None,
            backend: backend.to_owned(),
            tool_name: WHOLE_BACKEND.to_owned(),
        };
        self.probe_succeeded(&ProbeTarget { key, transport: true }, now);
    }

    /// A probe succeeded: the next call is let through as a trial. Nothing is OK yet; a real call decides that.
    pub fn probe_succeeded(&self, target: &ProbeTarget, now: Now) {
        if self.is_frozen() {
            return;
        }
        let same = |slot: &super::slot::Slot| {
            if target.transport {
                slot.key.backend == target.key.backend && slot.key.tool_name == WHOLE_BACKEND
            } else {
                slot.key == target.key
            }
        };
        if target.transport {
            let attempt = Attempt { backend: &target.key.backend, number: 0, failed: false };
            self.backends.attempt(&attempt);
        }
        for slot in self.slots.pin().values().filter(|slot| slot.is_unwell() && same(slot)) {
            self.write_slot(slot, now, |inner| {
                let Some(entry) = inner.entry.as_mut() else { return };
                let concerned = !target.transport || entry.cause == Cause::Transport;
                if entry.status == Status::Down && !entry.is_due(now) && concerned {
                    entry.next_trial = now;
                    inner.dirty = true;
                }
            });
        }
    }
}
