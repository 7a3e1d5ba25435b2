//! One backend: its connections, and the sending of one request over one of them.

use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response, StatusCode};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use super::answer::{self, Lease, answer};
use super::body::Body;
use super::connect::dial;
use super::expect::{Outgoing, Progress};
use super::fault::Fault;
use super::interim::Relay;
use super::plain::{Call, Failed, Finish, Lines};
use super::service::Answered;
use super::watch::{Open, Watch};
use super::{h1, h2};
use crate::clock::Clock;
use crate::rules::TransportFault;

/// How often a request that was certainly not sent is tried on another pooled connection before a new one is opened.
const STALE_TRIES: usize = 3;

/// The protocol that a backend speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum HttpVersion {
    /// HTTP/1.1.
    #[default]
    One,
    /// HTTP/2 without TLS, by prior knowledge.
    Two,
}

/// How to reach a backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamSettings {
    /// Name or address, IPv6 with or without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// The protocol it speaks.
    pub http: HttpVersion,
    /// Bound on opening a connection, the name's resolution included. Default 5 s.
    pub connect_timeout: Duration,
    /// How long an HTTP/1.1 connection may wait for a next call; below the backend's own keep-alive. Default 4 s: the
    /// shortest common keep-alive is the 5 s of Node.js and uvicorn.
    pub idle_timeout: Duration,
    /// How many HTTP/1.1 connections may wait for a next call; those that hyper drives are counted by themselves. Default 64.
    pub max_idle: usize,
    /// Bound on the head of an answer, in bytes (`limits.head`). Default 64 KiB.
    pub max_head: usize,
    /// Bound on the number of its fields (`limits.headers`). Default 100.
    pub max_headers: usize,
}

impl UpstreamSettings {
    /// The defaults for the backend at `host` and `port`.
    pub fn new(host: impl Into<String>, port: u16) -> UpstreamSettings {
        UpstreamSettings {
            host: host.into(),
            port,
            http: HttpVersion::One,
            connect_timeout: Duration::from_secs(5),
            idle_timeout: Duration::from_secs(4),
            max_idle: 64,
            max_head: 64 * 1024,
            max_headers: 100,
        }
    }
}

/// A backend with its own small pool of connections. Clones share the pool.
#[derive(Clone, Debug)]
pub struct Upstream {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    settings: UpstreamSettings,
    plain: Lines,
    h1: h1::Connections,
    h2: h2::Pool,
    cut: CancellationToken,
    watch: Option<Arc<dyn Watch>>,
}

impl Upstream {
    /// A backend; nothing is connected yet.
    pub fn new(settings: UpstreamSettings, clock: Arc<dyn Clock>) -> Upstream {
        Upstream::watched(settings, clock, None)
    }

    /// The same, with somebody who is told of its connections.
    pub fn watched(settings: UpstreamSettings, clock: Arc<dyn Clock>, watch: Option<Arc<dyn Watch>>) -> Upstream {
        let cut = CancellationToken::new();
        let plain = Lines::new(&settings, Arc::clone(&clock), cut.clone());
        let h1 = h1::Connections::new(&settings, clock, cut.clone());
        let h2 = h2::Pool::new(&settings, cut.clone());
        Upstream { inner: Arc::new(Inner { settings, plain, h1, h2, cut, watch }) }
    }

    /// How it is reached.
    pub fn settings(&self) -> &UpstreamSettings {
        &self.inner.settings
    }

    /// Connections that wait for a call (HTTP/1.1) or are open (HTTP/2), for a gauge.
    pub fn pooled(&self) -> usize {
        self.inner.plain.idle_count() + self.inner.h1.idle_count() + self.inner.h2.count()
    }

    /// Closes all connections for good, with the calls on them: the process ends.
    pub fn cut(&self) {
        self.inner.cut.cancel();
    }

    /// Opens a connection and closes it again: whether anybody listens (DESIGN 7, confirmation of transport faults).
    ///
    /// # Errors
    /// Why nobody could be reached; `sent` is false.
    pub async fn probe_connect(&self) -> Result<(), Fault> {
        self.dial().await.map(drop)
    }

    /// Sends a request of our own and gives the status of the answer, whose body is dropped (DESIGN 8, probes).
    ///
    /// # Errors
    /// Why there is no answer within `limit`.
    pub async fn probe_request(&self, request: Request<Body>, limit: Duration) -> Result<StatusCode, Fault> {
        self.send(request, Some(limit), None).await.map(|response| response.status())
    }

    /// Sends a request of our own and gives the answer, whose head must come within `limit`.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn probe_exchange(&self, request: Request<Body>, limit: Duration) -> Result<Response<Body>, Fault> {
        self.send(request, Some(limit), None).await
    }

    /// Sends `request` and waits for the head of the answer, at most `head_timeout` beyond the last progress of the
    /// request's own body. It is sent once: only what has certainly not left this process is tried on another
    /// connection. Dropping the future, or the body of the answer before its end, ends the stream at the backend at once.
    /// Interim answers go to `relay`.
    ///
    /// # Errors
    /// The fault, with `sent` telling whether the backend may have seen the request.
    pub(super) async fn send(
        &self,
        request: Request<Body>,
        head_timeout: Option<Duration>,
        relay: Option<Relay>,
    ) -> Result<Response<Body>, Fault> {
        let (call, request) = answer::Call::start(request, self.inner.settings.http, relay);
        match head_timeout {
            None => self.exchange(request, call).await,
            Some(limit) => {
                let progress = call.progress();
                tokio::select! {
                    result = self.exchange(request, call) => result,
                    fault = overdue(limit, progress) => Err(fault),
                }
            }
        }
    }

    /// [`send`](Upstream::send) for a plain call. `finish` makes the head of its answer ready for the dispatcher, where that
    /// is to be done once for all that are the same.
    pub(super) async fn send_plain(&self, mut call: Box<Call>, finish: Option<&Finish<'_>>) -> Result<Answered, Fault> {
        let lines = &self.inner.plain;
        for _ in 0..STALE_TRIES {
            let Some(line) = lines.take() else { break };
            match lines.carry(line, call, finish).await {
                Ok(answered) => return Ok(answered),
                Err(Failed::Fault(fault)) => return Err(fault),
                Err(Failed::Unsent(unsent, _)) => call = unsent,
            }
        }
        let (stream, open) = Box::pin(self.dial()).await?;
        let line = lines.open(stream, open);
        lines.carry(line, call, finish).await.map_err(|(Failed::Unsent(_, fault) | Failed::Fault(fault))| fault)
    }

    async fn exchange(&self, request: Request<Outgoing>, call: answer::Call) -> Result<Response<Body>, Fault> {
        match self.inner.settings.http {
            HttpVersion::One => self.exchange_h1(request, call).await,
            HttpVersion::Two => self.exchange_h2(request, call).await,
        }
    }

    async fn exchange_h1(&self, mut request: Request<Outgoing>, call: answer::Call) -> Result<Response<Body>, Fault> {
        let mut tries = 0;
        loop {
            let pooled = if tries < STALE_TRIES { self.inner.h1.take() } else { None };
            let mut lease = match pooled {
                Some(lease) => lease,
                None => {
                    let (stream, open) = self.dial().await?;
                    self.inner.h1.open(stream, open).await?
                }
            };
            let Some(sent) = lease.send(request).await else {
                return Err(Fault::upstream(TransportFault::Reset, false, "the connection was taken away"));
            };
            match sent {
                Ok(response) => {
                    self.check_head(&response)?;
                    return Ok(answer(response, Lease::One(lease), call));
                }
                Err(mut refused) => match refused.take_message() {
                    Some(unsent) if lease.reused => request = unsent,
                    unsent => return Err(self.fault(refused.error(), unsent.is_none())),
                },
            }
            tries += 1;
        }
    }

    async fn exchange_h2(&self, mut request: Request<Outgoing>, call: answer::Call) -> Result<Response<Body>, Fault> {
        let mut tries = 0;
        loop {
            let mut lease = self.inner.h2.lease(|| self.dial()).await?;
            match lease.sender().try_send_request(request).await {
                Ok(response) => {
                    self.check_head(&response)?;
                    return Ok(answer(response, Lease::Two(lease), call));
                }
                Err(mut refused) => match refused.take_message() {
                    Some(unsent) if lease.reused && tries < STALE_TRIES => request = unsent,
                    unsent => return Err(self.fault(refused.error(), unsent.is_none())),
                },
            }
            tries += 1;
        }
    }

    /// hyper stops at the limits only where a head is still incomplete.
    fn check_head<B>(&self, response: &Response<B>) -> Result<(), Fault> {
        let settings = &self.inner.settings;
        let size: usize = response.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
        if size > settings.max_head || response.headers().len() > settings.max_headers {
            return Err(self.head_too_large());
        }
        Ok(())
    }

    fn fault(&self, error: &hyper::Error, sent: bool) -> Fault {
        if error.is_parse_too_large() { self.head_too_large() } else { Fault::from_call(error, sent) }
    }

    fn head_too_large(&self) -> Fault {
        let UpstreamSettings { max_head, max_headers, .. } = self.inner.settings;
        Fault::head_too_large(max_head, max_headers)
    }

    async fn dial(&self) -> Result<(TcpStream, Open), Fault> {
        let (settings, watch) = (&self.inner.settings, self.inner.watch.as_ref());
        tokio::select! {
            dialed = dial(&settings.host, settings.port, settings.connect_timeout) => match dialed {
                Ok(stream) => Ok((stream, Open::of(watch))),
                Err(fault) => {
                    if let Some(watch) = watch {
                        watch.failed(fault.kind);
                    }
                    Err(fault)
                }
            },
            () = self.inner.cut.cancelled() => Err(Fault::upstream(TransportFault::Reset, false, "given up while connecting")),
        }
    }
}

/// Resolves when the head is overdue: `limit` after the request's body is sent, or after it last moved.
async fn overdue(limit: Duration, progress: Option<Arc<Progress>>) -> Fault {
    if let Some(progress) = progress {
        let mut seen = 0;
        while tokio::time::timeout(limit, progress.done()).await.is_err() {
            if progress.frames() == seen {
                return if progress.is_starved() { Fault::starved(limit) } else { Fault::silent(limit) };
            }
            seen = progress.frames();
        }
    }
    tokio::time::sleep(limit).await;
    Fault::silent(limit)
}
