//! What backs tools, and what a caller would see of them: `/v1/integrations` and `/v1/manifest`.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::json;

use super::health::{answer, caller_of};
use super::query::{Parameters, Path, Query};
use super::{Admin, refuse};
use crate::clock::Wall;
use crate::health::Status;
use crate::proxy::{Entry, Hidden};
use crate::readiness::IntegrationShown;

type Given = Query<BTreeMap<String, String>>;

/// A tool that an integration unlocks.
#[derive(Clone, Serialize)]
pub(super) struct Unlocked {
    pub(super) backend: Arc<str>,
    pub(super) tool: Arc<str>,
}

/// An integration with the tools it unlocks, as far as lists and routes have named them.
#[derive(Serialize)]
pub(super) struct Shown {
    #[serde(flatten)]
    pub(super) integration: IntegrationShown,
    pub(super) tools: Vec<Unlocked>,
}

/// `GET /v1/integrations`: all of them.
pub(super) async fn list(State(admin): State<Arc<Admin>>) -> Response {
    Json(json!({ "integrations": all(&admin) })).into_response()
}

/// `GET /v1/integrations/{id}`: one of them.
pub(super) async fn one(State(admin): State<Arc<Admin>>, Path(id): Path<String>) -> Response {
    match all(&admin).into_iter().find(|shown| *shown.integration.id == *id) {
        Some(shown) => Json(shown).into_response(),
        None => unknown(&admin, &id),
    }
}

/// `POST /v1/integrations/{id}/invalidate`: it is asked anew at once.
pub(super) async fn invalidate(State(admin): State<Arc<Admin>>, Path(id): Path<String>) -> Response {
    if admin.integrations.invalidate(&id) { accepted(&[id]) } else { unknown(&admin, &id) }
}

/// `POST /v1/integrations/invalidate`: all are asked anew at once.
pub(super) async fn invalidate_all(State(admin): State<Arc<Admin>>) -> Response {
    let ids: Vec<String> = admin.integrations.show().into_iter().map(|shown| shown.id.to_string()).collect();
    for id in &ids {
        admin.integrations.invalidate(id);
    }
    accepted(&ids)
}

fn accepted(ids: &[String]) -> Response {
    (StatusCode::ACCEPTED, Json(json!({ "invalidated": ids }))).into_response()
}

fn unknown(admin: &Admin, id: &str) -> Response {
    let known: Vec<String> = admin.integrations.show().into_iter().map(|shown| shown.id.to_string()).collect();
    let detail = format!("no integration is named {id:?}; there are {}", known.join(", "));
    refuse(StatusCode::NOT_FOUND, "no such integration", detail)
}

pub(super) fn all(admin: &Admin) -> Vec<Shown> {
    let mut unlocked: HashMap<Arc<str>, Vec<Unlocked>> = HashMap::new();
    for entry in admin.proxy.catalogue(&caller_of(&Parameters::default()), None) {
        if let Some(integration) = entry.integration {
            unlocked.entry(integration).or_default().push(Unlocked { backend: entry.backend, tool: entry.tool });
        }
    }
    let shown = admin.integrations.show().into_iter();
    shown
        .map(|integration| {
            let tools = unlocked.remove(&integration.id).unwrap_or_default();
            Shown { integration, tools }
        })
        .collect()
}

/// A tool as a caller would see it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Row {
    backend: Arc<str>,
    tool: Arc<str>,
    listed: bool,
    status: &'static str,
    status_reason: Option<Hidden>,
    annotation: Option<String>,
    integration: Option<Arc<str>>,
    missing: Vec<Arc<str>>,
    unchecked: Vec<Arc<str>>,
    setup_step: Option<String>,
    next_check_at: Option<Wall>,
}

impl From<Entry> for Row {
    fn from(entry: Entry) -> Row {
        let status = match entry.health.status {
            _ if entry.reason.is_some() => "unavailable",
            Status::Ok => "OK",
            Status::Degraded => "DEGRADED",
            Status::Down => "DOWN",
        };
        Row {
            backend: entry.backend,
            tool: entry.tool,
            listed: entry.listed,
            status,
            status_reason: entry.reason,
            annotation: entry.annotation,
            integration: entry.integration,
            missing: entry.missing,
            unchecked: entry.unchecked,
            setup_step: entry.setup_step,
            next_check_at: entry.next_check,
        }
    }
}

/// `GET /v1/manifest`: every known tool as the caller would see it, and why he would not.
pub(super) async fn manifest(State(admin): State<Arc<Admin>>, Query(given): Given) -> Response {
    answer(|| {
        let known = ["backend", "session", "user", "project", "tenant", "roles", "profile"];
        let given = Parameters::checked(given, &known)?;
        let wanted = given.text("backend");
        let seen = admin.proxy.catalogue(&caller_of(&given), given.text("profile"));
        let of_backend = seen.into_iter().filter(|entry| wanted.is_none_or(|wanted| *entry.backend == *wanted));
        let tools: Vec<Row> = of_backend.map(Row::from).collect();
        Ok(Json(json!({ "tools": tools })).into_response())
    })
}
