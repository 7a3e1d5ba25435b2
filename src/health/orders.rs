//! What the write API may do to one document (DESIGN 14), under its lock and against the version that the writer saw.

use std::sync::Arc;
use std::time::Duration;

use super::cascade::KeyRef;
use super::cooldown::Trigger;
use super::document::{Document, Key, Origin, Status};
use super::effect::Effect;
use super::entry::{Change, Entry};
use super::events::Mark;
use super::overrides::{OVERRIDE_MAX, OVERRIDES_MAX, Override};
use super::registry::{Draw, Registry};
use super::slot::{Inner, Slot};
use super::text;
use crate::clock::{Now, Wall};
use crate::rules::Classification;

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Order {
    /// Set the status.
    Mark(Mark),
    /// Arm a cooldown, or move the deadline of an active one.
    Cooldown {
        /// The kind of failure.
        signature: Arc<str>,
        /// Whose; `None` is scope-wide.
        user: Option<Arc<str>>,
        /// What such failures are.
        classification: Classification,
        /// How long from now, at most `cooldown.max`; `None` as long as failures of this class usually cool.
        length: Option<Duration>,
    },
    /// Remove cooldowns; those that are named where a name is given, else all. Their levels stay behind.
    ClearCooldowns {
        /// Of one kind of failure.
        signature: Option<Arc<str>>,
        /// Of one user.
        user: Option<Arc<str>>,
    },
    /// Turn the entry to OK and remove all its cooldowns.
    Clear {
        /// By whom.
        by: Arc<str>,
        /// Why.
        note: Arc<str>,
    },
    /// Decide against the evidence.
    Override(Override),
    /// Take such a decision back.
    EndOverride,
}

/// What an order came to.
#[derive(Clone, Debug)]
pub struct Written {
    /// The document before; `None` if there was none.
    pub before: Option<Document>,
    /// The document now; `None` after a deletion.
    pub after: Option<Document>,
    /// What happened.
    pub effects: Vec<Effect>,
    /// Whether the change waits to be stored. `false`: the store had no room, and the change holds in memory alone.
    pub queued: bool,
}

/// Why an order was not carried out. Nothing has changed then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OrderRefused {
    /// We drain: nothing is written any more.
    #[error("toolvane is draining, and health is written no more")]
    Frozen,
    /// Somebody else has changed the document since the writer read it.
    #[error("the document is not as you read it: {}", match found { Some(version) => format!("its version is {version} now"), None => "it does not exist".to_owned() })]
    Changed {
        /// The version now; `None` if there is no document.
        found: Option<u64>,
    },
    /// What is reported began before the status that stands now was set.
    #[error("what is reported began before {as_of}, when the present status was set")]
    Late {
        /// Since when the present status holds.
        as_of: Wall,
    },
    /// Too many overrides stand already.
    #[error("{OVERRIDES_MAX} overrides stand already, the most there may be; take one back first")]
    TooMany,
    /// There is nothing to take back or delete.
    #[error("there is nothing of that kind")]
    Nothing,
}

impl Registry {
    /// Carries out an order. With `expected`, only if the document has this version.
    ///
    /// # Errors
    /// Why nothing was changed.
    pub fn order(
        &self,
        key: &Key,
        order: &Order,
        expected: Option<u64>,
        (now, draw): (Now, Draw<'_>),
    ) -> Result<Written, OrderRefused> {
        let mut written = self.held(key, expected, now, |slot, inner| {
            let effect = self.carry_out(slot, inner, order, (now, draw))?;
            Ok(effect.into_iter().collect())
        })?;
        self.report_evictions(&mut written.effects);
        Ok(written)
    }

    /// Deletes a document for good.
    ///
    /// # Errors
    /// If there is none, or another version than expected, or we drain.
    pub fn delete(&self, key: &Key, expected: Option<u64>, now: Now) -> Result<Written, OrderRefused> {
        let mut written = self.held(key, expected, now, |slot, inner| {
            let Some(entry) = inner.entry.take() else { return Err(OrderRefused::Nothing) };
            inner.evidence = super::evidence::Evidence::default();
            if slot.publish(inner, &self.unwell) {
                self.turn();
            }
            self.overrides.show(&slot.key, None, now);
            Ok(vec![Effect::Deleted { key: slot.key.clone(), status: entry.status }])
        })?;
        written.after = None;
        Ok(written)
    }

    /// Works on a slot under its lock, and says what was there before and after.
    fn held(
        &self,
        key: &Key,
        expected: Option<u64>,
        now: Now,
        work: impl FnOnce(&Arc<Slot>, &mut Inner) -> Result<Vec<Effect>, OrderRefused>,
    ) -> Result<Written, OrderRefused> {
        if self.is_frozen() {
            return Err(OrderRefused::Frozen);
        }
        loop {
            let slot = self.slot(KeyRef::from(key), now);
            let mut inner = slot.lock();
            if inner.gone {
                continue;
            }
            inner.fetch(&slot.key, &*self.backing, now);
            let document = |entry: &Option<Box<Entry>>| entry.as_ref().map(|entry| entry.document(&slot.key, now));
            let before = document(&inner.entry);
            let found = before.as_ref().map(|document| document.version);
            if expected.is_some() && expected != found {
                return Err(OrderRefused::Changed { found });
            }
            let effects = work(&slot, &mut inner)?;
            let queued = if inner.entry.is_some() {
                inner.dirty = true;
                self.finish(&slot, &mut inner, now)
            } else {
                inner.dirty = false;
                self.backing.delete(&slot.key)
            };
            let after = document(&inner.entry);
            return Ok(Written { before, after, effects, queued });
        }
    }

    fn carry_out(
        &self,
        slot: &Slot,
        inner: &mut Inner,
        order: &Order,
        (now, draw): (Now, Draw<'_>),
    ) -> Result<Option<Effect>, OrderRefused> {
        match order {
            Order::Mark(mark) => {
                let late = |entry: &Entry| mark.since.is_some_and(|since| entry.epoch > 0 && since < entry.as_of.wall);
                if let Some(entry) = inner.entry.as_deref().filter(|entry| late(entry)) {
                    return Err(OrderRefused::Late { as_of: entry.as_of.wall });
                }
                Ok(Some(self.mark_held(slot, inner, mark, (now, draw))))
            }
            Order::Cooldown { signature, user, classification, length } => {
                let longest = self.tuning.cooldown_max;
                let trigger = Trigger {
                    signature,
                    user: user.as_ref(),
                    class: *classification,
                    given: *length,
                    recovery: inner.entry.as_ref().and_then(|entry| entry.recovery_ahead(now)),
                    longest,
                };
                let entry = inner.entry_mut(&slot.key, &*self.backing, now);
                let armed = entry.cooldowns.set(&trigger, now);
                Ok(armed.map(|armed| Effect::CooldownSet {
                    key: slot.key.clone(),
                    signature: Arc::clone(&armed.signature),
                    user: armed.user.clone(),
                    classification: armed.class,
                    until: armed.until.wall,
                    level: armed.level,
                }))
            }
            Order::ClearCooldowns { signature, user } => {
                let entry = inner.entry.as_mut().ok_or(OrderRefused::Nothing)?;
                let cooldowns = entry.cooldowns.clear_where(signature.as_deref(), user.as_deref(), now);
                Ok((cooldowns > 0).then(|| Effect::Cleared { key: slot.key.clone(), cooldowns }))
            }
            Order::Clear { by, note } => {
                inner.evidence.forget_failures();
                let history = self.tuning.history_size;
                let entry = inner.entry.as_mut().ok_or(OrderRefused::Nothing)?;
                let cooldowns = entry.cooldowns.clear_where(None, None, now);
                if entry.status == Status::Ok {
                    return Ok((cooldowns > 0).then(|| Effect::Cleared { key: slot.key.clone(), cooldowns }));
                }
                let change = Change { origin: Origin::Admin, ..Change::recovery(by, Arc::clone(note), now) };
                Ok(Some(entry.set(&slot.key, change, now, (history, draw()))))
            }
            Order::Override(decision) => self.decide(slot, inner, decision, now).map(Some),
            Order::EndOverride => {
                let entry = inner.entry.as_mut().ok_or(OrderRefused::Nothing)?;
                let (decision, _) = entry.overridden.take().ok_or(OrderRefused::Nothing)?;
                Ok(Some(Effect::OverrideEnded { key: slot.key.clone(), decision }))
            }
        }
    }

    fn decide(&self, slot: &Slot, inner: &mut Inner, decision: &Override, now: Now) -> Result<Effect, OrderRefused> {
        let standing = inner.entry.as_ref().is_some_and(|entry| entry.overridden.is_some());
        if !standing && self.overrides.len() >= OVERRIDES_MAX {
            return Err(OrderRefused::TooMany);
        }
        let ahead = u64::try_from(decision.until.0.saturating_sub(now.wall.0)).unwrap_or(0);
        let until = now.after(Duration::from_millis(ahead).min(OVERRIDE_MAX));
        let mut decision = decision.clone();
        decision.reason = text::bounded(&decision.reason).to_owned();
        decision.by = text::bounded(&decision.by).to_owned();
        decision.until = until.wall;
        let entry = inner.entry_mut(&slot.key, &*self.backing, now);
        entry.overridden = Some((decision.clone(), until));
        Ok(Effect::Overridden { key: slot.key.clone(), decision })
    }
}
