//! The one thread that commits, and the state that it shares with readers and callers.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, TryLockError};
use std::time::Duration;

use tokio::sync::oneshot;

use super::file::{self, File};
use super::queue::{Batch, Change, Changes, Place, Pushed, Queue};
use super::report::{CommitError, OpenError, Opened, Report, Stats};
use super::trouble::Refusal;
use super::{InstallKey, Settings};
use crate::clock::Wall;
use crate::health::{Document, Key};

/// How long evidence may wait for company before it is committed (DESIGN 8).
const WINDOW: Duration = Duration::from_millis(50);
/// Waits between attempts while the disk refuses: doubling between these. Somebody who waits for an answer cuts them short.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

pub(super) type Answer = oneshot::Receiver<Result<(), CommitError>>;

/// What the writer's thread shares with everybody else.
#[derive(Debug)]
pub(super) struct Shared {
    settings: Settings,
    queue: Mutex<Queue>,
    wake: Condvar,
    /// `None` while the file cannot be opened. Held for writing only while it is opened or closed.
    file: RwLock<Option<File>>,
    stats: Mutex<Stats>,
}

impl Shared {
    pub(super) fn open(mut settings: Settings) -> Result<(Shared, Opened), OpenError> {
        let mut stats = Stats::default();
        let (file, opened) = match file::open(&settings) {
            Ok((file, opened)) => (Some(file), opened),
            Err(Refusal::InUse) => return Err(OpenError::InUse { path: settings.path }),
            Err(refusal) => {
                stats.failing_since = Some(settings.clock.now().wall);
                (file::open_read_only(&settings.path), Opened::Unwritable { why: refusal.into_reason() })
            }
        };
        // One key for the life of the process: a file that is started anew meanwhile gets the same.
        settings.fresh_key = file.as_ref().map_or(settings.fresh_key, File::install_key);
        let shared = Shared {
            queue: Mutex::new(Queue::new(settings.queue_max)),
            wake: Condvar::new(),
            file: RwLock::new(file),
            stats: Mutex::new(stats),
            settings,
        };
        Ok((shared, opened))
    }

    pub(super) fn push(&self, key: Place, change: Change) -> Pushed {
        let mut queue = self.queue();
        let before = queue.is_idle();
        let pushed = queue.push(key, change);
        // The writer sleeps until there is something, and then until it becomes urgent.
        if before || queue.is_urgent() {
            self.wake.notify_one();
        }
        pushed
    }

    pub(super) fn enqueue(&self, changes: Vec<(Place, Change)>) -> Result<Answer, CommitError> {
        let (waiter, answer) = oneshot::channel();
        self.queue().push_all(changes, waiter)?;
        self.wake.notify_one();
        Ok(answer)
    }

    pub(super) fn close(&self) -> Answer {
        let (waiter, answer) = oneshot::channel();
        self.queue().close(waiter);
        self.wake.notify_one();
        answer
    }

    pub(super) fn report_dropped(&self) {
        let dropped = {
            let mut stats = self.stats_mut();
            stats.dropped += 1;
            stats.dropped
        };
        // Ever rarer: a full queue is the consequence of trouble that has been reported already.
        if dropped.is_power_of_two() {
            (self.settings.report)(Report::QueueFull { dropped });
        }
    }

    pub(super) fn read(&self, key: &Key) -> Option<Document> {
        if let Some(waiting) = self.queue().find(key) {
            return waiting;
        }
        // While the file is being opened again this would wait for the disk; a call must not.
        let file = match self.file.try_read() {
            Ok(file) => file,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        file.as_ref()?.get(key).unwrap_or_else(|why| {
            self.unreadable(vec![why]);
            None
        })
    }

    pub(super) fn load_all(&self) -> Vec<Document> {
        let read = match &*self.file.read().unwrap_or_else(PoisonError::into_inner) {
            Some(file) => file.all(),
            None => Ok((Vec::new(), Vec::new())),
        };
        let (documents, unreadable) = read.unwrap_or_else(|why| (Vec::new(), vec![why]));
        self.unreadable(unreadable);
        documents
    }

    pub(super) fn records(&self, prefix: &str) -> Vec<(String, Vec<u8>)> {
        let read = match &*self.file.read().unwrap_or_else(PoisonError::into_inner) {
            Some(file) => file.records(prefix),
            None => Ok(Vec::new()),
        };
        read.unwrap_or_else(|why| {
            self.unreadable(vec![why]);
            Vec::new()
        })
    }

    pub(super) fn install_key(&self) -> InstallKey {
        self.settings.fresh_key
    }

    pub(super) fn path(&self) -> &std::path::Path {
        &self.settings.path
    }

    pub(super) fn stats(&self) -> Stats {
        let queued = self.queue().len();
        let file_bytes = std::fs::metadata(&self.settings.path).map_or(0, |found| found.len());
        Stats { queued, file_bytes, ..self.stats_mut().clone() }
    }

    fn unreadable(&self, reasons: Vec<String>) {
        self.stats_mut().unreadable += reasons.len() as u64;
        for why in reasons {
            (self.settings.report)(Report::Unreadable { why });
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stats_mut(&self) -> MutexGuard<'_, Stats> {
        self.stats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sleeps until there is something to do, then until the window ends or it becomes urgent.
    fn next_batch(&self) -> Option<Batch> {
        let asleep = self.wake.wait_while(self.queue(), |queue| queue.is_idle() && !queue.is_closing());
        let queue = asleep.unwrap_or_else(PoisonError::into_inner);
        let gathering = self.wake.wait_timeout_while(queue, WINDOW, |queue| !queue.is_urgent());
        let (mut queue, _) = gathering.unwrap_or_else(PoisonError::into_inner);
        (!queue.is_idle()).then(|| queue.take())
    }

    /// Sleeps until it is time for another attempt, or somebody wants an answer.
    fn next_attempt(&self, after: Duration) -> Batch {
        let pause = |queue: &mut Queue| !queue.somebody_waits() && !queue.is_closing();
        let paused = self.wake.wait_timeout_while(self.queue(), after, pause);
        let (mut queue, _) = paused.unwrap_or_else(PoisonError::into_inner);
        queue.take()
    }

    /// Writes a batch, opening the file first if the last attempt lost it.
    fn attempt(&self, changes: &Changes) -> Result<(), String> {
        self.open_again_if_lost()?;
        let applied = {
            let file = self.file.read().unwrap_or_else(PoisonError::into_inner);
            match file.as_ref() {
                Some(file) if !changes.is_empty() => file.apply(changes),
                _ => Ok(Vec::new()),
            }
        };
        match applied {
            Ok(unwritable) => {
                self.unreadable(unwritable);
                Ok(())
            }
            Err(refusal) => {
                // After a failed write redb answers nothing more until it is opened again; readers should not have to
                // wait for the next attempt.
                self.file.write().unwrap_or_else(PoisonError::into_inner).take();
                let _ = self.open_again_if_lost();
                Err(refusal.into_reason())
            }
        }
    }

    fn open_again_if_lost(&self) -> Result<(), String> {
        if matches!(*self.file.read().unwrap_or_else(PoisonError::into_inner), Some(File::ReadWrite(..))) {
            return Ok(());
        }
        let mut file = self.file.write().unwrap_or_else(PoisonError::into_inner);
        // Our own reading handle would stand in the way of the writing one.
        file.take();
        let opened = file::open(&self.settings);
        let (held, how) = match opened {
            Ok((opened, how)) => (Some(opened), Ok(how)),
            Err(refusal) => (file::open_read_only(&self.settings.path), Err(refusal.into_reason())),
        };
        *file = held;
        drop(file);
        if let Opened::Quarantined { to, why } = how? {
            (self.settings.report)(Report::Quarantined { to, why });
        }
        Ok(())
    }

    fn succeeded(&self, batch: Batch, trouble: Option<Trouble>) {
        self.queue().settle();
        {
            let mut stats = self.stats_mut();
            stats.failing_since = None;
            if !batch.changes.is_empty() {
                stats.commits += 1;
                stats.documents += batch.changes.len() as u64;
                stats.last_commit = Some(self.settings.clock.now().wall);
            }
        }
        if let Some(Trouble { attempts, since }) = trouble {
            (self.settings.report)(Report::Recovered { attempts, failing_since: since });
        }
        for waiter in batch.waiters {
            // Whoever stopped waiting does not want the answer.
            let _ = waiter.send(Ok(()));
        }
    }

    fn failed(&self, batch: Batch, why: &str, before: Option<Trouble>) -> Trouble {
        drop(batch.changes);
        let queued = {
            let mut queue = self.queue();
            queue.give_back();
            queue.len()
        };
        let since = before.map_or_else(|| self.settings.clock.now().wall, |trouble| trouble.since);
        let attempts = before.map_or(0, |trouble| trouble.attempts).saturating_add(1);
        {
            let mut stats = self.stats_mut();
            stats.failures += 1;
            stats.failing_since.get_or_insert(since);
        }
        (self.settings.report)(Report::CommitFailed { why: why.to_owned(), attempt: attempts, queued });
        for waiter in batch.waiters {
            let _ = waiter.send(Err(CommitError::NotStored { why: why.to_owned() }));
        }
        Trouble { attempts, since }
    }

    fn stop(&self) {
        self.file.write().unwrap_or_else(PoisonError::into_inner).take();
        self.queue().stop();
    }
}

/// Attempts that failed in a row.
#[derive(Clone, Copy, Debug)]
struct Trouble {
    attempts: u32,
    since: Wall,
}

impl Trouble {
    fn pause(self) -> Duration {
        RETRY.0.saturating_mul(1 << self.attempts.saturating_sub(1).min(5)).min(RETRY.1)
    }
}

/// The life of the writer's thread: until the store is closed and what waited is written, or could not be.
pub(super) fn run(shared: &Arc<Shared>) {
    let mut trouble = shared.stats_mut().failing_since.map(|since| Trouble { attempts: 1, since });
    loop {
        let batch = match trouble {
            Some(trouble) => shared.next_attempt(trouble.pause()),
            None => match shared.next_batch() {
                Some(batch) => batch,
                None => break,
            },
        };
        match shared.attempt(&batch.changes) {
            Ok(()) => shared.succeeded(batch, trouble.take()),
            Err(why) => {
                trouble = Some(shared.failed(batch, &why, trouble));
                if shared.queue().is_closing() {
                    break;
                }
            }
        }
    }
    shared.stop();
}
