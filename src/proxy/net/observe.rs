//! A body with somebody reading along: every frame passes at once and unchanged, the end is told exactly once.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::sync::mpsc;

use super::fault::Fault;

/// How an observed body ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// All of it passed.
    Complete,
    /// It broke off.
    Broken(Fault),
    /// The receiver let go of it first: downstream went away, or we drain.
    Dropped,
}

/// Who reads along. It must be quick: it runs between two frames of the stream.
pub trait BodyObserver: Send + Unpin + 'static {
    /// Bytes that are about to be passed on.
    fn on_data(&mut self, data: &Bytes);

    /// What goes out in place of the bytes that were shown last, if they are not to go out as they are; nothing at all if it
    /// is empty. Only where [`adds`](BodyObserver::adds) holds.
    fn replacement(&mut self) -> Option<Bytes> {
        None
    }

    /// Trailers that are about to be passed on.
    fn on_trailers(&mut self, trailers: &HeaderMap) {
        let _ = trailers;
    }

    /// The end, exactly once. Bytes that are returned go out as the last ones, and the body then ends well even if it
    /// was broken: downstream gets an answer, not silence. They are ignored after [`End::Dropped`].
    fn on_end(&mut self, end: End) -> Option<Bytes>;

    /// Whether bytes may be added to this body, at its end or from a channel. Then no length is announced: the caller
    /// must have removed `content-length` from the head.
    fn adds(&self) -> bool {
        false
    }

    /// Whether bytes from the channel may go out here: between two events of a stream, say.
    fn at_border(&self) -> bool {
        true
    }
}

/// `inner` with `observer` reading along, and optionally a channel whose bytes are sent between the frames.
pub struct Observed<B, O>
where
    B: HttpBody<Data = Bytes, Error = Fault> + Unpin,
    O: BodyObserver,
{
    inner: B,
    observer: O,
    injected: Option<mpsc::Receiver<Bytes>>,
    /// Trailers that wait for the observer's last bytes to go out before them.
    held: Option<Frame<Bytes>>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Streaming,
    /// The observer has been told; nothing more comes out.
    Ended,
}

impl<B, O> Observed<B, O>
where
    B: HttpBody<Data = Bytes, Error = Fault> + Unpin,
    O: BodyObserver,
{
    /// `inner` with `observer` reading along.
    pub fn new(inner: B, observer: O) -> Observed<B, O> {
        Observed { inner, observer, injected: None, held: None, state: State::Streaming }
    }

    /// Sends what arrives on `channel` between frames, whenever the observer is [at a border](BodyObserver::at_border).
    /// The observer is not shown these bytes. The channel does not keep the body alive, nor does its end end the body.
    #[must_use]
    pub fn injecting(mut self, channel: mpsc::Receiver<Bytes>) -> Observed<B, O> {
        self.injected = Some(channel);
        self
    }

    fn pass(&mut self, frame: Frame<Bytes>) -> Option<Frame<Bytes>> {
        if let Some(data) = frame.data_ref() {
            self.observer.on_data(data);
            // A receiver that has counted the announced length does not ask for the end.
            if !self.observer.adds() && self.inner.is_end_stream() {
                self.end(End::Complete);
            }
            let replaced = if self.observer.adds() { self.observer.replacement() } else { None };
            return match replaced {
                None => Some(frame),
                Some(bytes) => (!bytes.is_empty()).then(|| Frame::data(bytes)),
            };
        }
        if let Some(trailers) = frame.trailers_ref() {
            self.observer.on_trailers(trailers);
        }
        Some(match self.end(End::Complete).filter(|_| self.observer.adds()) {
            Some(last) => {
                self.held = Some(frame);
                Frame::data(last)
            }
            None => frame,
        })
    }

    fn end(&mut self, end: End) -> Option<Bytes> {
        match self.state {
            State::Ended => None,
            State::Streaming => {
                self.state = State::Ended;
                self.observer.on_end(end)
            }
        }
    }

    fn poll_injected(&mut self, cx: &mut Context<'_>) -> Option<Bytes> {
        let channel = self.injected.as_mut()?;
        match channel.poll_recv(cx) {
            Poll::Ready(Some(bytes)) => Some(bytes),
            Poll::Ready(None) => {
                self.injected = None;
                None
            }
            Poll::Pending => None,
        }
    }
}

impl<B, O> HttpBody for Observed<B, O>
where
    B: HttpBody<Data = Bytes, Error = Fault> + Unpin,
    O: BodyObserver,
{
    type Data = Bytes;
    type Error = Fault;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Fault>>> {
        let this = self.get_mut();
        if let Some(frame) = this.held.take() {
            return Poll::Ready(Some(Ok(frame)));
        }
        if this.state == State::Ended {
            return Poll::Ready(None);
        }
        if this.observer.at_border()
            && let Some(bytes) = this.poll_injected(cx)
        {
            return Poll::Ready(Some(Ok(Frame::data(bytes))));
        }
        loop {
            let frame = match ready!(Pin::new(&mut this.inner).poll_frame(cx)) {
                None => return Poll::Ready(this.end(End::Complete).map(|last| Ok(Frame::data(last)))),
                Some(Err(fault)) => {
                    let last = this.end(End::Broken(fault.clone()));
                    return Poll::Ready(Some(last.map(Frame::data).ok_or(fault)));
                }
                Some(Ok(frame)) => this.pass(frame),
            };
            // All of it may have been kept back.
            if let Some(frame) = frame {
                return Poll::Ready(Some(Ok(frame)));
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        (self.state == State::Ended && self.held.is_none()) || (!self.observer.adds() && self.inner.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        if self.observer.adds() { SizeHint::default() } else { self.inner.size_hint() }
    }
}

impl<B, O> Drop for Observed<B, O>
where
    B: HttpBody<Data = Bytes, Error = Fault> + Unpin,
    O: BodyObserver,
{
    fn drop(&mut self) {
        // A body that was complete before anybody asked for it (no content, HEAD) is never polled.
        self.end(if self.inner.is_end_stream() { End::Complete } else { End::Dropped });
    }
}

impl<B, O> fmt::Debug for Observed<B, O>
where
    B: HttpBody<Data = Bytes, Error = Fault> + Unpin,
    O: BodyObserver,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observed").field("state", &self.state).finish_non_exhaustive()
    }
}
