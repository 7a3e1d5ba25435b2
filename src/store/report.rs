//! What the store tells its surroundings: how opening went, why a commit failed, what an operator should know.

use std::path::PathBuf;
use std::sync::Arc;

use crate::clock::Wall;

/// How the file was found when it was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opened {
    /// There was none, or an empty one.
    Fresh,
    /// It was ours and whole.
    Existing,
    /// It was not ours, damaged, or written by a newer version. It was renamed and a new one started.
    Quarantined {
        /// Where the old file lies now.
        to: PathBuf,
        /// What was wrong with it.
        why: String,
    },
    /// It cannot be written now. What can be read is read, memory goes on, the writer keeps trying.
    Unwritable {
        /// What stands in the way.
        why: String,
    },
}

/// Why there is no store at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// Another process has it.
    #[error("state file {} is in use by another process; give every toolvane its own file (`store.path`) or stop the other one", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The writer's thread could not be started.
    #[error("cannot start the thread that writes the state file: {why}")]
    NoThread {
        /// The system's reason.
        why: String,
    },
}

/// Why documents were not acknowledged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommitError {
    /// This attempt failed. The documents stay queued.
    #[error("not stored yet, will be retried: {why}")]
    NotStored {
        /// The disk's or redb's reason.
        why: String,
    },
    /// Too much waits already, the documents were not taken.
    #[error("not stored: {queued} documents wait for the disk already, no more fit")]
    QueueFull {
        /// How many wait.
        queued: usize,
    },
    /// The store is closed.
    #[error("not stored: the store is closed")]
    Closed,
}

/// Something that an operator may have to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// The file is being checked, as at every start, and repaired if the process that wrote it was killed.
    Repairing {
        /// Done so far, 0 to 99.
        percent: u8,
    },
    /// A commit failed; memory goes on. Sent for every attempt.
    CommitFailed {
        /// The reason.
        why: String,
        /// Which attempt in a row this was, from 1.
        attempt: u32,
        /// Documents that wait.
        queued: usize,
    },
    /// Commits work again.
    Recovered {
        /// Attempts that failed before.
        attempts: u32,
        /// When the first of them failed.
        failing_since: Wall,
    },
    /// The queue was full and a document was dropped; memory still holds it. Sent for the 1st, 2nd, 4th, 8th … of them.
    QueueFull {
        /// Documents dropped since the start.
        dropped: u64,
    },
    /// While the store was running, the file turned out unusable, was renamed, and a new one was started. What was written
    /// before is in the old one only: whoever holds it in memory may write it again.
    Quarantined {
        /// Where the old file lies now.
        to: PathBuf,
        /// What was wrong with it.
        why: String,
    },
    /// A document could not be read or written and counts as absent.
    Unreadable {
        /// The reason.
        why: String,
    },
}

/// Where reports go. It may be called while the file is held: it must not call the store.
pub type ReportSink = Arc<dyn Fn(Report) + Send + Sync>;

/// Counters since the start, and the state of the moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Transactions committed.
    pub commits: u64,
    /// Documents written or deleted by them.
    pub documents: u64,
    /// Attempts that failed.
    pub failures: u64,
    /// Documents dropped because too many waited.
    pub dropped: u64,
    /// Documents that could not be read or written.
    pub unreadable: u64,
    /// Documents that wait or are being written.
    pub queued: usize,
    /// When the last transaction was committed.
    pub last_commit: Option<Wall>,
    /// Since when every attempt has failed; `None` while all is well.
    pub failing_since: Option<Wall>,
    /// Size of the file in bytes; 0 if it cannot be told.
    pub file_bytes: u64,
}
