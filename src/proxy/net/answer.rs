//! One call at a backend: its request's body on the way out, its answer's body on the way in, and the connection that
//! both go over for as long as either needs it.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::sync::oneshot;

use super::body::Body;
use super::expect::{Outgoing, Progress};
use super::fault::{Fault, Side};
use super::interim::Relay;
use super::upstream::HttpVersion;
use super::{h1, h2};

/// How long the rest of a request's body may stand still once its answer is complete.
pub(super) const REST_STALL: Duration = Duration::from_secs(10);

/// What lives as long as one call: its end cancels the rest of the request's body.
pub(super) struct Call {
    progress: Option<Arc<Progress>>,
    /// Dropped with the call.
    _alive: Option<oneshot::Sender<()>>,
    /// The body waits, or waited, for `100 Continue`.
    expects: bool,
}

impl Call {
    /// Wraps the body of `request` so that it tells its progress, waits for `100 Continue`, and ends with the call. Interim
    /// answers go to `relay`.
    pub(super) fn start(
        mut request: Request<Body>,
        http: HttpVersion,
        relay: Option<Relay>,
    ) -> (Call, Request<Outgoing>) {
        // What is at hand is sent at once: its progress need not be told.
        if request.body().is_end_stream() || request.body().is_full() {
            listen(&mut request, None, relay);
            return (Call { progress: None, _alive: None, expects: false }, request.map(Outgoing::plain));
        }
        let expects = request.headers().contains_key(header::EXPECT) && http == HttpVersion::One;
        let progress = Arc::new(Progress::default());
        let (alive, over) = oneshot::channel();
        let tracked = Arc::clone(&progress);
        let mut request = request.map(|body| Outgoing::tracked(body, tracked, over));
        let allow = expects.then(|| {
            let (allow, allowed) = oneshot::channel();
            request.body_mut().hold(allowed);
            allow
        });
        listen(&mut request, allow, relay);
        (Call { progress: Some(progress), _alive: Some(alive), expects }, request)
    }

    /// How far the request's body has got; `None` if it has none.
    pub(super) fn progress(&self) -> Option<Arc<Progress>> {
        self.progress.clone()
    }
}

/// Hears the interim answers. With `Expect: 100-continue` (RFC 9110, 10.1.1) the body waits for the backend's word, which
/// `allow` passes on; the dispatcher gets its own `100 Continue` from hyper's server at the moment the body is first asked
/// for, which is then.
fn listen<B>(request: &mut Request<B>, allow: Option<oneshot::Sender<()>>, relay: Option<Relay>) {
    if allow.is_none() && relay.is_none() {
        return;
    }
    let expects = allow.is_some();
    let allow = Mutex::new(allow);
    hyper::ext::on_informational(request, move |response| {
        if response.status() == StatusCode::CONTINUE && expects {
            if let Some(allow) = allow.lock().unwrap_or_else(PoisonError::into_inner).take() {
                let _ = allow.send(());
            }
        } else if let Some(relay) = &relay {
            relay.pass(response.status(), response.headers());
        }
    });
}

/// The connection of a call.
pub(super) enum Lease {
    One(h1::Lease),
    Two(h2::Lease),
}

impl Lease {
    /// Moves what can be moved: an HTTP/1.1 connection has no task of its own.
    fn drive(&mut self, cx: &mut Context<'_>) {
        if let Lease::One(lease) = self {
            lease.drive(cx);
        }
    }

    fn give_back(self) {
        match self {
            Lease::One(lease) => lease.finish(),
            Lease::Two(lease) => drop(lease),
        }
    }
}

/// The answer of a call whose head has arrived.
pub(super) fn answer(response: Response<Incoming>, lease: Lease, call: Call) -> Response<Body> {
    let (parts, incoming) = response.into_parts();
    if parts.status == StatusCode::SWITCHING_PROTOCOLS {
        if let Lease::One(lease) = lease {
            lease.hand_over();
        }
        return Response::from_parts(parts, Body::empty());
    }
    let mut answer = Answer { incoming, held: Some((lease, call)), unsent: true, broken: None };
    if answer.incoming.is_end_stream() {
        answer.finish();
    }
    Response::from_parts(parts, Body::answer(answer))
}

/// The body of a backend's answer, with the connection that it comes over.
pub(super) struct Answer {
    incoming: Incoming,
    held: Option<(Lease, Call)>,
    /// Something was handed on since the receiver last had to wait, and so may still lie in its buffer.
    unsent: bool,
    /// The fault that comes after what is unsent.
    broken: Option<Fault>,
}

impl Answer {
    /// All of the answer is here. What is left of the request's body goes on, for the backend may still read it.
    fn finish(&mut self) {
        let Some((lease, call)) = self.held.take() else { return };
        match call.progress.clone() {
            Some(progress) if !progress.is_done() => {
                let unwanted = call.expects && progress.frames() == 0;
                if !unwanted {
                    tokio::spawn(send_rest(lease, call, progress));
                }
            }
            _ => lease.give_back(),
        }
    }
}

impl Answer {
    fn poll_incoming(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = Pin::new(&mut self.incoming).poll_frame(cx);
        let (Poll::Pending, Some((lease, _))) = (&frame, &mut self.held) else { return frame };
        lease.drive(cx);
        Pin::new(&mut self.incoming).poll_frame(cx)
    }
}

/// Keeps a call whose answer came early until its body is sent, or stands still for [`REST_STALL`].
async fn send_rest(mut lease: Lease, call: Call, progress: Arc<Progress>) {
    let mut seen = progress.frames();
    loop {
        let mut done = pin!(progress.done());
        let sending = poll_fn(|cx| {
            lease.drive(cx);
            done.as_mut().poll(cx)
        });
        let sent = tokio::time::timeout(REST_STALL, sending).await.is_ok();
        if sent {
            lease.give_back();
            break;
        }
        if progress.frames() == seen {
            break;
        }
        seen = progress.frames();
    }
    drop(call);
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = Fault;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Fault>>> {
        if let Some(fault) = self.broken.take() {
            return Poll::Ready(Some(Err(fault)));
        }
        let polled = self.poll_incoming(cx);
        self.unsent = polled.is_ready() && self.unsent;
        match ready!(polled) {
            None => {
                self.finish();
                Poll::Ready(None)
            }
            Some(Ok(frame)) => {
                self.unsent = true;
                if frame.is_trailers() || self.incoming.is_end_stream() {
                    self.finish();
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Some(Err(error)) => {
                self.held = None;
                let fault = Fault::from_body(&error, Side::Upstream);
                if std::mem::take(&mut self.unsent) {
                    // An error makes hyper drop what it has not written yet: first let it write that.
                    self.broken = Some(fault);
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Poll::Ready(Some(Err(fault)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}
