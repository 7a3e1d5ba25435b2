//! The idle limit on bodies: a stream may last for ever, but not without a byte (DESIGN 3).

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::Sleep;

use super::body::Body;
use super::fault::{Fault, Side};
use crate::rules::TransportFault;

/// `inner`, broken off as timed out once nothing has come for `limit` while somebody waited for it.
pub(super) struct Idle {
    inner: Body,
    side: Side,
    limit: Duration,
    /// Armed when somebody first waits and then left alone while bytes come: arming it anew for each would cost more than
    /// passing them on. So the limit is kept between once and twice.
    timer: Option<Pin<Box<Sleep>>>,
    /// Something has come since it was armed.
    moved: bool,
    /// Somebody has waited before. What he waits for comes mostly with the next turn of the connection, without a timer.
    waited: bool,
}

impl Idle {
    pub(super) fn new(inner: Body, side: Side, limit: Duration) -> Idle {
        Idle { inner, side, limit, timer: None, moved: false, waited: false }
    }
}

impl HttpBody for Idle {
    type Data = Bytes;
    type Error = Fault;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Fault>>> {
        let this = self.get_mut();
        if let Poll::Ready(frame) = Pin::new(&mut this.inner).poll_frame(cx) {
            this.moved = true;
            return Poll::Ready(frame);
        }
        if !std::mem::replace(&mut this.waited, true) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let timer = this.timer.get_or_insert_with(|| {
            this.moved = false;
            Box::pin(tokio::time::sleep(this.limit))
        });
        loop {
            ready!(timer.as_mut().poll(cx));
            if !std::mem::take(&mut this.moved) {
                break;
            }
            timer.set(tokio::time::sleep(this.limit));
        }
        Poll::Ready({
            let limit = this.limit;
            Some(Err(match this.side {
                Side::Upstream | Side::Proxy(_) => Fault::upstream(
                    TransportFault::Timeout,
                    true,
                    format!("nothing came for {limit:?} (timeouts.idle)"),
                ),
                Side::Downstream => Fault::downstream(
                    TransportFault::Timeout,
                    format!("nothing came for {limit:?} (limits.header_timeout)"),
                ),
            }))
        })
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl fmt::Debug for Idle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Idle").field("limit", &self.limit).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use http_body_util::channel::Channel;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_stream_lasts_as_long_as_something_comes_and_no_longer() {
        let (mut sender, body) = Channel::<Bytes, Fault>::new(1);
        let mut idle = Body::stream(Idle::new(Body::stream(body), Side::Upstream, Duration::from_secs(60)));
        for _ in 0..3 {
            sender.send_data(Bytes::from_static(b"x")).await.unwrap();
            tokio::time::advance(Duration::from_secs(59)).await;
            assert_eq!(idle.frame().await.unwrap().unwrap().into_data().unwrap(), "x");
        }
        let fault = idle.frame().await.unwrap().unwrap_err();
        assert_eq!(fault.kind, TransportFault::Timeout);
    }
}
