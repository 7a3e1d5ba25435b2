//! How a tool stands to a caller while nothing is held against it, found out once and good for as long as nothing changes:
//! then the gate is one comparison, and a success goes to its evidence without a look-up.
//!
//! The registry counts every change by which a tool may stand otherwise (a key that is new or forgotten, a status or a
//! cooldown that begins or ends). What was found out at the same count still holds.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::caller::Caller;
use super::cascade::{self, ToolRef};
use super::document::{ANY_BACKEND, WHOLE_BACKEND};
use super::effect::Effect;
use super::judge::Count;
use super::record::Call;
use super::registry::Registry;
use super::scene::Scene;
use super::slot::Slot;
use crate::clock::Now;

/// That nothing is held against a tool, and where its successes go.
#[derive(Debug)]
pub struct Footing {
    turns: u64,
    /// Narrowest first, as the cascade has them.
    slots: Vec<Arc<Slot>>,
}

impl Registry {
    /// How the tool stands to the caller, unless something is held against it: an entry that is not OK, a cooldown, an
    /// override. To be asked once a success was recorded, so that there is a place for the next.
    pub fn footing(&self, caller: &Caller, at: &ToolRef) -> Option<Footing> {
        let turns = self.turns.load(Ordering::Acquire);
        if !self.overrides.is_empty() {
            return None;
        }
        let slots = cascade::all(&self.slots, caller, at);
        let clear = slots.iter().all(|slot| !slot.is_unwell() && !slot.has_cooldowns());
        (clear && !slots.is_empty()).then_some(Footing { turns, slots })
    }

    /// Whether the tool still stands so.
    pub fn still(&self, footing: &Footing) -> bool {
        footing.turns == self.turns.load(Ordering::Acquire) && self.overrides.is_empty()
    }

    /// [`record`](Registry::record) of a success of a tool that stands so; the call comes back if it does not any more.
    ///
    /// # Errors
    /// The call, which is not recorded.
    pub fn record_success(&self, footing: &Footing, call: Call, now: Now) -> Result<Vec<Effect>, Call> {
        if call.permit.is_some() || self.is_frozen() || !self.still(footing) {
            return Err(call);
        }
        self.backends.answered(&call.at.backend, call.started.tick);
        self.backends.succeeded(&call.at.backend, now.tick);
        let scene = Scene { registry: self, call: &call, now };
        let sample = scene.sample(Count::Success);
        let mut effects = Vec::new();
        for slot in &footing.slots {
            slot.touch(now.tick);
            if slot.key.tool_name == WHOLE_BACKEND {
                slot.lock().evidence.tools.clear();
            } else if slot.key.backend != ANY_BACKEND {
                let effect = self.write_slot(slot, now, |inner| scene.take_success(slot, inner, sample));
                effects.extend(effect.flatten());
            }
        }
        self.report_evictions(&mut effects);
        Ok(effects)
    }
}
