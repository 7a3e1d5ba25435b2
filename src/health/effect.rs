//! What a step of the state machine did, for whoever logs, counts, diagnoses or probes. Values only; nothing acts here.

use std::sync::Arc;

use super::document::{Key, Origin, Status};
use super::overrides::Override;
use crate::clock::Wall;
use crate::rules::Classification;

/// One thing that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// A status changed.
    Transition(Transition),
    /// A trial failed: still DOWN, at the next level.
    TrialFailed {
        /// The entry.
        key: Key,
        /// The level of the retest schedule from now on.
        level: u32,
        /// From when the next trial is allowed.
        next_trial_at: Wall,
    },
    /// A cooldown was armed or re-armed (a trigger of an active one only counts a hit).
    CooldownSet {
        /// The entry.
        key: Key,
        /// The kind of failure.
        signature: Arc<str>,
        /// Whose; `None` is scope-wide.
        user: Option<Arc<str>>,
        /// What the failure was classified as.
        classification: Classification,
        /// The deadline.
        until: Wall,
        /// Re-arms, from 1.
        level: u32,
    },
    /// A success removed cooldowns.
    Cleared {
        /// The entry.
        key: Key,
        /// How many.
        cooldowns: usize,
    },
    /// A diagnosis is to be made, and nobody else will be asked to make it (DESIGN 13).
    Claimed(Claim),
    /// An unclear failure asked for no diagnosis, because the token bucket is empty.
    DiagnosisThrottled {
        /// The entry.
        key: Key,
    },
    /// The backend is to be tried at [`super::CONFIRM_AFTER`]; each result goes to `Registry::confirm`.
    ConfirmBackend {
        /// The backend.
        backend: Arc<str>,
    },
    /// Distinct users with the same fault made it one of the project.
    Widened {
        /// The entry of the project.
        key: Key,
        /// The kind of failure.
        signature: Arc<str>,
        /// How many users.
        users: usize,
    },
    /// An operator decided against the evidence.
    Overridden {
        /// The entry.
        key: Key,
        /// The decision.
        decision: Override,
    },
    /// Such a decision was taken back, or its time is over.
    OverrideEnded {
        /// The entry.
        key: Key,
        /// The decision that stood.
        decision: Override,
    },
    /// A document was deleted for good.
    Deleted {
        /// The entry.
        key: Key,
        /// The status that it had; it reads as OK from now on.
        status: Status,
    },
    /// Entries left memory because the bound was reached.
    Evicted {
        /// OK entries: they live on in the store.
        idle: usize,
        /// Entries that were not OK: they read as OK from now on (fail open).
        unwell: usize,
    },
}

/// A change of status.
#[derive(Clone, Debug, PartialEq)]
pub struct Transition {
    /// The entry.
    pub key: Key,
    /// The status before.
    pub from: Status,
    /// The status now.
    pub to: Status,
    /// What it is put down to; WORKING on a recovery.
    pub classification: Classification,
    /// The kind of failure that led to it, or that has ended.
    pub signature: Option<Arc<str>>,
    /// Whose hand.
    pub origin: Origin,
    /// Who in particular: `judge`, `rule:<id>`, `success`, `confirmation`, an engine, a person.
    pub by: Arc<str>,
    /// In words.
    pub note: Arc<str>,
    /// What the user concerned can do.
    pub user_action_hint: Option<Arc<str>>,
    /// When somebody estimated it to be back.
    pub expected_recovery_at: Option<Wall>,
    /// How long the status before had lasted, in milliseconds.
    pub lasted_ms: u64,
}

/// The seed of a diagnosis job.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// The entry.
    pub key: Key,
    /// The kind of failure.
    pub signature: Arc<str>,
    /// Whose cooldown was claimed; `None` is scope-wide.
    pub user: Option<Arc<str>>,
    /// Who made the call.
    pub originating_user: Option<Arc<str>>,
    /// In which session.
    pub originating_session: Option<Arc<str>>,
}
