//! Diagnosis jobs over HTTP, for engines of somebody else, and probes that somebody asks for.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::audit::Changed;
use super::body::{self, Json, Lease, Refusal};
use super::query::{Parameters, Path, Query};
use super::target::{Shared, Who};
use super::{Admin, refuse};
use crate::diagnosis::{Diagnosis, Job, JobError, LEASE_MAX, State as Standing};
use crate::health::{ProbeAs, Prober, ToolRef, Tried};

type Given = Query<BTreeMap<String, String>>;

/// How long a job is leased where nobody says so.
const LEASE: Duration = Duration::from_secs(300);

fn engine(admin: &Admin) -> Result<&Arc<Diagnosis>, Refusal> {
    admin.diagnosis.as_ref().ok_or_else(|| {
        let detail = "nobody diagnoses (`diagnosis.engine: off`)";
        Box::new(refuse(StatusCode::NOT_FOUND, "no diagnoses", detail))
    })
}

/// `GET /v1/diagnosis/jobs`.
pub(super) async fn list(State(admin): Shared, Query(given): Given) -> Response {
    let listed = Parameters::checked(given, &["state"]).and_then(|given| {
        let now = admin.clock.now();
        let word = |standing: &Standing| match standing {
            Standing::Queued { .. } => "queued",
            Standing::Leased { .. } => "leased",
            Standing::Done { .. } => "done",
        };
        let mut jobs = engine(&admin)?.queue().list(now);
        if let Some(wanted) = given.text("state") {
            jobs.retain(|entry| word(&entry.state) == wanted);
        }
        Ok(Answer(json!({"jobs": jobs})).into_response())
    });
    listed.unwrap_or_else(|refusal| *refusal)
}

/// `POST /v1/diagnosis/jobs/claim`.
pub(super) async fn claim(State(admin): Shared, Extension(who): Who, Json(said): Json<Lease>) -> Response {
    let leased: Result<Option<Job>, Refusal> = (|| {
        let length = length(&admin, &said)?;
        Ok(engine(&admin)?.queue().lease(&who.name, length, admin.clock.now()))
    })();
    match leased {
        Ok(Some(job)) => handed(&admin, job).await,
        Ok(None) => {
            let mut response = StatusCode::NO_CONTENT.into_response();
            response.extensions_mut().insert(Changed { silent: true, ..Changed::default() });
            response
        }
        Err(refusal) => *refusal,
    }
}

/// `POST /v1/diagnosis/jobs/{id}/claim`.
pub(super) async fn claim_one(
    State(admin): Shared,
    Extension(who): Who,
    Path(id): Path<String>,
    Json(said): Json<Lease>,
) -> Response {
    let leased: Result<Job, Refusal> = (|| {
        let length = length(&admin, &said)?;
        engine(&admin)?.queue().lease_one(&id, &who.name, length, admin.clock.now()).map_err(|error| refused(&error))
    })();
    match leased {
        Ok(job) => handed(&admin, job).await,
        Err(refusal) => *refusal,
    }
}

fn length(admin: &Admin, said: &Lease) -> Result<Duration, Refusal> {
    let given =
        body::ends(("expiresIn", said.expires_in.as_deref()), ("expiresIn", None), LEASE_MAX, admin.clock.now())?;
    Ok(given.unwrap_or(LEASE))
}

/// A lease counts once it is on disk.
async fn handed(admin: &Admin, job: Job) -> Response {
    match stored(admin).await {
        Ok(()) => Answer(job).into_response(),
        Err(refusal) => *refusal,
    }
}

async fn stored(admin: &Admin) -> Result<(), Refusal> {
    engine(admin)?.queue().settled().await.map_err(|error| refused(&error))
}

/// `POST /v1/diagnosis/jobs/{id}/complete`.
pub(super) async fn complete(
    State(admin): Shared,
    Extension(who): Who,
    Path(id): Path<String>,
    Json(said): Json<Value>,
) -> Response {
    let outcome = match engine(&admin)
        .and_then(|engine| engine.complete(&id, &who.name, said).map_err(|error| refused(&error)))
    {
        Ok(outcome) => outcome,
        Err(refusal) => return *refusal,
    };
    if let Err(refusal) = stored(&admin).await {
        return *refusal;
    }
    let mut response = Answer(json!({"id": id, "outcome": outcome})).into_response();
    response.extensions_mut().insert(Changed { reason: Some(outcome), ..Changed::default() });
    response
}

fn refused(error: &JobError) -> Refusal {
    let (status, title) = match error {
        JobError::Unknown(_) => (StatusCode::NOT_FOUND, "no such job"),
        JobError::Leased(_) => (StatusCode::CONFLICT, "leased to another"),
        JobError::Done => (StatusCode::CONFLICT, "done already"),
        JobError::NotStored(_) => (StatusCode::SERVICE_UNAVAILABLE, "not on disk yet"),
    };
    Box::new(refuse(status, title, error.to_string()))
}

/// `POST /v1/tools/{tool}/recheck`: calls the tool once. If it works, what is DOWN is let through to its next real call.
pub(super) async fn recheck(State(admin): Shared, Path(tool): Path<String>, Query(given): Given) -> Response {
    let asked = Parameters::checked(given, &["backend", "user"]).and_then(|given| {
        let backend = super::health::backend_of(&admin, given.text("backend"), &tool)?;
        let who = given.text("user").map_or(ProbeAs::System, |user| ProbeAs::User(Arc::from(user)));
        Ok((ToolRef { backend, tool: Arc::from(tool.as_str()) }, who))
    });
    match asked {
        Ok((at, who)) => tried(&admin, &at, &who).await,
        Err(refusal) => *refusal,
    }
}

/// Tries a tool. If it works, what is DOWN is let through to its next real call.
pub(super) async fn tried(admin: &Admin, at: &ToolRef, who: &ProbeAs) -> Response {
    let tried = admin.proxy.probe(at, who).await;
    let opened = if tried == Tried::Works { admin.registry.open_retest(at, who, admin.clock.now()) } else { 0 };
    shown(&tried, opened)
}

/// What trying a tool showed, as an answer.
fn shown(tried: &Tried, opened: usize) -> Response {
    match tried {
        Tried::Works => Answer(json!({"result": "works", "opened": opened})).into_response(),
        Tried::Fails { signature, classification, text } => {
            let said = crate::diagnosis::redact(text);
            let body =
                json!({"result": "fails", "signature": signature, "classification": classification, "said": said});
            Answer(body).into_response()
        }
        Tried::Impossible(why) => refuse(StatusCode::CONFLICT, "cannot be tried", why.clone()),
    }
}
