//! Writes of health: each is acknowledged once it is on disk, or refused with nothing changed. Requests and tools of `mcp` come
//! to the same `Write`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Json as Answer;
use axum::extract::State;
use axum::http::header::ETAG;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, http::HeaderValue};
use serde_json::{Value, json};

use super::audit::Changed;
use super::body::{self, Clear, Cooldown, Decision, Json, Refusal, Statement, unfit};
use super::health::Shown;
use super::principal::Principal;
use super::query::{Parameters, Path, Query};
use super::routes::OVERRIDE;
use super::target::{self, Named, Shared, Who};
use super::{Admin, refuse};
use crate::clock::Now;
use crate::config::Role;
use crate::health::{Document, Key, Mark, OVERRIDE_MAX, Order, OrderRefused, Origin, Override, Status, Written};
use crate::rules::Classification;

type Given = Query<BTreeMap<String, String>>;
/// What says which document is meant, and which version of it.
type Addressed = (Path<(String, String, String)>, Given, HeaderMap);

/// The furthest that an estimate may lie ahead (DESIGN 8).
const DAY: Duration = Duration::from_secs(24 * 3600);

/// Which document a write is addressed to, and which version of it.
pub(super) struct Target {
    pub(super) named: Named,
    pub(super) expected: Option<u64>,
}

impl Target {
    /// Its key, if this hand may write there.
    fn key(&self, admin: &Admin, who: &Principal) -> Result<Key, Refusal> {
        self.named.within_reach_of(who)?;
        self.named.key(admin)
    }
}

/// A write: who does what to which document.
pub(super) struct Write<'a> {
    admin: &'a Admin,
    key: Key,
    order: Order,
    expected: Option<u64>,
    reason: Option<Arc<str>>,
}

/// `POST …/unavailable`.
pub(super) async fn unavailable(
    State(admin): Shared,
    Extension(who): Who,
    at: Addressed,
    Json(said): Json<Statement>,
) -> Response {
    state(&admin, &who, at, (Status::Down, said)).await
}

/// `POST …/degraded`.
pub(super) async fn degraded(
    State(admin): Shared,
    Extension(who): Who,
    at: Addressed,
    Json(said): Json<Statement>,
) -> Response {
    state(&admin, &who, at, (Status::Degraded, said)).await
}

/// `POST …/available`.
pub(super) async fn available(
    State(admin): Shared,
    Extension(who): Who,
    at: Addressed,
    Json(said): Json<Statement>,
) -> Response {
    state(&admin, &who, at, (Status::Ok, said)).await
}

async fn state(admin: &Admin, who: &Principal, at: Addressed, (to, said): (Status, Statement)) -> Response {
    finish(target(at).and_then(|at| status(admin, who, &at, (to, &said)))).await
}

/// What a path, a query and `If-Match` say of the document.
fn target((Path(path), Query(given), headers): Addressed) -> Result<Target, Refusal> {
    Ok(Target { named: Named::read(path, given)?, expected: target::expected(&headers)? })
}

/// Sets a status.
pub(super) fn status<'a>(
    admin: &'a Admin,
    who: &Principal,
    at: &Target,
    (to, said): (Status, &Statement),
) -> Result<Write<'a>, Refusal> {
    let key = at.key(admin, who)?;
    let mark = mark(who, to, said, admin.clock.now())?;
    let reason = Some(Arc::clone(&mark.note));
    Ok(Write { admin, key, order: Order::Mark(mark), expected: at.expected, reason })
}

/// Arms a cooldown, or moves its deadline.
pub(super) fn cooldown<'a>(
    admin: &'a Admin,
    who: &Principal,
    at: &Target,
    said: &Cooldown,
) -> Result<Write<'a>, Refusal> {
    let key = at.key(admin, who)?;
    let ends = body::ends(
        ("expiresIn", said.expires_in.as_deref()),
        ("nextSpawnAllowedAt", said.next_spawn_allowed_at),
        admin.registry.cooldown_max(),
        admin.clock.now(),
    )?;
    let length = ends.ok_or_else(|| unfit("say until when: `expiresIn` (such as `15m`) or `nextSpawnAllowedAt`"))?;
    let order = Order::Cooldown {
        signature: body::name("errorSignature", &said.error_signature)?,
        user: said.user_id.as_deref().map(Arc::from),
        classification: said.classification,
        length: Some(length),
    };
    let reason = Some(body::reason(said.reason.as_deref())?);
    Ok(Write { admin, key, order, expected: at.expected, reason })
}

/// Removes cooldowns, and sets OK if it is not about some of them alone.
pub(super) fn removal<'a>(admin: &'a Admin, who: &Principal, at: &Target, said: &Clear) -> Result<Write<'a>, Refusal> {
    let key = at.key(admin, who)?;
    let reason = body::reason(said.reason.as_deref())?;
    let order = if said.cooldowns_only || said.error_signature.is_some() || said.user_id.is_some() {
        Order::ClearCooldowns {
            signature: said.error_signature.as_deref().map(Arc::from),
            user: said.user_id.as_deref().map(Arc::from),
        }
    } else {
        Order::Clear { by: Arc::clone(&who.name), note: Arc::clone(&reason) }
    };
    Ok(Write { admin, key, order, expected: at.expected, reason: Some(reason) })
}

/// What a statement of somebody makes of a document. An engine must say why and until when; a lifecycle event is a fact and
/// needs neither.
fn mark(who: &Principal, to: Status, said: &Statement, now: Now) -> Result<Mark, Refusal> {
    let recovery = body::ends(
        ("expiresIn", said.expires_in.as_deref()),
        ("expectedRecoveryAt", said.expected_recovery_at),
        DAY,
        now,
    )?;
    if to != Status::Ok && said.code.is_none() && recovery.is_none() {
        return Err(unfit("say until when: `expiresIn` (such as `15m`) or `expectedRecoveryAt`, a day ahead at most"));
    }
    if said.since.is_some_and(|since| since > now.wall.plus_millis(5_000)) {
        return Err(unfit("`since` lies ahead: it says when something began"));
    }
    let note = match (said.code, body::words("reason", said.reason.as_deref())?) {
        (_, Some(reason)) => reason,
        (Some(code), None) => Arc::from(code.as_str()),
        (None, None) => return Err(unfit("`reason` is missing: say why, others will read it")),
    };
    let signature = match (said.code, said.signature.as_deref()) {
        (Some(code), _) => Some(Arc::from(code.as_str())),
        (None, Some(signature)) => Some(body::name("signature", signature)?),
        (None, None) => None,
    };
    let by = match said.by.as_deref() {
        Some(hand) => Arc::from(format!("{}/{}", who.name, body::name("by", hand)?)),
        None => Arc::clone(&who.name),
    };
    let usual = match to {
        Status::Ok => Classification::Working,
        Status::Degraded => Classification::Intermittent,
        Status::Down => Classification::TechnicallyBroken,
    };
    let classification = said.classification.unwrap_or(usual);
    fits(to, classification)?;
    let origin = match said.code {
        Some(_) => Origin::System,
        None if who.may(Role::Operator) => Origin::Admin,
        None => Origin::Engine,
    };
    let user_action_hint = body::words("userActionHint", said.user_action_hint.as_deref())?;
    Ok(Mark { to, classification, signature, origin, by, note, since: said.since, recovery, user_action_hint })
}

/// What somebody may not do or did wrong is no health matter (DESIGN 7), and nothing that works is DOWN.
fn fits(to: Status, classification: Classification) -> Result<(), Refusal> {
    let working = classification == Classification::Working;
    let never = matches!(classification, Classification::UserPermission | Classification::UserInput);
    if (to == Status::Ok) == working && !never {
        return Ok(());
    }
    Err(unfit(format!(
        "{classification} does not go with this status: WORKING is OK, USER_PERMISSION and USER_INPUT are no status"
    )))
}

/// `POST …/cooldowns`.
pub(super) async fn cooldowns(
    State(admin): Shared,
    Extension(who): Who,
    at: Addressed,
    Json(said): Json<Cooldown>,
) -> Response {
    finish(target(at).and_then(|at| cooldown(&admin, &who, &at, &said))).await
}

/// `POST …/clear`.
pub(super) async fn clear(
    State(admin): Shared,
    Extension(who): Who,
    at: Addressed,
    Json(said): Json<Clear>,
) -> Response {
    finish(target(at).and_then(|at| removal(&admin, &who, &at, &said))).await
}

/// `POST /v1/override`.
pub(super) async fn decide(
    State(admin): Shared,
    Extension(who): Who,
    headers: HeaderMap,
    Json(said): Json<Decision>,
) -> Response {
    let prepared = decision(&admin, &who, said).and_then(|(key, decision)| {
        let reason = Some(Arc::from(decision.reason.as_str()));
        let expected = target::expected(&headers)?;
        Ok(Write { admin: &admin, key, order: Order::Override(decision), expected, reason })
    });
    finish(prepared).await
}

fn decision(admin: &Admin, who: &Principal, said: Decision) -> Result<(Key, Override), Refusal> {
    let now = admin.clock.now();
    let length = body::ends(("expiresIn", said.expires_in.as_deref()), ("until", said.until), OVERRIDE_MAX, now)?
        .ok_or_else(|| {
            unfit("an override must end: say `expiresIn` (such as `2h`) or `until`, a week ahead at most")
        })?;
    let reason = body::reason(said.reason.as_deref())?;
    let Decision { tool, scope, scope_id, backend, tenant, force, .. } = said;
    let key = Named { scope, scope_id, tool, backend, tenant }.checked()?.key(admin)?;
    let by = who.name.to_string();
    let until = now.after(length).wall;
    Ok((key, Override { force, reason: reason.to_string(), by, since: now.wall, until }))
}

/// `DELETE /v1/override`.
pub(super) async fn undecide(State(admin): Shared, Query(given): Given, headers: HeaderMap) -> Response {
    let prepared = Parameters::checked(given, OVERRIDE).and_then(|given| {
        let key = target::of_query(&given)?.key(&admin)?;
        let expected = target::expected(&headers)?;
        Ok(Write { admin: &admin, key, order: Order::EndOverride, expected, reason: None })
    });
    finish(prepared).await
}

/// `DELETE /v1/health/{scope}/{scopeId}/{tool}`.
pub(super) async fn delete(State(admin): Shared, Extension(who): Who, at: Addressed) -> Response {
    let aimed = target(at).and_then(|at| Ok((at.key(&admin, &who)?, at.expected)));
    let (key, expected) = match aimed {
        Ok(aimed) => aimed,
        Err(refusal) => return *refusal,
    };
    match admin.registry.delete(&key, expected, admin.clock.now()) {
        Ok(written) => done(&admin, written, None).await,
        Err(refused) => *refusal_of(&refused),
    }
}

/// Carries a write out, or says why it cannot be.
pub(super) async fn finish(prepared: Result<Write<'_>, Refusal>) -> Response {
    match prepared {
        Ok(write) => write.carry_out().await,
        Err(refusal) => *refusal,
    }
}

impl Write<'_> {
    /// Carries it out, and answers once it is on disk.
    async fn carry_out(self) -> Response {
        let Write { admin, key, order, expected, reason } = self;
        let now = admin.clock.now();
        match admin.registry.order(&key, &order, expected, (now, &mut || admin.proxy.draw())) {
            Ok(written) => done(admin, written, reason).await,
            Err(refused) => *refusal_of(&refused),
        }
    }
}

/// Tells everybody what was written, waits for the disk, and answers.
async fn done(admin: &Admin, written: Written, reason: Option<Arc<str>>) -> Response {
    let Written { before, after, effects, queued } = written;
    admin.proxy.act(effects);
    let changed = Changed {
        before: before.as_ref().map(brief),
        after: after.as_ref().map(brief),
        reason: reason.map(|reason| reason.to_string()),
        silent: false,
    };
    let mut response = match stored(admin, queued).await {
        Ok(()) => acknowledged(after, admin.clock.now()),
        Err(why) => refuse(
            StatusCode::SERVICE_UNAVAILABLE,
            "not on disk yet",
            format!("it holds in memory and will be written as soon as it can be: {why}"),
        ),
    };
    response.extensions_mut().insert(changed);
    response
}

/// Waits until everything that was written before is on disk.
pub(super) async fn stored(admin: &Admin, queued: bool) -> Result<(), String> {
    let Some(store) = &admin.store else { return Ok(()) };
    if !queued {
        return Err("too many documents wait for the disk already".to_owned());
    }
    store.flush().await.map_err(|error| error.to_string())
}

fn acknowledged(after: Option<Document>, now: Now) -> Response {
    let Some(document) = after else { return StatusCode::NO_CONTENT.into_response() };
    let tag = etag(&document);
    let mut response = Answer(Shown::of(document, now)).into_response();
    response.headers_mut().extend(tag.map(|tag| (ETAG, tag)));
    response
}

/// The entity tag of a document: its version.
pub(super) fn etag(document: &Document) -> Option<HeaderValue> {
    HeaderValue::from_str(&format!("\"{}\"", document.version)).ok()
}

/// Of a document what an auditor wants to see: not its history.
pub(super) fn brief(document: &Document) -> Value {
    json!({
        "key": document.key, "status": document.status, "version": document.version, "origin": document.origin,
        "classification": document.classification, "signature": document.signature, "since": document.since,
        "expectedRecoveryAt": document.expected_recovery_at, "override": document.overridden,
        "cooldowns": document.cooldowns.len(),
    })
}

fn refusal_of(refused: &OrderRefused) -> Refusal {
    let (status, title) = match refused {
        OrderRefused::Frozen => (StatusCode::SERVICE_UNAVAILABLE, "draining"),
        OrderRefused::Changed { .. } => (StatusCode::PRECONDITION_FAILED, "changed meanwhile"),
        OrderRefused::Late { .. } => (StatusCode::CONFLICT, "too late"),
        OrderRefused::TooMany => (StatusCode::CONFLICT, "too many overrides"),
        OrderRefused::Nothing => (StatusCode::NOT_FOUND, "nothing there"),
    };
    Box::new(refuse(status, title, refused.to_string()))
}
