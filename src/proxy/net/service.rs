//! Who answers requests, and what of an answer need not be found out again for heads that come again.

use std::convert::Infallible;
use std::fmt;
use std::future::{Future, poll_fn};

use bytes::Bytes;
use http::{Request, Response};

use super::body::Body;
use super::conn::ConnInfo;
use super::plain::{Repeated, Whole};

/// What answers every request of a listener.
pub trait Service: Send + Sync + 'static {
    /// What it found out about a head that comes again and again over one connection.
    type Route: fmt::Debug + Send + Sync + 'static;

    /// The answer to a request.
    fn answer(&self, request: Request<Body>, conn: ConnInfo) -> impl Future<Output = Response<Body>> + Send + 'static;

    /// What holds for every plain request with this head that comes over this connection, whatever its body and the length
    /// of it; `None` where there is nothing, or each request has to be looked at by itself.
    fn route(&self, head: &Request<()>, conn: &ConnInfo) -> Option<Self::Route>;

    /// The answer to a request with a head for which there is a [route](Service::route), and with this body.
    fn answer_repeated(
        &self,
        request: Repeated<Self::Route>,
        body: Bytes,
    ) -> impl Future<Output = Answered> + Send + 'static;
}

/// An answer, in one of two forms that go out alike.
#[derive(Debug)]
pub enum Answered {
    /// Its head came before over the connection to the backend, and its body is all here.
    Whole(Whole),
    /// Any other.
    Response(Box<Response<Body>>),
}

impl Answered {
    /// The answer in the form that every answer has.
    pub fn into_response(self) -> Response<Body> {
        match self {
            Answered::Whole(whole) => whole.into_response(),
            Answered::Response(response) => *response,
        }
    }
}

impl From<Response<Body>> for Answered {
    fn from(response: Response<Body>) -> Answered {
        Answered::Response(Box::new(response))
    }
}

impl From<Whole> for Answered {
    fn from(whole: Whole) -> Answered {
        Answered::Whole(whole)
    }
}

impl<S, F> Service for S
where
    S: Fn(Request<Body>, ConnInfo) -> F + Send + Sync + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    type Route = Infallible;

    fn answer(&self, request: Request<Body>, conn: ConnInfo) -> impl Future<Output = Response<Body>> + Send + 'static {
        self(request, conn)
    }

    fn route(&self, _: &Request<()>, _: &ConnInfo) -> Option<Infallible> {
        None
    }

    fn answer_repeated(
        &self,
        request: Repeated<Infallible>,
        _: Bytes,
    ) -> impl Future<Output = Answered> + Send + 'static {
        poll_fn(move |_| match *request.route() {})
    }
}
