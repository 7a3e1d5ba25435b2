//! `/metrics`: what was counted, and the state of the moment.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};

use super::{Admin, refuse};
use crate::clock::Now;
use crate::health::{Document, Filter, Status};
use crate::rules::{Classification, Scope};
use crate::telemetry::{HiddenTools, IntegrationState, Sample, ToolState};

/// All metrics in the format that the scraper asks for.
pub(super) async fn metrics(State(admin): State<Arc<Admin>>, headers: HeaderMap) -> Response {
    let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok());
    match admin.telemetry.render(accept, admin.sample()) {
        Ok(rendered) => ([(CONTENT_TYPE, rendered.content_type)], rendered.body).into_response(),
        Err(_) => {
            refuse(StatusCode::INTERNAL_SERVER_ERROR, "metrics cannot be written", "this is a mistake of toolvane")
        }
    }
}

impl Admin {
    /// The state of the moment, for whoever reads the metrics.
    pub fn sample(&self) -> Sample {
        let now = self.clock.now();
        let documents = self.registry.documents(&Filter::default(), now);
        Sample {
            tools: tools(self, &documents, now),
            cooldowns: cooldowns(&documents, now),
            documents: u64::try_from(self.registry.size()).unwrap_or(u64::MAX),
            hidden: hidden(self),
            integrations: integrations(self),
            store: self.store.as_ref().map(|store| store.stats()),
            outcomes_left_out: self.proxy.outcomes_left_out(),
        }
    }
}

/// Of each tool the worst entry at PROJECT or wider; tools that are only known by name are OK since the start.
fn tools(admin: &Admin, documents: &[Document], now: Now) -> Vec<ToolState> {
    let mut worst: BTreeMap<(Arc<str>, Arc<str>), ToolState> = BTreeMap::new();
    for (backend, tool) in admin.proxy.tools() {
        let tool: Arc<str> = tool.into();
        let state = ToolState { backend: backend.clone(), tool: tool.clone(), status: Status::Ok, since: now.wall };
        worst.insert((backend, tool), state);
    }
    let wide = |document: &&Document| document.key.scope >= Scope::Project;
    for document in documents.iter().filter(wide) {
        let key: (Arc<str>, Arc<str>) = (document.key.backend.as_str().into(), document.key.tool_name.as_str().into());
        let (backend, tool) = key.clone();
        let state = ToolState { backend, tool, status: document.status, since: document.since };
        let known = worst.get(&key).is_some_and(|known| known.status > state.status);
        if !known {
            worst.insert(key, state);
        }
    }
    worst.into_values().collect()
}

fn hidden(admin: &Admin) -> Vec<HiddenTools> {
    let counts = admin.proxy.hidden().into_iter();
    counts.map(|((backend, reason), count)| HiddenTools { backend, reason: reason.as_str(), count }).collect()
}

fn integrations(admin: &Admin) -> Vec<IntegrationState> {
    let all = admin.integrations.show().into_iter();
    all.map(|shown| IntegrationState { integration: shown.id, state: shown.state }).collect()
}

fn cooldowns(documents: &[Document], now: Now) -> Vec<(Arc<str>, Classification, u64)> {
    let mut counts: BTreeMap<(&str, Classification), u64> = BTreeMap::new();
    for document in documents {
        for cooldown in document.cooldowns.iter().filter(|cooldown| cooldown.next_spawn_allowed_at > now.wall) {
            *counts.entry((&document.key.backend, cooldown.last_classification)).or_default() += 1;
        }
    }
    counts.into_iter().map(|((backend, class), count)| (Arc::from(backend), class, count)).collect()
}
