//! Integrations as the path of a call and the admin surface see them, and the one task that asks and watches.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;
use tokio::sync::{Notify, Semaphore};

use super::cache::{Cache, Landing};
use super::probe;
use super::verdict::{Entry, Finding, Verdict, first};
use super::watch::{Presence, Watch};
use crate::clock::{Clock, Now, Tick};
use crate::config::{Config, Credential, Integration, Probe};
use crate::health::{Declared, Readiness, StatusReason, ToolRef, Unready};
use crate::telemetry::Telemetry;
use crate::telemetry::bus::Kind;
use crate::telemetry::events::{IntegrationChanged, IntegrationProbed};

/// How often files are looked at, and whether an answer has grown old.
const TURN: Duration = Duration::from_millis(500);
/// When a missing credential may be found: what a client that is not told of changes should wait before it asks again.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// Whether what backs tools is set up.
pub struct Integrations {
    pub(super) config: Arc<Config>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) watch: Arc<Watch>,
    pub(super) cache: Arc<Cache>,
    telemetry: Arc<Telemetry>,
    random: Box<dyn Fn() -> f64 + Send + Sync>,
    /// When those with a probe are asked even if nobody wants to know.
    first: HashMap<Arc<str>, Tick>,
    /// Probes that may be under way.
    places: Arc<Semaphore>,
    /// What was told of each integration last.
    told: Mutex<HashMap<Arc<str>, Verdict>>,
    news: Notify,
}

impl fmt::Debug for Integrations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Integrations").field("names", &self.config.integrations.keys()).finish_non_exhaustive()
    }
}

impl Integrations {
    /// Looks at all credentials once; nothing is asked before [`Integrations::run`]. `random` gives numbers in [0, 1).
    pub fn new(
        config: Arc<Config>,
        clock: Arc<dyn Clock>,
        telemetry: Arc<Telemetry>,
        random: Box<dyn Fn() -> f64 + Send + Sync>,
    ) -> Integrations {
        let (start, probed) = (clock.now().tick, config.integrations.values());
        let first = probed
            .filter(|integration| integration.probe.is_some())
            .map(|integration| (Arc::clone(&integration.id), first(start, random())))
            .collect();
        let probes = config.integrations.values().filter_map(|integration| integration.probe.as_deref());
        let watch =
            Watch::new(config.environment.clone(), config.credential_places(), probes.flat_map(Probe::tls_files));
        Integrations {
            watch: Arc::new(watch),
            cache: Arc::new(Cache::new()),
            places: Arc::new(Semaphore::new(config.readiness.probes_max)),
            first,
            told: Mutex::default(),
            news: Notify::new(),
            config,
            clock,
            telemetry,
            random,
        }
    }

    /// Asks whom readers want asked, watches files, and calls `changed` whenever a tool may be hidden or shown from now on,
    /// for as long as the process lives.
    pub async fn run(self: Arc<Self>, changed: impl Fn() + Send) {
        tokio::join!(self.watching(), self.asking(changed));
    }

    /// Whether there is an integration of this name. What is believed of it is asked about at once, and forgotten if that
    /// comes to nothing.
    pub fn invalidate(&self, id: &str) -> bool {
        let Some((id, integration)) = self.config.integrations.get_key_value(id) else { return false };
        if integration.probe.is_some() {
            if self.config.readiness.background {
                self.cache.doubt(id, self.clock.now());
            } else {
                self.cache.forget(id);
            }
            self.news.notify_one();
        }
        true
    }

    /// Puts down what a probe found: the place where tests speak for a service.
    pub fn record(&self, id: &str, finding: Finding) {
        let Some((id, integration)) = self.config.integrations.get_key_value(id) else { return };
        let before = self.cache.get(id);
        let entry = Entry::after(before.as_deref(), finding, integration.ttl, self.clock.now(), (self.random)());
        self.cache.put(id, entry);
        self.news.notify_one();
    }

    /// What is believed of an integration, and since when; asks in the background if that is nothing or old.
    pub(super) fn verdict(&self, integration: &Integration, now: Now) -> (Verdict, Option<Arc<Entry>>) {
        if integration.probe.is_none() {
            return (Verdict::Unknown, None);
        }
        let entry = if self.config.readiness.background {
            self.cache.read(&integration.id, now.tick)
        } else {
            self.cache.get(&integration.id)
        };
        (entry.as_ref().map(|entry| entry.verdict(integration.ttl, now.tick)).unwrap_or_default(), entry)
    }

    /// Those of the places at which nothing is.
    pub(super) fn missing<'a>(&self, places: impl Iterator<Item = &'a Credential>) -> Vec<Arc<str>> {
        places
            .filter(|place| self.watch.presence(place) == Presence::Absent)
            .map(|place| place.to_string().into())
            .collect()
    }

    async fn watching(&self) {
        if !self.watch.has_files() {
            return;
        }
        let mut turn = turns();
        loop {
            turn.tick().await;
            let watch = Arc::clone(&self.watch);
            let Ok(changed) = tokio::task::spawn_blocking(move || watch.look()).await else { continue };
            for integration in self.config.integrations.values() {
                if files_of(integration).any(|path| changed.contains(path)) {
                    self.invalidate(&integration.id);
                }
            }
            if !changed.is_empty() {
                self.news.notify_one();
            }
        }
    }

    async fn asking(self: &Arc<Self>, changed: impl Fn()) {
        let mut turn = turns();
        loop {
            tokio::select! {
                () = self.cache.wanted() => self.ask_wanted(),
                () = self.news.notified() => {
                    self.tell();
                    changed();
                }
                _ = turn.tick() => {
                    self.refresh();
                    if self.tell() {
                        changed();
                    }
                }
            }
        }
    }

    /// Everything is asked once soon after the start, and kept fresh from then on: the first list should know, and clients
    /// should hear of a change without asking for the list.
    fn refresh(&self) {
        let now = self.clock.now();
        let is_due = |id: &Arc<str>| self.first.get(id).is_some_and(|first| *first <= now.tick);
        let due = self.config.integrations.values().filter(|one| is_due(&one.id) || self.cache.get(&one.id).is_some());
        for integration in due.filter(|integration| self.missing(integration.credentials.iter()).is_empty()) {
            self.verdict(integration, now);
        }
    }

    fn ask_wanted(self: &Arc<Self>) {
        for landing in self.cache.take_wanted() {
            let own = Arc::clone(self);
            tokio::spawn(async move { own.ask(&landing).await });
        }
    }

    async fn ask(&self, landing: &Landing) {
        let probe = self.config.integrations.get(&landing.id).and_then(|integration| integration.probe.clone());
        let (Some(probe), Ok(_place)) = (probe, self.places.acquire().await) else { return };
        let began = self.clock.now();
        let finding = probe::ask(&probe, self.watch.environment()).await;
        let took = self.clock.now().tick.since(began.tick);
        self.telemetry.emit(IntegrationProbed {
            integration: &landing.id,
            result: finding.result,
            detail: &finding.detail,
            took,
        });
        if !landing.is_overtaken() {
            self.record(&landing.id, finding);
        }
    }

    /// Tells the operator what is believed otherwise than before; whether there was something to tell.
    fn tell(&self) -> bool {
        let now = self.clock.now();
        let mut any = false;
        for integration in self.config.integrations.values() {
            let Some(entry) = self.cache.get(&integration.id) else { continue };
            let to = entry.verdict(integration.ttl, now.tick);
            let before = {
                let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
                told.insert(Arc::clone(&integration.id), to).unwrap_or_default()
            };
            if before != to {
                any = true;
                let detail = entry.last.as_ref().map_or("", |(finding, _)| &*finding.detail);
                let (from, to) = (before.as_str(), to.as_str());
                self.telemetry.emit(IntegrationChanged { integration: &integration.id, from, to, detail });
                let facts = json!({"integration": &*integration.id, "from": from, "to": to, "detail": detail});
                self.telemetry.publish(Kind::Readiness, now.wall, facts);
            }
        }
        any
    }

    fn integration_of(&self, at: &ToolRef, declared: Option<&Declared>) -> Option<Arc<str>> {
        match &self.config.tools.settings(&at.backend, &at.tool).needs.integration {
            Some(decided) => decided.clone(),
            None => declared
                .and_then(|declared| declared.integration.clone())
                .or_else(|| self.config.backend(&at.backend).and_then(|backend| backend.integration.clone())),
        }
    }
}

impl Readiness for Integrations {
    fn unready(&self, at: &ToolRef, declared: Option<&Declared>, now: Now) -> Option<Unready> {
        let settings = self.config.tools.settings(&at.backend, &at.tool);
        let needs = &settings.needs;
        let id = self.integration_of(at, declared);
        let integration = id.as_ref().and_then(|id| self.config.integrations.get(id));
        let of_tool = needs.credentials.iter().flatten();
        let of_backend = declared.filter(|_| needs.credentials.is_none()).into_iter().flat_map(|declared| {
            declared.credentials.iter().filter_map(|name| self.config.readiness.credentials.get(name))
        });
        let of_integration = integration.into_iter().flat_map(|integration| &integration.credentials);
        let hint = integration.and_then(|integration| integration.setup_hint.clone());
        let unready = |reason, missing, since, next_check| Unready {
            reason,
            integration: id.clone(),
            setup_hint: needs.setup_hint.clone().or(hint),
            missing,
            since,
            next_check,
        };
        let missing = self.missing(of_integration.chain(of_tool).chain(of_backend));
        if !missing.is_empty() {
            return Some(unready(StatusReason::CredentialsMissing, missing, None, now.after(LOOK_AGAIN).wall));
        }
        let (verdict, entry) = self.verdict(integration?, now);
        let entry = entry.filter(|_| verdict.hides())?;
        let (since, next) = (Some(entry.since.wall), now.wall_at(entry.deadline).max(now.wall));
        Some(unready(StatusReason::IntegrationUnconfigured, Vec::new(), since, next))
    }

    fn is_backed(&self, at: &ToolRef, declared: Option<&Declared>) -> bool {
        let settings = self.config.tools.settings(&at.backend, &at.tool);
        let has_credentials = match &settings.needs.credentials {
            Some(credentials) => !credentials.is_empty(),
            None => declared.is_some_and(|declared| !declared.credentials.is_empty()),
        };
        has_credentials
            || self.integration_of(at, declared).is_some_and(|id| self.config.integrations.contains_key(&id))
    }

    fn integration(&self, at: &ToolRef, declared: Option<&Declared>) -> Option<Arc<str>> {
        self.integration_of(at, declared)
    }

    fn unchecked(&self, at: &ToolRef, declared: Option<&Declared>) -> Vec<Arc<str>> {
        let decided = self.config.tools.settings(&at.backend, &at.tool).needs.credentials.is_some();
        let names = declared.filter(|_| !decided).into_iter().flat_map(|declared| &declared.credentials);
        names.filter(|name| !self.config.readiness.credentials.contains_key(*name)).cloned().collect()
    }
}

fn files_of(integration: &Integration) -> impl Iterator<Item = &PathBuf> {
    let probe = integration.probe.as_deref();
    let places = integration.credentials.iter().chain(probe.into_iter().flat_map(Probe::credentials));
    let of_places = places.filter_map(|place| match place {
        Credential::Env(_) => None,
        Credential::File(path) | Credential::EnvFile(path, _) => Some(path),
    });
    of_places.chain(probe.into_iter().flat_map(Probe::tls_files))
}

fn turns() -> tokio::time::Interval {
    let mut turn = tokio::time::interval(TURN);
    turn.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    turn
}
