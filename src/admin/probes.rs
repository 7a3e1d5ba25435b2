//! Probes for whoever runs the process. They say whether toolvane can answer, never whether a tool is healthy: a pod must not
//! leave its service because a backend did.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::extract::State;
use axum::http::StatusCode;

use super::Admin;

type Said = (StatusCode, &'static str);

const FINE: Said = (StatusCode::OK, "ok\n");

/// The process turns.
pub(super) async fn livez() -> Said {
    FINE
}

/// Configuration loaded, listeners bound.
pub(super) async fn startupz(State(admin): State<Arc<Admin>>) -> Said {
    if admin.started.load(Ordering::Acquire) { FINE } else { (StatusCode::SERVICE_UNAVAILABLE, "starting\n") }
}

/// Started, and not about to leave.
pub(super) async fn readyz(State(admin): State<Arc<Admin>>) -> Said {
    if !admin.started.load(Ordering::Acquire) {
        (StatusCode::SERVICE_UNAVAILABLE, "starting\n")
    } else if admin.drain.is_leaving() {
        (StatusCode::SERVICE_UNAVAILABLE, "draining\n")
    } else {
        FINE
    }
}
