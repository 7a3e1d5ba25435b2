//! Messages whose head came before over their connection: what follows from the head alone was found out then.

use std::fmt;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};

use super::again::{Head, Known};
use super::head::{AnswerHead, RequestHead};
use super::outbox::Outbox;
use super::reply::Reply;
use super::template::Template;
use crate::proxy::net::body::Body;

/// A request with a head that came before, for which there is a route.
pub struct Repeated<R>(Arc<Routed<R>>);

#[derive(Debug)]
struct Routed<R> {
    known: Arc<Known<RequestHead>>,
    route: R,
}

impl<R> Repeated<R> {
    pub(super) fn new(known: &Arc<Known<RequestHead>>, route: R) -> Repeated<R> {
        Repeated(Arc::new(Routed { known: Arc::clone(known), route }))
    }

    /// Its head, but for the length that it states.
    pub fn head(&self) -> &Request<()> {
        &self.0.known.read.request
    }

    /// What was found out about its head.
    pub fn route(&self) -> &R {
        &self.0.route
    }

    /// The request in the form that every request has.
    pub fn with_body(&self, body: Bytes) -> Request<Body> {
        let length = u64::try_from(body.len()).ok();
        self.0.known.with_length(length).request.map(|()| Body::full(body))
    }
}

impl<R> Clone for Repeated<R> {
    fn clone(&self) -> Repeated<R> {
        Repeated(Arc::clone(&self.0))
    }
}

impl<R: fmt::Debug> fmt::Debug for Repeated<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The head of answers as it goes on to the dispatcher.
#[derive(Debug)]
pub(super) struct Finished {
    /// As it came, without what belongs to the connection.
    head: AnswerHead,
    template: Template,
    is_plain: OnceLock<bool>,
}

impl Finished {
    /// `None` where its answers have to be framed one by one.
    pub(super) fn of(head: AnswerHead) -> Option<Finished> {
        let body = Body::full(Bytes::from_static(b"x"));
        let mut out = Outbox::default();
        let mut finished = head.clone();
        finished.set_length(1.into(), 1);
        let _ = Reply::new(finished.response.map(|()| body), &Method::POST, false, &mut out);
        Some(Finished { head, template: Template::of(out.tail())?, is_plain: OnceLock::new() })
    }
}

/// An answer with a head that came before over the connection to the backend, of which all is here. It goes out as it came, to
/// a request that was neither `HEAD` nor the last one of its connection.
#[derive(Clone, Debug)]
pub struct Whole {
    head: Arc<Finished>,
    body: Bytes,
}

impl Whole {
    pub(super) fn new(head: Arc<Finished>, body: Bytes) -> Whole {
        Whole { head, body }
    }

    /// Its head, but for the length that it states.
    pub fn head(&self) -> &Response<()> {
        &self.head.head.response
    }

    /// What is asked here of its header fields: once for all answers under this head, so that it must always be the same.
    pub fn is_plain(&self, ask: impl FnOnce(&HeaderMap) -> bool) -> bool {
        *self.head.is_plain.get_or_init(|| ask(self.head().headers()))
    }

    /// Whether the head of the other reads the same, but for the length that it states.
    pub fn is_headed_as(&self, other: &Whole) -> bool {
        Arc::ptr_eq(&self.head, &other.head) || self.head.template == other.head.template
    }

    /// Its body.
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// The answer in the form that every answer has.
    pub fn into_response(self) -> Response<Body> {
        let mut head = self.head.head.clone();
        let length = u64::try_from(self.body.len()).unwrap_or(u64::MAX);
        head.set_length(length.into(), length);
        head.response.map(|()| Body::full(self.body))
    }

    /// Puts the whole answer in front of the socket.
    pub(super) fn write(self, out: &mut Outbox) {
        let (length, more) = (self.body.len(), Outbox::copied(self.body.len()));
        self.head.template.write(out.tail(), length, more);
        out.push(self.body);
    }
}
