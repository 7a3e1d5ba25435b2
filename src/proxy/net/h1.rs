//! The pool of HTTP/1.1 connections to one backend: last in, first out, none kept longer than the backend keeps it.
//!
//! A connection has no task of its own: whoever holds it drives it, the call while it waits for the head of its answer, the
//! answer's body while it is read. That spares two wake-ups and a channel's hop a call, and all that has arrived of an
//! answer goes out in one write.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use super::expect::Outgoing;
use super::fault::Fault;
use super::limits::HYPER_HEADERS;
use super::rarely::rarely;
use super::upstream::UpstreamSettings;
use super::workers::Workers;
use crate::clock::{Clock, Tick};

/// How long a connection whose answer is complete may take to become ready for the next request.
const SETTLE: Duration = Duration::from_secs(1);

/// One connection, held by at most one call. Dropped, it is closed.
pub(super) struct Connection {
    sender: SendRequest<Outgoing>,
    /// Moves the bytes; `None` once it has ended.
    driver: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

/// Idle connections, on one shelf for each worker: a connection stays with the thread whose reactor watches its socket, and
/// the mutex of a shelf, held for a push or a pop, is never waited for.
#[derive(Debug)]
pub(super) struct Pool {
    shelves: [Mutex<Idle>; Workers::MOST],
    /// Over all shelves.
    count: AtomicUsize,
    clock: Arc<dyn Clock>,
    idle_timeout: Duration,
    max_idle: usize,
    max_head: usize,
    max_headers: usize,
    /// Ends every connection.
    cut: CancellationToken,
}

#[derive(Debug, Default)]
struct Idle {
    connections: VecDeque<(Tick, Connection)>,
    reaping: bool,
}

/// The right to a connection for one call. Dropped before the answer is complete, it closes the connection at once.
#[derive(Debug)]
pub(super) struct Lease {
    connection: Option<Connection>,
    pool: Arc<Pool>,
    pub(super) reused: bool,
}

impl Pool {
    pub(super) fn new(settings: &UpstreamSettings, clock: Arc<dyn Clock>, cut: CancellationToken) -> Pool {
        let shelves = std::array::from_fn(|_| Mutex::default());
        Pool {
            shelves,
            count: AtomicUsize::new(0),
            clock,
            idle_timeout: settings.idle_timeout,
            max_idle: settings.max_idle,
            max_head: settings.max_head,
            max_headers: settings.max_headers,
            cut,
        }
    }

    /// The connection that was used last, if one is ready.
    pub(super) fn take(self: &Arc<Self>) -> Option<Lease> {
        let now = self.clock.now().tick;
        let mut idle = self.lock(Workers::here());
        while let Some((since, mut connection)) = idle.connections.pop_back() {
            self.count.fetch_sub(1, Ordering::Relaxed);
            if now.since(since) >= self.idle_timeout {
                self.count.fetch_sub(idle.connections.len(), Ordering::Relaxed);
                idle.connections.clear();
                return None;
            }
            if connection.settle() {
                return Some(Lease { connection: Some(connection), pool: Arc::clone(self), reused: true });
            }
        }
        None
    }

    /// A new connection over `stream`.
    pub(super) async fn open(self: &Arc<Self>, stream: TcpStream) -> Result<Lease, Fault> {
        let mut builder = http1::Builder::new();
        builder.preserve_header_case(true).max_header_size(self.max_head).max_buf_size(self.max_head.max(400 * 1024));
        if self.max_headers != HYPER_HEADERS {
            builder.max_headers(self.max_headers);
        }
        let (sender, driver) =
            builder.handshake(TokioIo::new(stream)).await.map_err(|e| Fault::from_call(&e, false))?;
        let cut = self.cut.clone();
        let driver = Box::pin(async move {
            tokio::select! {
                // The call's own future or body carries the error; an idle connection that closes is no event.
                _ = driver.with_upgrades() => {}
                () = rarely(cut.cancelled()) => {}
            }
        });
        let connection = Connection { sender, driver: Some(driver) };
        Ok(Lease { connection: Some(connection), pool: Arc::clone(self), reused: false })
    }

    /// How many connections wait for a call.
    pub(super) fn idle_count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    fn put(self: &Arc<Self>, connection: Connection) {
        let here = Workers::here();
        let mut idle = self.lock(here);
        if self.count.load(Ordering::Relaxed) >= self.max_idle && idle.connections.pop_front().is_some() {
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
        idle.connections.push_back((self.clock.now().tick, connection));
        self.count.fetch_add(1, Ordering::Relaxed);
        if !std::mem::replace(&mut idle.reaping, true) {
            tokio::spawn(reap(Arc::downgrade(self), here, self.idle_timeout));
        }
    }

    /// Closes what is idle for too long on a shelf; tells whether anything is left.
    fn prune(&self, shelf: usize) -> bool {
        let now = self.clock.now().tick;
        let mut idle = self.lock(shelf);
        let before = idle.connections.len();
        let idle_timeout = self.idle_timeout;
        idle.connections.retain_mut(|(since, connection)| now.since(*since) < idle_timeout && connection.settle());
        self.count.fetch_sub(before - idle.connections.len(), Ordering::Relaxed);
        idle.reaping = !idle.connections.is_empty();
        idle.reaping
    }

    fn lock(&self, shelf: usize) -> MutexGuard<'_, Idle> {
        let [first, rest @ ..] = &self.shelves;
        let shelf = shelf.checked_sub(1).and_then(|at| rest.get(at)).unwrap_or(first);
        shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs while a shelf holds idle connections, so that none outlives its time for want of a next call.
async fn reap(pool: Weak<Pool>, shelf: usize, every: Duration) {
    loop {
        tokio::time::sleep(every).await;
        match pool.upgrade() {
            Some(pool) if pool.prune(shelf) => {}
            _ => return,
        }
    }
}

impl Connection {
    /// Moves what can be moved; whoever polls is woken when more can be.
    fn drive(&mut self, cx: &mut Context<'_>) {
        if let Some(driver) = &mut self.driver
            && driver.as_mut().poll(cx).is_ready()
        {
            self.driver = None;
        }
    }

    /// Whether it is ready for the next call. Nobody is woken for a connection that waits for one: that the backend has
    /// closed it is seen here.
    fn settle(&mut self) -> bool {
        self.drive(&mut Context::from_waker(Waker::noop()));
        self.sender.is_ready()
    }

    /// Drives until it is ready for the next call, or closed.
    async fn settled(&mut self) -> bool {
        poll_fn(|cx| {
            self.drive(cx);
            if self.driver.is_none() { Poll::Ready(Ok(())) } else { self.sender.poll_ready(cx) }
        })
        .await
        .is_ok_and(|()| self.sender.is_ready())
    }
}

impl Lease {
    /// Sends `request` and waits for the head of its answer.
    ///
    /// # Errors
    /// The error, and the request if nothing of it was sent.
    pub(super) async fn send(
        &mut self,
        request: Request<Outgoing>,
    ) -> Option<Result<Response<Incoming>, TrySendError<Request<Outgoing>>>> {
        let connection = self.connection.as_mut()?;
        let mut answer = std::pin::pin!(connection.sender.try_send_request(request));
        let driver = &mut connection.driver;
        let answered = poll_fn(|cx| {
            if let Some(moving) = driver
                && moving.as_mut().poll(cx).is_ready()
            {
                *driver = None;
            }
            answer.as_mut().poll(cx)
        });
        Some(answered.await)
    }

    /// Moves what can be moved.
    pub(super) fn drive(&mut self, cx: &mut Context<'_>) {
        if let Some(connection) = &mut self.connection {
            connection.drive(cx);
        }
    }

    /// The answer is complete and the request is sent: the connection goes back.
    pub(super) fn finish(mut self) {
        let Some(mut connection) = self.connection.take() else { return };
        if connection.settle() {
            self.pool.put(connection);
        } else if connection.driver.is_some() && !connection.sender.is_closed() {
            let pool = Arc::clone(&self.pool);
            tokio::spawn(async move {
                if let Ok(true) = tokio::time::timeout(SETTLE, connection.settled()).await {
                    pool.put(connection);
                }
            });
        }
    }

    /// The connection now belongs to an upgraded protocol.
    pub(super) fn hand_over(mut self) {
        if let Some(driver) = self.connection.take().and_then(|connection| connection.driver) {
            tokio::spawn(driver);
        }
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("ready", &self.sender.is_ready()).finish_non_exhaustive()
    }
}
