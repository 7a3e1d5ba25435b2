//! The one body type of requests and answers: bytes that we hold, a stream that passes, or either with an observer.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;

use super::answer::Answer;
use super::fault::{Fault, Side};
use super::idle::Idle;
use super::observe::{BodyObserver, Observed};
use super::plain;
use super::wire::Busy;

/// A request or response body. Streams pass through it frame by frame, without a copy.
pub struct Body {
    kind: Kind,
    /// The turn of the connection that it is part of.
    busy: Option<Busy>,
}

enum Kind {
    Empty,
    Full(Bytes),
    Downstream(Incoming),
    Received(Box<plain::Received>),
    Upstream(Answer),
    Plain(Box<plain::Answer>),
    Boxed(UnsyncBoxBody<Bytes, Fault>),
}

impl Body {
    /// No body at all.
    pub fn empty() -> Body {
        Body::of(Kind::Empty)
    }

    /// Bytes that are at hand.
    pub fn full(bytes: impl Into<Bytes>) -> Body {
        let bytes = bytes.into();
        if bytes.is_empty() { Body::empty() } else { Body::of(Kind::Full(bytes)) }
    }

    /// Any other body.
    pub fn stream<B>(body: B) -> Body
    where
        B: HttpBody<Data = Bytes, Error = Fault> + Send + 'static,
    {
        Body::of(Kind::Boxed(UnsyncBoxBody::new(body)))
    }

    /// This body with `observer` reading along (see [`Observed`]).
    #[must_use]
    pub fn observed<O: BodyObserver>(self, observer: O) -> Body {
        Body::stream(Observed::new(self, observer))
    }

    /// This body, broken off as timed out once nothing has come for `limit` while somebody waited.
    #[must_use]
    pub fn idle_after(self, limit: Duration) -> Body {
        let side = if self.is_downstream() { Side::Downstream } else { Side::Upstream };
        if self.is_end_stream() || self.is_full() { self } else { Body::stream(Idle::new(self, side, limit)) }
    }

    pub(super) fn answer(answer: Answer) -> Body {
        Body::of(Kind::Upstream(answer))
    }

    pub(super) fn received(received: plain::Received) -> Body {
        Body::of(Kind::Received(Box::new(received)))
    }

    pub(super) fn plain(answer: plain::Answer) -> Body {
        Body::of(Kind::Plain(Box::new(answer)))
    }

    pub(super) fn during(mut self, busy: Busy) -> Body {
        self.busy = Some(busy);
        self
    }

    /// Whether it is still the dispatcher's own, unread.
    pub(super) fn is_downstream(&self) -> bool {
        matches!(self.kind, Kind::Downstream(_) | Kind::Received(_))
    }

    /// Whether all of it is at hand.
    pub(super) fn is_full(&self) -> bool {
        matches!(self.kind, Kind::Full(_))
    }

    fn of(kind: Kind) -> Body {
        Body { kind, busy: None }
    }
}

impl Default for Body {
    fn default() -> Body {
        Body::empty()
    }
}

impl From<Incoming> for Body {
    /// The body of a request that a dispatcher sent: what breaks in it is a fault of the downstream side.
    fn from(incoming: Incoming) -> Body {
        Body::of(Kind::Downstream(incoming))
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Body {
        Body::full(bytes)
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.kind {
            Kind::Empty => "empty",
            Kind::Full(_) => "full",
            Kind::Downstream(_) | Kind::Received(_) => "downstream",
            Kind::Upstream(_) | Kind::Plain(_) => "upstream",
            Kind::Boxed(_) => "boxed",
        };
        f.debug_struct("Body").field("kind", &kind).finish_non_exhaustive()
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Fault;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Fault>>> {
        let this = self.get_mut();
        match &mut this.kind {
            Kind::Empty => Poll::Ready(None),
            Kind::Full(bytes) => {
                let bytes = std::mem::take(bytes);
                this.kind = Kind::Empty;
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            Kind::Downstream(incoming) => {
                let polled = Pin::new(&mut *incoming).poll_frame(cx);
                let last = matches!(&polled, Poll::Ready(None))
                    || matches!(&polled, Poll::Ready(Some(Ok(f))) if f.is_trailers() || incoming.is_end_stream());
                if last && let Some(busy) = &mut this.busy {
                    busy.body_read();
                }
                polled.map(|frame| frame.map(|f| f.map_err(|e| Fault::from_body(&e, Side::Downstream))))
            }
            Kind::Received(body) => Pin::new(body).poll_frame(cx),
            Kind::Upstream(answer) => Pin::new(answer).poll_frame(cx),
            Kind::Plain(answer) => Pin::new(answer).poll_frame(cx),
            Kind::Boxed(body) => Pin::new(body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Empty => true,
            Kind::Full(_) => false,
            Kind::Downstream(incoming) => incoming.is_end_stream(),
            Kind::Received(body) => body.is_end_stream(),
            Kind::Upstream(answer) => answer.is_end_stream(),
            Kind::Plain(answer) => answer.is_end_stream(),
            Kind::Boxed(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Empty => SizeHint::with_exact(0),
            Kind::Full(bytes) => SizeHint::with_exact(u64::try_from(bytes.len()).unwrap_or(u64::MAX)),
            Kind::Downstream(incoming) => incoming.size_hint(),
            Kind::Received(body) => body.size_hint(),
            Kind::Upstream(answer) => answer.size_hint(),
            Kind::Plain(answer) => answer.size_hint(),
            Kind::Boxed(body) => body.size_hint(),
        }
    }
}
