//! The admin listener (DESIGN 14): is the process alive, what do its metrics say, what does it believe.
//!
//! It reads, and has integrations asked anew and rules read again when this machine asks. Its answers are JSON; errors are problem
//! documents (RFC 9457).

mod health;
mod integrations;
mod metrics;
mod probes;
mod query;
mod reload;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use axum::Router;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use tokio::net::TcpListener;

use crate::clock::Clock;
use crate::health::Registry;
use crate::http::problem::Problem;
use crate::proxy::Proxy;
use crate::proxy::net::DrainSignal;
use crate::readiness::Integrations;
use crate::store::Store;
use crate::telemetry::Telemetry;

pub use reload::{Applied, Reload};

/// What the admin surface shows.
pub struct Admin {
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// What is believed.
    pub registry: Arc<Registry>,
    /// What is counted.
    pub telemetry: Arc<Telemetry>,
    /// Which tools are known, and how many calls are in flight.
    pub proxy: Proxy,
    /// What backs tools.
    pub integrations: Arc<Integrations>,
    /// Whether requests may change something: only on a loopback listener, which has no authentication yet.
    pub writable: bool,
    /// The state file, if there is one.
    pub store: Option<Arc<Store>>,
    /// Whether we leave.
    pub drain: DrainSignal,
    /// Whether everything that a start takes is done.
    pub started: AtomicBool,
    /// Reads configuration and rules again.
    pub reload: Arc<dyn Reload>,
}

impl fmt::Debug for Admin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admin").field("started", &self.started).finish_non_exhaustive()
    }
}

/// A bound admin listener.
#[derive(Debug)]
pub struct Bound {
    listener: TcpListener,
    address: SocketAddr,
}

impl Bound {
    /// Binds `address`; port 0 takes any free port.
    ///
    /// # Errors
    /// Why the address cannot be bound.
    pub async fn bind(address: SocketAddr) -> std::io::Result<Bound> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok(Bound { listener, address })
    }

    /// The address, with the port that was taken.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until the process ends: who drains wants to be watched while it does.
    ///
    /// # Errors
    /// When the listener fails.
    pub async fn serve(self, admin: Arc<Admin>) -> std::io::Result<()> {
        axum::serve(self.listener, router(admin)).await
    }
}

/// All routes of the admin surface.
pub fn router(admin: Arc<Admin>) -> Router {
    Router::new()
        .route("/livez", get(probes::livez))
        .route("/readyz", get(probes::readyz))
        .route("/startupz", get(probes::startupz))
        .route("/metrics", get(metrics::metrics))
        .route("/v1/health", get(health::list))
        .route("/v1/health/{scope}/{scope_id}/{tool}", get(health::one))
        .route("/v1/lookup", get(health::lookup))
        .route("/v1/tools", get(health::tools))
        .route("/v1/manifest", get(integrations::manifest))
        .route("/v1/integrations", get(integrations::list))
        .route("/v1/integrations/invalidate", post(integrations::invalidate_all))
        .route("/v1/integrations/{id}", get(integrations::one))
        .route("/v1/integrations/{id}/invalidate", post(integrations::invalidate))
        .route("/v1/reload", post(reload::reload))
        .fallback(nothing_here)
        .method_not_allowed_fallback(only_get)
        .with_state(admin)
}

async fn nothing_here() -> Response {
    const ROUTES: &str = "/livez, /readyz, /startupz, /metrics, /v1/health, /v1/health/{scope}/{scopeId}/{tool}, /v1/lookup, \
         /v1/tools, /v1/manifest, /v1/integrations, /v1/integrations/{id}, /v1/integrations/{id}/invalidate, /v1/reload";
    refuse(StatusCode::NOT_FOUND, "nothing here", format!("the admin listener answers {ROUTES}"))
}

async fn only_get() -> Response {
    refuse(
        StatusCode::METHOD_NOT_ALLOWED,
        "method not allowed",
        "the admin listener answers GET and HEAD, and POST on /v1/integrations/{id}/invalidate and /v1/reload",
    )
}

/// A problem document.
fn refuse(status: StatusCode, title: &str, detail: impl Into<String>) -> Response {
    let response: axum::http::Response<axum::body::Body> = Problem::new(status, title).detail(detail).response();
    response.into_response()
}
