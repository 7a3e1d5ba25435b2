//! Documents, a store in a directory of its own, and its reports.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tempfile::TempDir;
use toolvane::clock::{ManualClock, Now, Tick, Wall};
use toolvane::health::document::{Cooldown, Flap, HistoryEntry};
use toolvane::health::{Document, Key, Origin, Status};
use toolvane::rules::{Classification, Scope};
use toolvane::store::{InstallKey, OpenError, Opened, Report, Settings, Store};

pub(crate) const START: Now = Now { tick: Tick(5_000), wall: Wall(1_772_445_600_000) };
pub(crate) const FRESH_KEY: InstallKey = InstallKey([7; 32]);

/// A place for a state file.
pub(crate) struct Place {
    pub(crate) directory: TempDir,
    pub(crate) path: PathBuf,
}

impl Place {
    pub(crate) fn new() -> Place {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state.redb");
        Place { directory, path }
    }

    /// In memory where the machine has such a place: for what does not depend on a disk and writes very often.
    pub(crate) fn quick() -> Place {
        let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let path = directory.path().join("state.redb");
        Place { directory, path }
    }

    pub(crate) fn open(&self) -> (Store, Opened) {
        open(&self.path).unwrap()
    }

    /// Names in the directory, the state file's own aside.
    pub(crate) fn others(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.directory.path()).unwrap();
        let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.retain(|name| name != "state.redb");
        names.sort();
        names
    }
}

pub(crate) fn settings(path: &Path) -> Settings {
    Settings::new(path, Arc::new(ManualClock::new(START)), Arc::new(|_| ()), FRESH_KEY)
}

pub(crate) fn open(path: &Path) -> Result<(Store, Opened), OpenError> {
    Store::open(settings(path))
}

/// Opens a store whose reports can be waited for.
pub(crate) fn open_reporting(path: &Path) -> (Store, Opened, Receiver<Report>) {
    let (sender, reports) = channel();
    let sender = Mutex::new(sender);
    let sink = Arc::new(move |report| drop(sender.lock().unwrap().send(report)));
    let (store, opened) = Store::open(Settings { report: sink, ..settings(path) }).unwrap();
    (store, opened, reports)
}

/// The first report for which `pick` gives something.
pub(crate) fn wait_for<T>(reports: &Receiver<Report>, mut pick: impl FnMut(&Report) -> Option<T>) -> T {
    loop {
        let report = reports.recv_timeout(Duration::from_secs(60)).expect("a report within a minute");
        if let Some(picked) = pick(&report) {
            return picked;
        }
    }
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

pub(crate) fn key(tool: &str) -> Key {
    Key {
        tenant_id: Some("acme".into()),
        scope: Scope::User,
        scope_id: Some("alice".into()),
        backend: "jira".into(),
        tool_name: tool.into(),
    }
}

/// A document of the usual size, about 1.5 KB.
pub(crate) fn document(tool: &str, version: u64) -> Document {
    let at = START.wall.plus_millis(i64::try_from(version).unwrap());
    let entry = |n: i64| HistoryEntry {
        classification: Classification::TechnicallyBroken,
        status: Status::Down,
        note: format!("the backend answered 503 for the {n}th time in a row"),
        by: "evidence".into(),
        at: at.plus_millis(n),
        recovery_at: Some(at.plus_millis(60_000)),
    };
    Document {
        key: key(tool),
        status: Status::Down,
        since: at,
        last_checked_at: Some(at),
        expected_recovery_at: None,
        next_trial_at: Some(at.plus_millis(5_000)),
        last_diagnosis: None,
        history: (0..4).map(entry).collect(),
        cooldowns: vec![Cooldown {
            error_signature: "http-503".into(),
            user_id: None,
            next_spawn_allowed_at: at.plus_millis(900_000),
            hits: 3,
            last_classification: Classification::TechnicallyBroken,
            last_triggered_at: at,
            level: 2,
        }],
        tombstones: Vec::new(),
        overridden: None,
        as_of: at,
        origin: Origin::Evidence,
        signature: Some("http-503".into()),
        classification: Some(Classification::TechnicallyBroken),
        epoch: 4,
        version,
        level: 2,
        flap: Flap { penalty: 1_000.5, at: Some(at) },
        credential: Some("00ff00ff00ff00ff".into()),
        created_at: START.wall,
        updated_at: at,
    }
}
