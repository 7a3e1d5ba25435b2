//! One request on its way through the proxy: who sent it, where it goes, and how it is passed on.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};

use super::access::Looker;
use super::answer;
use super::facts::{Reason, no_answer};
use super::mcp::Posted;
use super::net::{Answered, Body, BodyObserver, Cause, ConnInfo, Fault, Observed, Passage, Side};
use super::observe::{Expected, Head, Observer, Place};
use super::streams::Listener;
use crate::clock::Now;
use crate::health::Caller;
use crate::http::accept;
use crate::mcp::Format;
use crate::rules::TransportFault;
use crate::telemetry::trace::{self, Origin};

/// A request and its circumstances.
#[derive(Clone, Debug)]
pub(super) struct Visit {
    /// Where answers to this request are matched: by the session of the caller, or by that of the old transport's stream.
    pub(super) place: Arc<Place>,
    pub(super) caller: Arc<Caller>,
    /// What span and exemplar of the call will say of its request, where there will be any.
    pub(super) origin: Option<Arc<Origin>>,
    /// The profile that the request names.
    pub(super) profile: Option<Arc<str>>,
    pub(super) conn: ConnInfo,
    pub(super) started: Now,
    /// Whether the request belongs to a stream of the old transport, by its address.
    pub(super) old_transport: Option<Arc<str>>,
}

impl Deref for Visit {
    type Target = Place;

    fn deref(&self) -> &Place {
        &self.place
    }
}

impl Visit {
    /// The caller as one who looks at the tools now.
    pub(super) fn looker(&self) -> Looker<'_> {
        self.looker_at(self.shared.clock.now())
    }

    /// The caller as one who looks at the tools at that time.
    pub(super) fn looker_at(&self, now: Now) -> Looker<'_> {
        Looker {
            shared: &self.shared,
            backend: &self.backend,
            caller: &self.caller,
            profile: self.profile.as_deref(),
            now,
        }
    }

    /// What span and exemplar of a call will say of its request; `None` where there will be neither.
    pub(super) fn origin_of(&self, headers: &HeaderMap, message: Option<(&[u8], &str)>) -> Option<Arc<Origin>> {
        let telemetry = &self.shared.telemetry;
        let wanted = telemetry.traces() || telemetry.gives_exemplars() && Origin::is_named(headers, message);
        wanted.then(|| Arc::new(Origin::of(headers, message)))
    }

    /// The members of a batch, each as it came, where one of them may name a trace that somebody wants to know of.
    pub(super) fn parts_of<'a>(&self, batch: &'a [u8]) -> Vec<&'a [u8]> {
        let telemetry = &self.shared.telemetry;
        let wanted = telemetry.traces() || telemetry.gives_exemplars();
        if wanted { trace::members(batch) } else { Vec::new() }
    }

    /// Passes a request on as it came. `head_timeout` bounds the wait for the head of the answer, `None` for streams.
    pub(super) async fn forward(
        &self,
        request: Request<Body>,
        head_timeout: Option<Duration>,
    ) -> Result<Response<Body>, Fault> {
        self.ask(request, head_timeout).await.map(|response| self.bounded(response))
    }

    /// [`forward`](Visit::forward), with an answer that may yet pause for ever.
    pub(super) async fn ask(
        &self,
        request: Request<Body>,
        head_timeout: Option<Duration>,
    ) -> Result<Response<Body>, Fault> {
        let passage = Passage { policy: &self.backend.policy, conn: &self.conn, head_timeout };
        // Every future above this one would hold a copy of it, and be copied with it.
        let forwarding = Box::pin(self.backend.upstream.forward(request, passage));
        forwarding.await.map_err(|fault| self.shared.blame(fault))
    }

    /// [`ask`](Visit::ask) with a call of a tool.
    pub(super) async fn ask_tool(&self, posted: Posted, head_timeout: Option<Duration>) -> Result<Answered, Fault> {
        match posted {
            Posted::Held(mut held) => {
                accept::ask_readable(&mut held.parts.headers);
                self.ask(held.into_request(), head_timeout).await.map(Answered::from)
            }
            Posted::Repeated(request, body) => self.forward_repeated(&request, body, head_timeout).await,
        }
    }

    /// An answer that breaks off when it pauses for too long.
    pub(super) fn bounded(&self, response: Response<Body>) -> Response<Body> {
        match self.backend.config.timeouts.idle {
            Some(idle) => response.map(|body| body.idle_after(idle)),
            None => response,
        }
    }

    /// How long the head of an answer may take unless a tool says otherwise.
    pub(super) fn head_timeout(&self) -> Option<Duration> {
        Some(self.backend.config.timeouts.response)
    }

    /// Passes on what is not judged; what cannot be passed on is answered as a gateway does.
    pub(super) async fn pass(&self, request: Request<Body>) -> Response<Body> {
        match self.forward(request, self.head_timeout()).await {
            Ok(response) => response,
            Err(fault) => gateway_error(&fault),
        }
    }

    /// An answer of an MCP backend with somebody reading along.
    pub(super) fn observed(&self, response: Response<Body>, expected: Vec<Expected>, path: &str) -> Response<Body> {
        let head = head_of(&response);
        let observer = Observer::new(Arc::clone(&self.place), head, expected, None, path);
        observe(response, observer)
    }

    /// The same for a stream that stays open and may be told things.
    pub(super) fn told(
        &self,
        response: Response<Body>,
        subscription: Option<&str>,
        wants_tools: bool,
        path: &str,
    ) -> Response<Body> {
        let head = head_of(&response);
        if head.format != Format::EventStream {
            return observe(response, Observer::new(Arc::clone(&self.place), head, Vec::new(), None, path));
        }
        let listener = Listener {
            backend: Arc::clone(&self.backend.name),
            subscription: subscription.map(Box::from),
            wants_tools,
        };
        let (handle, words) = self.shared.streams.open(listener);
        let observer = Observer::new(Arc::clone(&self.place), head, Vec::new(), Some(handle), path);
        let mut response = response.map(|body| Body::stream(Observed::new(body, observer).injecting(words)));
        response.headers_mut().remove(header::CONTENT_LENGTH);
        response
    }
}

fn observe(mut response: Response<Body>, observer: Observer) -> Response<Body> {
    if observer.adds() {
        response.headers_mut().remove(header::CONTENT_LENGTH);
    }
    response.map(|body| body.observed(observer))
}

/// What is known when the head of an answer has arrived.
pub(super) fn head_of(response: &Response<Body>) -> Head {
    Head::of(response.status(), response.headers(), None)
}

/// How the body under these headers is framed.
pub(super) fn format_of(headers: &HeaderMap) -> Format {
    Format::of(headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()))
}

/// A body that was held, with its trailers, as it came.
pub(super) fn whole(bytes: Bytes, trailers: Option<HeaderMap>) -> Body {
    match trailers {
        None => Body::full(bytes),
        Some(trailers) => {
            let body = Full::new(bytes).map_err(|never| match never {});
            Body::stream(body.with_trailers(std::future::ready(Some(Ok(trailers)))))
        }
    }
}

/// The answer of a gateway whose backend gave none, or whose dispatcher sent no complete request.
pub(super) fn gateway_error(fault: &Fault) -> Response<Body> {
    let (status, title) = match (fault.side, fault.kind) {
        (Side::Downstream, TransportFault::Timeout) => (StatusCode::REQUEST_TIMEOUT, "request body timed out"),
        (Side::Downstream, _) => (StatusCode::BAD_REQUEST, "request broke off"),
        (Side::Upstream, TransportFault::Timeout) => (StatusCode::GATEWAY_TIMEOUT, "backend timed out"),
        (Side::Upstream, _) => (StatusCode::BAD_GATEWAY, "backend unreachable"),
        (Side::Proxy(Cause::Limit), _) => (StatusCode::BAD_GATEWAY, "answer beyond a limit"),
        (Side::Proxy(Cause::Drain), _) => (StatusCode::SERVICE_UNAVAILABLE, "toolvane is stopping"),
    };
    answer::problem(status, title, fault.to_string(), reason_of(fault))
}

/// Why there is no answer of the backend.
pub(super) fn reason_of(fault: &Fault) -> Reason {
    match fault.side {
        Side::Proxy(Cause::Limit) => Reason::Limit,
        Side::Proxy(Cause::Drain) => Reason::Drain,
        Side::Downstream => Reason::Request,
        Side::Upstream => Reason::Unreachable,
    }
}

/// What is said of a request that is no call and got no answer.
pub(super) fn no_answer_words(fault: &Fault) -> String {
    match fault.side {
        Side::Proxy(_) => format!("no answer could be passed on ({}); try again later", fault.detail),
        Side::Downstream => format!("the request did not arrive whole ({fault}); send it again"),
        Side::Upstream => format!("the backend {} ({fault}); try again later", no_answer(fault.kind)),
    }
}
