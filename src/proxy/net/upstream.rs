//! One backend: its connections, and the sending of one request over one of them.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::sync::oneshot;

use super::body::Body;
use super::connect::dial;
use super::expect::{Outgoing, Progress};
use super::fault::{Fault, Side};
use super::{h1, h2};
use crate::clock::Clock;
use crate::rules::TransportFault;

/// How often a request that was certainly not sent is tried on another pooled connection before a new one is opened.
const STALE_TRIES: usize = 3;

/// How long the rest of a request's body may stand still once its answer is complete.
const REST_STALL: Duration = Duration::from_secs(10);

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
    /// How many HTTP/1.1 connections may wait for a next call. Default 64.
    pub max_idle: usize,
    /// Bound on the head of an answer, in bytes. Default 256 KiB.
    pub max_head: usize,
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
            max_head: 256 * 1024,
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
    h1: Arc<h1::Pool>,
    h2: h2::Pool,
}

impl Upstream {
    /// A backend; nothing is connected yet.
    pub fn new(settings: UpstreamSettings, clock: Arc<dyn Clock>) -> Upstream {
        let h1 = Arc::new(h1::Pool::new(&settings, clock));
        Upstream { inner: Arc::new(Inner { settings, h1, h2: h2::Pool::new() }) }
    }

    /// How it is reached.
    pub fn settings(&self) -> &UpstreamSettings {
        &self.inner.settings
    }

    /// Connections that wait for a call (HTTP/1.1) or are open (HTTP/2), for a gauge.
    pub fn pooled(&self) -> usize {
        self.inner.h1.idle_count() + self.inner.h2.count()
    }

    /// Opens a connection and closes it again: whether anybody listens (DESIGN 7, confirmation of transport faults).
    ///
    /// # Errors
    /// Why nobody could be reached; `sent` is false.
    pub async fn probe_connect(&self) -> Result<(), Fault> {
        self.dial().await.map(drop)
    }

    /// Sends `request` and waits for the head of the answer, at most `head_timeout` beyond the last progress of the
    /// request's own body. It is sent once: only what has certainly not left this process is tried on another
    /// connection. Dropping the future, or the body of the answer before its end, ends the stream at the backend at once.
    ///
    /// # Errors
    /// The fault, with `sent` telling whether the backend may have seen the request.
    pub(super) async fn send(
        &self,
        request: Request<Body>,
        head_timeout: Option<Duration>,
    ) -> Result<Response<Body>, Fault> {
        let (call, request) = Call::start(request, self.inner.settings.http);
        match head_timeout {
            None => self.exchange(request, call).await,
            Some(limit) => {
                let progress = call.progress.clone();
                tokio::select! {
                    result = self.exchange(request, call) => result,
                    fault = overdue(limit, progress) => Err(fault),
                }
            }
        }
    }

    async fn exchange(&self, request: Request<Outgoing>, call: Call) -> Result<Response<Body>, Fault> {
        match self.inner.settings.http {
            HttpVersion::One => self.exchange_h1(request, call).await,
            HttpVersion::Two => self.exchange_h2(request, call).await,
        }
    }

    async fn exchange_h1(&self, mut request: Request<Outgoing>, call: Call) -> Result<Response<Body>, Fault> {
        let mut tries = 0;
        loop {
            let pooled = if tries < STALE_TRIES { self.inner.h1.take() } else { None };
            let mut lease = match pooled {
                Some(lease) => lease,
                None => self.inner.h1.open(self.dial().await?, self.inner.settings.max_head).await?,
            };
            let Some(sender) = lease.sender() else {
                return Err(Fault::upstream(TransportFault::Reset, false, "the connection was taken away"));
            };
            match sender.try_send_request(request).await {
                Ok(response) => return Ok(answer(response, Lease::One(lease), call)),
                Err(mut refused) => match refused.take_message() {
                    Some(unsent) if lease.reused => request = unsent,
                    unsent => return Err(Fault::from_call(refused.error(), unsent.is_none())),
                },
            }
            tries += 1;
        }
    }

    async fn exchange_h2(&self, mut request: Request<Outgoing>, call: Call) -> Result<Response<Body>, Fault> {
        let mut tries = 0;
        loop {
            let mut lease = self.inner.h2.lease(self.inner.settings.max_head, || self.dial()).await?;
            match lease.sender().try_send_request(request).await {
                Ok(response) => return Ok(answer(response, Lease::Two(lease), call)),
                Err(mut refused) => match refused.take_message() {
                    Some(unsent) if lease.reused && tries < STALE_TRIES => request = unsent,
                    unsent => return Err(Fault::from_call(refused.error(), unsent.is_none())),
                },
            }
            tries += 1;
        }
    }

    async fn dial(&self) -> Result<tokio::net::TcpStream, Fault> {
        let settings = &self.inner.settings;
        dial(&settings.host, settings.port, settings.connect_timeout).await
    }
}

/// Resolves when the head is overdue: `limit` has passed without the request's body moving.
async fn overdue(limit: Duration, progress: Option<Arc<Progress>>) -> Fault {
    let mut seen = 0;
    loop {
        tokio::time::sleep(limit).await;
        match progress.as_deref() {
            Some(p) if !p.is_done() && p.frames() != seen => seen = p.frames(),
            Some(p) if !p.is_done() && p.is_starved() => {
                return Fault::downstream(
                    TransportFault::Timeout,
                    format!("no part of the request's body arrived for {limit:?}"),
                );
            }
            _ => return Fault::upstream(TransportFault::Timeout, true, format!("no answer within {limit:?}")),
        }
    }
}

/// What lives as long as one call: its end cancels the rest of the request's body.
struct Call {
    progress: Option<Arc<Progress>>,
    /// Dropped with the call.
    _alive: Option<oneshot::Sender<()>>,
    /// The body waits, or waited, for `100 Continue`.
    expects: bool,
}

impl Call {
    fn start(request: Request<Body>, http: HttpVersion) -> (Call, Request<Outgoing>) {
        if request.body().is_end_stream() {
            return (Call { progress: None, _alive: None, expects: false }, request.map(Outgoing::plain));
        }
        let expects = request.headers().contains_key(header::EXPECT) && http == HttpVersion::One;
        let progress = Arc::new(Progress::default());
        let (alive, over) = oneshot::channel();
        let tracked = Arc::clone(&progress);
        let mut request = request.map(|body| Outgoing::tracked(body, tracked, over));
        if expects {
            hold_for_continue(&mut request);
        }
        (Call { progress: Some(progress), _alive: Some(alive), expects }, request)
    }
}

/// `Expect: 100-continue` (RFC 9110, 10.1.1): the body waits for the backend's word. The dispatcher gets its own `100
/// Continue` from hyper's server at the moment the body is first asked for, which is then.
fn hold_for_continue(request: &mut Request<Outgoing>) {
    let (allow, allowed) = oneshot::channel();
    request.body_mut().hold(allowed);
    let allow = Mutex::new(Some(allow));
    hyper::ext::on_informational(request, move |response| {
        if response.status() == StatusCode::CONTINUE
            && let Some(allow) = allow.lock().unwrap_or_else(PoisonError::into_inner).take()
        {
            let _ = allow.send(());
        }
    });
}

enum Lease {
    One(h1::Lease),
    Two(h2::Lease),
}

impl Lease {
    fn give_back(self) {
        match self {
            Lease::One(lease) => lease.finish(),
            Lease::Two(lease) => drop(lease),
        }
    }
}

fn answer(response: Response<Incoming>, lease: Lease, call: Call) -> Response<Body> {
    let (parts, incoming) = response.into_parts();
    if parts.status == StatusCode::SWITCHING_PROTOCOLS {
        if let Lease::One(lease) = lease {
            lease.hand_over();
        }
        return Response::from_parts(parts, Body::empty());
    }
    let mut answer = Answer { incoming, held: Some((lease, call)) };
    if answer.incoming.is_end_stream() {
        answer.finish();
    }
    Response::from_parts(parts, Body::answer(answer))
}

/// The body of a backend's answer, with the connection that it comes over.
pub(super) struct Answer {
    incoming: Incoming,
    held: Option<(Lease, Call)>,
}

impl Answer {
    /// All of the answer is here. What is left of the request's body goes on, for the backend may still read it.
    fn finish(&mut self) {
        let Some((lease, call)) = self.held.take() else { return };
        match call.progress.clone() {
            Some(progress) if !progress.is_done() => {
                let unwanted = call.expects && progress.frames() == 0;
                if !unwanted {
                    tokio::spawn(send_rest(lease, call, progress));
                }
            }
            _ => lease.give_back(),
        }
    }
}

/// Keeps a call whose answer came early until its body is sent, or stands still for [`REST_STALL`].
async fn send_rest(lease: Lease, call: Call, progress: Arc<Progress>) {
    let mut seen = progress.frames();
    loop {
        let sent = tokio::time::timeout(REST_STALL, progress.done()).await.is_ok();
        if sent {
            lease.give_back();
            break;
        }
        if progress.frames() == seen {
            break;
        }
        seen = progress.frames();
    }
    drop(call);
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = Fault;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Fault>>> {
        let frame = ready!(Pin::new(&mut self.incoming).poll_frame(cx));
        match frame {
            None => {
                self.finish();
                Poll::Ready(None)
            }
            Some(Ok(frame)) => {
                if frame.is_trailers() || self.incoming.is_end_stream() {
                    self.finish();
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Some(Err(error)) => {
                self.held = None;
                Poll::Ready(Some(Err(Fault::from_body(&error, Side::Upstream))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}
