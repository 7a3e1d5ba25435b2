//! A request on its way to a backend.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http::request::Parts;
use http::{HeaderValue, Method, header};
use http_body::Body as HttpBody;
use tokio::net::TcpStream;

use super::head::{Spelling, size_of_head, write_fields};
use super::outbox::Outbox;
use super::template::Template;
use crate::proxy::net::body::Body;
use crate::proxy::net::fault::Fault;
use crate::rules::TransportFault;

/// Bytes of a body that are taken before the socket has taken those before.
const AHEAD: usize = 64 * 1024;

/// A request of which something may still have to be written.
#[derive(Debug)]
pub(super) struct Sending {
    out: Outbox,
    /// The body until its end.
    body: Option<Body>,
    /// What is still to come of the body, which must be neither more nor less than was announced.
    left: u64,
    /// Something of the body has come since somebody last asked.
    moved: bool,
}

/// Why it cannot be sent to its end.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The body broke off.
    Body(Fault),
    /// The connection does not take it.
    Connection(io::Error),
}

/// The head of requests as it goes to a backend, but for the length that it states.
#[derive(Debug)]
pub(in crate::proxy::net) struct Outgoing {
    pub(super) method: Method,
    template: Template,
}

impl Outgoing {
    /// `None` where it states no length.
    pub(in crate::proxy::net) fn of(mut parts: Parts) -> Option<Outgoing> {
        state_length(&mut parts, 1);
        let mut head = BytesMut::new();
        write_head(&mut head, &parts, 0);
        Some(Outgoing { template: Template::of(&head)?, method: parts.method })
    }
}

impl Sending {
    /// `parts` with a body of `length` bytes.
    pub(super) fn new(mut parts: Parts, body: Body, length: u64) -> Sending {
        state_length(&mut parts, length);
        let mut out = Outbox::default();
        write_head(out.tail(), &parts, usize::try_from(length).map_or(0, Outbox::copied));
        let body = (!body.is_end_stream()).then_some(body);
        Sending { out, body, left: length, moved: false }
    }

    /// A request whose head was made before, and all of its body.
    pub(super) fn repeated(head: &Outgoing, body: Bytes) -> Sending {
        let mut out = Outbox::default();
        head.template.write(out.tail(), body.len(), Outbox::copied(body.len()));
        out.push(body);
        Sending { out, body: None, left: 0, moved: false }
    }

    /// Ready when all is sent.
    pub(super) fn poll_send(&mut self, cx: &mut Context<'_>, io: &mut TcpStream) -> Poll<Result<(), Trouble>> {
        loop {
            let waits = self.fill(cx).map_err(Trouble::Body)?;
            match self.out.poll_write(cx, io) {
                Poll::Ready(Err(error)) => return Poll::Ready(Err(Trouble::Connection(error))),
                Poll::Ready(Ok(())) if self.body.is_none() => return Poll::Ready(Ok(())),
                Poll::Ready(Ok(())) if !waits => {}
                Poll::Ready(Ok(())) | Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// All is sent.
    pub(super) fn is_done(&self) -> bool {
        self.body.is_none() && self.out.is_empty()
    }

    /// The dispatcher owes us bytes: the backend cannot be blamed for waiting.
    pub(super) fn is_starved(&self) -> bool {
        self.body.is_some() && self.out.is_empty()
    }

    /// The socket has taken something.
    pub(super) fn has_begun(&self) -> bool {
        self.out.written() > 0
    }

    /// A number that grows while something is sent.
    pub(super) fn written(&self) -> u64 {
        self.out.written()
    }

    /// Whether some of the body has come since this was last asked.
    pub(super) fn has_moved(&mut self) -> bool {
        std::mem::take(&mut self.moved)
    }

    /// Takes what is there of the body; tells whether more of it is waited for.
    fn fill(&mut self, cx: &mut Context<'_>) -> Result<bool, Fault> {
        while self.out.len() < AHEAD
            && let Some(body) = &mut self.body
        {
            let Poll::Ready(frame) = Pin::new(&mut *body).poll_frame(cx) else { return Ok(true) };
            let ended = frame.is_none();
            if let Some(data) = frame.transpose()?.and_then(|frame| frame.into_data().ok()) {
                self.left = u64::try_from(data.len())
                    .ok()
                    .and_then(|n| self.left.checked_sub(n))
                    .ok_or_else(|| unequal("longer"))?;
                self.out.push(data);
            }
            self.moved = true;
            if ended || body.is_end_stream() {
                self.body = None;
                if self.left > 0 {
                    return Err(unequal("shorter"));
                }
            }
        }
        Ok(false)
    }
}

/// Writes a head; there will be room for `more` bytes behind it.
fn write_head(out: &mut BytesMut, parts: &Parts, more: usize) {
    let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
    out.reserve(size_of_head(&parts.headers) + target.len() + more);
    for part in [parts.method.as_str(), " ", target, " HTTP/1.1\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
    write_fields(out, &parts.headers, parts.extensions.get::<Spelling>());
    out.extend_from_slice(b"\r\n");
}

/// Says how long the body is, if that is not said yet.
fn state_length(parts: &mut Parts, length: u64) {
    let mut stated = parts.headers.get_all(header::CONTENT_LENGTH).iter();
    let is_right = match (stated.next(), stated.next()) {
        (None, None) => length == 0,
        (Some(value), None) => value.to_str().ok().and_then(|text| text.parse().ok()) == Some(length),
        _ => false,
    };
    if !is_right {
        parts.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
}

fn unequal(how: &str) -> Fault {
    Fault::downstream(TransportFault::BodyTruncated, format!("the request's body is {how} than it was announced"))
}
