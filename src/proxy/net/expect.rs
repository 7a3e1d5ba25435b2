//! The request body on its way to the backend: held back for `100 Continue`, cancelled with its call, its progress told.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::sync::{Notify, oneshot};
use tokio::time::Sleep;

use super::body::Body;
use super::fault::Fault;
use crate::rules::TransportFault;

/// How long a backend that ignores `Expect: 100-continue` keeps a body waiting (RFC 9110, 10.1.1 sets no limit).
const CONTINUE_WAIT: Duration = Duration::from_secs(1);

/// How far the body of one call has got.
#[derive(Debug, Default)]
pub(super) struct Progress {
    done: AtomicBool,
    frames: AtomicU64,
    starved: AtomicBool,
    ended: Notify,
}

impl Progress {
    /// All of the body has been handed to the connection.
    pub(super) fn is_done(&self) -> bool {
        self.done.load(Ordering::Acquire)
    }

    /// Waits until [`is_done`](Progress::is_done). For one waiter.
    pub(super) async fn done(&self) {
        while !self.is_done() {
            self.ended.notified().await;
        }
    }

    fn finish(&self) {
        self.done.store(true, Ordering::Release);
        self.ended.notify_one();
    }

    /// A number that grows with every frame.
    pub(super) fn frames(&self) -> u64 {
        self.frames.load(Ordering::Acquire)
    }

    /// The dispatcher owes us bytes: the backend cannot be blamed for waiting.
    pub(super) fn is_starved(&self) -> bool {
        self.starved.load(Ordering::Acquire)
    }
}

/// What hyper's client sends.
pub(super) struct Outgoing {
    body: Body,
    hold: Hold,
    tracked: Option<Tracked>,
}

struct Tracked {
    progress: Arc<Progress>,
    /// Ends when the call is over.
    call: oneshot::Receiver<()>,
}

enum Hold {
    Open,
    Waiting {
        allowed: oneshot::Receiver<()>,
        patience: Pin<Box<Sleep>>,
    },
    /// The final answer came first: the body is not wanted.
    Refused,
}

impl Outgoing {
    /// A body that is complete as it stands.
    pub(super) fn plain(body: Body) -> Outgoing {
        Outgoing { body, hold: Hold::Open, tracked: None }
    }

    /// A body that ends with an error when `call` is dropped before the body is done.
    pub(super) fn tracked(body: Body, progress: Arc<Progress>, call: oneshot::Receiver<()>) -> Outgoing {
        Outgoing { body, hold: Hold::Open, tracked: Some(Tracked { progress, call }) }
    }

    /// Keeps the body back until `allowed` is told, or for a second if the backend says nothing at all.
    pub(super) fn hold(&mut self, allowed: oneshot::Receiver<()>) {
        self.hold = Hold::Waiting { allowed, patience: Box::pin(tokio::time::sleep(CONTINUE_WAIT)) };
    }

    fn is_cancelled(&mut self, cx: &mut Context<'_>) -> bool {
        self.tracked.as_mut().is_some_and(|t| Pin::new(&mut t.call).poll(cx).is_ready())
    }

    fn is_held(&mut self, cx: &mut Context<'_>) -> bool {
        if let Hold::Waiting { allowed, patience } = &mut self.hold {
            self.hold = match (Pin::new(allowed).poll(cx), patience.as_mut().poll(cx)) {
                (Poll::Ready(Ok(())), _) | (Poll::Pending, Poll::Ready(())) => Hold::Open,
                (Poll::Ready(Err(_)), _) => Hold::Refused,
                (Poll::Pending, Poll::Pending) => return true,
            };
        }
        matches!(self.hold, Hold::Refused)
    }

    fn note(&self, polled: &Poll<Option<Result<Frame<Bytes>, Fault>>>) {
        let Some(Tracked { progress, .. }) = &self.tracked else { return };
        progress.starved.store(polled.is_pending(), Ordering::Release);
        match polled {
            Poll::Pending => {}
            Poll::Ready(None | Some(Err(_))) => progress.finish(),
            Poll::Ready(Some(Ok(frame))) => {
                progress.frames.fetch_add(1, Ordering::AcqRel);
                if frame.is_trailers() || self.body.is_end_stream() {
                    progress.finish();
                }
            }
        }
    }
}

impl HttpBody for Outgoing {
    type Data = Bytes;
    type Error = Fault;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Fault>>> {
        let this = self.get_mut();
        let polled = if this.is_held(cx) { Poll::Pending } else { Pin::new(&mut this.body).poll_frame(cx) };
        this.note(&polled);
        if polled.is_pending() && this.is_cancelled(cx) {
            this.tracked = None;
            return cancelled();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        // The connection is gone or has sent all it wants: nobody need wait for the rest.
        if let Some(tracked) = &self.tracked {
            tracked.progress.finish();
        }
    }
}

fn cancelled() -> Poll<Option<Result<Frame<Bytes>, Fault>>> {
    Poll::Ready(Some(Err(Fault::downstream(
        TransportFault::Reset,
        "the call was given up while its body was being sent",
    ))))
}

impl fmt::Debug for Outgoing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outgoing").field("body", &self.body).finish_non_exhaustive()
    }
}
