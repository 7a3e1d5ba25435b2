//! A health document in memory: the same facts on ticks, and the one function that changes a status.

use std::sync::Arc;
use std::time::Duration;

use super::caller::CredentialHash;
pub(super) use super::cause::Cause;
use super::cooldown::Cooldowns;
use super::document::{Diagnosis, HistoryEntry, Key, Origin, Status};
use super::effect::{Effect, Transition};
use super::judge::Flapping;
use super::overrides::Override;
use super::retest;
use super::text;
use super::view::{Shown, wall_of};
use crate::clock::{Now, Tick, Wall, millis};
use crate::rules::Classification;

/// Repeated entries of one class and status within this time are one (DESIGN 8).
const COALESCE_MS: i64 = 60_000;

/// The facts of one document.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) status: Status,
    pub(super) since: Now,
    pub(super) as_of: Now,
    pub(super) last_checked: Option<Wall>,
    pub(super) expected_recovery: Option<Now>,
    pub(super) next_trial: Now,
    pub(super) origin: Origin,
    pub(super) signature: Option<Arc<str>>,
    pub(super) classification: Option<Classification>,
    pub(super) cause: Cause,
    /// The judge itself derived the status: such a DEGRADED leaves by the judge's own threshold.
    pub(super) judged: bool,
    pub(super) diagnosis: Option<Diagnosis>,
    pub(super) history: Vec<HistoryEntry>,
    pub(super) cooldowns: Cooldowns,
    pub(super) epoch: u64,
    pub(super) version: u64,
    pub(super) level: u32,
    /// When a DOWN was cleared last.
    pub(super) cleared: Option<Tick>,
    /// How long past outages were that nobody had estimated; no more than the history could hold.
    pub(super) outages: Vec<Duration>,
    pub(super) flap: Flapping,
    pub(super) credential: Option<CredentialHash>,
    /// What an operator decided, and until when.
    pub(super) overridden: Option<(Override, Now)>,
    pub(super) created: Wall,
    pub(super) updated: Wall,
}

/// A status to be set, and everything that is said with it.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) to: Status,
    pub(super) classification: Classification,
    pub(super) signature: Option<Arc<str>>,
    pub(super) cause: Cause,
    pub(super) origin: Origin,
    pub(super) judged: bool,
    pub(super) by: Arc<str>,
    pub(super) note: Arc<str>,
    /// Start of the evidence.
    pub(super) as_of: Now,
    /// When it began, where that is known and not now.
    pub(super) since: Option<Now>,
    /// A stated estimate, as a time from now.
    pub(super) recovery: Option<Duration>,
    pub(super) credential: Option<CredentialHash>,
}

impl Change {
    /// A success, or an outcome that disproves the cause, which began at `as_of`.
    pub(super) fn recovery(by: &str, note: Arc<str>, as_of: Now) -> Change {
        Change {
            to: Status::Ok,
            classification: Classification::Working,
            signature: None,
            cause: Cause::Other,
            origin: Origin::Success,
            judged: false,
            by: Arc::from(by),
            note,
            as_of,
            since: None,
            recovery: None,
            credential: None,
        }
    }
}

impl Entry {
    pub(super) fn new(now: Now) -> Entry {
        Entry {
            status: Status::Ok,
            since: now,
            as_of: Now::default(),
            last_checked: None,
            expected_recovery: None,
            next_trial: Now::default(),
            origin: Origin::Evidence,
            signature: None,
            classification: None,
            cause: Cause::Other,
            judged: false,
            diagnosis: None,
            history: Vec::new(),
            cooldowns: Cooldowns::default(),
            epoch: 0,
            version: 0,
            level: 1,
            cleared: None,
            outages: Vec::new(),
            flap: Flapping::default(),
            credential: None,
            overridden: None,
            created: now.wall,
            updated: now.wall,
        }
    }

    /// Whether the status was set by evidence of the same time as a call that began at `started`, or later: such a call
    /// changes nothing.
    pub(super) fn is_later_than(&self, started: Now) -> bool {
        self.epoch > 0 && started.tick <= self.as_of.tick
    }

    /// Whether it leaves by the judge's own threshold, not by one success.
    pub(super) fn is_degraded_by_judge(&self) -> bool {
        self.status == Status::Degraded && self.judged
    }

    /// Whether an operator set it DOWN until a time that lies ahead. A call that passes all the same, because the tool is only
    /// observed or because such calls are never refused, does not shorten that.
    pub(super) fn is_set_down(&self, now: Now) -> bool {
        self.status == Status::Down && self.origin == Origin::Admin && !self.is_due(now)
    }

    /// Whether it is RETESTING.
    pub(super) fn is_due(&self, now: Now) -> bool {
        self.status == Status::Down && self.next_trial.tick <= now.tick
    }

    /// How far ahead the estimated recovery lies.
    pub(super) fn recovery_ahead(&self, now: Now) -> Option<Duration> {
        self.expected_recovery.map(|at| at.tick.since(now.tick)).filter(|ahead| !ahead.is_zero())
    }

    /// Sets a status, or the same one anew. `draw` is in [0, 1).
    pub(super) fn set(&mut self, key: &Key, change: Change, now: Now, bounds: (usize, f64)) -> Effect {
        let (history_size, draw) = bounds;
        let from = self.status;
        let lasted_ms = millis(now.tick.since(self.since.tick));
        if change.to == Status::Down {
            let relapse = self.cleared.is_some_and(|at| now.tick.since(at) < retest::RELAPSE);
            self.level = if relapse || from == Status::Down { retest::next_level(self.level) } else { 1 };
        } else if from == Status::Down && change.origin == Origin::Success {
            self.cleared = Some(now.tick);
            if self
                .history
                .iter()
                .rfind(|entry| entry.status == Status::Down)
                .is_some_and(|down| down.recovery_at.is_none())
            {
                self.outages.push(now.tick.since(self.since.tick));
                let surplus = self.outages.len().saturating_sub(history_size / 2);
                self.outages.drain(..surplus);
            }
        }
        let judged_estimate = || if change.origin == Origin::Evidence { retest::estimate(&self.outages) } else { None };
        self.expected_recovery = match change.to {
            Status::Ok => None,
            Status::Degraded => change.recovery.map(|ahead| now.after(retest::bounded(ahead))),
            Status::Down => change.recovery.map(retest::bounded).or_else(judged_estimate).map(|ahead| now.after(ahead)),
        };
        if change.to == Status::Down {
            self.next_trial = self.expected_recovery.unwrap_or_else(|| now.after(retest::wait(self.level, draw)));
        }
        if from != change.to {
            self.since = change.since.unwrap_or(now);
            self.epoch = self.epoch.saturating_add(1);
        }
        if change.to == Status::Ok {
            self.flap.recovered();
        }
        let ended = self.signature.take();
        self.signature = change.signature.clone();
        self.classification = (change.to != Status::Ok).then_some(change.classification);
        self.status = change.to;
        self.as_of = change.as_of;
        self.cause = change.cause;
        self.origin = change.origin;
        self.judged = change.judged;
        self.credential = change.credential;
        self.remember(&change, history_size, now);
        Effect::Transition(Transition {
            key: key.clone(),
            from,
            to: change.to,
            classification: change.classification,
            signature: change.signature.or(ended),
            origin: change.origin,
            by: change.by,
            note: change.note,
            user_action_hint: self.user_action_hint().map(Arc::from),
            expected_recovery_at: self.expected_recovery.map(|at| wall_of(at, now)),
            lasted_ms,
        })
    }

    /// A trial failed: DOWN goes on at the next level. What was only estimated has proved wrong and is dropped.
    pub(super) fn retrip(&mut self, key: &Key, now: Now, draw: f64, hint: Option<Duration>) -> Effect {
        self.level = retest::next_level(self.level);
        self.expected_recovery = hint.map(|ahead| now.after(retest::bounded(ahead)));
        self.next_trial = self.expected_recovery.unwrap_or_else(|| now.after(retest::wait(self.level, draw)));
        Effect::TrialFailed { key: key.clone(), level: self.level, next_trial_at: wall_of(self.next_trial, now) }
    }

    fn remember(&mut self, change: &Change, history_size: usize, now: Now) {
        let recovery_at = self.expected_recovery.map(|at| wall_of(at, now));
        let note = text::bounded(&change.note);
        // The wall clock may have been set back; the order of the history may not.
        let at = self.history.last().map_or(now.wall, |last| last.at.max(now.wall));
        if let Some(last) = self.history.last_mut()
            && last.classification == change.classification
            && last.status == change.to
            && at.0 - last.at.0 < COALESCE_MS
        {
            last.note = note.to_owned();
            last.recovery_at = recovery_at;
            return;
        }
        let by = text::bounded(&change.by).to_owned();
        let (classification, status) = (change.classification, change.to);
        self.history.push(HistoryEntry { classification, status, note: note.to_owned(), by, at, recovery_at });
        let surplus = self.history.len().saturating_sub(history_size.max(1));
        self.history.drain(..surplus);
    }

    fn user_action_hint(&self) -> Option<&str> {
        self.diagnosis.as_ref().filter(|_| self.status != Status::Ok)?.user_action_hint.as_deref()
    }

    /// What readers see; `None` for OK.
    pub(super) fn shown(&self, key: &Key, failed_at: Option<Tick>) -> Option<Shown> {
        if self.status == Status::Ok {
            return None;
        }
        let said = self.history.last().filter(|last| last.status == self.status && !last.note.is_empty());
        Some(Shown {
            key: key.clone(),
            status: self.status,
            since: self.since,
            failed_at,
            expected_recovery: self.expected_recovery,
            next_trial: self.next_trial,
            classification: self.classification,
            signature: self.signature.clone(),
            note: said.map(|last| Arc::from(last.note.as_str())),
            user_action_hint: self.user_action_hint().map(Arc::from),
            credential: self.credential,
            cause: self.cause,
        })
    }
}
