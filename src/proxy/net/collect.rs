//! Holding a body up to a limit: whole if it fits, else its beginning and the rest as one body that streams on.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::BodyExt;

use super::body::Body;
use super::fault::Fault;

/// What [`collect`] found.
#[derive(Debug)]
pub enum Collected {
    /// All of it, and its trailers.
    Whole(Bytes, Option<HeaderMap>),
    /// More than the limit: the very same bytes, to be passed on.
    TooLarge(Body),
}

/// Reads `body` until its end or until more than `limit` bytes are there, whichever comes first. A body that announces
/// more than `limit` bytes is not touched. A whole body of one frame is not copied.
///
/// # Errors
/// The fault that broke the body off.
pub async fn collect(mut body: Body, limit: usize) -> Result<Collected, Fault> {
    let hint = body.size_hint();
    if usize::try_from(hint.lower()).unwrap_or(usize::MAX) > limit {
        return Ok(Collected::TooLarge(body));
    }
    let expected = hint.exact().and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
    let mut held = Held::Nothing;
    let mut trailers = None;
    while let Some(frame) = body.frame().await {
        match frame?.into_data() {
            Ok(data) => {
                held = held.and(data, expected);
                if held.len() > limit {
                    return Ok(Collected::TooLarge(Body::stream(Prefixed { prefix: held.into_bytes(), rest: body })));
                }
            }
            Err(frame) => trailers = frame.into_trailers().ok(),
        }
    }
    Ok(Collected::Whole(held.into_bytes(), trailers))
}

enum Held {
    Nothing,
    One(Bytes),
    Many(BytesMut),
}

impl Held {
    fn and(self, data: Bytes, expected: usize) -> Held {
        match self {
            Held::Nothing => Held::One(data),
            Held::One(first) => {
                let mut all = BytesMut::with_capacity(expected.max(first.len() + data.len()));
                all.extend_from_slice(&first);
                all.extend_from_slice(&data);
                Held::Many(all)
            }
            Held::Many(mut all) => {
                all.extend_from_slice(&data);
                Held::Many(all)
            }
        }
    }

    fn len(&self) -> usize {
        match self {
            Held::Nothing => 0,
            Held::One(bytes) => bytes.len(),
            Held::Many(bytes) => bytes.len(),
        }
    }

    fn into_bytes(self) -> Bytes {
        match self {
            Held::Nothing => Bytes::new(),
            Held::One(bytes) => bytes,
            Held::Many(bytes) => bytes.freeze(),
        }
    }
}

struct Prefixed {
    prefix: Bytes,
    rest: Body,
}

impl HttpBody for Prefixed {
    type Data = Bytes;
    type Error = Fault;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Fault>>> {
        let this = self.get_mut();
        if !this.prefix.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut this.prefix)))));
        }
        Pin::new(&mut this.rest).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.prefix.is_empty() && self.rest.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let held = u64::try_from(self.prefix.len()).unwrap_or(u64::MAX);
        let rest = self.rest.size_hint();
        let mut hint = SizeHint::new();
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper.saturating_add(held));
        }
        hint.set_lower(rest.lower().saturating_add(held));
        hint
    }
}

impl fmt::Debug for Prefixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prefixed").field("prefix_bytes", &self.prefix.len()).finish_non_exhaustive()
    }
}
