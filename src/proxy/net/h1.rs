//! HTTP/1.1 connections to one backend that hyper drives, for the calls that `plain` does not carry.
//!
//! A connection has no task of its own: whoever holds it drives it, the call while it waits for the head of its answer, the
//! answer's body while it is read. That spares two wake-ups and a channel's hop a call, and all that has arrived of an
//! answer goes out in one write.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
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
use super::pool::{Pool, Pooled};
use super::rarely::rarely;
use super::upstream::UpstreamSettings;
use super::watch::Open;
use crate::clock::Clock;

/// How long a connection whose answer is complete may take to become ready for the next request.
const SETTLE: Duration = Duration::from_secs(1);

/// One connection, held by at most one call. Dropped, it is closed.
pub(super) struct Connection {
    sender: SendRequest<Outgoing>,
    /// Moves the bytes; `None` once it has ended.
    driver: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

/// The connections that hyper drives.
#[derive(Debug)]
pub(super) struct Connections {
    idle: Arc<Pool<Connection>>,
    max_head: usize,
    max_headers: usize,
    /// Ends every connection.
    cut: CancellationToken,
}

/// The right to a connection for one call. Dropped before the answer is complete, it closes the connection at once.
#[derive(Debug)]
pub(super) struct Lease {
    connection: Option<Connection>,
    pool: Arc<Pool<Connection>>,
    pub(super) reused: bool,
}

impl Connections {
    pub(super) fn new(settings: &UpstreamSettings, clock: Arc<dyn Clock>, cut: CancellationToken) -> Connections {
        let UpstreamSettings { max_head, max_headers, .. } = *settings;
        Connections { idle: Arc::new(Pool::new(settings, clock)), max_head, max_headers, cut }
    }

    /// The connection that was used last, if one is ready.
    pub(super) fn take(&self) -> Option<Lease> {
        let connection = self.idle.take()?;
        Some(Lease { connection: Some(connection), pool: Arc::clone(&self.idle), reused: true })
    }

    /// A new connection over `stream`.
    pub(super) async fn open(&self, stream: TcpStream, open: Open) -> Result<Lease, Fault> {
        let mut builder = http1::Builder::new();
        builder.preserve_header_case(true).max_header_size(self.max_head).max_buf_size(self.max_head.max(400 * 1024));
        if self.max_headers != HYPER_HEADERS {
            builder.max_headers(self.max_headers);
        }
        let (sender, driver) =
            builder.handshake(TokioIo::new(stream)).await.map_err(|e| Fault::from_call(&e, false))?;
        let cut = self.cut.clone();
        let driver = Box::pin(async move {
            let _open = open;
            tokio::select! {
                // The call's own future or body carries the error; an idle connection that closes is no event.
                _ = driver.with_upgrades() => {}
                () = rarely(cut.cancelled()) => {}
            }
        });
        let connection = Connection { sender, driver: Some(driver) };
        Ok(Lease { connection: Some(connection), pool: Arc::clone(&self.idle), reused: false })
    }

    /// How many connections wait for a call.
    pub(super) fn idle_count(&self) -> usize {
        self.idle.idle_count()
    }
}

impl Pooled for Connection {
    fn is_ready(&mut self) -> bool {
        self.settle()
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

    /// Whether it is ready for the next call.
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
