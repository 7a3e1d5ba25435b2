//! The embedded store (DESIGN 8): one redb file that keeps health documents over restarts. It implements
//! [`crate::health::Backing`] for write-behind and answers [`Store::commit`] only once the bytes are safe.
//!
//! - `record`: how one document lies in the file, and under which key.
//! - `queue`: what waits to be written, newest per document, bounded. Pure.
//! - `file`: opening, judging, setting aside and reading the file. `trouble`: what goes wrong with it, sorted.
//! - `outcomes`: the recording of outcomes, a file of its own that has nothing to do with the store.
//! - `writer`: the one thread that commits, and what it does while the disk refuses.
//!
//! Nothing here fails a call: while the file cannot be written, memory goes on, the trouble is reported, and the writer
//! tries again until it can.

mod file;
mod outcomes;
mod queue;
mod record;
mod report;
mod trouble;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use tokio::sync::oneshot;

use crate::clock::Clock;
use crate::health::{Backing, Document, Key};

pub use outcomes::{Judged, OutcomeFile};
pub use report::{CommitError, OpenError, Opened, Report, ReportSink, Stats};

use queue::{Change, Place, Pushed};
use writer::Shared;

/// The random key, one per installation, that credential hashes are made with (DESIGN 5).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct InstallKey(pub [u8; 32]);

impl std::fmt::Debug for InstallKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("InstallKey(secret)")
    }
}

/// What a store needs from outside.
#[derive(Clone)]
pub struct Settings {
    /// The file. Created if it does not exist, its directory too.
    pub path: PathBuf,
    /// For the times in reports, statistics and names of files set aside.
    pub clock: Arc<dyn Clock>,
    /// Told about everything that an operator may have to know. Called from the writer's thread; must not block for long.
    pub report: ReportSink,
    /// Random bytes that become the [`InstallKey`] of a file that is created.
    pub fresh_key: InstallKey,
    /// Most documents that may wait to be written; beyond it new ones are dropped and counted. At least 1.
    pub queue_max: usize,
}

impl Settings {
    /// Settings with the usual bound of 16,384 waiting documents, about 25 MB.
    pub fn new(path: impl Into<PathBuf>, clock: Arc<dyn Clock>, report: ReportSink, fresh_key: InstallKey) -> Settings {
        Settings { path: path.into(), clock, report, fresh_key, queue_max: 16_384 }
    }
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings").field("path", &self.path).field("queue_max", &self.queue_max).finish_non_exhaustive()
    }
}

/// The store. Dropping it writes what still waits, then closes the file.
#[derive(Debug)]
pub struct Store {
    shared: Arc<Shared>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl Store {
    /// Opens or creates the file and starts the writer.
    ///
    /// A file that is not ours, damaged or from a newer toolvane is renamed to `<file>.corrupt-<time>` and a new one is
    /// started ([`Opened::Quarantined`]). A file that cannot be written now still gives a store that works from memory and
    /// keeps trying ([`Opened::Unwritable`]).
    ///
    /// # Errors
    /// When another process has the file open, or the writer's thread cannot be started.
    pub fn open(settings: Settings) -> Result<(Store, Opened), OpenError> {
        let (shared, opened) = Shared::open(settings)?;
        let shared = Arc::new(shared);
        let for_writer = Arc::clone(&shared);
        let writer = std::thread::Builder::new()
            .name("toolvane-store".to_owned())
            .spawn(move || writer::run(&for_writer))
            .map_err(|error| OpenError::NoThread { why: error.to_string() })?;
        Ok((Store { shared, writer: Mutex::new(Some(writer)) }, opened))
    }

    /// Every readable document in the file. What cannot be read is reported and left out (fail open).
    pub fn load_all(&self) -> Vec<Document> {
        self.shared.load_all()
    }

    /// Writes documents and answers once they are on disk.
    ///
    /// # Errors
    /// When this attempt failed. Unless the queue was full or the store closed, the documents stay queued and are written
    /// as soon as the disk allows.
    pub async fn commit(&self, documents: Vec<Document>) -> Result<(), CommitError> {
        let place = |document: &Document| Place::Document(document.key.clone());
        let changes = documents.into_iter().map(|document| (place(&document), Change::Put(Box::new(document))));
        Self::settled(self.shared.enqueue(changes.collect())?).await
    }

    /// Deletes a document for good and answers once that is on disk. Deleting what is not there succeeds.
    ///
    /// # Errors
    /// As for [`Store::commit`].
    pub async fn delete(&self, key: &Key) -> Result<(), CommitError> {
        Self::settled(self.shared.enqueue(vec![(Place::Document(key.clone()), Change::Delete)])?).await
    }

    /// Takes a record of another part of the program for write-behind, or with `None` its deletion; whether there was room.
    /// [`Store::flush`] tells when it is on disk. A file of another version that knows no records leaves them alone.
    pub fn keep(&self, name: &str, bytes: Option<Vec<u8>>) -> bool {
        self.take(Place::Record(name.to_owned()), bytes.map_or(Change::Delete, Change::Keep))
    }

    /// The records on disk whose names begin so.
    pub fn records(&self, prefix: &str) -> Vec<(String, Vec<u8>)> {
        self.shared.records(prefix)
    }

    /// Answers once everything that was written before is on disk.
    ///
    /// # Errors
    /// When this attempt failed; what waited still waits.
    pub async fn flush(&self) -> Result<(), CommitError> {
        Self::settled(self.shared.enqueue(Vec::new())?).await
    }

    /// Writes what waits, stops the writer and closes the file. Later writes are dropped, later commits fail.
    ///
    /// # Errors
    /// When what waited could not be written; it is lost to the next start, memory still holds it.
    pub async fn close(&self) -> Result<(), CommitError> {
        let last = self.shared.close();
        let written = Self::settled(last).await;
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(writer) = writer {
            // The thread has answered its last waiter, so this returns at once but for the closing of the file.
            let _ = tokio::task::spawn_blocking(move || writer.join()).await;
        }
        written
    }

    /// The key for credential hashes: the file's own, or the fresh one of the settings if the file holds none.
    pub fn install_key(&self) -> InstallKey {
        self.shared.install_key()
    }

    /// The counters, for metrics and the admin API.
    pub fn stats(&self) -> Stats {
        self.shared.stats()
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.shared.path()
    }

    fn take(&self, place: Place, change: Change) -> bool {
        let taken = self.shared.push(place, change) == Pushed::Taken;
        if !taken {
            self.shared.report_dropped();
        }
        taken
    }

    async fn settled(answer: oneshot::Receiver<Result<(), CommitError>>) -> Result<(), CommitError> {
        answer.await.unwrap_or(Err(CommitError::Closed))
    }
}

impl Backing for Store {
    fn write(&self, document: Document) -> bool {
        self.take(Place::Document(document.key.clone()), Change::Put(Box::new(document)))
    }

    fn delete(&self, key: &Key) -> bool {
        self.take(Place::Document(key.clone()), Change::Delete)
    }

    fn read(&self, key: &Key) -> Option<Document> {
        self.shared.read(key)
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        drop(self.shared.close());
        let writer = self.writer.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(writer) = writer {
            // A writer that panicked has nothing left to say; the file is closed either way.
            let _ = writer.join();
        }
    }
}
