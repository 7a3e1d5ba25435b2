//! Reading configuration and rules again (DESIGN 6 and 18): compile, then swap at once; on any error the old ones stay.
//!
//! Rules take effect, and with them `rules`, `hint` and `tenants.*.rules` of the configuration file. Every other key is read and
//! checked, but takes effect at a restart; a reload says which of them have changed. Health is not touched. Keys and OpenAPI
//! documents are read anew in the background when somebody asks for a reload.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

use super::rules::Layers;
use super::watch::Seen;
use crate::admin;
use crate::clock::Clock;
use crate::config::{self, Config};
use crate::proxy::Proxy;
use crate::telemetry::Telemetry;
use crate::telemetry::bus::Kind;
use crate::telemetry::events::Reloaded;
use crate::yaml::{Report, Source};

/// Mistakes that followers of events are told of.
const PROBLEMS_MAX: usize = 10;

/// Reads configuration and rules again. Clones of one `Arc` share what is in force.
pub struct Reloader {
    proxy: Proxy,
    telemetry: Arc<Telemetry>,
    clock: Arc<dyn Clock>,
    /// The file as it was when the process started; `None` where flags took its place.
    started: Option<Arc<Source>>,
    in_force: Mutex<InForce>,
}

#[derive(Clone)]
struct InForce {
    config: Arc<Config>,
    hash: String,
    last: Option<admin::LastReload>,
}

impl fmt::Debug for Reloader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reloader").field("started", &self.started).finish_non_exhaustive()
    }
}

/// What a reload is made of.
pub(super) struct Parts {
    pub(super) proxy: Proxy,
    pub(super) telemetry: Arc<Telemetry>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) config: Arc<Config>,
    pub(super) file: Option<Arc<Source>>,
    pub(super) hash: String,
}

impl Reloader {
    pub(super) fn new(parts: Parts) -> Reloader {
        let Parts { proxy, telemetry, clock, config, file, hash } = parts;
        Reloader { proxy, telemetry, clock, started: file, in_force: Mutex::new(InForce { config, hash, last: None }) }
    }

    /// Reads the files again and puts them in force, or keeps what is. Tells log and metrics. Reads files: may block.
    ///
    /// # Errors
    /// Every problem of every file; the old rules stay.
    pub fn reload(&self) -> Result<admin::Applied, Report> {
        self.attempt(true)
    }

    /// [`Reloader::reload`] for files that look changed: says nothing if what they hold is what is in force,
    /// unless the last attempt was refused.
    pub(super) fn follow(&self) {
        // It has been told to log and metrics.
        let _ = self.attempt(false);
    }

    /// How the files that matter look at the moment.
    pub(super) fn look(&self) -> Seen {
        let config = Arc::clone(&self.lock().config);
        let own = self.started.iter().map(|source| Path::new(source.name()).to_owned());
        Seen::of(own.chain(super::rules::paths(&config)))
    }

    fn attempt(&self, asked: bool) -> Result<admin::Applied, Report> {
        let mut in_force = self.lock();
        let result = self.read(&in_force);
        let at = self.clock.now().wall;
        match result {
            Ok((mut next, applied)) => {
                let mended = in_force.last.as_ref().is_some_and(|last| last.result.is_err());
                if asked || applied.changed || mended || !applied.needs_restart.is_empty() {
                    let needs_restart = &applied.needs_restart;
                    self.telemetry.emit(Reloaded { result: Ok(&next.hash), needs_restart, at });
                    self.telemetry.publish(Kind::Reload, at, told(&applied));
                    let needs_restart = needs_restart.clone();
                    next.last = Some(admin::LastReload { at, result: Ok(()), needs_restart });
                }
                *in_force = next;
                if asked {
                    self.proxy.refresh_documents();
                }
                Ok(applied)
            }
            Err(report) => {
                self.telemetry.emit(Reloaded { result: Err(&report.to_string()), needs_restart: &[], at });
                let why = problems(&report).join("\n");
                self.telemetry.publish(Kind::Reload, at, refused(&report));
                in_force.last = Some(admin::LastReload { at, result: Err(why), needs_restart: Vec::new() });
                Err(report)
            }
        }
    }

    fn read(&self, old: &InForce) -> Result<(InForce, admin::Applied), Report> {
        let (config, needs_restart, text) = match &self.started {
            None => (Arc::clone(&old.config), Vec::new(), None),
            Some(started) => {
                let path = Path::new(started.name());
                let source = Source::load(path)?;
                let config = Config::read(&source, path.parent().unwrap_or(Path::new("")))?;
                let needs_restart = config::needing_restart(started, &source)?;
                (Arc::new(config), needs_restart, Some(source))
            }
        };
        super::check_documents(&config)?;
        let layers = Layers::read(&config)?;
        let hash = layers.hash_with(text.as_deref());
        let changed = hash != old.hash;
        if changed {
            self.proxy.replace_rules(layers.compile()?);
        }
        Ok((
            InForce { config, hash: hash.clone(), last: old.last.clone() },
            admin::Applied { hash, changed, needs_restart },
        ))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, InForce> {
        self.in_force.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn told(applied: &admin::Applied) -> Value {
    let admin::Applied { hash, changed, needs_restart } = applied;
    json!({"result": "success", "hash": hash, "changed": changed, "needsRestart": needs_restart})
}

fn refused(report: &Report) -> Value {
    json!({"result": "failure", "problems": problems(report)})
}

/// Where the mistakes are and what they are; lines of the files stay in the log.
fn problems(report: &Report) -> Vec<String> {
    let problems = report.problems().iter().take(PROBLEMS_MAX);
    problems.map(|problem| format!("{}: {}", problem.position(), problem.message())).collect()
}

impl admin::Reload for Reloader {
    fn reload(&self) -> Result<admin::Applied, String> {
        Reloader::reload(self).map_err(|report| report.to_string())
    }

    fn last(&self) -> (String, Option<admin::LastReload>) {
        let in_force = self.lock();
        (in_force.hash.clone(), in_force.last.clone())
    }
}
