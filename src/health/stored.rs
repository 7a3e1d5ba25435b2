//! In-memory form ⇄ document (STATE 4.7). What lies ahead is carried over as a remaining time, bounded by 24 h, so that no
//! clock that was wrong when a document was written can keep a tool DOWN; what is past keeps its wall time for display.

use std::sync::Arc;
use std::time::Duration;

use super::cooldown::{Armed, Cooldowns, Grave};
use super::document::{Cooldown, Document, Key, Origin, Status, Tombstone};
use super::entry::{Cause, Entry};
use super::judge::Flapping;
use super::overrides;
use super::retest;
use super::view::wall_of;
use crate::clock::{Now, Wall, millis};

/// The furthest that anything stored may reach ahead.
const AHEAD_MAX_MS: i64 = 24 * 3_600 * 1_000;

impl Entry {
    /// The stored form as of now.
    pub(super) fn document(&self, key: &Key, now: Now) -> Document {
        Document {
            key: key.clone(),
            status: self.status,
            since: self.since.wall,
            last_checked_at: self.last_checked,
            expected_recovery_at: self.expected_recovery.map(|at| wall_of(at, now)),
            next_trial_at: (self.status == Status::Down).then(|| wall_of(self.next_trial, now)),
            last_diagnosis: self.diagnosis.clone(),
            history: self.history.clone(),
            cooldowns: self.cooldowns.armed.iter().map(|armed| stored_cooldown(armed, now)).collect(),
            tombstones: self.cooldowns.graves.iter().map(stored_tombstone).collect(),
            as_of: self.as_of.wall,
            origin: self.origin,
            signature: self.signature.as_deref().map(str::to_owned),
            classification: self.classification,
            epoch: self.epoch,
            version: self.version,
            level: self.level,
            flap: self.flap.stored(),
            credential: self.credential.map(|hash| hash.to_string()),
            overridden: self.overridden.as_ref().map(|standing| overrides::stored(standing, now)),
            created_at: self.created,
            updated_at: self.updated,
        }
    }

    /// The in-memory form of a stored document. A DOWN is believed only while its `expectedRecoveryAt` lies ahead;
    /// otherwise it is RETESTING at once (DESIGN 8).
    pub(super) fn load(document: Document, now: Now) -> Entry {
        let signature: Option<Arc<str>> = document.signature.as_deref().map(Arc::from);
        let ahead = document.expected_recovery_at.map(|at| deadline(at, now)).filter(|at| at.tick > now.tick);
        let trial = document.next_trial_at.map(|at| deadline(at, now));
        let judged = document.origin == Origin::Evidence
            && document.history.last().is_some_and(|last| last.by == super::scene::JUDGE);
        Entry {
            status: document.status,
            since: past(document.since, now),
            cleared: retest::last_clear(&document.history).map(|at| past(at, now).tick),
            as_of: past(document.as_of, now),
            last_checked: document.last_checked_at,
            expected_recovery: document.expected_recovery_at.map(|at| deadline(at, now)),
            next_trial: match (ahead, trial) {
                (Some(ahead), Some(trial)) if trial.tick < ahead.tick => trial,
                (Some(ahead), _) => ahead,
                (None, trial) => past(trial.map_or(now.wall, |trial| trial.wall), now),
            },
            origin: document.origin,
            cause: signature.as_deref().map_or(Cause::Other, Cause::of_signature),
            signature,
            classification: document.classification,
            judged,
            diagnosis: document.last_diagnosis,
            outages: retest::outages(&document.history),
            history: document.history,
            cooldowns: Cooldowns {
                armed: document.cooldowns.into_iter().map(|cooldown| load_cooldown(cooldown, now)).collect(),
                graves: document.tombstones.into_iter().map(|tombstone| load_tombstone(tombstone, now)).collect(),
            },
            epoch: document.epoch,
            version: document.version,
            level: document.level.max(1),
            flap: Flapping::load(document.flap, now),
            credential: document.credential.and_then(|hash| hash.parse().ok()),
            overridden: overrides::load(document.overridden, now),
            created: document.created_at,
            updated: document.updated_at,
        }
    }
}

/// A moment that has passed; one that claims to lie ahead is taken as now.
fn past(at: Wall, now: Now) -> Now {
    let at = at.min(now.wall);
    Now { tick: now.tick_at(at), wall: at }
}

/// A deadline: at most 24 h ahead, or past.
fn deadline(at: Wall, now: Now) -> Now {
    let at = at.min(now.wall.plus_millis(AHEAD_MAX_MS));
    Now { tick: now.tick_at(at), wall: at }
}

fn stored_cooldown(armed: &Armed, now: Now) -> Cooldown {
    Cooldown {
        error_signature: armed.signature.to_string(),
        user_id: armed.user.as_deref().map(str::to_owned),
        next_spawn_allowed_at: wall_of(armed.until, now),
        hits: armed.hits,
        last_classification: armed.class,
        last_triggered_at: armed.triggered.wall,
        level: armed.level,
    }
}

fn load_cooldown(stored: Cooldown, now: Now) -> Armed {
    let triggered = past(stored.last_triggered_at, now);
    let until = deadline(stored.next_spawn_allowed_at, now);
    Armed {
        signature: Arc::from(stored.error_signature),
        user: stored.user_id.map(Arc::from),
        until,
        hits: stored.hits,
        class: stored.last_classification,
        triggered,
        level: stored.level.max(1),
        interval: Duration::from_millis(u64::try_from(until.wall.0 - triggered.wall.0).unwrap_or(0)),
    }
}

fn stored_tombstone(grave: &Grave) -> Tombstone {
    Tombstone {
        error_signature: grave.signature.to_string(),
        user_id: grave.user.as_deref().map(str::to_owned),
        level: grave.level,
        interval_ms: millis(grave.interval),
        cleared_at: grave.cleared.wall,
    }
}

fn load_tombstone(stored: Tombstone, now: Now) -> Grave {
    Grave {
        signature: Arc::from(stored.error_signature),
        user: stored.user_id.map(Arc::from),
        level: stored.level.max(1),
        interval: Duration::from_millis(stored.interval_ms),
        cleared: past(stored.cleared_at, now),
    }
}
