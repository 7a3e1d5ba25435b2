//! Trying a backend by ourselves: the confirmation of a transport fault, and the probes that find out when a backend is
//! back (DESIGN 7 and 8). A probe never writes OK; it opens a retest, and a real call decides.

use std::sync::Arc;
use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE, HOST};
use http::{Request, StatusCode};

use super::effects;
use super::net::{Body, Fault};
use super::shared::{Backend, Shared};
use crate::health::{Attempt, CONFIRM_AFTER, ProbeTarget};
use crate::rules::TransportFault;
use crate::telemetry::events::Probed;

/// How long the answer to a ping may take.
const PATIENCE: Duration = Duration::from_secs(5);

const PING: &[u8] = br#"{"jsonrpc":"2.0","id":"toolvane-ping","method":"ping"}"#;

/// How often it is looked whether a probe is due.
const TURN: Duration = Duration::from_millis(250);

/// Tries the backend at each of [`CONFIRM_AFTER`]; the first success ends the doubt.
pub(super) fn start(shared: &Arc<Shared>, backend: &str) {
    let Some(backend) = shared.backends.iter().find(|known| &*known.name == backend).cloned() else { return };
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        let mut waited = Duration::ZERO;
        for (number, after) in CONFIRM_AFTER.into_iter().enumerate() {
            tokio::time::sleep(after.saturating_sub(waited)).await;
            waited = after;
            let failed = !is_alive(&shared, &backend).await;
            let attempt = Attempt { backend: &backend.name, number, failed };
            let now = shared.clock.now();
            let done = shared.registry.confirm(&attempt, now, &mut || (shared.random)());
            effects::act(&shared, done);
            if !failed {
                return;
            }
        }
    });
}

/// Probes what is due, for as long as the process lives.
pub(super) async fn probe_forever(shared: Arc<Shared>) {
    let mut turn = tokio::time::interval(TURN);
    turn.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        turn.tick().await;
        let now = shared.clock.now();
        shared.inflight.sweep(now.tick);
        effects::act(&shared, shared.registry.end_overrides(now));
        effects::became_due(&shared);
        for target in shared.registry.probe_targets(now) {
            let shared = Arc::clone(&shared);
            if target.transport {
                tokio::spawn(async move { probe(&shared, &target).await });
            } else if super::probe::is_safe(&shared, &target.key) {
                tokio::spawn(async move { super::probe::probe_down(&shared, &target).await });
            }
        }
    }
}

async fn probe(shared: &Arc<Shared>, target: &ProbeTarget) {
    let Some(backend) = shared.backends.iter().find(|known| *known.name == *target.key.backend) else { return };
    if is_alive(shared, backend).await {
        shared.registry.probe_succeeded(target, shared.clock.now());
        effects::list_changed(shared, &backend.name);
    }
}

async fn is_alive(shared: &Shared, backend: &Backend) -> bool {
    let fault = attempt(backend).await.err().map(|fault| fault.kind);
    shared.telemetry.emit(Probed { backend: &backend.name, fault });
    fault.is_none()
}

/// A connect and, where configured, an MCP `ping`. Any answer but one of an edge without a backend says that it lives; that
/// it wants a session or a credential says so too.
async fn attempt(backend: &Backend) -> Result<(), Fault> {
    backend.upstream.probe_connect().await?;
    let Some(ping) = backend.config.mcp_ping.then(|| ping(backend)).flatten() else { return Ok(()) };
    match backend.upstream.probe_request(ping, PATIENCE).await? {
        StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT => {
            Err(Fault::upstream(TransportFault::Protocol, true, "the edge in front of the backend answers for it"))
        }
        _ => Ok(()),
    }
}

fn ping(backend: &Backend) -> Option<Request<Body>> {
    let host = format!("{}:{}", backend.config.address_host(), backend.config.port());
    let request = Request::post(backend.config.url.path())
        .header(HOST, host)
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, "application/json, text/event-stream");
    request.body(Body::full(PING)).ok()
}
