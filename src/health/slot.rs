//! One place in memory for one key: the entry behind a lock for writers, and what readers need in front of it.
//!
//! A reader looks at one atomic flag, and only if that says "not OK" at an immutable snapshot; neither takes a lock or
//! allocates. A slot may hold evidence alone, without an entry: then there is no document, and it reads as OK.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use arc_swap::ArcSwapOption;

use super::document::{ANY_BACKEND, Key, WHOLE_BACKEND};
use super::entry::Entry;
use super::evidence::Evidence;
use super::lease::Lease;
use super::view::Shown;
use crate::clock::Tick;
use crate::rules::Scope;

/// A key's place in memory.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) key: Key,
    pub(super) lease: Lease,
    /// Whether there is an entry that is not OK.
    unwell: AtomicBool,
    shown: ArcSwapOption<Shown>,
    /// The last cooldown deadline; 0 if there is no cooldown at all.
    cooled_until: AtomicU64,
    touched: AtomicU64,
    inner: Mutex<Inner>,
}

/// What only writers see.
#[derive(Debug, Default)]
pub(super) struct Inner {
    pub(super) entry: Option<Box<Entry>>,
    pub(super) evidence: Evidence,
    /// The backing has been asked for this key, so that no stored history is overwritten by a fresh entry.
    pub(super) loaded: bool,
    /// Changed since the backing was told.
    pub(super) dirty: bool,
    /// Only counts have changed since then: the backing hears of them now and then.
    pub(super) counted: bool,
    /// No longer in the map: whoever waited for the lock must look again.
    pub(super) gone: bool,
}

impl Slot {
    pub(super) fn new(key: Key, now: Tick) -> Slot {
        Slot {
            key,
            lease: Lease::default(),
            unwell: AtomicBool::new(false),
            shown: ArcSwapOption::empty(),
            cooled_until: AtomicU64::new(0),
            touched: AtomicU64::new(now.0),
            inner: Mutex::default(),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn try_lock(&self) -> Option<MutexGuard<'_, Inner>> {
        match self.inner.try_lock() {
            Ok(inner) => Some(inner),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// What is shown, unless the entry is OK.
    pub(super) fn shown(&self) -> Option<Arc<Shown>> {
        if self.is_unwell() { self.shown.load_full() } else { None }
    }

    pub(super) fn is_unwell(&self) -> bool {
        self.unwell.load(Ordering::Acquire)
    }

    pub(super) fn has_cooldowns(&self) -> bool {
        self.cooled_until.load(Ordering::Acquire) != 0
    }

    pub(super) fn is_cooled(&self, now: Tick) -> bool {
        self.cooled_until.load(Ordering::Acquire) > now.0
    }

    pub(super) fn touch(&self, now: Tick) {
        // Writing takes the cache line from every other core.
        if self.touched() != now.0 {
            self.touched.store(now.0, Ordering::Relaxed);
        }
    }

    pub(super) fn touched(&self) -> u64 {
        self.touched.load(Ordering::Relaxed)
    }

    /// Shows readers what the entry has become; whether that makes a difference to them. Called with the lock held, after every
    /// change.
    pub(super) fn publish(&self, inner: &Inner, unwell: &Unwell) -> bool {
        let failed_at = inner.evidence.window.failed_at();
        let shown = inner.entry.as_ref().and_then(|entry| entry.shown(&self.key, failed_at)).filter(|_| !inner.gone);
        let was = self.is_unwell();
        let is = shown.is_some();
        self.shown.store(shown.map(Arc::new));
        self.unwell.store(is, Ordering::Release);
        let cooled =
            inner.entry.as_ref().map_or(0, |entry| entry.cooldowns.last_deadline().map_or(0, |at| at.0.max(1)));
        let cooled_before = self.cooled_until.swap(cooled, Ordering::AcqRel);
        if was != is {
            unwell.count(&self.key, is);
        }
        was || is || (cooled == 0) != (cooled_before == 0)
    }
}

/// How many entries are not OK, by where the cascade looks for them: a level without any needs no look-up.
#[derive(Debug, Default)]
pub(super) struct Unwell([AtomicUsize; 12]);

impl Unwell {
    fn count(&self, key: &Key, is: bool) {
        let level = level(key.scope, &key.backend, &key.tool_name);
        if let Some(counter) = self.0.get(level) {
            if is {
                counter.fetch_add(1, Ordering::Release);
            } else {
                counter.fetch_sub(1, Ordering::Release);
            }
        }
    }

    /// Whether any entry at this level is not OK.
    pub(super) fn any(&self, scope: Scope, backend: &str, tool: &str) -> bool {
        self.0.get(level(scope, backend, tool)).is_none_or(|counter| counter.load(Ordering::Acquire) > 0)
    }

    /// How many entries are not OK altogether.
    pub(super) fn total(&self) -> usize {
        self.0.iter().map(|counter| counter.load(Ordering::Relaxed)).sum()
    }
}

fn level(scope: Scope, backend: &str, tool: &str) -> usize {
    let scope = match scope {
        Scope::Session => 0,
        Scope::User => 1,
        Scope::Project => 2,
        Scope::Tenant => 3,
        Scope::Global if backend == ANY_BACKEND => 5,
        Scope::Global => 4,
    };
    scope * 2 + usize::from(tool == WHOLE_BACKEND)
}
