//! Jobs that wait, are worked on, or were done lately: bounded, on disk, handed out under leases.
//!
//! A lease that runs out gives its job back, so that a worker that dies loses nothing; neither does a process that dies, since
//! every change of a job is written before anybody is told of it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use super::job::{Job, State};
use crate::clock::{Clock, Now, Tick};
use crate::health::{Claim, ToolRef};
use crate::store::Store;

/// Jobs that are done and still shown.
const DONE_MAX: usize = 100;
/// Tries before a job is given up.
pub(super) const ATTEMPTS_MAX: u32 = 8;
/// The longest lease, and the longest wait between two tries.
pub const LEASE_MAX: Duration = Duration::from_secs(15 * 60);

const PREFIX: &str = "job/";

/// A job and where it stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Entry {
    /// The job.
    #[serde(flatten)]
    pub job: Job,
    /// Where it stands.
    #[serde(flatten)]
    pub state: State,
}

#[derive(Debug)]
struct Held {
    entry: Entry,
    /// When it may be handed out (queued), or the lease runs out (leased).
    due: Tick,
}

/// Why a job cannot be had, or its end not be told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    /// There is none of that name.
    #[error("there is no job {0}")]
    Unknown(String),
    /// Somebody else has it.
    #[error("the job is leased to {0}")]
    Leased(String),
    /// It is over.
    #[error("the job is done already")]
    Done,
    /// It is not on disk.
    #[error("not on disk yet: {0}")]
    NotStored(String),
}

/// All jobs.
#[derive(Debug)]
pub struct Queue {
    held: Mutex<Vec<Held>>,
    store: Option<Arc<Store>>,
    clock: Arc<dyn Clock>,
    max: usize,
    bell: Notify,
    life: i64,
}

impl Queue {
    /// The queue with what the store remembers. A job that a worker of the last process had waits again; one that somebody
    /// outside has leased stays his until his lease runs out.
    pub fn new(store: Option<Arc<Store>>, clock: Arc<dyn Clock>, max: usize) -> Queue {
        let now = clock.now();
        let records = store.as_ref().map(|store| store.records(PREFIX)).unwrap_or_default();
        let entries = records.iter().filter_map(|(_, bytes)| serde_json::from_slice::<Entry>(bytes).ok());
        let mut held: Vec<Held> = entries.map(|entry| remembered(entry, now)).collect();
        held.sort_by_key(|held| held.entry.job.created_at);
        Queue { held: Mutex::new(held), store, clock, max: max.max(1), bell: Notify::new(), life: now.wall.0 }
    }

    /// Adds the job of a claim, or what it says to the one that is under way; whether there was room.
    pub fn add(&self, claim: &Claim, detail: &str, now: Now) -> bool {
        let mut all = self.lock();
        let open = |held: &&mut Held| !matches!(held.entry.state, State::Done { .. });
        if let Some(held) = all.iter_mut().filter(open).find(|held| held.entry.job.is_same(claim)) {
            held.entry.job.add_detail(detail);
            self.keep(&held.entry);
            return true;
        }
        let waiting = all.iter().filter(|held| !matches!(held.entry.state, State::Done { .. })).count();
        if waiting >= self.max {
            return false;
        }
        // Unique over restarts: the start of this life, and the number of the job in it.
        let number = all.iter().filter(|held| held.entry.job.created_at.0 >= self.life).count();
        let mut id = format!("{:x}-{number}", self.life);
        while all.iter().any(|held| held.entry.job.id == id) {
            id = format!("{:x}-{}", self.life, fastrand::u32(..));
        }
        let job = Job::of_claim(id, claim, detail, now);
        let entry = Entry { job, state: State::Queued { not_before: now.wall } };
        self.keep(&entry);
        all.push(Held { entry, due: now.tick });
        drop(all);
        self.bell.notify_waiters();
        true
    }

    /// What another failure of the same kind said.
    pub fn add_detail(&self, at: &ToolRef, signature: &str, detail: &str) {
        let mut all = self.lock();
        let same = |held: &&mut Held| {
            let job = &held.entry.job;
            !matches!(held.entry.state, State::Done { .. })
                && job.error_signature == signature
                && job.key.backend == *at.backend
                && job.key.tool_name == *at.tool
        };
        for held in all.iter_mut().filter(same) {
            if held.entry.job.add_detail(detail) {
                self.keep(&held.entry);
            }
        }
    }

    /// Leases the next job that is due to `by`; acknowledged by nobody yet, see [`Queue::settled`].
    pub fn lease(&self, by: &str, length: Duration, now: Now) -> Option<Job> {
        let mut all = self.lock();
        give_back(&mut all, now);
        let due = |held: &&mut Held| matches!(held.entry.state, State::Queued { .. }) && held.due <= now.tick;
        let held = all.iter_mut().find(due)?;
        self.lease_held(held, (by, length), now);
        Some(held.entry.job.clone())
    }

    /// Leases one job by its name.
    ///
    /// # Errors
    /// If it is not there, over, or somebody else's.
    pub fn lease_one(&self, id: &str, by: &str, length: Duration, now: Now) -> Result<Job, JobError> {
        let mut all = self.lock();
        give_back(&mut all, now);
        let held = find(&mut all, id)?;
        match &held.entry.state {
            State::Done { .. } => return Err(JobError::Done),
            State::Leased { by: other, .. } if other != by => return Err(JobError::Leased(other.clone())),
            _ => {}
        }
        self.lease_held(held, (by, length), now);
        Ok(held.entry.job.clone())
    }

    fn lease_held(&self, held: &mut Held, (by, length): (&str, Duration), now: Now) {
        let until = now.after(length.min(LEASE_MAX));
        held.due = until.tick;
        held.entry.job.attempts = held.entry.job.attempts.saturating_add(1);
        held.entry.state = State::Leased { by: by.to_owned(), until: until.wall };
        self.keep(&held.entry);
    }

    /// Gives a job back, to be tried again after `wait`; after too many tries it is given up.
    pub fn retry(&self, id: &str, by: &str, (why, wait): (&str, Duration), now: Now) -> Result<(), JobError> {
        let mut all = self.lock();
        let held = owned(&mut all, id, by)?;
        if held.entry.job.attempts >= ATTEMPTS_MAX {
            let outcome = format!("given up after {ATTEMPTS_MAX} tries: {why}");
            held.entry.state = State::Done { at: now.wall, by: by.to_owned(), outcome };
        } else {
            let then = now.after(wait.min(LEASE_MAX));
            held.due = then.tick;
            held.entry.state = State::Queued { not_before: then.wall };
        }
        self.keep(&held.entry);
        drop(all);
        self.bell.notify_waiters();
        Ok(())
    }

    /// The job, if `by` may tell its end: nobody else has it.
    ///
    /// # Errors
    /// If it is not there, over, or somebody else's.
    pub fn owned(&self, id: &str, by: &str) -> Result<Job, JobError> {
        owned(&mut self.lock(), id, by).map(|held| held.entry.job.clone())
    }

    /// The job is over.
    ///
    /// # Errors
    /// If it is not there, over already, or somebody else's.
    pub fn done(&self, id: &str, by: &str, outcome: &str, now: Now) -> Result<(), JobError> {
        let mut all = self.lock();
        let held = owned(&mut all, id, by)?;
        held.entry.state = State::Done { at: now.wall, by: by.to_owned(), outcome: outcome.to_owned() };
        self.keep(&held.entry);
        let is_done = |held: &Held| matches!(held.entry.state, State::Done { .. });
        let mut surplus = all.iter().filter(|held| is_done(held)).count().saturating_sub(DONE_MAX);
        all.retain(|held| {
            let goes = surplus > 0 && is_done(held);
            if goes {
                surplus -= 1;
                self.forget(&held.entry.job.id);
            }
            !goes
        });
        Ok(())
    }

    /// All jobs, oldest first.
    pub fn list(&self, now: Now) -> Vec<Entry> {
        let mut all = self.lock();
        give_back(&mut all, now);
        all.iter().map(|held| held.entry.clone()).collect()
    }

    /// Waits until everything so far is on disk.
    ///
    /// # Errors
    /// Why it is not.
    pub async fn settled(&self) -> Result<(), JobError> {
        let Some(store) = &self.store else { return Ok(()) };
        store.flush().await.map_err(|error| JobError::NotStored(error.to_string()))
    }

    /// Waits until there may be something to do, a second at most.
    pub(super) async fn stirred(&self) {
        let _ = tokio::time::timeout(Duration::from_secs(1), self.bell.notified()).await;
    }

    /// The time.
    pub(super) fn now(&self) -> Now {
        self.clock.now()
    }

    fn keep(&self, entry: &Entry) {
        if let (Some(store), Ok(bytes)) = (&self.store, serde_json::to_vec(entry)) {
            store.keep(&format!("{PREFIX}{}", entry.job.id), Some(bytes));
        }
    }

    fn forget(&self, id: &str) {
        if let Some(store) = &self.store {
            store.keep(&format!("{PREFIX}{id}"), None);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The name that workers of this process lease under.
pub(super) const OWN: &str = "toolvane";

fn remembered(mut entry: Entry, now: Now) -> Held {
    let due = match &entry.state {
        State::Leased { by, .. } if by == OWN => {
            entry.state = State::Queued { not_before: now.wall };
            now.tick
        }
        State::Leased { until: at, .. } | State::Queued { not_before: at } => {
            // No clock that was wrong then can hold a job longer than a lease lasts.
            now.tick_at(*at).min(now.tick.after(LEASE_MAX))
        }
        State::Done { .. } => Tick(0),
    };
    Held { entry, due }
}

/// Leases that have run out give their jobs back.
fn give_back(all: &mut [Held], now: Now) {
    for held in all {
        if matches!(held.entry.state, State::Leased { .. }) && held.due <= now.tick {
            held.entry.state = State::Queued { not_before: now.wall };
        }
    }
}

fn find<'a>(all: &'a mut [Held], id: &str) -> Result<&'a mut Held, JobError> {
    all.iter_mut().find(|held| held.entry.job.id == id).ok_or_else(|| JobError::Unknown(id.to_owned()))
}

fn owned<'a>(all: &'a mut [Held], id: &str, by: &str) -> Result<&'a mut Held, JobError> {
    let held = find(all, id)?;
    match &held.entry.state {
        State::Done { .. } => Err(JobError::Done),
        State::Leased { by: other, .. } if other != by && other != OWN => Err(JobError::Leased(other.clone())),
        _ => Ok(held),
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
