//! HTTP/2 connections to one backend: shared by calls up to the backend's own limit of concurrent streams.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::expect::Outgoing;
use super::fault::Fault;
use super::quiet::Quiet;
use super::upstream::UpstreamSettings;
use super::watch::Open;
use crate::rules::TransportFault;

/// How often a connection with open streams is asked whether it still lives, and how long it may take to answer.
const PING_EVERY: Duration = Duration::from_secs(30);
const PING_WITHIN: Duration = Duration::from_secs(10);
/// 1 MiB per stream: a fast backend fills a 64 KiB window within one round trip.
const STREAM_WINDOW: u32 = 1024 * 1024;
const CONNECTION_WINDOW: u32 = 4 * 1024 * 1024;

/// The open connections. A mutex held for a look, never across an await.
#[derive(Debug)]
pub(super) struct Pool {
    connections: Mutex<Vec<Connection>>,
    /// One dial at a time: callers that arrive meanwhile share what it brings.
    dialing: Semaphore,
    max_head: usize,
    /// Ends every connection.
    cut: CancellationToken,
}

struct Connection {
    sender: SendRequest<Outgoing>,
    streams: Arc<Streams>,
}

#[derive(Debug)]
struct Streams {
    open: AtomicUsize,
    limit: AtomicUsize,
}

/// The right to one stream of a connection.
#[derive(Debug)]
pub(super) struct Lease {
    sender: SendRequest<Outgoing>,
    streams: Arc<Streams>,
    pub(super) reused: bool,
}

impl Pool {
    pub(super) fn new(settings: &UpstreamSettings, cut: CancellationToken) -> Pool {
        Pool { connections: Mutex::default(), dialing: Semaphore::new(1), max_head: settings.max_head, cut }
    }

    /// A stream on a connection that has room, or on a new one from `dial`.
    pub(super) async fn lease<F>(&self, dial: impl FnOnce() -> F) -> Result<Lease, Fault>
    where
        F: Future<Output = Result<(TcpStream, Open), Fault>>,
    {
        if let Some(lease) = self.take() {
            return Ok(lease);
        }
        // The semaphore is never closed; were it, dialing in parallel does no harm.
        let _turn = self.dialing.acquire().await.ok();
        if let Some(lease) = self.take() {
            return Ok(lease);
        }
        let connection = connect(dial().await?, self.max_head, self.cut.clone()).await?;
        let lease = connection.lease(false);
        self.lock().push(connection);
        lease.ok_or_else(|| Fault::upstream(TransportFault::Protocol, false, "the backend allows no HTTP/2 streams"))
    }

    /// How many connections are open.
    pub(super) fn count(&self) -> usize {
        self.lock().len()
    }

    fn take(&self) -> Option<Lease> {
        let mut connections = self.lock();
        connections.retain(|c| !c.sender.is_closed());
        connections.iter().find_map(|c| c.lease(true))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    fn lease(&self, reused: bool) -> Option<Lease> {
        let limit = self.streams.limit.load(Ordering::Relaxed);
        let taken =
            self.streams.open.fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| (n < limit).then_some(n + 1));
        taken.ok().map(|_| Lease { sender: self.sender.clone(), streams: Arc::clone(&self.streams), reused })
    }
}

async fn connect(
    (stream, open): (TcpStream, Open),
    max_head: usize,
    cut: CancellationToken,
) -> Result<Connection, Fault> {
    let (read, write) = stream.into_split();
    let io = tokio::io::join(Quiet::new(read, 0), write);
    let (sender, driver) = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_WITHIN)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        // Past this the protocol library resets the stream without a word; up to it we say what the limit is.
        .max_header_list_size(u32::try_from(max_head.saturating_mul(2)).unwrap_or(u32::MAX))
        .handshake(TokioIo::new(io))
        .await
        .map_err(|e| Fault::from_call(&e, false))?;
    let streams =
        Arc::new(Streams { open: AtomicUsize::new(0), limit: AtomicUsize::new(driver.current_max_send_streams()) });
    let shared = Arc::clone(&streams);
    tokio::spawn(async move {
        let _open = open;
        let mut driver = pin!(driver);
        let driven = poll_fn(|cx| {
            let polled = driver.as_mut().poll(cx);
            if polled.is_pending() {
                shared.limit.store(driver.current_max_send_streams(), Ordering::Relaxed);
            }
            polled
        });
        tokio::select! {
            _ = driven => {}
            () = cut.cancelled() => {}
        }
    });
    Ok(Connection { sender, streams })
}

impl Lease {
    pub(super) fn sender(&mut self) -> &mut SendRequest<Outgoing> {
        &mut self.sender
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.streams.open.fetch_sub(1, Ordering::AcqRel);
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("streams", &self.streams).finish_non_exhaustive()
    }
}
