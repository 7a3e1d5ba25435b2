//! The hands that write a status besides calls and the judge (DESIGN 7, 8): system events, diagnoses and the write API.

use std::sync::Arc;
use std::time::Duration;

use super::caller::Caller;
use super::cascade::{self, KeyRef, ToolRef};
use super::cause::Cause;
use super::document::{Diagnosis, Key, Origin, Status};
use super::effect::Effect;
use super::entry::Change;
use super::registry::{Draw, Registry};
use super::retest::Probing;
use super::slot::{Inner, Slot};
use super::text;
use crate::clock::{Now, Wall};
use crate::rules::{Classification, Scope};

/// The signature of a tool whose provider has left.
const PROVIDER_LEFT: &str = "provider-left";

/// A status as an engine, a person or the system sets it, with everything that must be said with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// OK, DEGRADED or DOWN.
    pub to: Status,
    /// What it is put down to.
    pub classification: Classification,
    /// The kind of failure; at most 64 characters, from a closed set.
    pub signature: Option<Arc<str>>,
    /// Whose hand: [`Origin::System`], [`Origin::Engine`] or [`Origin::Admin`].
    pub origin: Origin,
    /// Who in particular.
    pub by: Arc<str>,
    /// Why, at most 512 bytes; longer ones are cut.
    pub note: Arc<str>,
    /// When it began, for events that are told late; `None` is now, and so is what lies ahead.
    pub since: Option<Wall>,
    /// The estimated time to recovery; between 1 s and 24 h, others are brought within. `None` where nobody knows.
    pub recovery: Option<Duration>,
    /// What the user concerned can do.
    pub user_action_hint: Option<Arc<str>>,
}

impl Registry {
    /// Sets a status (T4, T5). A diagnosis is remembered with it, and closes the door to another one for the same signature
    /// for a while.
    pub fn mark(&self, key: &Key, mark: &Mark, now: Now, draw: Draw<'_>) -> Vec<Effect> {
        let mut effects = Vec::new();
        if self.is_frozen() {
            return effects;
        }
        effects.push(self.write(KeyRef::from(key), now, |slot, inner| self.mark_held(slot, inner, mark, (now, draw))));
        self.report_evictions(&mut effects);
        effects
    }

    /// The same for an entry whose lock is held.
    pub(super) fn mark_held(
        &self,
        slot: &Slot,
        inner: &mut Inner,
        mark: &Mark,
        (now, draw): (Now, Draw<'_>),
    ) -> Effect {
        inner.evidence.probing = Probing::default();
        if mark.to == Status::Ok {
            inner.evidence.forget_failures();
        }
        if let (Origin::Engine, Some(signature)) = (mark.origin, &mark.signature) {
            inner.evidence.claims.diagnosed(signature, now);
        }
        let entry = inner.entry_mut(&slot.key, &*self.backing, now);
        if mark.origin != Origin::System {
            entry.diagnosis = Some(mark.diagnosis(now));
        }
        entry.set(&slot.key, mark.change(now), now, (self.tuning.history_size, draw()))
    }

    /// The upgraded connection of a session has closed: its session tools are gone with it.
    pub fn session_closed(&self, caller: &Caller, tools: &[ToolRef], now: Now, draw: Draw<'_>) -> Vec<Effect> {
        let mark = provider_left("the connection of this session has closed");
        tools.iter().flat_map(|at| self.mark_own(caller, at, &mark, (now, &mut *draw))).collect()
    }

    /// The backend says that a session tool which its list names does not exist: whoever provided it has left (DESIGN 4).
    pub fn provider_left(&self, caller: &Caller, at: &ToolRef, now: Now, draw: Draw<'_>) -> Vec<Effect> {
        self.mark_own(caller, at, &provider_left("the provider of this tool has left the session"), (now, draw))
    }

    /// Marks a tool for one session, or for the user where there is no session; for nobody if there is neither.
    fn mark_own(&self, caller: &Caller, at: &ToolRef, mark: &Mark, (now, draw): (Now, Draw<'_>)) -> Vec<Effect> {
        let own = |scope| cascade::key(caller, scope, &at.backend, &at.tool);
        let Some(key) = own(Scope::Session).or_else(|| own(Scope::User)) else { return Vec::new() };
        self.mark(&key.to_key(), mark, now, draw)
    }
}

fn provider_left(note: &str) -> Mark {
    Mark {
        to: Status::Down,
        classification: Classification::TechnicallyBroken,
        signature: Some(Arc::from(PROVIDER_LEFT)),
        origin: Origin::System,
        by: Arc::from("system"),
        note: Arc::from(note),
        since: None,
        recovery: None,
        user_action_hint: None,
    }
}

impl Mark {
    fn change(&self, now: Now) -> Change {
        let began = self.since.map(|at| at.min(now.wall)).map(|wall| Now { tick: now.tick_at(wall), wall });
        Change {
            to: self.to,
            classification: self.classification,
            signature: self.signature.clone().filter(|_| self.to != Status::Ok),
            cause: self.signature.as_deref().map_or(Cause::Other, Cause::of_signature),
            origin: self.origin,
            judged: false,
            by: Arc::clone(&self.by),
            note: Arc::clone(&self.note),
            as_of: began.unwrap_or(now),
            since: began,
            recovery: self.recovery,
            credential: None,
        }
    }

    fn diagnosis(&self, now: Now) -> Diagnosis {
        Diagnosis {
            classification: self.classification,
            note: text::bounded(&self.note).to_owned(),
            by: text::bounded(&self.by).to_owned(),
            at: now.wall,
            user_action_hint: self.user_action_hint.as_deref().map(|hint| text::bounded(hint).to_owned()),
        }
    }
}
