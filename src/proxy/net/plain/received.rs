//! The body of a request that has not arrived in full yet. It takes the reading half of the connection with it and brings it
//! back when it is over.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use bytes::{Bytes, BytesMut};
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::net::tcp::OwnedReadHalf;

use super::read::{most, poll_read};
use crate::proxy::net::fault::Fault;
use crate::rules::TransportFault;

/// A body of a known length.
pub(in crate::proxy::net) struct Received {
    /// `None` once it has been brought back.
    io: Option<OwnedReadHalf>,
    /// What has been read of it.
    read: Bytes,
    /// What is still to be read.
    missing: u64,
    back: Arc<Back>,
}

/// Where the connection finds its reading half again.
#[derive(Debug, Default)]
pub(super) struct Back(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    brought: Option<Brought>,
    waker: Option<Waker>,
}

/// What a body leaves behind.
#[derive(Debug)]
pub(super) struct Brought {
    pub(super) io: OwnedReadHalf,
    /// All of the body has been read.
    pub(super) complete: bool,
}

impl Back {
    /// The reading half, once the body is over.
    pub(super) fn poll_take(&self, cx: &mut Context<'_>) -> Poll<Brought> {
        let mut state = self.lock();
        if let Some(brought) = state.brought.take() {
            return Poll::Ready(brought);
        }
        match &mut state.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            waker => *waker = Some(cx.waker().clone()),
        }
        Poll::Pending
    }

    fn bring(&self, brought: Brought) {
        let mut state = self.lock();
        state.brought = Some(brought);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Received {
    /// A body that begins with `read`, of which `missing` bytes come over `io`.
    pub(super) fn new(io: OwnedReadHalf, read: Bytes, missing: u64, back: Arc<Back>) -> Received {
        Received { io: Some(io), read, missing, back }
    }

    fn bring_back(&mut self) {
        if let Some(io) = self.io.take() {
            self.back.bring(Brought { io, complete: self.missing == 0 });
        }
    }
}

impl HttpBody for Received {
    type Data = Bytes;
    type Error = Fault;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Fault>>> {
        let this = self.get_mut();
        if !this.read.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut this.read)))));
        }
        let Some(io) = &mut this.io else { return Poll::Ready(None) };
        let mut buffer = BytesMut::new();
        let n = match ready!(poll_read(io, cx, &mut buffer, most(this.missing))) {
            Ok(n) => n,
            Err(error) => {
                this.bring_back();
                return Poll::Ready(Some(Err(broken(&format!("the body broke off: {}", error.kind())))));
            }
        };
        if n == 0 {
            this.bring_back();
            return Poll::Ready(Some(Err(broken("the body broke off: unexpected end of file"))));
        }
        this.missing = this.missing.saturating_sub(u64::try_from(n).unwrap_or(u64::MAX));
        if this.missing == 0 {
            this.bring_back();
        }
        Poll::Ready(Some(Ok(Frame::data(buffer.freeze()))))
    }

    fn is_end_stream(&self) -> bool {
        self.read.is_empty() && self.missing == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.missing.saturating_add(u64::try_from(self.read.len()).unwrap_or(u64::MAX)))
    }
}

impl Drop for Received {
    fn drop(&mut self) {
        self.bring_back();
    }
}

impl fmt::Debug for Received {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Received").field("missing", &self.missing).finish_non_exhaustive()
    }
}

fn broken(detail: &str) -> Fault {
    Fault::downstream(TransportFault::BodyTruncated, detail)
}
