//! Listeners: accepting connections, bounding their number, and leaving in order.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::conn::{ConnInfo, Link, Shared, run};
use super::drain::DrainSignal;
use super::limits::Limits;
use super::own::Refusal;
use super::service::Service;
use super::upgrade::Tunnels;
use super::watch::{Open, Watch};
use super::workers::Workers;

/// How many connections past the limit are told so at the same time; the rest are closed without a word.
const REFUSALS: usize = 64;

/// How long a connection past the limit is kept to be told so.
const REFUSAL_TIME: Duration = Duration::from_secs(1);

/// How long calls that outlive the drain timeout have to be told so, before their connections are cut.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Pause after the machine could not accept (too many open files, say), so that the loop does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A listener whose address is known.
#[derive(Debug)]
pub struct Bound {
    listener: TcpListener,
    address: SocketAddr,
    watch: Option<Arc<dyn Watch>>,
}

impl Bound {
    /// Binds `address`; port 0 takes any free port.
    ///
    /// # Errors
    /// Why the address cannot be bound.
    pub async fn bind(address: SocketAddr) -> io::Result<Bound> {
        Bound::from_listener(TcpListener::bind(address).await?)
    }

    /// A listener that somebody else has bound.
    ///
    /// # Errors
    /// When its address cannot be read.
    pub fn from_listener(listener: TcpListener) -> io::Result<Bound> {
        let address = listener.local_addr()?;
        Ok(Bound { listener, address, watch: None })
    }

    /// The same, with somebody who is told of its connections.
    #[must_use]
    pub fn watched(self, watch: Arc<dyn Watch>) -> Bound {
        Bound { watch: Some(watch), ..self }
    }

    /// The address, with the port that was taken.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Serves all `listeners` with `service` until `drain` says stop, and returns when nothing is in flight any more: at the
/// latest a second after the drain timeout. In that second `service`, which sees it by [`DrainSignal::over`], may still
/// answer the calls that it gives up; what is left then is cut off.
///
/// HTTP/1.1 and HTTP/2 by prior knowledge are told apart by the first bytes. Names of header fields keep their case, if
/// the service moves the request's and the answer's `Extensions` along with them. No field is added to an answer.
pub async fn serve<S: Service>(listeners: Vec<Bound>, service: S, limits: Limits, drain: DrainSignal) {
    serve_on(Workers::current(), listeners, service, limits, drain).await;
}

/// [`serve`], with the connections carried by `workers` and only accepted here.
pub async fn serve_on<S: Service>(
    workers: Workers,
    listeners: Vec<Bound>,
    service: S,
    limits: Limits,
    drain: DrainSignal,
) {
    let tunnels = Arc::new(Tunnels::until(drain.over_token()));
    let places = Places {
        open: Arc::new(Semaphore::new(limits.connections.min(Semaphore::MAX_PERMITS))),
        refusals: Arc::new(Semaphore::new(REFUSALS)),
        workers,
    };
    let shared =
        Arc::new(Shared { service, limits: Arc::new(limits), drain: drain.clone(), tunnels: Arc::clone(&tunnels) });
    for (index, bound) in listeners.into_iter().enumerate() {
        let (shared, places, mut stopping) = (Arc::clone(&shared), places.clone(), drain.clone());
        tunnels.tracker.spawn(async move {
            tokio::select! {
                () = accept_all(bound, index, &shared, &places) => {}
                _ = stopping.stopping() => {}
            }
        });
    }
    let mut stopping = drain;
    stopping.stopping().await;
    tunnels.tracker.close();
    tokio::select! {
        () = tunnels.tracker.wait() => return,
        () = stopping.overdue() => tunnels.over.cancel(),
    }
    if tokio::time::timeout(LAST_WORDS, tunnels.tracker.wait()).await.is_err() {
        tunnels.kill.cancel();
        tunnels.tracker.wait().await;
    }
}

#[derive(Clone, Debug)]
struct Places {
    open: Arc<Semaphore>,
    refusals: Arc<Semaphore>,
    workers: Workers,
}

async fn accept_all<S: Service>(bound: Bound, index: usize, shared: &Arc<Shared<S>>, places: &Places) {
    let link = Arc::new(Link { tunnels: Arc::clone(&shared.tunnels), turn: None, plain: false });
    loop {
        let (stream, peer) = match bound.listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, address = %bound.address, "cannot accept connections");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let info = ConnInfo {
            peer,
            local: stream.local_addr().unwrap_or(bound.address),
            listener: index,
            link: Arc::clone(&link),
        };
        let open = Open::of(bound.watch.as_ref());
        if let Ok(place) = Arc::clone(&places.open).try_acquire_owned() {
            let Some((seat, stream)) = places.workers.seat().zip(stream.into_std().ok()) else { continue };
            let shared = Arc::clone(shared);
            let (tunnels, worker) = (Arc::clone(&shared.tunnels), seat.handle.clone());
            tunnels.spawn_on(&worker, async move {
                let _place = (place, open);
                // From here on the socket belongs to the worker's own reactor.
                if let Ok(stream) = TcpStream::from_std(stream) {
                    seat.during(run(stream, info, shared)).await;
                }
            });
        } else if let Ok(place) = Arc::clone(&places.refusals).try_acquire_owned() {
            shared.tunnels.spawn(refuse(stream, (place, open), Arc::clone(&shared.limits)));
        }
    }
}

/// Tells a connection past the limit why it is closed.
async fn refuse(mut stream: TcpStream, place: (OwnedSemaphorePermit, Open), limits: Arc<Limits>) {
    let _ = tokio::time::timeout(REFUSAL_TIME, async {
        // Closing while bytes are unread would reset the connection and lose the words.
        let mut scratch = [0_u8; 4096];
        let _ = stream.read(&mut scratch).await;
        let _ = stream.write_all(&Refusal::Connections.wire(&limits)).await;
        let _ = stream.shutdown().await;
        while stream.read(&mut scratch).await.is_ok_and(|n| n > 0) {}
    })
    .await;
    drop(place);
}
