//! The connection of an HTTP/1.1 dispatcher, as long as nothing unusual comes over it.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use http::{Method, Request};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::{Sleep, sleep};

use super::again::{Again, Found, Known};
use super::head::{self, RequestHead, end_of_head};
use super::outbox::Outbox;
use super::read::{self, poll_read, take_copy};
use super::received::{Back, Brought, Received};
use super::repeated::Repeated;
use super::reply::{Filled, Reply};
use crate::proxy::net::body::Body;
use crate::proxy::net::conn::{ConnInfo, Shared};
use crate::proxy::net::limits::Limits;
use crate::proxy::net::rarely::rarely;
use crate::proxy::net::service::{Answered, Service};
use crate::proxy::net::wire::{LINGER, Turn};

/// Up to this, a body is copied out of the buffer that it was read into, which a call may otherwise keep for long.
const KEPT: usize = 4096;

/// A connection over which something unusual has come, for hyper to go on with.
#[derive(Debug)]
pub(in crate::proxy::net) struct Handover {
    pub(in crate::proxy::net) stream: TcpStream,
    /// What was read and not used: the beginning of a head.
    pub(in crate::proxy::net) read: Bytes,
    /// The head did not come in time.
    pub(in crate::proxy::net) overdue: bool,
    /// A request has stated its length.
    pub(in crate::proxy::net) has_lengths: bool,
}

struct Connection<S: Service> {
    /// `None` while a request's body has it.
    reading: Option<OwnedReadHalf>,
    writing: OwnedWriteHalf,
    /// What was read and not used.
    input: BytesMut,
    again: Again<RequestHead>,
    /// What is known of the head that came again: nothing yet, no route, or the route of its requests.
    repeated: Option<Option<Repeated<S::Route>>>,
    out: Outbox,
    turn: Arc<Turn>,
    back: Arc<Back>,
    /// The last request's body was not read to its end.
    unread: bool,
    has_lengths: bool,
    /// Requests so far, and how many there were when `idle` was armed.
    calls: u64,
    armed: u64,
    idle: Option<Pin<Box<Sleep>>>,
    /// Runs while a head is incomplete, of which so much was looked at.
    rest: Option<(Pin<Box<Sleep>>, usize)>,
}

/// What a dispatcher sent next.
enum Next<R> {
    Request(RequestHead),
    /// One with a head for which there is a route, and its body.
    Repeated(Repeated<R>, Bytes),
    Unusual,
    Overdue,
    /// Nothing, and nothing more will come.
    Gone,
}

/// Serves `stream` until it ends, or until something comes over it that is not served here.
pub(in crate::proxy::net) async fn serve<S: Service>(
    stream: TcpStream,
    info: &ConnInfo,
    shared: &Arc<Shared<S>>,
) -> Option<Handover> {
    let (reading, writing) = stream.into_split();
    let turn = Arc::new(Turn::default());
    let info = info.in_turns(Arc::clone(&turn), true);
    let mut connection = Connection::<S> {
        reading: Some(reading),
        writing,
        input: BytesMut::new(),
        again: Again::default(),
        repeated: None,
        out: Outbox::default(),
        turn,
        back: Arc::default(),
        unread: false,
        has_lengths: false,
        calls: 0,
        armed: 0,
        idle: None,
        rest: None,
    };
    let mut drain = shared.drain.clone();
    let mut stopping = rarely(async move { drain.stopping().await });
    loop {
        let next = poll_fn(|cx| connection.poll_next(cx, (shared, &info), &mut stopping)).await;
        let (method, mut is_last, answered) = match next {
            Next::Repeated(request, body) => {
                let mut call = Box::pin(shared.service.answer_repeated(request, body));
                (Method::POST, false, poll_fn(|cx| connection.poll_call(cx, call.as_mut())).await?)
            }
            Next::Request(head) => {
                let (method, is_last) = (head.request.method().clone(), head.is_last);
                let request = connection.receive(head);
                let mut call = Box::pin(shared.service.answer(request, info.clone()));
                let response = poll_fn(|cx| connection.poll_call(cx, call.as_mut())).await?;
                (method, is_last, response.into())
            }
            Next::Gone => return None,
            Next::Unusual => return connection.hand_over(false),
            Next::Overdue => return connection.hand_over(true),
        };
        is_last |= shared.drain.is_leaving();
        match answered {
            Answered::Whole(whole) if !is_last => {
                whole.write(&mut connection.out);
                poll_fn(|cx| connection.poll_written(cx)).await.ok()?;
            }
            answered => {
                let mut reply = Reply::new(answered.into_response(), &method, is_last, &mut connection.out);
                poll_fn(|cx| connection.poll_reply(cx, &mut reply)).await.ok()?;
                is_last = reply.is_last;
            }
        }
        connection.out = Outbox::default();
        poll_fn(|cx| connection.poll_recover(cx)).await;
        if connection.unread || is_last {
            connection.close().await;
            return None;
        }
    }
}

impl<S: Service> Connection<S> {
    /// Waits for the next head.
    fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
        (shared, info): (&Shared<S>, &ConnInfo),
        stopping: &mut (impl Future<Output = ()> + Unpin),
    ) -> Poll<Next<S::Route>> {
        let limits = &*shared.limits;
        loop {
            if !self.input.is_empty()
                && let Some(next) = self.next(limits, (&shared.service, info))
            {
                self.rest = None;
                return Poll::Ready(next);
            }
            if self.input.is_empty() && Pin::new(&mut *stopping).poll(cx).is_ready() {
                return Poll::Ready(Next::Gone);
            }
            let Some(reading) = &mut self.reading else { return Poll::Ready(Next::Gone) };
            match poll_read(reading, cx, &mut self.input, read::FEW) {
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Next::Gone),
                Poll::Ready(Ok(_)) => {}
                Poll::Pending if self.input.is_empty() => {
                    return self.poll_idle(cx, limits.idle_timeout).map(|()| Next::Gone);
                }
                Poll::Pending => {
                    let (rest, _) = self.rest.get_or_insert_with(|| (Box::pin(sleep(limits.head_timeout)), 0));
                    return rest.as_mut().poll(cx).map(|()| Next::Overdue);
                }
            }
        }
    }

    /// What the bytes that were read are; `None` if that cannot be known yet.
    fn next(&mut self, limits: &Limits, asked: (&S, &ConnInfo)) -> Option<Next<S::Route>> {
        if let Some(Found { known, end, length }) = self.again.find(&self.input) {
            let head = Arc::clone(known);
            return Some(match length.and_then(|length| self.repeated(&head, (end, length), asked)) {
                Some(repeated) => repeated,
                None => {
                    self.input.advance(end);
                    Next::Request(head.with_length(length))
                }
            });
        }
        let seen = self.rest.as_ref().map_or(0, |(_, seen)| *seen);
        match end_of_head(&self.input, seen) {
            None if self.input.len() >= limits.head_size => Some(Next::Unusual),
            // Later looks are for the end alone: a head may come byte by byte.
            None if self.rest.is_none() && head::is_wrong(&self.input) => Some(Next::Unusual),
            None => {
                let seen = self.input.len();
                if let Some((_, looked_at)) = &mut self.rest {
                    *looked_at = seen;
                }
                None
            }
            Some(end) if end > limits.head_size => Some(Next::Unusual),
            Some(end) => {
                let bytes = Bytes::copy_from_slice(self.input.get(..end)?);
                let Some(head) = head::request(&bytes, limits.headers) else { return Some(Next::Unusual) };
                if self.again.note(&bytes, &head) {
                    self.repeated = None;
                }
                self.input.advance(end);
                Some(Next::Request(head))
            }
        }
    }

    /// The next request, whose head is known and ends at `end`, if there is a route for this head and all of the body is here.
    fn repeated(
        &mut self,
        known: &Arc<Known<RequestHead>>,
        (end, length): (usize, u64),
        (service, info): (&S, &ConnInfo),
    ) -> Option<Next<S::Route>> {
        let length = usize::try_from(length).ok().filter(|length| *length > 0)?;
        if self.input.len() - end < length || known.read.is_last || known.read.request.method() != Method::POST {
            return None;
        }
        let ask = || service.route(&known.read.request, info).map(|route| Repeated::new(known, route));
        let repeated = self.repeated.get_or_insert_with(ask).clone()?;
        self.input.advance(end);
        self.calls += 1;
        self.has_lengths = true;
        Some(Next::Repeated(repeated, self.take_body(length)))
    }

    /// Ready when no request has come for the time that is given for one, and at most for twice that.
    fn poll_idle(&mut self, cx: &mut Context<'_>, limit: Duration) -> Poll<()> {
        let idle = self.idle.get_or_insert_with(|| Box::pin(sleep(limit)));
        loop {
            ready!(idle.as_mut().poll(cx));
            if self.armed == self.calls {
                return Poll::Ready(());
            }
            self.armed = self.calls;
            idle.set(sleep(limit));
        }
    }

    /// The request with its body: what is there of it, and the way to the rest.
    fn receive(&mut self, head: RequestHead) -> Request<Body> {
        self.calls += 1;
        self.has_lengths |= head.states_length;
        let there = usize::try_from(head.length).unwrap_or(usize::MAX).min(self.input.len());
        let missing = head.length.saturating_sub(u64::try_from(there).unwrap_or(u64::MAX));
        let body = self.take_body(there);
        let body = match self.reading.take_if(|_| missing > 0) {
            Some(reading) => Body::received(Received::new(reading, body, missing, Arc::clone(&self.back))),
            None => Body::full(body),
        };
        head.request.map(|()| body)
    }

    /// Takes so many bytes of a body that are there.
    fn take_body(&mut self, there: usize) -> Bytes {
        if there <= KEPT {
            take_copy(&mut self.input, there)
        } else if there == self.input.len() {
            std::mem::take(&mut self.input).freeze()
        } else {
            self.input.split_to(there).freeze()
        }
    }

    /// Waits for the answer; ready with `None` if the dispatcher goes away first.
    fn poll_call<F: Future>(&mut self, cx: &mut Context<'_>, call: Pin<&mut F>) -> Poll<Option<F::Output>> {
        if let Poll::Ready(response) = call.poll(cx) {
            // What is left of them stands before the answer.
            while let Some(interim) = self.interim() {
                self.out.push(interim);
            }
            return Poll::Ready(Some(response));
        }
        loop {
            // Only so many wait for a slow dispatcher.
            if self.out.is_empty()
                && let Some(interim) = self.interim()
            {
                self.out.push(interim);
            }
            match self.out.poll_write(cx, &mut self.writing) {
                Poll::Ready(Ok(())) if self.turn.interim.is_waiting() => {}
                Poll::Ready(Ok(())) | Poll::Pending => return self.poll_gone(cx).map(|()| None),
                Poll::Ready(Err(_)) => return Poll::Ready(None),
            }
        }
    }

    /// Interim answers that are to be written.
    fn interim(&self) -> Option<Bytes> {
        if self.turn.interim.is_waiting() { self.turn.interim.take() } else { None }
    }

    /// Writes the answer to its end.
    fn poll_reply(&mut self, cx: &mut Context<'_>, reply: &mut Reply) -> Poll<io::Result<()>> {
        loop {
            let filled = reply.fill(cx, &mut self.out);
            let written = self.out.poll_write(cx, &mut self.writing)?;
            match (filled, written) {
                (Filled::Whole, Poll::Ready(())) => return Poll::Ready(Ok(())),
                (Filled::Broken, Poll::Ready(())) => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
                (Filled::Enough, Poll::Ready(())) => {}
                (Filled::Waits, _) => return self.poll_gone(cx).map(|()| Err(io::ErrorKind::BrokenPipe.into())),
                (_, Poll::Pending) => return Poll::Pending,
            }
        }
    }

    /// Writes all that is to be written.
    fn poll_written(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.out.poll_write(cx, &mut self.writing)
    }

    /// Ready when the dispatcher has closed the connection, or its sending side. Looks no further than to what it sends
    /// before its turn.
    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        ready!(self.poll_recover(cx));
        let Some(reading) = self.reading.as_mut().filter(|_| !self.unread && self.input.is_empty()) else {
            return Poll::Pending;
        };
        match ready!(poll_read(reading, cx, &mut self.input, read::FEW)) {
            Ok(0) | Err(_) => Poll::Ready(()),
            Ok(_) => Poll::Pending,
        }
    }

    /// Ready when the reading half is here: the request's body is over.
    fn poll_recover(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.reading.is_none() {
            let Brought { io, complete } = ready!(self.back.poll_take(cx));
            self.reading = Some(io);
            self.unread = !complete;
        }
        Poll::Ready(())
    }

    /// Closes so that what was written last still arrives where the dispatcher may be sending.
    async fn close(&mut self) {
        let _ = self.writing.shutdown().await;
        let may_be_sent_more = self.unread || !self.input.is_empty();
        let Some(reading) = self.reading.as_mut().filter(|_| may_be_sent_more) else { return };
        let rest = poll_fn(|cx| {
            while ready!(poll_read(reading, cx, &mut self.input, read::FEW)).is_ok_and(|n| n > 0) {
                self.input.clear();
            }
            Poll::Ready(())
        });
        let _ = tokio::time::timeout(LINGER, rest).await;
    }

    fn hand_over(self, overdue: bool) -> Option<Handover> {
        let stream = self.reading?.reunite(self.writing).ok()?;
        Some(Handover { stream, read: self.input.freeze(), overdue, has_lengths: self.has_lengths })
    }
}
