//! The admin listener (DESIGN 14): is the process alive, what do its metrics say, what does it believe, and the hands that
//! change what it believes.
//!
//! - `routes`: every path and the role that it takes. `guard`: who may come in. `audit`: who wrote what.
//! - `health`, `explain`, `metrics`, `probes`, `openapi`: what is read. `events`: what happens, as a stream.
//! - `overview`: every tool at a glance, with its last day of `past`; `page`: the same for people, with all the rest.
//! - `mcp`: the same as tools of an MCP server.
//! - `write`: what is written, with the forms of `body` to the document of `target`. `steer`: the process itself.
//!
//! Answers are JSON; errors are problem documents (RFC 9457).

mod audit;
mod body;
mod diagnosis;
mod events;
mod explain;
mod guard;
mod health;
mod integrations;
mod listen;
mod mcp;
mod metrics;
mod openapi;
mod overview;
mod page;
mod past;
pub mod principal;
mod probes;
mod query;
mod reload;
mod routes;
mod steer;
mod target;
mod write;

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router, middleware};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::clock::Clock;
use crate::config::{AdminAccess, Config};
use crate::diagnosis::Diagnosis;
use crate::health::Registry;
use crate::http::problem::Problem;
use crate::proxy::net::DrainSignal;
use crate::proxy::{Counted, Proxy};
use crate::readiness::Integrations;
use crate::store::Store;
use crate::telemetry::Telemetry;

pub use overview::Place;
pub use page::Sessions;
pub use past::Past;
pub use reload::{Applied, LastReload, Reload};

/// What the admin surface shows.
use guard::Entrance;
use listen::{Bounded, Socket};
use principal::Tokens;

/// Announces the end of the process.
pub type Leave = Arc<dyn Fn() + Send + Sync>;

/// What the admin surface shows and moves.
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
    /// The state file, if there is one.
    pub store: Option<Arc<Store>>,
    /// Whether we leave.
    pub drain: DrainSignal,
    /// Announces that we are about to leave.
    pub leave: Leave,
    /// Whether everything that a start takes is done.
    pub started: AtomicBool,
    /// Reads configuration and rules again.
    pub reload: Arc<dyn Reload>,
    /// The configuration in force.
    pub config: Arc<Config>,
    /// The name of that configuration.
    pub config_hash: String,
    /// What guards the listener.
    pub access: AdminAccess,
    /// Who may come in.
    pub tokens: Tokens,
    /// Who finds out what unclear failures mean, if anybody does.
    pub diagnosis: Option<Arc<Diagnosis>>,
    /// Seats for those who follow events.
    pub readers: Arc<Semaphore>,
    /// The last day of each tool.
    pub past: Past,
    /// Where the overview has got to in the stream of events.
    pub place: Place,
    /// Who has signed in with a browser.
    pub sessions: Sessions,
    /// When this process began, in milliseconds: tells its events from those of another life.
    pub life: i64,
}

impl Admin {
    /// The seats that readers of events take.
    pub fn seats() -> Arc<Semaphore> {
        Arc::new(Semaphore::new(events::READERS_MAX))
    }
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
    socket: Option<Socket>,
}

impl Bound {
    /// Binds `address`; port 0 takes any free port.
    ///
    /// # Errors
    /// Why the address cannot be bound.
    pub async fn bind(address: SocketAddr) -> std::io::Result<Bound> {
        let (listener, address) = listen::tcp(address).await?;
        Ok(Bound { listener, address, socket: None })
    }

    /// Binds a unix socket as well.
    ///
    /// # Errors
    /// Why it cannot be bound; somebody answers on it, for one.
    pub async fn with_socket(mut self, path: &std::path::Path) -> std::io::Result<Bound> {
        self.socket = Some(Socket::bind(path).await?);
        Ok(self)
    }

    /// The address, with the port that was taken.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The unix socket, if there is one.
    pub fn socket(&self) -> Option<PathBuf> {
        self.socket.as_ref().map(|socket| socket.path.clone())
    }

    /// Serves until the process ends: who drains wants to be watched while it does.
    ///
    /// # Errors
    /// When the listener fails.
    pub async fn serve(self, admin: Arc<Admin>) -> std::io::Result<()> {
        let _looking =
            tokio_util::task::AbortOnDropHandle::new(tokio::spawn(overview::look_forever(Arc::clone(&admin))));
        let entrance = if self.address.ip().is_loopback() { Entrance::Loopback } else { Entrance::Network };
        let watch = Counted::downstream(&admin.telemetry, "admin");
        let over_tcp =
            axum::serve(Bounded::new(self.listener, Arc::clone(&watch)), router(Arc::clone(&admin), entrance));
        let Some(socket) = self.socket else { return over_tcp.await };
        let over_socket = axum::serve(Bounded::new(socket.listener, watch), router(admin, Entrance::Socket));
        tokio::try_join!(over_tcp.into_future(), over_socket.into_future()).map(|_| ())
    }
}

/// All routes of the admin surface, for one way in.
fn router(admin: Arc<Admin>, entrance: Entrance) -> Router {
    Router::new()
        .route("/livez", get(probes::livez))
        .route("/readyz", get(probes::readyz))
        .route("/startupz", get(probes::startupz))
        .route("/metrics", get(metrics::metrics))
        .route("/v1/openapi.json", get(openapi::openapi))
        .route("/v1/health", get(health::list))
        .route("/v1/health/{scope}/{scope_id}/{tool}", get(health::one).delete(write::delete))
        .route("/v1/health/{scope}/{scope_id}/{tool}/unavailable", post(write::unavailable))
        .route("/v1/health/{scope}/{scope_id}/{tool}/degraded", post(write::degraded))
        .route("/v1/health/{scope}/{scope_id}/{tool}/available", post(write::available))
        .route("/v1/health/{scope}/{scope_id}/{tool}/cooldowns", post(write::cooldowns))
        .route("/v1/health/{scope}/{scope_id}/{tool}/clear", post(write::clear))
        .route("/v1/override", post(write::decide).delete(write::undecide))
        .route("/v1/overrides", get(steer::overrides))
        .route("/v1/lookup", get(health::lookup))
        .route("/v1/explain", post(explain::explain))
        .route("/v1/tools", get(health::tools))
        .route("/v1/overview", get(overview::overview))
        .route("/v1/manifest", get(integrations::manifest))
        .route("/v1/integrations", get(integrations::list))
        .route("/v1/integrations/invalidate", post(integrations::invalidate_all))
        .route("/v1/integrations/{id}", get(integrations::one))
        .route("/v1/integrations/{id}/invalidate", post(integrations::invalidate))
        .route("/v1/reload", post(reload::reload))
        .route("/v1/events", get(events::events))
        .route("/v1/config", get(steer::config))
        .route("/v1/drain", post(steer::drain))
        .route("/v1/diagnosis/jobs", get(diagnosis::list))
        .route("/v1/diagnosis/jobs/claim", post(diagnosis::claim))
        .route("/v1/diagnosis/jobs/{id}/claim", post(diagnosis::claim_one))
        .route("/v1/diagnosis/jobs/{id}/complete", post(diagnosis::complete))
        .route("/v1/tools/{tool}/recheck", post(diagnosis::recheck))
        .merge(page::router(admin.access.body))
        .route("/mcp", post(mcp::mcp))
        .fallback(nothing_here)
        .method_not_allowed_fallback(other_method)
        .layer(middleware::from_fn_with_state(Arc::clone(&admin), guard::guard))
        .layer(Extension(entrance))
        .with_state(admin)
}

async fn nothing_here() -> Response {
    refuse(StatusCode::NOT_FOUND, "nothing here", format!("the admin listener answers {}", routes::paths()))
}

async fn other_method() -> Response {
    let detail = "see /v1/openapi.json for the methods of this path; what only reads answers GET and HEAD";
    refuse(StatusCode::METHOD_NOT_ALLOWED, "method not allowed", detail)
}

/// A problem document.
fn refuse(status: StatusCode, title: &str, detail: impl Into<String>) -> Response {
    let response: axum::http::Response<axum::body::Body> = Problem::new(status, title).detail(detail).response();
    response.into_response()
}
