//! The body of an answer that has not arrived in full yet, with the connection that it comes over.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body as HttpBody, Frame, SizeHint};

use super::chunks::{Broken, Dechunk};
use super::client::{Exchange, Line};
use super::head::Framing;
use super::read;
use crate::proxy::net::fault::Fault;
use crate::proxy::net::pool::Pool;
use crate::rules::TransportFault;

/// A stream of bytes from a backend.
pub(in crate::proxy::net) struct Answer {
    /// `None` once the body is over.
    exchange: Option<Box<Exchange>>,
    idle: Arc<Pool<Line>>,
    keeps: bool,
    rest: Rest,
    trailers: Option<HeaderMap>,
    /// How much to read at once, where the length is not known.
    room: usize,
}

/// What is still to come.
#[derive(Debug)]
enum Rest {
    Length(u64),
    Chunked(Dechunk),
    Close,
}

impl Answer {
    pub(super) fn new(exchange: Exchange, framing: Framing, keeps: bool, idle: Arc<Pool<Line>>) -> Answer {
        let rest = match framing {
            Framing::Length(length) => Rest::Length(length),
            Framing::Chunked => Rest::Chunked(Dechunk::default()),
            Framing::Close => Rest::Close,
        };
        Answer { exchange: Some(Box::new(exchange)), idle, keeps, rest, trailers: None, room: read::FEW }
    }

    /// What can be given of what was read.
    fn next(&mut self) -> Result<Option<Bytes>, Broken> {
        let Some(exchange) = self.exchange.as_mut().filter(|exchange| !exchange.input.is_empty()) else {
            return Ok(None);
        };
        let (data, is_over) = match &mut self.rest {
            Rest::Length(left) => {
                let data = exchange.take(*left);
                *left = left.saturating_sub(u64::try_from(data.len()).unwrap_or(u64::MAX));
                (data, *left == 0)
            }
            Rest::Chunked(chunks) => {
                let data = chunks.decode(&mut exchange.input)?;
                if chunks.is_over() {
                    self.trailers = chunks.trailers()?;
                }
                (data, chunks.is_over())
            }
            Rest::Close => (exchange.take(u64::MAX), false),
        };
        if is_over && let Some(exchange) = self.exchange.take() {
            exchange.release(self.keeps, &self.idle);
        }
        Ok((!data.is_empty()).then_some(data))
    }

    fn room(&self) -> usize {
        match self.rest {
            Rest::Length(left) => read::most(left),
            Rest::Chunked(_) | Rest::Close => self.room,
        }
    }

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Fault>> {
        loop {
            if let Some(data) = self.next().map_err(|Broken| broken("the body's framing is broken"))? {
                return Poll::Ready(Ok(Some(data)));
            }
            let room = self.room();
            let Some(exchange) = &mut self.exchange else { return Poll::Ready(Ok(None)) };
            exchange.poll_send(cx)?;
            match ready!(exchange.poll_more(cx, room)) {
                Ok(0) if matches!(self.rest, Rest::Close) => self.exchange = None,
                Ok(0) => return Poll::Ready(Err(truncated("unexpected end of file"))),
                Ok(n) if n >= room => self.room = read::most(u64::try_from(room * 2).unwrap_or(u64::MAX)),
                Ok(_) => {}
                Err(error) => return Poll::Ready(Err(truncated(&error.kind().to_string()))),
            }
        }
    }
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = Fault;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Fault>>> {
        let this = self.get_mut();
        Poll::Ready(match ready!(this.poll_data(cx)) {
            Ok(Some(data)) => Some(Ok(Frame::data(data))),
            Ok(None) => this.trailers.take().map(|trailers| Ok(Frame::trailers(trailers))),
            Err(fault) => {
                this.exchange = None;
                Some(Err(fault))
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        self.exchange.is_none() && self.trailers.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        match self.rest {
            Rest::Length(left) => SizeHint::with_exact(left),
            Rest::Chunked(_) | Rest::Close => SizeHint::default(),
        }
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer").field("rest", &self.rest).finish_non_exhaustive()
    }
}

fn truncated(what: &str) -> Fault {
    Fault::upstream(TransportFault::BodyTruncated, true, format!("the body broke off: {what}"))
}

fn broken(what: &str) -> Fault {
    Fault::upstream(TransportFault::Protocol, true, what)
}
