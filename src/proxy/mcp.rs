//! Requests to an MCP endpoint, by what they are (DESIGN 3). The body decides; the original bytes go on.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri, header, request};

use super::answer;
use super::call;
use super::facts::Reason;
use super::list;
use super::net::{Answered, Body, Collected, Repeated, at_hand, collect};
use super::observe::{Expected, Place};
use super::route::Route;
use super::visit::{Visit, gateway_error, no_answer_words, reason_of, whole};
use crate::health::Caller;
use crate::http::media;
use crate::mcp::request::{self as message, Message, Notification};
use crate::telemetry::{RequestKind, Unjudged};

/// A request whose body is at hand.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) parts: request::Parts,
    pub(super) bytes: Bytes,
    pub(super) trailers: Option<HeaderMap>,
}

impl Held {
    /// The request as it came.
    pub(super) fn into_request(self) -> Request<Body> {
        Request::from_parts(self.parts, whole(self.bytes, self.trailers))
    }

    pub(super) fn path(&self) -> String {
        self.parts.uri.path().to_owned()
    }
}

/// A message that was posted, with the head under which it came.
#[derive(Debug)]
pub(super) enum Posted {
    Held(Box<Held>),
    /// Under a head that came before.
    Repeated(Repeated<Route>, Bytes),
}

impl Posted {
    fn held_under(parts: request::Parts, bytes: Bytes, trailers: Option<HeaderMap>) -> Posted {
        Posted::Held(Box::new(Held { parts, bytes, trailers }))
    }

    pub(super) fn bytes(&self) -> &Bytes {
        match self {
            Posted::Held(held) => &held.bytes,
            Posted::Repeated(_, bytes) => bytes,
        }
    }

    pub(super) fn headers(&self) -> &HeaderMap {
        match self {
            Posted::Held(held) => &held.parts.headers,
            Posted::Repeated(request, _) => request.head().headers(),
        }
    }

    pub(super) fn uri(&self) -> &Uri {
        match self {
            Posted::Held(held) => &held.parts.uri,
            Posted::Repeated(request, _) => request.head().uri(),
        }
    }

    /// The message in the form that every message has.
    pub(super) fn held(self) -> Held {
        match self {
            Posted::Held(held) => *held,
            Posted::Repeated(request, bytes) => {
                let (parts, _) = request.with_body(Bytes::new()).into_parts();
                Held { parts, bytes, trailers: None }
            }
        }
    }
}

/// Carries a request to an MCP endpoint.
pub(super) async fn handle(visit: &mut Visit, request: Request<Body>) -> Response<Body> {
    if let Some(session) = visit.old_transport.clone().filter(|_| visit.session.is_none()) {
        // The stream is the session: its tools and its answers are found by it.
        visit.caller = Arc::new(Caller { session: Some(Arc::clone(&session)), ..(*visit.caller).clone() });
        visit.place = Arc::new(Place { session: Some(session), ..Place::clone(&visit.place) });
    }
    if request.method() != Method::POST {
        return Box::pin(bodiless(visit, request)).await;
    }
    let (parts, body) = request.into_parts();
    let body = match if media::is_identity(&parts.headers) { at_hand(body).await } else { Err(body) } {
        Ok(bytes) if bytes.len() <= visit.shared.config.limits.body_peek => {
            return read(visit, Posted::held_under(parts, bytes, None)).await.into_response();
        }
        Ok(bytes) => Body::full(bytes),
        Err(body) => body,
    };
    Box::pin(collected(visit, parts, body)).await
}

async fn bodiless(visit: &Visit, request: Request<Body>) -> Response<Body> {
    match *request.method() {
        Method::GET => {
            visit.backend.metrics.request(RequestKind::Stream);
            stream(visit, request).await
        }
        Method::DELETE => {
            visit.backend.metrics.request(RequestKind::SessionEnd);
            pass_or(visit, request, StatusCode::SERVICE_UNAVAILABLE).await
        }
        _ => {
            visit.backend.metrics.request(RequestKind::Passthrough);
            visit.pass(request).await
        }
    }
}

/// Carries a request whose body is still to come, or cannot be read.
async fn collected(visit: &mut Visit, parts: request::Parts, body: Body) -> Response<Body> {
    if !media::is_identity(&parts.headers) {
        return unjudged(visit, Request::from_parts(parts, body), Unjudged::Encoding).await;
    }
    let limits = &visit.shared.config.limits;
    match collect(body.idle_after(limits.header_timeout), limits.body_peek).await {
        Err(fault) => gateway_error(&fault),
        Ok(Collected::TooLarge(body)) => unjudged(visit, Request::from_parts(parts, body), Unjudged::PeekLimit).await,
        Ok(Collected::Whole(bytes, trailers)) => {
            read(visit, Posted::held_under(parts, bytes, trailers)).await.into_response()
        }
    }
}

/// Carries a request whose body is at hand. A future is as large as the largest that it waits for and is copied into the one
/// that waits for it, so that all but a plain call stands apart.
pub(super) async fn read(visit: &mut Visit, posted: Posted) -> Answered {
    let bytes = posted.bytes().clone();
    let message = message::parse(&bytes);
    if let Message::Request(request) = &message
        && let Some(tool) = request.tool()
        && request.method == "tools/call"
        && !request.ambiguous
    {
        visit.backend.metrics.request(RequestKind::ToolCall);
        return call::call(visit, posted, request, tool).await;
    }
    Box::pin(dispatch(visit, posted.held(), message)).await.into()
}

/// Carries what is no single call of a tool.
async fn dispatch(visit: &mut Visit, held: Held, message: Message<'_>) -> Response<Body> {
    match message {
        Message::Request(request) if request.ambiguous => {
            unjudged(visit, held.into_request(), Unjudged::Unreadable).await
        }
        Message::Request(request) => by_method(visit, held, &request).await,
        Message::Notification(notification)
            if notification.method == "tools/call" && visit.shared.has_policy(&visit.backend) =>
        {
            unjudged(visit, held.into_request(), Unjudged::Unreadable).await
        }
        Message::Notification(notification) => {
            visit.backend.metrics.request(RequestKind::Notification);
            notified(visit, &notification);
            pass_or(visit, held.into_request(), StatusCode::SERVICE_UNAVAILABLE).await
        }
        Message::Response(_) => {
            visit.backend.metrics.request(RequestKind::Notification);
            pass_or(visit, held.into_request(), StatusCode::SERVICE_UNAVAILABLE).await
        }
        Message::Batch(members) => {
            visit.backend.metrics.request(RequestKind::Batch);
            call::batch(visit, held, &members).await
        }
        Message::Malformed(_) => unjudged(visit, held.into_request(), Unjudged::Unreadable).await,
    }
}

async fn by_method(visit: &Visit, held: Held, request: &message::Request<'_>) -> Response<Body> {
    let metrics = &visit.backend.metrics;
    match &*request.method {
        "tools/list" => {
            metrics.request(RequestKind::ToolList);
            list::list(visit, held, request).await
        }
        "initialize" | "server/discover" => {
            metrics.request(RequestKind::Handshake);
            other(visit, held, request, StatusCode::SERVICE_UNAVAILABLE).await
        }
        "subscriptions/listen" => {
            metrics.request(RequestKind::Stream);
            listen(visit, held, request).await
        }
        _ => {
            metrics.request(RequestKind::OtherRequest);
            other(visit, held, request, StatusCode::OK).await
        }
    }
}

/// A request that is no call. `down` is the status under which its caller hears that the backend is away (MCP.md 7e).
async fn other(visit: &Visit, held: Held, request: &message::Request<'_>, down: StatusCode) -> Response<Body> {
    let path = held.path();
    let task = request.params.task_id.as_deref().filter(|_| request.method == "tasks/result");
    let call = task.and_then(|task| visit.shared.tasks.call(&visit.backend.name, task));
    let expected = call.map(|call| Expected { id: Some(request.id.into()), call, is_task: true });
    match visit.forward(held.into_request(), visit.head_timeout()).await {
        Ok(response) => visit.observed(response, expected.into_iter().collect(), &path),
        Err(fault) => answer::rpc_error(down, request.id, &no_answer_words(&fault), reason_of(&fault)),
    }
}

async fn listen(visit: &Visit, held: Held, request: &message::Request<'_>) -> Response<Body> {
    let path = held.path();
    match visit.forward(held.into_request(), visit.head_timeout()).await {
        Ok(response) => visit.told(response, Some(request.id), request.params.listens_to_tools, &path),
        Err(fault) => answer::rpc_error(StatusCode::OK, request.id, &no_answer_words(&fault), reason_of(&fault)),
    }
}

/// A GET: the stream of a session, its resumption, or the stream of the old transport.
async fn stream(visit: &Visit, request: Request<Body>) -> Response<Body> {
    let path = request.uri().path().to_owned();
    if request.headers().contains_key(header::UPGRADE) {
        return visit.pass(request).await;
    }
    match visit.forward(request, None).await {
        Ok(response) => visit.told(response, None, true, &path),
        Err(fault) => answer::empty(StatusCode::SERVICE_UNAVAILABLE, reason_of(&fault)),
    }
}

/// A cancelled call is nobody's fault (DESIGN 4): its answer, should one come, finds nobody waiting.
fn notified(visit: &Visit, notification: &Notification<'_>) {
    let (Some(session), Some(id)) = (&visit.session, notification.params.request_id) else { return };
    if notification.method == "notifications/cancelled"
        && let Some(call) = visit.shared.inflight.remove(&visit.backend.name, session, id)
    {
        call.neutral();
    }
}

async fn pass_or(visit: &Visit, request: Request<Body>, down: StatusCode) -> Response<Body> {
    let path = request.uri().path().to_owned();
    match visit.forward(request, visit.head_timeout()).await {
        Ok(response) => visit.observed(response, Vec::new(), &path),
        Err(fault) => answer::empty(down, reason_of(&fault)),
    }
}

async fn unjudged(visit: &Visit, request: Request<Body>, why: Unjudged) -> Response<Body> {
    visit.backend.metrics.request(RequestKind::OtherRequest);
    visit.backend.metrics.unjudged(why);
    if visit.shared.has_policy(&visit.backend) {
        return unread(visit, why);
    }
    visit.pass(request).await
}

/// Where tools are excluded from some callers, a request that cannot be read cannot be let through.
fn unread(visit: &Visit, why: Unjudged) -> Response<Body> {
    let (status, what) = match why {
        Unjudged::PeekLimit => {
            let limit = visit.shared.config.limits.body_peek;
            (StatusCode::PAYLOAD_TOO_LARGE, format!("it is longer than `limits.body_peek`, {limit} bytes"))
        }
        Unjudged::Encoding => (StatusCode::UNSUPPORTED_MEDIA_TYPE, "its body is compressed".to_owned()),
        _ => (StatusCode::BAD_REQUEST, "it can be read in more than one way, or in none".to_owned()),
    };
    let words = format!("some tools of this backend are not for everybody, and this request cannot be checked: {what}");
    answer::problem(status, "request cannot be checked", words, Reason::Disallowed)
}
