//! What concerns the process: its configuration, and its end.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::Admin;
use crate::clock::Now;
use crate::telemetry::bus::Kind;

/// `GET /v1/config`: what the operator wrote, with secrets as `*`.
pub(super) async fn config(State(admin): State<Arc<Admin>>) -> Response {
    let text: &str = &admin.config.shown;
    Json(json!({"text": text, "hash": admin.config_hash})).into_response()
}

/// `GET /v1/overrides`: the decisions that stand.
pub(super) async fn overrides(State(admin): State<Arc<Admin>>) -> Response {
    let now: Now = admin.clock.now();
    let standing: Vec<_> = admin
        .registry
        .overrides(now)
        .iter()
        .map(|forced| json!({"document": forced.key, "override": forced.decision}))
        .collect();
    Json(json!({"overrides": standing})).into_response()
}

/// `POST /v1/drain`: announces the end. Readiness turns 503, health is frozen, callers are told to connect anew, and everything is
/// served on until SIGTERM: what a preStop hook needs, which runs before the backend is told to stop.
pub(super) async fn drain(State(admin): State<Arc<Admin>>) -> Response {
    let in_flight = admin.proxy.in_flight();
    if !admin.drain.is_leaving() {
        admin.telemetry.publish(Kind::Drain, admin.clock.now().wall, json!({"inFlight": in_flight}));
        (admin.leave)();
    }
    (StatusCode::ACCEPTED, Json(json!({"draining": true, "inFlight": in_flight}))).into_response()
}
