//! Holding a body up to a limit: whole if it fits, else its beginning and the rest as one body that streams on.

use std::fmt;
use std::future::poll_fn;
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
                    return Ok(Collected::TooLarge(begun(Ok(Frame::data(held.into_bytes())), body)));
                }
            }
            Err(frame) => trailers = frame.into_trailers().ok(),
        }
    }
    Ok(Collected::Whole(held.into_bytes(), trailers))
}

/// The body, if all of it has come already. Nobody waits for it; what is not all there comes back as it was.
///
/// # Errors
/// The very same body, to be passed on.
pub async fn at_hand(mut body: Body) -> Result<Bytes, Body> {
    let Some(length) = body.size_hint().exact().filter(|length| *length > 0) else { return Err(body) };
    let polled = poll_fn(|cx| Poll::Ready(Pin::new(&mut body).poll_frame(cx))).await;
    let Poll::Ready(Some(first)) = polled else { return Err(body) };
    match first.map(Frame::into_data) {
        Ok(Ok(data)) if u64::try_from(data.len()) == Ok(length) && body.is_end_stream() => Ok(data),
        Ok(Ok(data)) => Err(begun(Ok(Frame::data(data)), body)),
        Ok(Err(other)) => Err(begun(Ok(other), body)),
        Err(fault) => Err(begun(Err(fault), body)),
    }
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

/// A body of which this was read already.
fn begun(first: Result<Frame<Bytes>, Fault>, rest: Body) -> Body {
    Body::stream(Begun { first: Some(first), rest })
}

struct Begun {
    first: Option<Result<Frame<Bytes>, Fault>>,
    rest: Body,
}

impl HttpBody for Begun {
    type Data = Bytes;
    type Error = Fault;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Fault>>> {
        let this = self.get_mut();
        match this.first.take() {
            Some(first) => Poll::Ready(Some(first)),
            None => Pin::new(&mut this.rest).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.rest.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let data = self.first.as_ref().and_then(|first| first.as_ref().ok()?.data_ref());
        let held = data.map_or(0, |data| u64::try_from(data.len()).unwrap_or(u64::MAX));
        let rest = self.rest.size_hint();
        let mut hint = SizeHint::new();
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper.saturating_add(held));
        }
        hint.set_lower(rest.lower().saturating_add(held));
        hint
    }
}

impl fmt::Debug for Begun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Begun").finish_non_exhaustive()
    }
}
