//! All entries in memory, and what the gate asks of them. Reading takes no lock and allocates nothing; see `record` for what
//! a finished call does, `events` for the other hands that write, `confirm` for the backend as a whole.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::backing::Backing;
use super::caller::Caller;
use super::cascade::{self, KeyRef, Slots, ToolRef};
use super::claim::Bucket;
use super::confirm::Backends;
use super::document::{Document, Key, Status};
use super::effect::Effect;
use super::entry::Entry;
use super::lease::Permit;
use super::overrides::{Force, Overrides};
use super::policy::{Mode, Policy, Tuning};
use super::slot::{Inner, Slot, Unwell};
use super::view::View;
use crate::clock::{Now, Tick};
use crate::rules::Scope;

/// A document in which nothing but counts changes is written no more often than this: a tool that fails with every call
/// would be written with every call.
const COUNTS_WRITTEN_EVERY: Duration = Duration::from_secs(1);

/// Where random numbers in [0, 1) come from.
pub type Draw<'a> = &'a mut dyn FnMut() -> f64;

/// Whether a call may go to the backend.
#[derive(Debug)]
pub enum Admission {
    /// It may.
    Pass,
    /// It may, as the one trial of a RETESTING entry. The permit goes into the [`super::Call`].
    Trial(Permit),
    /// It may, because the tool is only observed; enforced, it would have been refused with this.
    Observed(View),
    /// It may not.
    Reject(View),
}

/// The health of all tools, as far as memory holds it.
#[derive(Debug)]
pub struct Registry {
    pub(super) slots: Slots,
    pub(super) unwell: Unwell,
    pub(super) tuning: Tuning,
    pub(super) backing: Arc<dyn Backing>,
    pub(super) bucket: Mutex<Bucket>,
    pub(super) backends: Backends,
    pub(super) evicted: Evicted,
    pub(super) overrides: Overrides,
    frozen: AtomicBool,
    /// Counts what may change how a tool stands: see `footing`.
    pub(super) turns: AtomicU64,
}

/// Evictions that no effect has reported yet.
#[derive(Debug, Default)]
pub(super) struct Evicted {
    pub(super) idle: AtomicUsize,
    pub(super) unwell: AtomicUsize,
    pub(super) running: Mutex<()>,
}

impl Registry {
    /// An empty registry, in which everything is OK.
    pub fn new(tuning: Tuning, backing: Arc<dyn Backing>) -> Registry {
        Registry {
            slots: roomy(tuning.documents_max),
            unwell: Unwell::default(),
            tuning,
            backing,
            bucket: Mutex::default(),
            backends: Backends::default(),
            evicted: Evicted::default(),
            overrides: Overrides::default(),
            frozen: AtomicBool::new(false),
            turns: AtomicU64::new(0),
        }
    }

    /// Whether this caller's call may pass (DESIGN 5, 8). Lock-free, allocation-free.
    pub fn admit(&self, caller: &Caller, at: &ToolRef, policy: &Policy, now: Now) -> Admission {
        let mut mode = policy.mode;
        if let Some(forced) = self.overrides.effective(caller, at, now.tick) {
            match forced.decision.force {
                Force::Ok => return Admission::Pass,
                Force::Down => return Admission::Reject(View::forced(forced, || View::OK, now)),
                Force::Observe => mode = Mode::Observe,
            }
        }
        let Some((slot, shown)) = cascade::effective(&self.slots, &self.unwell, caller, at, now.tick) else {
            return Admission::Pass;
        };
        if shown.status != Status::Down {
            return Admission::Pass;
        }
        let other_credential = shown.key.scope == Scope::User
            && matches!((shown.credential, caller.credential), (Some(of), Some(used)) if of != used);
        if (shown.due(now.tick) || other_credential)
            && let Some(permit) = Permit::take(&slot, now.tick, policy.trial_lease)
        {
            return Admission::Trial(permit);
        }
        let mut view = View::of(shown, now);
        if let (true, Some(until)) = (view.retesting, slot.lease.held_until(now.tick)) {
            view.next_trial_at = Some(now.wall_at(until));
        }
        match mode {
            Mode::Enforce => Admission::Reject(view),
            Mode::Observe => Admission::Observed(view),
        }
    }

    /// What this caller is told about a tool. Lock-free, allocation-free.
    pub fn lookup(&self, caller: &Caller, at: &ToolRef, now: Now) -> View {
        let believed = || {
            cascade::effective(&self.slots, &self.unwell, caller, at, now.tick)
                .map_or(View::OK, |(_, shown)| View::of(shown, now))
        };
        match self.overrides.effective(caller, at, now.tick) {
            Some(forced) => View::forced(forced, believed, now),
            None => believed(),
        }
    }

    /// From when the entry of this key may be tried; `None` unless memory holds it as DOWN.
    pub fn next_trial(&self, key: &Key) -> Option<Tick> {
        let slot = self.slots.pin().get(&KeyRef::from(key)).cloned()?;
        slot.shown().filter(|shown| shown.status == Status::Down).map(|shown| shown.next_trial.tick)
    }

    /// From now on nothing is learned: a draining process sees dying backends that are no outage (DESIGN 18).
    pub fn freeze(&self) {
        self.frozen.store(true, Ordering::Release);
    }

    pub(super) fn is_frozen(&self) -> bool {
        self.frozen.load(Ordering::Acquire)
    }

    /// Takes a stored document into memory at start. One that memory holds already is left as it is.
    pub fn load(&self, document: Document, now: Now) {
        let key = document.key.clone();
        self.write(KeyRef::from(&key), now, |slot, inner| {
            if inner.entry.is_none() {
                inner.loaded = true;
                inner.entry = Some(Box::new(Entry::load(document, now)));
                slot.publish(inner, &self.unwell);
                self.turn();
                self.show_override(slot, inner, now);
            }
        });
    }

    /// The slot of a key, made if there is none.
    pub(super) fn slot(&self, key: KeyRef<'_>, now: Now) -> Arc<Slot> {
        let pinned = self.slots.pin();
        if let Some(slot) = pinned.get(&key) {
            slot.touch(now.tick);
            return Arc::clone(slot);
        }
        let owned = key.to_key();
        let slot =
            Arc::clone(pinned.get_or_insert_with(owned.clone(), || Arc::new(Slot::new(owned.clone(), now.tick))));
        self.turn();
        if pinned.len() > self.tuning.documents_max.max(1) {
            self.evict(&slot, now.tick);
        }
        slot
    }

    /// Something has changed by which a tool may stand otherwise.
    pub(super) fn turn(&self) {
        self.turns.fetch_add(1, Ordering::Release);
    }

    /// Works on a key's slot under its lock, then shows readers the outcome and hands a changed document to the backing.
    pub(super) fn write<T>(&self, key: KeyRef<'_>, now: Now, work: impl FnOnce(&Arc<Slot>, &mut Inner) -> T) -> T {
        loop {
            let slot = self.slot(key, now);
            let mut inner = slot.lock();
            if inner.gone {
                continue;
            }
            let result = work(&slot, &mut inner);
            self.finish(&slot, &mut inner, now);
            return result;
        }
    }

    /// As [`Registry::write`], for a slot at hand; `None` if it has left the map meanwhile.
    pub(super) fn write_slot<T>(&self, slot: &Arc<Slot>, now: Now, work: impl FnOnce(&mut Inner) -> T) -> Option<T> {
        let mut inner = slot.lock();
        if inner.gone {
            return None;
        }
        let result = work(&mut inner);
        self.finish(slot, &mut inner, now);
        Some(result)
    }

    /// Shows a changed slot to readers and hands its document to the backing; whether that took it.
    pub(super) fn finish(&self, slot: &Slot, inner: &mut Inner, now: Now) -> bool {
        let counted = std::mem::take(&mut inner.counted)
            && inner.entry.as_ref().is_some_and(|entry| entry.updated.is_apart(now.wall, COUNTS_WRITTEN_EVERY));
        if !std::mem::take(&mut inner.dirty) && !counted {
            return true;
        }
        if slot.publish(inner, &self.unwell) {
            self.turn();
        }
        self.show_override(slot, inner, now);
        if let Some(entry) = inner.entry.as_mut() {
            entry.version = entry.version.saturating_add(1);
            entry.updated = now.wall;
            entry.last_checked = Some(now.wall);
            return self.backing.write(entry.document(&slot.key, now));
        }
        true
    }

    fn show_override(&self, slot: &Slot, inner: &Inner, now: Now) {
        let standing = inner.entry.as_ref().and_then(|entry| entry.overridden.as_ref());
        self.overrides.show(&slot.key, standing.map(|(decision, until)| (decision, *until)), now);
    }

    /// Whether one more diagnosis may start.
    pub(super) fn take_token(&self, now: Now) -> bool {
        self.bucket.lock().unwrap_or_else(PoisonError::into_inner).take(now.tick)
    }

    /// Reports evictions since the last report.
    pub(super) fn report_evictions(&self, effects: &mut Vec<Effect>) {
        // Looked at first: taking writes, and hardly ever is there something to take.
        let take = |count: &AtomicUsize| match count.load(Ordering::Relaxed) {
            0 => 0,
            _ => count.swap(0, Ordering::Relaxed),
        };
        let (idle, unwell) = (take(&self.evicted.idle), take(&self.evicted.unwell));
        if idle + unwell > 0 {
            effects.push(Effect::Evicted { idle, unwell });
        }
    }

    /// Makes room: drops a sixteenth of all slots, first those that are OK without an active cooldown, then those that are
    /// OK, then the rest; of each kind those that were touched longest ago. `newest` stays, or whoever asked for it would
    /// never get it.
    fn evict(&self, newest: &Arc<Slot>, now: Tick) {
        let Ok(_one_at_a_time) = self.evicted.running.try_lock() else { return };
        let pinned = self.slots.pin();
        let surplus = pinned.len().saturating_sub(self.tuning.documents_max.max(1));
        if surplus == 0 {
            return;
        }
        let mut ranked: Vec<(u8, u64, Arc<Slot>)> = pinned
            .values()
            .filter(|slot| !Arc::ptr_eq(slot, newest))
            .map(|slot| {
                let rank = if slot.is_unwell() { 2 } else { u8::from(slot.is_cooled(now)) };
                (rank, slot.touched(), Arc::clone(slot))
            })
            .collect();
        let batch = (surplus + self.tuning.documents_max / 16).min(ranked.len());
        ranked.sort_unstable_by_key(|(rank, touched, _)| (*rank, *touched));
        for (_, _, slot) in ranked.into_iter().take(batch) {
            self.forget(&slot);
        }
    }

    fn forget(&self, slot: &Arc<Slot>) {
        let counter = if slot.is_unwell() { &self.evicted.unwell } else { &self.evicted.idle };
        // A slot that is being written right now is in use: it may stay.
        let Some(mut inner) = slot.try_lock() else { return };
        inner.gone = true;
        slot.publish(&inner, &self.unwell);
        self.slots.pin().remove(&slot.key);
        self.turn();
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// How many slots memory holds, documents and bare evidence together.
    pub fn size(&self) -> usize {
        self.slots.pin().len()
    }

    /// How many entries are not OK.
    pub fn unwell(&self) -> usize {
        self.unwell.total()
    }
}

/// A map with room to spare from the start. The map grows only when inserting finds no near place, so that a small one runs
/// nearly full, and a look-up that finds nothing, as most do, then walks far: with 2,000 documents this made a cascade read
/// ten times slower. At the default bound the empty table takes about 2 MB.
fn roomy(documents_max: usize) -> Slots {
    const LARGEST: usize = 1 << 18;
    Slots::with_capacity_and_hasher(
        documents_max.saturating_mul(2).min(LARGEST),
        foldhash::fast::RandomState::default(),
    )
}

impl Inner {
    /// Asks the backing for the entry, unless that was done before.
    pub(super) fn fetch(&mut self, key: &Key, backing: &dyn Backing, now: Now) {
        if !std::mem::replace(&mut self.loaded, true) && self.entry.is_none() {
            self.entry = backing.read(key).map(|document| Box::new(Entry::load(document, now)));
            self.dirty |= self.entry.is_some();
        }
    }

    /// The entry, from memory, from the backing, or a fresh one. Whoever calls this is about to change a count in it, and calls
    /// for `dirty` should more come of it.
    pub(super) fn entry_counted(&mut self, key: &Key, backing: &dyn Backing, now: Now) -> &mut Entry {
        self.fetch(key, backing, now);
        self.dirty |= self.entry.is_none();
        self.counted = true;
        let entry = self.entry.get_or_insert_with(|| Box::new(Entry::new(now)));
        entry.last_checked = Some(now.wall);
        entry
    }

    /// The entry, from memory, from the backing, or a fresh one. Whoever calls this is about to change it.
    pub(super) fn entry_mut(&mut self, key: &Key, backing: &dyn Backing, now: Now) -> &mut Entry {
        self.fetch(key, backing, now);
        self.dirty = true;
        self.entry.get_or_insert_with(|| Box::new(Entry::new(now)))
    }
}
