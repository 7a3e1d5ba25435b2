//! Integrations as the admin surface shows them: places and states, never values.

use std::sync::Arc;

use serde::Serialize;

use super::service::Integrations;
use super::watch::Presence;
use crate::clock::Wall;
use crate::config::Integration;

/// One integration.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct IntegrationShown {
    /// Its name.
    pub id: Arc<str>,
    /// `credentials_missing`, or what is believed: `unknown`, `ready`, `unconfigured`, `auth_failed`. Without a probe and with
    /// all credentials: `ready`.
    pub state: &'static str,
    /// Since when; `None` where no probe has said so.
    pub since: Option<Wall>,
    /// Whether it is asked by a probe.
    pub has_probe: bool,
    /// What the last probe came to.
    pub last_result: Option<&'static str>,
    /// The same in a few words.
    pub detail: Option<String>,
    /// When that was.
    pub last_probe_at: Option<Wall>,
    /// When it is asked next.
    pub next_probe_at: Option<Wall>,
    /// How long an answer is good, in seconds.
    pub ttl_seconds: u64,
    /// What somebody has to do so that it is set up.
    pub setup_hint: Option<Arc<str>>,
    /// What it needs.
    pub credentials: Vec<CredentialShown>,
    /// Name patterns of tools that the configuration puts on it.
    pub patterns: Vec<String>,
}

/// A credential: where it is looked for, and whether it is there.
#[derive(Clone, Debug, Serialize)]
pub struct CredentialShown {
    /// Where it is looked for.
    pub place: String,
    /// Whether it is there.
    pub state: Presence,
}

impl Integrations {
    /// All integrations by name. To look is to want to know: what is old is asked in the background.
    pub fn show(&self) -> Vec<IntegrationShown> {
        self.config.integrations.values().map(|integration| self.show_one(integration)).collect()
    }

    fn show_one(&self, integration: &Integration) -> IntegrationShown {
        let now = self.clock.now();
        let missing = !self.missing(integration.credentials.iter()).is_empty();
        let (verdict, entry) = if missing && self.cache.get(&integration.id).is_none() {
            Default::default()
        } else {
            self.verdict(integration, now)
        };
        let state = match (missing, &integration.probe) {
            (true, _) => "credentials_missing",
            (false, None) => "ready",
            (false, Some(_)) => verdict.as_str(),
        };
        let last = entry.as_ref().and_then(|entry| entry.last.as_ref());
        let places = integration.credentials.iter();
        IntegrationShown {
            id: Arc::clone(&integration.id),
            state,
            since: entry.as_ref().filter(|_| !missing).map(|entry| entry.since.wall),
            has_probe: integration.probe.is_some(),
            last_result: last.map(|(finding, _)| finding.result.as_str()),
            detail: last.map(|(finding, _)| finding.detail.to_string()),
            last_probe_at: last.map(|(_, at)| at.wall),
            next_probe_at: entry.as_ref().filter(|_| !missing).map(|entry| now.wall_at(entry.deadline)),
            ttl_seconds: integration.ttl.as_secs(),
            setup_hint: integration.setup_hint.clone(),
            credentials: places
                .map(|place| CredentialShown { place: place.to_string(), state: self.watch.presence(place) })
                .collect(),
            patterns: self.config.tools.patterns_of(&integration.id),
        }
    }
}
