//! Calls over HTTP/1.1 connections to a backend: one at a time, driven by whoever holds it, without a task or a timer of
//! its own.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use http::{HeaderMap, Method, Request, StatusCode, Version};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::again::{Again, Found, Known};
use super::alarm::{Alarm, due_in};
use super::answer::Answer;
use super::head::{self, AnswerHead, Framing, NoHead, end_of_head};
use super::read::{self, poll_read, take_copy};
use super::repeated::{Finished, Whole};
use super::sending::{Outgoing, Sending, Trouble};
use crate::clock::Clock;
use crate::proxy::net::answer::REST_STALL;
use crate::proxy::net::body::Body;
use crate::proxy::net::fault::Fault;
use crate::proxy::net::interim::Relay;
use crate::proxy::net::pool::{Pool, Pooled};
use crate::proxy::net::rarely::{Rarely, rarely};
use crate::proxy::net::service::Answered;
use crate::proxy::net::upstream::UpstreamSettings;
use crate::proxy::net::watch::Open;
use crate::proxy::net::wire::Turn;
use crate::rules::TransportFault;

/// How every answer begins.
const VERSION: &[u8] = b"HTTP/1.";

/// The connections to one backend.
#[derive(Debug)]
pub(in crate::proxy::net) struct Lines {
    pub(super) idle: Arc<Pool<Line>>,
    max_head: usize,
    max_headers: usize,
    /// Ends every connection.
    cut: CancellationToken,
}

/// A connection. Dropped, it is closed.
pub(in crate::proxy::net) struct Line {
    io: TcpStream,
    _open: Open,
    cut: Rarely<WaitForCancellationFutureOwned>,
    alarm: Alarm,
    again: Again<AnswerHead>,
    /// How the head that came again goes on, if that is known: `None` in it where each has to be framed by itself.
    finished: Option<Option<Arc<Finished>>>,
}

/// A request that is to be sent.
#[derive(Debug)]
pub(in crate::proxy::net) struct Call {
    method: Method,
    sending: Sending,
    /// How long the head of the answer may take once all is sent, or something of it last was.
    head_timeout: Option<Duration>,
    /// Takes interim answers.
    turn: Option<Arc<Turn>>,
}

/// Takes out of an answer's head what is not for the dispatcher.
pub(in crate::proxy::net) type Finish<'a> = dyn Fn(&mut HeaderMap) -> Result<(), Fault> + Sync + 'a;

/// The head of an answer: one that came before, or a new one.
#[derive(Debug)]
enum Came {
    Again(Arc<Known<AnswerHead>>),
    New(AnswerHead),
}

impl Came {
    fn read(&self) -> &AnswerHead {
        match self {
            Came::Again(known) => &known.read,
            Came::New(head) => head,
        }
    }
}

/// How a call over one connection fails.
#[derive(Debug)]
pub(in crate::proxy::net) enum Failed {
    /// The connection took none of it: it may be sent over another.
    Unsent(Box<Call>, Fault),
    Fault(Fault),
}

/// A call in progress over its connection.
#[derive(Debug)]
pub(super) struct Exchange {
    line: Line,
    sending: Sending,
    /// The connection takes no more of the request, though an answer may have come.
    is_broken: bool,
    /// What was read and not used.
    pub(super) input: BytesMut,
}

impl Lines {
    pub(in crate::proxy::net) fn new(
        settings: &UpstreamSettings,
        clock: Arc<dyn Clock>,
        cut: CancellationToken,
    ) -> Lines {
        let UpstreamSettings { max_head, max_headers, .. } = *settings;
        Lines { idle: Arc::new(Pool::new(settings, clock)), max_head, max_headers, cut }
    }

    /// The connection that was used last, if one is ready.
    pub(in crate::proxy::net) fn take(&self) -> Option<Line> {
        self.idle.take()
    }

    /// A new connection over `io`.
    pub(in crate::proxy::net) fn open(&self, io: TcpStream, open: Open) -> Line {
        Line {
            io,
            _open: open,
            cut: rarely(self.cut.clone().cancelled_owned()),
            alarm: Alarm::default(),
            again: Again::default(),
            finished: None,
        }
    }

    /// How many connections wait for a call.
    pub(in crate::proxy::net) fn idle_count(&self) -> usize {
        self.idle.idle_count()
    }

    /// Sends `call` over `line` and waits for the head of its answer. An answer whose head came before and that may go on
    /// as `finish` leaves its head comes as a [`Whole`], if it is all here.
    pub(in crate::proxy::net) async fn carry(
        &self,
        line: Line,
        call: Box<Call>,
        finish: Option<&Finish<'_>>,
    ) -> Result<Answered, Failed> {
        let Call { method, sending, head_timeout, turn } = *call;
        let mut exchange = Exchange { line, sending, is_broken: false, input: BytesMut::new() };
        let mut due = None;
        let head = poll_fn(|cx| match exchange.poll_head(cx, self, &method, turn.as_ref()) {
            Poll::Pending => exchange.poll_overdue(cx, head_timeout, &mut due).map(Err),
            done => done,
        });
        match head.await {
            Ok((head, length)) => Ok(exchange.answer(head, length, (finish, &self.idle))),
            Err(fault) if exchange.is_broken && !exchange.sending.has_begun() => {
                let call = Call { method, sending: exchange.sending, head_timeout, turn };
                Err(Failed::Unsent(Box::new(call), fault))
            }
            Err(fault) => Err(Failed::Fault(fault)),
        }
    }

    fn head_too_large(&self) -> Fault {
        Fault::head_too_large(self.max_head, self.max_headers)
    }
}

impl Call {
    /// `request`, if the length of its body is known.
    pub(in crate::proxy::net) fn new(
        request: Request<Body>,
        length: u64,
        head_timeout: Option<Duration>,
        turn: Option<Arc<Turn>>,
    ) -> Box<Call> {
        let (parts, body) = request.into_parts();
        let method = parts.method.clone();
        Box::new(Call { method, sending: Sending::new(parts, body, length), head_timeout, turn })
    }

    /// A request whose head was made before, and all of its body.
    pub(in crate::proxy::net) fn repeated(
        head: &Outgoing,
        body: Bytes,
        head_timeout: Option<Duration>,
        turn: Option<Arc<Turn>>,
    ) -> Box<Call> {
        Box::new(Call { method: head.method.clone(), sending: Sending::repeated(head, body), head_timeout, turn })
    }
}

impl Line {
    /// How the known head goes on, if it goes on the same way each time.
    fn finished(&mut self, known: &Known<AnswerHead>, finish: &Finish<'_>) -> Option<Arc<Finished>> {
        let make = || {
            let mut head = known.read.clone();
            *head.response.version_mut() = Version::HTTP_11;
            finish(head.response.headers_mut()).ok()?;
            Finished::of(head).map(Arc::new)
        };
        self.finished.get_or_insert_with(make).clone()
    }
}

impl Pooled for Line {
    fn is_ready(&mut self) -> bool {
        // Nothing may come between two calls, not even the end.
        self.io.poll_read_ready(&mut Context::from_waker(Waker::noop())).is_pending()
            || self.io.try_read(&mut [0]).is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }
}

impl Exchange {
    fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        lines: &Lines,
        method: &Method,
        turn: Option<&Arc<Turn>>,
    ) -> Poll<Result<(Came, Option<u64>), Fault>> {
        self.poll_send(cx)?;
        loop {
            while let Some((head, length)) = self.next_head(lines, method)? {
                match head.read().response.status() {
                    StatusCode::SWITCHING_PROTOCOLS => {
                        return Poll::Ready(Err(protocol("the backend switched protocols unasked")));
                    }
                    status if status.is_informational() => {
                        if let Some(turn) = turn {
                            let relay = Relay::of(Arc::clone(turn), cx.waker().clone());
                            relay.pass(status, head.read().response.headers());
                        }
                    }
                    _ => return Poll::Ready(Ok((head, length))),
                }
            }
            let before = "the connection broke before the answer's head";
            match ready!(self.poll_more(cx, read::FEW)) {
                Ok(0) => return Poll::Ready(Err(self.reset(&format!("{before}: unexpected end of file")))),
                Ok(_) => {}
                Err(error) => return Poll::Ready(Err(self.reset(&format!("{before}: {}", error.kind())))),
            }
        }
    }

    /// The next head, if all of it is there, and the length that it states where it came before.
    fn next_head(&mut self, lines: &Lines, method: &Method) -> Result<Option<(Came, Option<u64>)>, Fault> {
        // What is asked for with HEAD states a length that is not its own.
        let is_usual = *method != Method::HEAD;
        if is_usual && let Some(Found { known, end, length }) = self.line.again.find(&self.input) {
            let known = Arc::clone(known);
            self.input.advance(end);
            return Ok(Some((Came::Again(known), length)));
        }
        while let Some(end) = end_of_head(&self.input, 0) {
            if end > lines.max_head {
                return Err(lines.head_too_large());
            }
            let bytes = take_copy(&mut self.input, end);
            match head::answer(&bytes, method, lines.max_headers) {
                Ok(head) => {
                    if is_usual && self.line.again.note(&bytes, &head) {
                        self.line.finished = None;
                    }
                    return Ok(Some((Came::New(head), None)));
                }
                // Empty lines before it.
                Err(NoHead::Partial) => {}
                Err(NoHead::TooManyFields) => return Err(lines.head_too_large()),
                Err(NoHead::Malformed) => return Err(malformed()),
            }
        }
        if self.input.len() > lines.max_head {
            return Err(lines.head_too_large());
        }
        let begun = self.input.trim_ascii_start();
        if begun.iter().zip(VERSION).any(|(is, must)| is != must) {
            return Err(malformed());
        }
        Ok(None)
    }

    /// Sends on what is still to be sent.
    pub(super) fn poll_send(&mut self, cx: &mut Context<'_>) -> Result<(), Fault> {
        if Pin::new(&mut self.line.cut).poll(cx).is_ready() {
            return Err(self.reset("the connection was taken away"));
        }
        if self.is_broken || self.sending.is_done() {
            return Ok(());
        }
        match self.sending.poll_send(cx, &mut self.line.io) {
            Poll::Ready(Err(Trouble::Body(fault))) => Err(fault),
            Poll::Ready(Err(Trouble::Connection(error))) => {
                self.is_broken = true;
                // There may be an answer that says why, but not to what was never sent.
                if self.sending.has_begun() {
                    return Ok(());
                }
                Err(self.reset(&format!("the connection broke before the answer's head: {}", error.kind())))
            }
            Poll::Ready(Ok(())) | Poll::Pending => Ok(()),
        }
    }

    /// Reads at most `room` bytes more. 0 is the end.
    pub(super) fn poll_more(&mut self, cx: &mut Context<'_>, room: usize) -> Poll<io::Result<usize>> {
        poll_read(&mut self.line.io, cx, &mut self.input, room)
    }

    /// Ready with the fault when the head has taken too long.
    fn poll_overdue(
        &mut self,
        cx: &mut Context<'_>,
        limit: Option<Duration>,
        due: &mut Option<Instant>,
    ) -> Poll<Fault> {
        let Some(limit) = limit else { return Poll::Pending };
        if self.sending.has_moved() {
            *due = None;
        }
        ready!(self.line.alarm.poll(cx, *due.get_or_insert_with(|| due_in(limit))));
        Poll::Ready(if self.sending.is_starved() { Fault::starved(limit) } else { Fault::silent(limit) })
    }

    /// The answer whose head has arrived.
    fn answer(
        mut self,
        head: Came,
        length: Option<u64>,
        (finish, idle): (Option<&Finish<'_>>, &Arc<Pool<Line>>),
    ) -> Answered {
        let there = u64::try_from(self.input.len()).unwrap_or_default();
        let head = match (head, length.filter(|length| (1..=there).contains(length)), finish) {
            (Came::Again(known), Some(length), Some(finish)) => match self.line.finished(&known, finish) {
                Some(head) => {
                    let body = self.take(length);
                    self.release(known.read.keeps, idle);
                    return Answered::Whole(Whole::new(head, body));
                }
                None => known.with_length(Some(length)),
            },
            (Came::Again(known), ..) => known.with_length(length),
            (Came::New(head), ..) => head,
        };
        let AnswerHead { response, framing, keeps } = head;
        let body = match framing {
            Framing::Length(length) if length <= there => {
                let whole = self.take(length);
                self.release(keeps, idle);
                Body::full(whole)
            }
            _ => Body::plain(Answer::new(self, framing, keeps, Arc::clone(idle))),
        };
        response.map(|()| body).into()
    }

    /// Takes at most `most` bytes of what was read.
    pub(super) fn take(&mut self, most: u64) -> Bytes {
        match usize::try_from(most) {
            Ok(most) if most < self.input.len() => self.input.split_to(most).freeze(),
            _ => std::mem::take(&mut self.input).freeze(),
        }
    }

    /// The answer is complete. What is left of the request's body goes on, for the backend may still read it.
    pub(super) fn release(self, keeps: bool, idle: &Arc<Pool<Line>>) {
        // What came behind the answer belongs to nothing that was asked.
        if !keeps || self.is_broken || self.input.has_remaining() {
            return;
        }
        if self.sending.is_done() {
            idle.put(self.line);
        } else {
            tokio::spawn(self.send_rest(Arc::clone(idle)));
        }
    }

    /// Sends on until all is sent, or stands still for [`REST_STALL`].
    async fn send_rest(mut self, idle: Arc<Pool<Line>>) {
        loop {
            let before = self.sending.written();
            let sent = poll_fn(|cx| match self.poll_send(cx) {
                Ok(()) if self.sending.is_done() || self.is_broken => Poll::Ready(Ok(())),
                Ok(()) => Poll::Pending,
                Err(fault) => Poll::Ready(Err(fault)),
            });
            match tokio::time::timeout(REST_STALL, sent).await {
                Ok(Ok(())) if !self.is_broken => return idle.put(self.line),
                Ok(_) => return,
                Err(_) if self.sending.written() == before => return,
                Err(_) => {}
            }
        }
    }

    fn reset(&self, detail: &str) -> Fault {
        Fault::upstream(TransportFault::Reset, self.sending.has_begun(), detail)
    }
}

fn malformed() -> Fault {
    protocol("the head of the answer is not valid HTTP")
}

fn protocol(detail: &str) -> Fault {
    Fault::upstream(TransportFault::Protocol, true, detail)
}

impl std::fmt::Debug for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Line").field("io", &self.io).finish_non_exhaustive()
    }
}
