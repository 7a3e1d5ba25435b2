//! What a caller is told about a tool: the effective entry of his cascade, as answers and the manifest show it.

use std::sync::Arc;

use super::caller::CredentialHash;
use super::document::{Key, Status};
use super::entry::Cause;
use super::overrides::{Force, Forced};
use crate::clock::{Now, Tick, Wall};
use crate::rules::{Classification, DispatchCode, Scope};

/// A tool's health for one caller at one moment. An OK view holds nothing and costs nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// OK, DEGRADED or DOWN.
    pub status: Status,
    /// DOWN whose next trial is due: listed as usable, admitted one call at a time.
    pub retesting: bool,
    /// Since when the status stands; `None` for OK.
    pub since: Option<Wall>,
    /// When a call failed last; `None` for OK, and where that was before a restart.
    pub failed_at: Option<Wall>,
    /// When somebody estimated the tool to be back; `None` when nobody did.
    pub expected_recovery_at: Option<Wall>,
    /// From when a trial is allowed (for a caller who waits for another's trial: when that lease ends); DOWN only.
    pub next_trial_at: Option<Wall>,
    /// The entry that decides; `None` for OK.
    pub entry: Option<Arc<Shown>>,
    /// What an operator decided against the evidence, if that applies.
    pub forced: Option<Arc<Forced>>,
}

impl View {
    /// Usable, as far as anybody knows.
    pub const OK: View = View {
        status: Status::Ok,
        retesting: false,
        since: None,
        failed_at: None,
        expected_recovery_at: None,
        next_trial_at: None,
        entry: None,
        forced: None,
    };

    pub(super) fn of(shown: Arc<Shown>, now: Now) -> View {
        let down = shown.status == Status::Down;
        View {
            status: shown.status,
            retesting: shown.due(now.tick),
            since: Some(shown.since.wall),
            failed_at: shown.failed_at.map(|at| now.wall_at(at)),
            expected_recovery_at: shown.expected_recovery.map(|at| wall_of(at, now)),
            next_trial_at: down.then(|| wall_of(shown.next_trial, now)),
            entry: Some(shown),
            forced: None,
        }
    }

    /// What is shown where an operator has decided, beside what is believed otherwise.
    pub(super) fn forced(forced: Arc<Forced>, believed: impl FnOnce() -> View, now: Now) -> View {
        let view = match forced.decision.force {
            Force::Ok => View::OK,
            Force::Down => View::of(forced.shown(), now),
            Force::Observe => believed(),
        };
        View { forced: Some(forced), ..view }
    }

    /// How a short-circuited call is named to its caller (DESIGN 4); `None` unless DOWN.
    pub fn code(&self) -> Option<DispatchCode> {
        (self.status == Status::Down).then_some(DispatchCode::BackendUnreachable)
    }

    /// Who is affected; `None` for OK.
    pub fn scope(&self) -> Option<Scope> {
        self.entry.as_ref().map(|shown| shown.key.scope)
    }
}

/// What an entry that is not OK shows. Immutable, so that reading it takes no lock.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    /// Whose entry it is: scope, scope id, backend, tool or `*`.
    pub key: Key,
    /// DEGRADED or DOWN.
    pub status: Status,
    /// When it was set.
    pub since: Now,
    /// When a call failed last, as far as memory knows.
    pub failed_at: Option<Tick>,
    /// When somebody estimated it to be back.
    pub expected_recovery: Option<Now>,
    /// From when a trial is allowed; meaningful for DOWN only.
    pub next_trial: Now,
    /// What it is put down to.
    pub classification: Option<Classification>,
    /// The kind of failure.
    pub signature: Option<Arc<str>>,
    /// In words, at most 512 bytes.
    pub note: Option<Arc<str>>,
    /// What the user concerned can do.
    pub user_action_hint: Option<Arc<str>>,
    /// The credential that the fault belongs to.
    pub credential: Option<CredentialHash>,
    pub(super) cause: Cause,
}

impl Shown {
    /// Whether it is RETESTING.
    pub fn due(&self, now: Tick) -> bool {
        self.status == Status::Down && self.next_trial.tick <= now
    }

    /// 1 DEGRADED, 2 RETESTING, 3 DOWN: what is worse at equal scope (DESIGN 8).
    pub(super) fn severity(&self, now: Tick) -> u8 {
        match self.status {
            Status::Ok => 0,
            Status::Degraded => 1,
            Status::Down if self.due(now) => 2,
            Status::Down => 3,
        }
    }
}

/// How a deadline reads on the wall: re-anchored while it lies ahead; as recorded once it has passed, but never as if it still
/// lay ahead (STATE 4.7).
pub(super) fn wall_of(deadline: Now, now: Now) -> Wall {
    if deadline.tick > now.tick { now.wall_at(deadline.tick) } else { deadline.wall.min(now.wall) }
}
