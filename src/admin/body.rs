//! The bodies that writes take, read strictly and with a bound.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{Admin, refuse};
use crate::clock::{Now, Wall};
use crate::health::Force;
use crate::json;
use crate::rules::{Classification, Scope};
use crate::yaml::{duration_text, parse_duration};

/// The longest reason or hint, in bytes (DESIGN 8).
const WORDS_MAX: usize = 512;
/// The longest name of a signature or a hand, in bytes.
const NAME_MAX: usize = 64;

/// A refusal, as handlers give it.
pub(super) type Refusal = Box<Response>;

/// A JSON body of a known form.
#[derive(Debug)]
pub(super) struct Json<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<Arc<Admin>> for Json<T> {
    type Rejection = Response;

    async fn from_request(request: Request, admin: &Arc<Admin>) -> Result<Json<T>, Response> {
        let kind = request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let essence = kind.split(';').next().unwrap_or_default().trim();
        if !essence.eq_ignore_ascii_case("application/json") {
            let detail = "send the body as `Content-Type: application/json`";
            return Err(refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not JSON", detail));
        }
        let bytes = bounded(request.into_body(), admin.access.body).await?;
        json::read(&bytes).map(Json).map_err(|error| {
            let (line, column) = error.position;
            refuse(StatusCode::BAD_REQUEST, "bad body", format!("{error}, at line {line} column {column}"))
        })
    }
}

/// A body of at most `limit` bytes.
pub(super) async fn bounded(body: Body, limit: usize) -> Result<bytes::Bytes, Response> {
    match Limited::new(body, limit).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            let detail = format!("a request body may have {limit} bytes (`admin.body`)");
            Err(refuse(StatusCode::PAYLOAD_TOO_LARGE, "body too large", detail))
        }
        Err(_) => Err(refuse(StatusCode::BAD_REQUEST, "bad body", "the body broke off")),
    }
}

/// A moment in the life of a tool's provider that the platform reports: what it is put down to needs no diagnosis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Lifecycle {
    /// A connection to the provider has closed.
    ConnectionClosed,
    /// The provider has left the session.
    ProviderLeft,
    /// The process has exited.
    ProcessExited,
    /// The process was killed.
    ProcessKilled,
    /// The process had no memory left.
    OutOfMemory,
    /// The provider is being started.
    Starting,
    /// The provider is being stopped.
    Stopping,
    /// The provider runs, but sheds load.
    Overloaded,
    /// The provider is back.
    Started,
}

impl Lifecycle {
    /// The code as a signature.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Lifecycle::ConnectionClosed => "connection-closed",
            Lifecycle::ProviderLeft => "provider-left",
            Lifecycle::ProcessExited => "process-exited",
            Lifecycle::ProcessKilled => "process-killed",
            Lifecycle::OutOfMemory => "out-of-memory",
            Lifecycle::Starting => "starting",
            Lifecycle::Stopping => "stopping",
            Lifecycle::Overloaded => "overloaded",
            Lifecycle::Started => "started",
        }
    }
}

/// A status, and what must be said with it.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Statement {
    /// Why, in at most 512 bytes. Needed unless there is a `code`.
    pub(super) reason: Option<String>,
    /// A lifecycle event of the provider: such a statement needs no reason and no end.
    pub(super) code: Option<Lifecycle>,
    /// When it began, for events that are told late.
    pub(super) since: Option<Wall>,
    /// What it is put down to. By default TECHNICALLY_BROKEN for DOWN, INTERMITTENT for DEGRADED.
    pub(super) classification: Option<Classification>,
    /// The kind of failure: at most 64 letters, digits, `-`, `_`, `.`.
    pub(super) signature: Option<String>,
    /// How long it will last, such as `15m`; or say `expectedRecoveryAt`.
    pub(super) expires_in: Option<String>,
    /// When it will be over, 24 h ahead at most.
    pub(super) expected_recovery_at: Option<Wall>,
    /// What the user concerned can do.
    pub(super) user_action_hint: Option<String>,
    /// Which hand of the token's owner: the name of an engine, of a person.
    pub(super) by: Option<String>,
}

/// A cooldown that is to be armed, or to end at another time.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "ArmedCooldown")]
pub(super) struct Cooldown {
    /// The kind of failure: at most 64 letters, digits, `-`, `_`, `.`.
    pub(super) error_signature: String,
    /// Whose; left out it is scope-wide.
    pub(super) user_id: Option<String>,
    /// What such failures are.
    pub(super) classification: Classification,
    /// How long, such as `15m`; or say `nextSpawnAllowedAt`.
    pub(super) expires_in: Option<String>,
    /// Until when.
    pub(super) next_spawn_allowed_at: Option<Wall>,
    /// Why, in at most 512 bytes.
    pub(super) reason: Option<String>,
}

/// What is to be removed.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Clear {
    /// Why, in at most 512 bytes.
    pub(super) reason: Option<String>,
    /// Leave the status alone. So it is, too, where a signature or a user is named.
    #[serde(default)]
    pub(super) cooldowns_only: bool,
    /// Only cooldowns of this kind of failure.
    pub(super) error_signature: Option<String>,
    /// Only cooldowns of this user.
    pub(super) user_id: Option<String>,
}

/// A decision against the evidence.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Decision {
    /// The tool, or `*` for its whole backend.
    pub(super) tool: String,
    /// Whom it concerns.
    pub(super) scope: Scope,
    /// Which session, user, project or tenant; left out for GLOBAL.
    pub(super) scope_id: Option<String>,
    /// Of which backend; at GLOBAL `*` is any.
    pub(super) backend: Option<String>,
    /// Of which tenant.
    pub(super) tenant: Option<String>,
    /// What is decided.
    pub(super) force: Force,
    /// Why, in at most 512 bytes.
    pub(super) reason: Option<String>,
    /// For how long, such as `2h`, a week at most; or say `until`.
    pub(super) expires_in: Option<String>,
    /// Until when.
    pub(super) until: Option<Wall>,
}

/// For how long a job is leased.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Lease {
    /// Such as `5m`, 15 minutes at most; by default 5 minutes.
    pub(super) expires_in: Option<String>,
}

/// What was asked for can be read, but not be done so.
pub(super) fn unfit(detail: impl Into<String>) -> Refusal {
    Box::new(refuse(StatusCode::UNPROCESSABLE_ENTITY, "cannot be done so", detail))
}

/// Words for people: there, not empty, within the bound.
pub(super) fn words(name: &str, given: Option<&str>) -> Result<Option<Arc<str>>, Refusal> {
    let Some(text) = given.map(str::trim).filter(|text| !text.is_empty()) else { return Ok(None) };
    if text.len() > WORDS_MAX {
        return Err(unfit(format!("`{name}` may have {WORDS_MAX} bytes, not {}", text.len())));
    }
    Ok(Some(Arc::from(text)))
}

/// Words that must be there.
pub(super) fn reason(given: Option<&str>) -> Result<Arc<str>, Refusal> {
    words("reason", given)?.ok_or_else(|| unfit("`reason` is missing: say why, others will read it"))
}

/// A name that may become a label.
pub(super) fn name(what: &str, given: &str) -> Result<Arc<str>, Refusal> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if given.is_empty() || given.len() > NAME_MAX || !given.chars().all(fits) {
        return Err(unfit(format!("`{what}` is at most {NAME_MAX} letters, digits, `-`, `_` and `.`")));
    }
    Ok(Arc::from(given))
}

/// When something ends: as a duration or as a time, one of both, ahead and within `longest`.
pub(super) fn ends(
    (length_name, length): (&str, Option<&str>),
    (time_name, time): (&str, Option<Wall>),
    longest: Duration,
    now: Now,
) -> Result<Option<Duration>, Refusal> {
    let ahead = match (length, time) {
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => return Err(unfit(format!("give `{length_name}` or `{time_name}`, not both"))),
        (Some(text), None) => parse_duration(text)
            .ok_or_else(|| unfit(format!("`{length_name}` must be a duration such as `15m`, not {text:?}")))?,
        (None, Some(at)) => Duration::from_millis(u64::try_from(at.0.saturating_sub(now.wall.0)).unwrap_or(0)),
    };
    if ahead < Duration::from_secs(1) || ahead > longest {
        let longest = duration_text(longest);
        return Err(unfit(format!("`{length_name}` or `{time_name}` must end between 1s and {longest} from now")));
    }
    Ok(Some(ahead))
}
