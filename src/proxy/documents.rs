//! Documents that are read in the background for as long as the process lives: the keys of an issuer, and OpenAPI documents.
//!
//! Whatever cannot be read or understood leaves the last good document in force. Times are those of the injected clock;
//! the timer only looks.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::shared::{Backend, Shared};
use crate::clock::Tick;
use crate::config::openapi::{Document, MAX_DOCUMENT};
use crate::fetch::Location;
use crate::telemetry::Telemetry;
use crate::telemetry::events::{DocumentNote, DocumentRead};
use crate::yaml::Source;

/// How often it is looked whether something is due.
const TURN: Duration = Duration::from_millis(250);
/// Between two reads that somebody asked for.
const ASKED_MIN: Duration = Duration::from_secs(10);
/// Between two looks at a file.
const FILE_EVERY: Duration = Duration::from_secs(1);
/// The first and the longest wait after a failure.
const RETRY_MIN: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(60);
/// The largest key set, in bytes.
const MAX_KEYS: usize = 1 << 20;

/// What a document is, and so how it is kept.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// Keys: read again and again, and when somebody asks.
    Jwks {
        /// Between two reads of a URL; a file is looked at every second.
        refresh: Duration,
    },
    /// An OpenAPI document: read until it was read once, and when somebody asks.
    OpenApi,
}

/// One document and when it is read next.
#[derive(Debug)]
pub(super) struct Watched {
    location: Location,
    kind: Kind,
    asked: AtomicBool,
    schedule: Mutex<Schedule>,
}

/// When a document is read. Pure.
#[derive(Debug, Default)]
struct Schedule {
    next: Tick,
    /// Before this nobody's asking helps.
    earliest: Tick,
    failures: u32,
    /// Of the text that is in force.
    hash: Option<blake3::Hash>,
}

impl Schedule {
    /// Whether to read now. Somebody who asked in between is served as soon as that is allowed.
    fn due(&mut self, asked: bool, now: Tick) -> bool {
        if asked {
            self.next = self.next.min(self.earliest);
        }
        self.next <= now
    }

    fn succeeded(&mut self, every: Option<Duration>, now: Tick) {
        self.failures = 0;
        self.next = every.map_or(Tick(u64::MAX), |every| now.after(every));
        self.earliest = now.after(ASKED_MIN);
    }

    fn failed(&mut self, now: Tick) {
        let wait = RETRY_MIN.saturating_mul(1 << self.failures.min(6)).min(RETRY_MAX);
        self.failures = self.failures.saturating_add(1);
        self.next = now.after(wait);
        self.earliest = self.next;
    }
}

impl Watched {
    pub(super) fn new(location: Location, kind: Kind) -> Watched {
        Watched { location, kind, asked: AtomicBool::new(false), schedule: Mutex::default() }
    }

    /// Asks for the document to be read anew, soon and in the background. However many ask, it is read once.
    pub(super) fn ask(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    fn schedule(&self) -> MutexGuard<'_, Schedule> {
        self.schedule.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn every(&self) -> Option<Duration> {
        match (self.kind, &self.location) {
            (Kind::Jwks { .. }, Location::File(_)) => Some(FILE_EVERY),
            (Kind::Jwks { refresh }, Location::Url(_)) => Some(refresh),
            (Kind::OpenApi, _) => None,
        }
    }

    fn most(&self) -> usize {
        match self.kind {
            Kind::Jwks { .. } => MAX_KEYS,
            Kind::OpenApi => MAX_DOCUMENT,
        }
    }

    fn what(&self) -> &'static str {
        match self.kind {
            Kind::Jwks { .. } => "jwks",
            Kind::OpenApi => "openapi",
        }
    }
}

/// Somebody who uses a document.
#[derive(Clone, Debug)]
enum User {
    Tokens(Arc<super::tokens::Tokens>),
    Backend(Arc<Shared>, Arc<Backend>),
}

impl User {
    /// All of them.
    fn all(shared: &Arc<Shared>) -> Vec<User> {
        let tokens = shared.identifier.tokens().cloned().map(User::Tokens);
        let with_document = shared.backends.iter().filter(|backend| backend.document.is_some());
        let backends = with_document.map(|backend| User::Backend(Arc::clone(shared), Arc::clone(backend)));
        tokens.into_iter().chain(backends).collect()
    }

    fn document(&self) -> Option<&Watched> {
        match self {
            User::Tokens(tokens) => Some(tokens.document()),
            User::Backend(_, backend) => backend.document.as_ref(),
        }
    }

    fn accept(&self, text: String, place: &Location) -> Result<usize, String> {
        match self {
            User::Tokens(tokens) => tokens.accept(&text),
            User::Backend(shared, backend) => name_tools(shared, backend, text, place),
        }
    }
}

/// Reads once what lies in files, so that it holds from the first call on.
pub(super) async fn read_files(shared: &Arc<Shared>) {
    for user in User::all(shared) {
        if let Some(document) = user.document().filter(|document| matches!(document.location, Location::File(_))) {
            read(&shared.telemetry, &user, document, shared.clock.now().tick).await;
        }
    }
}

/// Reads every document when it is due, for as long as the process lives.
pub(super) async fn keep_forever(shared: Arc<Shared>) {
    for user in User::all(&shared) {
        let shared = Arc::clone(&shared);
        tokio::spawn(async move { keep(&shared, &user).await });
    }
}

/// Asks for every document to be read anew.
pub(super) fn refresh(shared: &Arc<Shared>) {
    User::all(shared).iter().filter_map(User::document).for_each(Watched::ask);
}

async fn keep(shared: &Shared, user: &User) {
    let Some(document) = user.document() else { return };
    let mut turn = tokio::time::interval(TURN);
    turn.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        turn.tick().await;
        let now = shared.clock.now().tick;
        let due = document.schedule().due(document.asked.load(Ordering::Relaxed), now);
        if due {
            document.asked.store(false, Ordering::Relaxed);
            read(&shared.telemetry, user, document, now).await;
        }
    }
}

async fn read(telemetry: &Telemetry, user: &User, document: &Watched, now: Tick) {
    let place = document.location.to_string();
    let text = document.location.read(document.most()).await.map_err(|trouble| trouble.to_string());
    let mut schedule = document.schedule();
    let failed_before = schedule.failures > 0;
    let result = text.and_then(|text| {
        let hash = blake3::hash(text.as_bytes());
        if schedule.hash == Some(hash) {
            return Ok(None);
        }
        let entries = user.accept(text, &document.location)?;
        schedule.hash = Some(hash);
        Ok(Some(entries))
    });
    match &result {
        Ok(_) => schedule.succeeded(document.every(), now),
        Err(_) => schedule.failed(now),
    }
    drop(schedule);
    let news = result.is_err() != failed_before;
    let result = result.as_ref().map(|entries| *entries).map_err(String::as_str);
    telemetry.emit(DocumentRead { what: document.what(), place: &place, result, news });
}

/// Takes over the tools of a document: routes of the file go before it, and so do settings of the file.
fn name_tools(shared: &Shared, backend: &Backend, text: String, place: &Location) -> Result<usize, String> {
    let source = Arc::new(Source::new(place.to_string(), text));
    let document = Document::read(&source, home(place)).map_err(|report| first(&report))?;
    shared.config.tools.declare(&backend.name, &document.operations);
    for route in backend.routes.load().iter() {
        shared.declared.forget(&backend.tool(&route.tool));
    }
    for operation in &document.operations {
        shared.declared.declare(backend.tool(&operation.route.tool), &operation.credentials_required);
    }
    backend.routes.store(Arc::new(backend.config.routes.before(document.routes())));
    for note in document.notes.problems() {
        shared.telemetry.emit(DocumentNote { position: &note.position(), note: note.message() });
    }
    Ok(document.operations.len())
}

fn home(place: &Location) -> &str {
    match place {
        Location::Url(url) => url.path(),
        Location::File(_) => "/",
    }
}

fn first(report: &crate::yaml::Report) -> String {
    report
        .problems()
        .first()
        .map(|problem| format!("{}: {}", problem.position(), problem.message()))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Option<Duration> = Some(Duration::from_secs(600));

    #[test]
    fn who_asks_is_served_once_and_not_more_often_than_every_ten_seconds() {
        let mut schedule = Schedule::default();
        assert!(schedule.due(false, Tick(0)), "at the start");
        schedule.succeeded(EVERY, Tick(0));
        assert!(!schedule.due(true, Tick(9_999)));
        assert!(schedule.due(false, Tick(10_000)), "who asked before is not forgotten");
        schedule.succeeded(EVERY, Tick(10_000));
        assert!(!schedule.due(false, Tick(609_999)));
        assert!(schedule.due(false, Tick(610_000)));
    }

    #[test]
    fn failures_are_retried_slower_and_slower_whoever_asks() {
        let mut schedule = Schedule::default();
        let mut now = 0;
        for wait in [1, 2, 4, 8, 16, 32, 60, 60] {
            schedule.failed(Tick(now));
            assert!(!schedule.due(true, Tick(now + wait * 1000 - 1)), "{wait}");
            now += wait * 1000;
            assert!(schedule.due(false, Tick(now)), "{wait}");
        }
        schedule.succeeded(None, Tick(now));
        assert!(!schedule.due(false, Tick(u64::MAX - 1)), "an OpenAPI document is read once");
        assert!(schedule.due(true, Tick(now + 10_000)), "and when somebody asks");
    }
}
