//! What is believed, over HTTP: documents, the effective view of a caller, and the tools.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::header::ETAG;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::query::{Parameters, Path, Query};
use super::routes::{CALLER, LIST, TOOLS};
use super::target::{self, Named, several};
use super::write::etag;
use super::{Admin, refuse};
use crate::clock::{Now, Wall};
use crate::health::document::WHOLE_BACKEND;
use crate::health::{Caller, Document, Filter, Override, Status, ToolRef, View};
use crate::proxy::Hidden;
use crate::rules::{Classification, Scope};

type Given = Query<BTreeMap<String, String>>;
type Answer = Result<Response, Box<Response>>;

/// A document as it is shown: as stored, and whether its next trial is due.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ShownDocument")]
pub(super) struct Shown {
    #[serde(flatten)]
    document: Document,
    /// Whether its next trial is due.
    retesting: bool,
}

impl Shown {
    pub(super) fn of(document: Document, now: Now) -> Shown {
        let due = document.next_trial_at.is_some_and(|at| at <= now.wall);
        Shown { retesting: document.status == Status::Down && due, document }
    }
}

/// `GET /v1/health`: the documents in memory that fit.
pub(super) async fn list(State(admin): State<Arc<Admin>>, Query(given): Given) -> Response {
    answer(|| {
        let given = Parameters::checked(given, LIST)?;
        let page = given.page()?;
        let filter = Filter {
            scope: given.scope()?,
            scope_id: given.text("scopeId").map(str::to_owned),
            tenant_id: given.text("tenant").map(str::to_owned),
            backend: given.text("backend").map(str::to_owned),
            tool_name: given.text("tool").map(str::to_owned),
            status: given.status()?,
            due_cooldown: false,
        };
        let now = admin.clock.now();
        let (documents, next) = page.cut(admin.registry.documents(&filter, now), |document| json!(document.key));
        let documents: Vec<Shown> = documents.into_iter().map(|document| Shown::of(document, now)).collect();
        Ok(Json(json!({ "documents": documents, "next": next })).into_response())
    })
}

/// `GET /v1/health/{scope}/{scopeId}/{tool}`: one document. What tells it from others must be given where there are several.
pub(super) async fn one(
    State(admin): State<Arc<Admin>>,
    Path((level, scope_id, tool)): Path<(String, String, String)>,
    Query(given): Given,
    headers: HeaderMap,
) -> Response {
    answer(|| {
        let shown = held(&admin, &Named::read((level, scope_id, tool), given)?)?;
        let tag = etag(&shown.document);
        // That a trial is due is no change of the document, but a reader must hear of it.
        let is_known = !shown.retesting && tag.as_ref().is_some_and(|tag| target::is_known(&headers, tag));
        let mut response =
            if is_known { StatusCode::NOT_MODIFIED.into_response() } else { Json(shown).into_response() };
        response.headers_mut().extend(tag.map(|tag| (ETAG, tag)));
        Ok(response)
    })
}

/// The only document that is named so, as an answer.
pub(super) fn document(admin: &Admin, named: &Named) -> Answer {
    Ok(Json(held(admin, named)?).into_response())
}

fn held(admin: &Admin, named: &Named) -> Result<Shown, Box<Response>> {
    let now = admin.clock.now();
    let mut found = named.existing(admin);
    let key = found.pop();
    if let (Some(key), false) = (&key, found.is_empty()) {
        found.push(key.clone());
        return Err(Box::new(several(&found)));
    }
    let document = key.and_then(|key| admin.registry.document(&key, now)).ok_or_else(nothing_held)?;
    Ok(Shown::of(document, now))
}

fn nothing_held() -> Box<Response> {
    let detail = "nothing is held about this tool at this scope, which reads as OK";
    Box::new(refuse(StatusCode::NOT_FOUND, "no such document", detail))
}

/// What a caller is told about a tool.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Effective {
    /// Its backend.
    backend: Arc<str>,
    /// Its name.
    tool: Arc<str>,
    /// How it stands for this caller.
    status: Status,
    /// Whether its next trial is due.
    retesting: bool,
    /// Since when it stands so.
    since: Option<Wall>,
    /// When somebody estimated it to be back; null when nobody did.
    expected_recovery_at: Option<Wall>,
    /// From when a trial is allowed.
    next_trial_at: Option<Wall>,
    /// What set a status other than OK.
    classification: Option<Classification>,
    /// The kind of failure that set it.
    signature: Option<Arc<str>>,
    /// The scope of the document that decides.
    scope: Option<Scope>,
    /// Which session, user, project or tenant that is of.
    scope_id: Option<String>,
    /// Why, in words.
    note: Option<Arc<str>>,
    /// What the user concerned can do.
    user_action_hint: Option<Arc<str>>,
    /// What an operator decided against all evidence, while it stands.
    #[serde(rename = "override")]
    forced: Option<Override>,
}

impl Effective {
    fn of(at: ToolRef, view: &View) -> Effective {
        let entry = view.entry.as_deref();
        Effective {
            backend: at.backend,
            tool: at.tool,
            status: view.status,
            retesting: view.retesting,
            since: view.since,
            expected_recovery_at: view.expected_recovery_at,
            next_trial_at: view.next_trial_at,
            classification: entry.and_then(|entry| entry.classification),
            signature: entry.and_then(|entry| entry.signature.clone()),
            scope: entry.map(|entry| entry.key.scope),
            scope_id: entry.and_then(|entry| entry.key.scope_id.clone()),
            note: entry.and_then(|entry| entry.note.clone()),
            user_action_hint: entry.and_then(|entry| entry.user_action_hint.clone()),
            forced: view.forced.as_ref().map(|forced| forced.decision.clone()),
        }
    }
}

/// A tool with what backs it.
#[derive(Serialize)]
struct Tool {
    #[serde(flatten)]
    effective: Effective,
    integration: Option<Arc<str>>,
    /// Whether the list of this caller shows it.
    listed: bool,
    status_reason: Option<Hidden>,
}

/// `GET /v1/lookup`: the effective entry of a caller's cascade.
pub(super) async fn lookup(State(admin): State<Arc<Admin>>, Query(given): Given) -> Response {
    answer(|| effective(&admin, given))
}

/// What the caller is told whom these parameters describe.
pub(super) fn effective(admin: &Admin, given: BTreeMap<String, String>) -> Answer {
    let given = Parameters::checked(given, CALLER)?;
    let tool: Arc<str> = given.need("tool")?.into();
    let backend = backend_of(admin, given.text("backend"), &tool)?;
    let at = ToolRef { backend, tool };
    let view = admin.registry.lookup(&caller_of(&given), &at, admin.clock.now());
    Ok(Json(Effective::of(at, &view)).into_response())
}

/// The caller that the parameters describe.
pub(super) fn caller_of(given: &Parameters) -> Caller {
    Caller {
        session: given.text("session").map(Arc::from),
        user: given.text("user").map(Arc::from),
        project: given.text("project").unwrap_or("default").into(),
        tenant: given.text("tenant").unwrap_or("default").into(),
        roles: given.text("roles").map(roles).unwrap_or_default(),
        credential: None,
    }
}

/// The backend that is meant: the one that is named, the only one that has the tool, or the only one there is.
pub(super) fn backend_of(admin: &Admin, named: Option<&str>, tool: &str) -> Result<Arc<str>, Box<Response>> {
    let backends = admin.proxy.backends();
    if let Some(named) = named {
        let known = backends.iter().find(|backend| &***backend == named).cloned();
        return known.ok_or_else(|| {
            super::query::bad(format!("no backend is named {named:?}; there are {}", backends.join(", ")))
        });
    }
    let having: Vec<Arc<str>> =
        admin.proxy.tools().into_iter().filter(|(_, name)| name == tool).map(|(backend, _)| backend).collect();
    match (having.as_slice(), backends.as_slice()) {
        ([only], _) | ([], [only]) => Ok(Arc::clone(only)),
        ([], all) if tool != WHOLE_BACKEND => {
            let detail = format!(
                "none of the backends {} is known to have a tool {tool:?}; if the name is right, add `backend`, one of them",
                all.join(", ")
            );
            Err(Box::new(refuse(StatusCode::CONFLICT, "which backend?", detail)))
        }
        (having, all) => {
            let several = if having.is_empty() { all } else { having };
            let detail = format!("several backends may have it: add `backend`, one of {}", several.join(", "));
            Err(Box::new(refuse(StatusCode::CONFLICT, "which backend?", detail)))
        }
    }
}

/// `GET /v1/tools`: every tool that is known by name, and how it stands for a caller (by default: for anybody).
pub(super) async fn tools(State(admin): State<Arc<Admin>>, Query(given): Given) -> Response {
    answer(|| {
        let given = Parameters::checked(given, TOOLS)?;
        let (page, status) = (given.page()?, given.status()?);
        let named = given.text("tool");
        let caller = caller_of(&given);
        let wanted = given.text("backend").map(str::to_owned);
        let known = admin.proxy.catalogue(&caller, None).into_iter();
        let tools: Vec<_> = known
            .filter(|entry| wanted.as_deref().is_none_or(|wanted| *wanted == *entry.backend))
            .filter(|entry| named.is_none_or(|named| *named == *entry.tool))
            .map(|entry| {
                let at = ToolRef { backend: Arc::clone(&entry.backend), tool: Arc::clone(&entry.tool) };
                let effective = Effective::of(at, &entry.health);
                Tool { effective, integration: entry.integration, listed: entry.listed, status_reason: entry.reason }
            })
            .filter(|tool| status.is_none_or(|wanted| wanted == tool.effective.status))
            .collect();
        let (tools, next) = page.cut(tools, |tool| json!([&*tool.effective.backend, &*tool.effective.tool]));
        Ok(Json(json!({ "tools": tools, "next": next })).into_response())
    })
}

fn roles(text: &str) -> Vec<Arc<str>> {
    text.split(',').map(str::trim).filter(|role| !role.is_empty()).map(Arc::from).collect()
}

pub(super) fn answer(work: impl FnOnce() -> Answer) -> Response {
    work().unwrap_or_else(|refusal| *refusal)
}
