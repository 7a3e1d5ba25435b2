//! An answer on its way to the dispatcher: its head, and its body in the framing that the head states.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http::header::{self, HeaderValue};
use http::response::Parts;
use http::{Method, Response, StatusCode};
use http_body::Body as HttpBody;
use hyper::ext::ReasonPhrase;

use super::chunks::{CHUNK_END, LAST_CHUNK, write_size};
use super::head::{Spelling, closes, size_of_head, write_field, write_fields};
use super::outbox::Outbox;
use crate::proxy::net::body::Body;

/// Bytes that are taken before the socket has taken those before.
const AHEAD: usize = 64 * 1024;

/// The largest body that is written in one piece with its head.
const SMALL: u64 = 4096;

/// The body of an answer until its end.
#[derive(Debug)]
pub(super) struct Reply {
    body: Option<Body>,
    framing: Framing,
    /// The connection ends with this answer.
    pub(super) is_last: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    /// So many bytes are still to come.
    Length(u64),
    Chunked,
}

/// How far an answer got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filled {
    /// The rest is waited for.
    Waits,
    /// Enough for now.
    Enough,
    /// All of it.
    Whole,
    /// It broke off, and the dispatcher must see that.
    Broken,
}

impl Reply {
    /// Writes the head of `response` to `out`.
    pub(super) fn new(response: Response<Body>, method: &Method, mut is_last: bool, out: &mut Outbox) -> Reply {
        let (mut parts, body) = response.into_parts();
        let says_last = closes(&parts.headers);
        if is_last && !says_last {
            parts.headers.append(header::CONNECTION, HeaderValue::from_static("close"));
        }
        is_last |= says_last;
        let framing = frame(&mut parts, &body, method);
        let spelling = parts.extensions.get::<Spelling>();
        let small = body.size_hint().exact().filter(|length| *length <= SMALL);
        let out = out.tail();
        out.reserve(size_of_head(&parts.headers) + small.and_then(|n| usize::try_from(n).ok()).unwrap_or_default());
        write_status(out, &parts);
        write_fields(out, &parts.headers, spelling);
        if framing == Some(Framing::Chunked) {
            write_field(out, &Spelling::of(spelling, &header::TRANSFER_ENCODING), b"chunked");
        }
        out.extend_from_slice(b"\r\n");
        match framing {
            Some(framing) => Reply { body: Some(body), framing, is_last },
            None => Reply { body: None, framing: Framing::Length(0), is_last },
        }
    }

    /// Moves what is there of the body to `out`.
    pub(super) fn fill(&mut self, cx: &mut Context<'_>, out: &mut Outbox) -> Filled {
        while let Some(body) = &mut self.body {
            if out.len() >= AHEAD {
                return Filled::Enough;
            }
            // Whoever counts the length does not ask for the end.
            if self.framing == Framing::Length(0) {
                self.body = None;
                break;
            }
            match Pin::new(&mut *body).poll_frame(cx) {
                Poll::Pending => return Filled::Waits,
                Poll::Ready(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data()
                        && !self.put(data, out)
                    {
                        return Filled::Broken;
                    }
                }
                Poll::Ready(Some(Err(_))) => return Filled::Broken,
                Poll::Ready(None) => {
                    self.body = None;
                    match self.framing {
                        Framing::Chunked => out.tail().extend_from_slice(LAST_CHUNK),
                        Framing::Length(0) => {}
                        Framing::Length(_) => return Filled::Broken,
                    }
                }
            }
        }
        Filled::Whole
    }

    /// Tells whether `data` still belongs to the body.
    fn put(&mut self, data: Bytes, out: &mut Outbox) -> bool {
        match &mut self.framing {
            Framing::Length(left) => {
                let Some(rest) = u64::try_from(data.len()).ok().and_then(|n| left.checked_sub(n)) else { return false };
                *left = rest;
                out.push(data);
            }
            Framing::Chunked if data.is_empty() => {}
            Framing::Chunked => {
                write_size(out.tail(), data.len());
                out.push(data);
                out.tail().extend_from_slice(CHUNK_END);
            }
        }
        true
    }
}

fn write_status(out: &mut BytesMut, parts: &Parts) {
    let reason = parts.extensions.get::<ReasonPhrase>().map(ReasonPhrase::as_bytes);
    if parts.status == StatusCode::OK && reason.is_none() {
        out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
        return;
    }
    let reason = reason.unwrap_or_else(|| parts.status.canonical_reason().unwrap_or("<none>").as_bytes());
    for part in [b"HTTP/1.1 ".as_slice(), parts.status.as_str().as_bytes(), b" ", reason, b"\r\n"] {
        out.extend_from_slice(part);
    }
}

/// Makes the head state how long the body is, and tells how it is framed; `None` if it has none.
fn frame(parts: &mut Parts, body: &Body, method: &Method) -> Option<Framing> {
    let (status, headers) = (parts.status, &mut parts.headers);
    if matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) {
        headers.remove(header::CONTENT_LENGTH);
        headers.remove(header::TRAILER);
        return None;
    }
    let length = if body.is_end_stream() { Some(0) } else { body.size_hint().exact() };
    let stated = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if *method == Method::HEAD {
        headers.remove(header::TRAILER);
        if let Some(length) = length.filter(|length| *length > 0 && stated.is_none()) {
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
        }
        return None;
    }
    match (length, stated) {
        (None, None) => {
            headers.remove(header::CONTENT_LENGTH);
            Some(Framing::Chunked)
        }
        (None, Some(length)) => Some(Framing::Length(length)),
        (Some(length), stated) => {
            if stated != Some(length) || headers.get_all(header::CONTENT_LENGTH).iter().count() != 1 {
                headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
            }
            (length > 0).then_some(Framing::Length(length))
        }
    }
}
