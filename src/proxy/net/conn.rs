//! One downstream connection from its first byte to its end.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io::Cursor;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, Request, Response, StatusCode, Version};
use hyper::body::{Body as _, Incoming};
use hyper::rt::Executor;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::body::Body;
use super::drain::DrainSignal;
use super::limits::{HYPER_HEADERS, Limits};
use super::own::Refusal;
use super::plain::{self, Handover};
use super::quiet::Quiet;
use super::rarely::rarely;
use super::service::Service;
use super::upgrade::Tunnels;
use super::wire::{Turn, Wire};

/// How an HTTP/2 connection begins (RFC 9113, 3.4).
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// 1 MiB per stream, as towards the backend.
const STREAM_WINDOW: u32 = 1024 * 1024;
const CONNECTION_WINDOW: u32 = 4 * 1024 * 1024;

/// What a service knows about where a request came from.
#[derive(Clone, Debug)]
pub struct ConnInfo {
    /// The other end of the connection.
    pub peer: SocketAddr,
    /// Our end of it.
    pub local: SocketAddr,
    /// Which of the listeners given to [`serve`](super::serve) accepted it.
    pub listener: usize,
    pub(super) link: Arc<Link>,
}

/// What the requests of one connection share.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) tunnels: Arc<Tunnels>,
    /// The turn of an HTTP/1.1 connection, which can take interim answers.
    pub(super) turn: Option<Arc<Turn>>,
    /// Its requests are plain ones.
    pub(super) plain: bool,
}

impl ConnInfo {
    /// The same connection, spoken over in turns.
    pub(super) fn in_turns(&self, turn: Arc<Turn>, plain: bool) -> ConnInfo {
        let link = Link { tunnels: Arc::clone(&self.link.tunnels), turn: Some(turn), plain };
        ConnInfo { link: Arc::new(link), ..self.clone() }
    }

    /// Of a request that came over no connection of ours: nothing can be upgraded, and no interim answer gets to `peer`.
    pub fn without_connection(peer: SocketAddr) -> ConnInfo {
        let tunnels = Arc::new(Tunnels::until(CancellationToken::new()));
        let link = Arc::new(Link { tunnels, turn: None, plain: false });
        ConnInfo { peer, local: peer, listener: 0, link }
    }
}

/// What all connections of a server share.
#[derive(Debug)]
pub(super) struct Shared<S> {
    pub(super) service: S,
    pub(super) limits: Arc<Limits>,
    pub(super) drain: DrainSignal,
    pub(super) tunnels: Arc<Tunnels>,
}

/// Serves `stream` until it ends. Errors end the connection, and nobody else cares.
pub(super) async fn run<S: Service>(stream: TcpStream, info: ConnInfo, shared: Arc<Shared<S>>) {
    let _ = stream.set_nodelay(true);
    if let Some(handover) = plain::serve(stream, &info, &shared).await {
        // Few connections come here, and what is kept on the way would take room in all.
        Box::pin(run_hyper(handover, info, shared)).await;
    }
}

/// Serves what is not plain.
pub(super) async fn run_hyper<S: Service>(mut handover: Handover, info: ConnInfo, shared: Arc<Shared<S>>) {
    match sniff(&mut handover, &shared).await {
        Some(true) => run_h2(handover.stream, handover.read, info, shared).await,
        Some(false) => run_h1(handover, info, shared).await,
        None => {}
    }
}

/// Whether the dispatcher speaks HTTP/2. `None`: it went away, or did not come to the end of saying so.
async fn sniff<S>(handover: &mut Handover, shared: &Shared<S>) -> Option<bool> {
    if handover.overdue {
        return (!PREFACE.starts_with(&handover.read)).then_some(false);
    }
    let mut read = Vec::from(std::mem::take(&mut handover.read));
    let decided = async {
        while read.len() < PREFACE.len() && PREFACE.starts_with(&read) {
            let n = handover.stream.read_buf(&mut read).await.ok()?;
            if n == 0 {
                return None;
            }
        }
        Some(())
    };
    tokio::time::timeout(shared.limits.head_timeout, decided).await.ok()??;
    handover.read = Bytes::from(read);
    Some(handover.read.starts_with(PREFACE))
}

async fn run_h1<S: Service>(handover: Handover, info: ConnInfo, shared: Arc<Shared<S>>) {
    let turn = Arc::new(Turn::default());
    if handover.has_lengths {
        turn.state_lengths();
    }
    let limits = &shared.limits;
    let mut wire = Wire::new(handover.stream, handover.read, Arc::clone(&turn), Arc::clone(limits));
    if handover.overdue {
        wire.refuse(Refusal::HeadTimeout);
    }
    let mut builder = http1::Builder::new();
    builder
        .preserve_header_case(true)
        .auto_date_header(false)
        .header_read_timeout(None)
        .max_header_size(limits.head_size)
        .max_buf_size(limits.head_size.max(400 * 1024));
    if limits.headers != HYPER_HEADERS {
        builder.max_headers(limits.headers);
    }
    let info = info.in_turns(Arc::clone(&turn), false);
    let service = service_fn(|request| answer(request, info.clone(), &turn, &shared));
    let mut connection = pin!(builder.serve_connection(TokioIo::new(wire), service).with_upgrades());
    let mut drain = shared.drain.clone();
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = rarely(drain.stopping()) => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

async fn run_h2<S: Service>(stream: TcpStream, prefix: Bytes, info: ConnInfo, shared: Arc<Shared<S>>) {
    let turn = Arc::new(Turn::default());
    let limits = &shared.limits;
    let (read, write) = stream.into_split();
    let io = tokio::io::join(Quiet::new(Cursor::new(prefix).chain(read), PREFACE.len()), write);
    let mut builder = http2::Builder::new(Tracked(Arc::clone(&shared.tunnels)));
    builder
        .timer(TokioTimer::new())
        .auto_date_header(false)
        .max_concurrent_streams(limits.streams)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        // Past this the protocol library refuses without a word; up to it we say what the limit is.
        .max_header_list_size(u32::try_from(limits.head_size.saturating_mul(2)).unwrap_or(u32::MAX));
    if let Some((every, within)) = limits.h2_ping {
        builder.keep_alive_interval(every).keep_alive_timeout(within);
    }
    let answered = Arc::new(Notify::new());
    let service = {
        let (turn, shared, answered) = (Arc::clone(&turn), Arc::clone(&shared), Arc::clone(&answered));
        service_fn(move |request| {
            let done = Arc::clone(&answered);
            let answer = answer(request, info.clone(), &turn, &shared);
            async move {
                let response = answer.await;
                done.notify_one();
                response
            }
        })
    };
    let mut connection = pin!(builder.serve_connection(TokioIo::new(io), service));
    tokio::select! {
        _ = connection.as_mut() => return,
        () = h2_farewell(&turn, &shared, &answered) => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

/// Runs the calls of an HTTP/2 connection so that the end of serving waits for them too.
#[derive(Clone, Debug)]
struct Tracked(Arc<Tunnels>);

impl<F> Executor<F> for Tracked
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, call: F) {
        self.0.tracker.spawn(call);
    }
}

/// Resolves when a GOAWAY is due: nobody has called for long, or we leave and the connection has had its first answer.
async fn h2_farewell<S>(turn: &Turn, shared: &Shared<S>, answered: &Notify) {
    let (mut leaving, mut stopping) = (shared.drain.clone(), shared.drain.clone());
    let served = async {
        leaving.leaving().await;
        if turn.calls() == 0 {
            answered.notified().await;
        }
    };
    let unused = async {
        let mut seen = u64::MAX;
        while !(turn.is_idle() && turn.calls() == seen) {
            seen = turn.calls();
            tokio::time::sleep(shared.limits.idle_timeout).await;
        }
    };
    tokio::select! {
        () = served => {}
        () = unused => {}
        _ = stopping.stopping() => {}
    }
}

/// Answers one request: by ourselves if it must not be served, else by the service.
fn answer<S: Service>(
    request: Request<Incoming>,
    info: ConnInfo,
    turn: &Arc<Turn>,
    shared: &Arc<Shared<S>>,
) -> impl Future<Output = Result<Response<Body>, Infallible>> + Send + 'static + use<S> {
    let (turn, shared) = (Arc::clone(turn), Arc::clone(shared));
    let busy = turn.begin();
    async move {
        let version = request.version();
        let ambiguous = turn.has_lengths() && request.headers().contains_key(header::TRANSFER_ENCODING);
        let mut response = match screen(&request, &shared.limits) {
            Some(refusal) => refusal.response(&shared.limits),
            None => {
                let request = request.map(|incoming| {
                    let busy = busy.for_body(!incoming.is_end_stream());
                    Body::from(incoming).during(busy)
                });
                shared.service.answer(request, info).await
            }
        };
        if version < Version::HTTP_2 {
            poll_fn(|cx| turn.interim.poll_closed(cx)).await;
        }
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            turn.upgrade();
        } else if version < Version::HTTP_2 && (ambiguous || shared.drain.is_leaving()) {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        Ok(response.map(|body| body.during(busy)))
    }
}

/// What hyper lets through and must not reach a backend.
fn screen(request: &Request<Incoming>, limits: &Limits) -> Option<Refusal> {
    let headers = request.headers();
    let one = request.version() < Version::HTTP_2;
    if request.method() == Method::CONNECT {
        Some(Refusal::Connect)
    } else if one && !has_one_host(headers, request.version()) {
        Some(Refusal::Host)
    } else if one && has_foreign_coding(headers) {
        Some(Refusal::TransferCoding)
    } else if !one && (headers.len() > limits.headers || head_size(request) > limits.head_size) {
        Some(Refusal::HeadTooLarge)
    } else {
        None
    }
}

/// Exactly one `Host`; HTTP/1.0 may go without (RFC 9112, 3.2).
fn has_one_host(headers: &HeaderMap, version: Version) -> bool {
    match headers.get_all(header::HOST).iter().count() {
        0 => version < Version::HTTP_11,
        count => count == 1,
    }
}

/// A transfer coding besides `chunked` would have to be undone before the field is removed (RFC 9112, 6.1: 501).
fn has_foreign_coding(headers: &HeaderMap) -> bool {
    crate::http::hop::tokens(headers, &header::TRANSFER_ENCODING).any(|t| !t.eq_ignore_ascii_case("chunked"))
}

/// The size of a head as HTTP/2 counts it (RFC 9113, 6.5.2).
fn head_size<B>(request: &Request<B>) -> usize {
    let fields: usize = request.headers().iter().map(|(n, v)| n.as_str().len() + v.len() + 32).sum();
    fields + request.uri().path_and_query().map_or(0, |p| p.as_str().len())
}
