//! What an operator decides about a tool against all evidence (DESIGN 5 and 14): it beats the cascade, and it always ends.
//!
//! An override stands on a health document, so that it is stored and listed with it, and in a table of its own, which the gate
//! reads without a lock. While there is none, the gate pays one load of a counter.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::caller::Caller;
use super::cascade::{self, KeyRef, ToolRef};
use super::cause::Cause;
use super::document::{Key, Status};
use super::effect::Effect;
use super::registry::Registry;
use super::view::{Shown, wall_of};
use crate::clock::{Now, Tick, Wall};

/// The longest that an override may stand: a long weekend with some days to spare.
pub const OVERRIDE_MAX: Duration = Duration::from_secs(7 * 24 * 3600);
/// Overrides at the same time.
pub const OVERRIDES_MAX: usize = 1_000;

/// What is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Force {
    /// Calls pass, whatever is believed.
    Ok,
    /// Calls are answered at once, without the backend, also where the tool is only observed.
    Down,
    /// What is believed is shown, but calls pass.
    Observe,
}

/// A decision as it is stored and shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Override {
    /// What is decided.
    pub force: Force,
    /// Why, at most 512 bytes.
    pub reason: String,
    /// By whom.
    pub by: String,
    /// Since when.
    pub since: Wall,
    /// Until when.
    pub until: Wall,
}

/// A decision in force.
#[derive(Clone, Debug, PartialEq)]
pub struct Forced {
    /// The decision.
    pub decision: Override,
    /// The entry that it stands on.
    pub key: Key,
    until: Now,
    shown: Arc<Shown>,
}

impl Forced {
    fn new(key: &Key, decision: &Override, until: Now, now: Now) -> Forced {
        let since = Now { tick: now.tick_at(decision.since.min(now.wall)), wall: decision.since };
        let shown = Shown {
            key: key.clone(),
            status: Status::Down,
            since,
            failed_at: None,
            expected_recovery: Some(until),
            next_trial: until,
            classification: None,
            signature: Some(Arc::from("override")),
            note: Some(Arc::from(decision.reason.as_str())),
            user_action_hint: None,
            credential: None,
            cause: Cause::Other,
        };
        Forced { decision: decision.clone(), key: key.clone(), until, shown: Arc::new(shown) }
    }

    pub(super) fn shown(&self) -> Arc<Shown> {
        Arc::clone(&self.shown)
    }
}

/// All decisions, by the entry that they stand on.
#[derive(Debug, Default)]
pub(super) struct Overrides {
    count: AtomicUsize,
    table: papaya::HashMap<Key, Arc<Forced>, foldhash::fast::RandomState>,
}

impl Overrides {
    /// The decision for this call: that of the narrowest scope, at equal scope that of the tool. Lock-free.
    pub(super) fn effective(&self, caller: &Caller, at: &ToolRef, now: Tick) -> Option<Arc<Forced>> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let pinned = self.table.pin();
        cascade::keys(caller, at).find_map(|key| {
            let forced = pinned.get(&key)?;
            (forced.until.tick > now).then(|| Arc::clone(forced))
        })
    }

    /// Whether there is none at all.
    pub(super) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// Shows what stands on an entry, or that nothing does any more.
    pub(super) fn show(&self, key: &Key, standing: Option<(&Override, Now)>, now: Now) {
        if standing.is_none() && self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        let pinned = self.table.pin();
        match standing {
            Some((decision, until)) => {
                pinned.insert(key.clone(), Arc::new(Forced::new(key, decision, until, now)));
            }
            None => {
                pinned.remove(key);
            }
        }
        self.count.store(pinned.len(), Ordering::Release);
    }

    pub(super) fn len(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }
}

impl Registry {
    /// The decision that applies to a caller's call, if there is one.
    pub fn forced(&self, caller: &Caller, at: &ToolRef, now: Now) -> Option<Arc<Forced>> {
        self.overrides.effective(caller, at, now.tick)
    }

    /// All decisions in force, in the order of their keys.
    pub fn overrides(&self, now: Now) -> Vec<Arc<Forced>> {
        let pinned = self.overrides.table.pin();
        let mut all: Vec<_> = pinned.values().filter(|forced| forced.until.tick > now.tick).cloned().collect();
        all.sort_by(|one, other| one.key.cmp(&other.key));
        all
    }

    /// Takes away the decisions whose time is over. Cheap while there are none.
    pub fn end_overrides(&self, now: Now) -> Vec<Effect> {
        if self.overrides.is_empty() || self.is_frozen() {
            return Vec::new();
        }
        let over: Vec<Key> = {
            let pinned = self.overrides.table.pin();
            pinned.values().filter(|forced| forced.until.tick <= now.tick).map(|forced| forced.key.clone()).collect()
        };
        let ended = over.iter().filter_map(|key| {
            self.write(KeyRef::from(key), now, |slot, inner| {
                inner.fetch(&slot.key, &*self.backing, now);
                let entry = inner.entry.as_mut()?;
                let ended = entry.overridden.take_if(|(_, until)| until.tick <= now.tick)?;
                inner.dirty = true;
                Some(Effect::OverrideEnded { key: slot.key.clone(), decision: ended.0 })
            })
        });
        ended.collect()
    }
}

/// A stored decision in memory; one whose end has passed is over.
pub(super) fn load(decision: Option<Override>, now: Now) -> Option<(Override, Now)> {
    let decision = decision?;
    let longest = i64::try_from(OVERRIDE_MAX.as_millis()).unwrap_or(i64::MAX);
    let until = decision.until.min(now.wall.plus_millis(longest));
    let until = Now { tick: now.tick_at(until), wall: until };
    (until.tick > now.tick).then_some((decision, until))
}

/// A decision as it is stored.
pub(super) fn stored(standing: &(Override, Now), now: Now) -> Override {
    Override { until: wall_of(standing.1, now), ..standing.0.clone() }
}
