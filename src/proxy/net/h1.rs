//! The pool of HTTP/1.1 connections to one backend: last in, first out, none kept longer than the backend keeps it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use super::expect::Outgoing;
use super::fault::Fault;
use super::limits::HYPER_HEADERS;
use super::upstream::UpstreamSettings;
use crate::clock::{Clock, Tick};

/// How long a connection whose answer is complete may take to become ready for the next request.
const SETTLE: Duration = Duration::from_secs(1);

/// One connection, held by at most one call.
pub(super) struct Connection {
    pub(super) sender: SendRequest<Outgoing>,
    /// Closes the socket when the connection is dropped; `None` once an upgraded protocol owns it.
    task: Option<AbortHandle>,
}

/// Idle connections. A mutex held for a push or a pop, never across an await.
#[derive(Debug)]
pub(super) struct Pool {
    idle: Mutex<Idle>,
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
        Pool {
            idle: Mutex::default(),
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
        let mut idle = self.lock();
        while let Some((since, connection)) = idle.connections.pop_back() {
            if now.since(since) >= self.idle_timeout {
                idle.connections.clear();
                return None;
            }
            if connection.sender.is_ready() {
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
        let task = tokio::spawn(async move {
            tokio::select! {
                // The call's own future or body carries the error; an idle connection that closes is no event.
                _ = driver.with_upgrades() => {}
                () = cut.cancelled() => {}
            }
        });
        let connection = Connection { sender, task: Some(task.abort_handle()) };
        Ok(Lease { connection: Some(connection), pool: Arc::clone(self), reused: false })
    }

    /// How many connections wait for a call.
    pub(super) fn idle_count(&self) -> usize {
        self.lock().connections.len()
    }

    fn put(self: &Arc<Self>, connection: Connection) {
        let mut idle = self.lock();
        if idle.connections.len() >= self.max_idle {
            idle.connections.pop_front();
        }
        idle.connections.push_back((self.clock.now().tick, connection));
        if !std::mem::replace(&mut idle.reaping, true) {
            tokio::spawn(reap(Arc::downgrade(self), self.idle_timeout));
        }
    }

    /// Closes what is idle for too long; tells whether anything is left.
    fn prune(&self) -> bool {
        let now = self.clock.now().tick;
        let mut idle = self.lock();
        while idle
            .connections
            .front()
            .is_some_and(|(since, c)| now.since(*since) >= self.idle_timeout || c.sender.is_closed())
        {
            idle.connections.pop_front();
        }
        idle.reaping = !idle.connections.is_empty();
        idle.reaping
    }

    fn lock(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs while a pool holds idle connections, so that none outlives its time for want of a next call.
async fn reap(pool: Weak<Pool>, every: Duration) {
    loop {
        tokio::time::sleep(every).await;
        match pool.upgrade() {
            Some(pool) if pool.prune() => {}
            _ => return,
        }
    }
}

impl Lease {
    pub(super) fn sender(&mut self) -> Option<&mut SendRequest<Outgoing>> {
        self.connection.as_mut().map(|c| &mut c.sender)
    }

    /// The answer is complete and the request is sent: the connection goes back.
    pub(super) fn finish(mut self) {
        let Some(mut connection) = self.connection.take() else { return };
        if connection.sender.is_ready() {
            self.pool.put(connection);
            return;
        }
        if connection.sender.is_closed() {
            return;
        }
        // The connection's task has handed us the last frame but not yet turned round.
        let pool = Arc::clone(&self.pool);
        tokio::spawn(async move {
            if let Ok(Ok(())) = tokio::time::timeout(SETTLE, connection.sender.ready()).await {
                pool.put(connection);
            }
        });
    }

    /// The connection now belongs to an upgraded protocol.
    pub(super) fn hand_over(mut self) {
        if let Some(connection) = &mut self.connection {
            connection.task = None;
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("ready", &self.sender.is_ready()).finish_non_exhaustive()
    }
}
