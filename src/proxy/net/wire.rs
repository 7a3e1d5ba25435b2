//! The socket of an HTTP/1.1 dispatcher, with what hyper's server leaves to its caller: the time limits between and
//! inside heads (408), the text of refusals that hyper answers bare (400, 414, 431), interim answers (1xx), and a close that
//! does not destroy an answer which the dispatcher has not read yet.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

use super::interim::Interim;
use super::lengths::Lengths;
use super::limits::Limits;
use super::own::Refusal;

/// How long a closing connection still reads, so that the peer sees the answer and not a reset (RFC 9112, 9.6).
pub(super) const LINGER: Duration = Duration::from_secs(1);

/// Whose turn it is on a connection: the dispatcher's (to send a head) or ours.
#[derive(Debug, Default)]
pub(super) struct Turn {
    busy: AtomicUsize,
    calls: AtomicU64,
    upgraded: AtomicBool,
    unread: AtomicBool,
    has_lengths: AtomicBool,
    pub(super) interim: Interim,
}

/// A call is in progress as long as one of these lives.
#[derive(Debug)]
pub(super) struct Busy {
    turn: Arc<Turn>,
    /// It goes with a request's body of which something is still to come.
    unread: bool,
}

impl Turn {
    /// A request head has arrived.
    pub(super) fn begin(self: &Arc<Self>) -> Busy {
        self.calls.fetch_add(1, Ordering::AcqRel);
        self.busy.fetch_add(1, Ordering::AcqRel);
        Busy { turn: Arc::clone(self), unread: false }
    }

    /// From now on the bytes are not HTTP.
    pub(super) fn upgrade(&self) {
        self.upgraded.store(true, Ordering::Release);
    }

    /// Requests so far.
    pub(super) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Acquire)
    }

    /// No call is in progress.
    pub(super) fn is_idle(&self) -> bool {
        self.busy.load(Ordering::Acquire) == 0
    }

    /// Whether a line of the connection ever began as a `Content-Length` field does.
    pub(super) fn has_lengths(&self) -> bool {
        self.has_lengths.load(Ordering::Acquire)
    }

    /// The connection has stated a length.
    pub(super) fn state_lengths(&self) {
        self.has_lengths.store(true, Ordering::Release);
    }

    fn is_upgraded(&self) -> bool {
        self.upgraded.load(Ordering::Acquire)
    }
}

impl Busy {
    /// Another of the same call, for its request's body.
    pub(super) fn for_body(&self, unread: bool) -> Busy {
        self.turn.busy.fetch_add(1, Ordering::AcqRel);
        Busy { turn: Arc::clone(&self.turn), unread }
    }

    /// The body has been read to its end.
    pub(super) fn body_read(&mut self) {
        self.unread = false;
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        if self.unread {
            self.turn.unread.store(true, Ordering::Release);
        }
        self.turn.busy.fetch_sub(1, Ordering::AcqRel);
    }
}

/// What a connection waits for, and is not waited for without end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    Request,
    RestOfHead,
}

/// Armed once and left alone while calls come and go: arming it anew for each would cost more than parsing its head.
#[derive(Debug)]
struct Timer {
    wait: Wait,
    /// The calls that had been made when it was armed.
    calls: u64,
    sleep: Pin<Box<Sleep>>,
}

/// The socket.
#[derive(Debug)]
pub(super) struct Wire {
    io: TcpStream,
    /// Bytes that were read before hyper took over.
    prefix: Bytes,
    turn: Arc<Turn>,
    limits: Arc<Limits>,
    lengths: Lengths,
    /// An interim answer of which something is still to be written.
    interim: Bytes,
    seen_calls: u64,
    /// Some of the next head has been read.
    partial: bool,
    /// An answer of the service is due or being written: what hyper writes is not its own refusal.
    owed: bool,
    eof: bool,
    timer: Option<Timer>,
    /// Our words in place of hyper's, and what is then reported.
    last_words: Option<Bytes>,
    linger: Option<Pin<Box<Sleep>>>,
}

impl Wire {
    pub(super) fn new(io: TcpStream, prefix: Bytes, turn: Arc<Turn>, limits: Arc<Limits>) -> Wire {
        Wire {
            io,
            prefix,
            turn,
            limits,
            lengths: Lengths::default(),
            interim: Bytes::new(),
            seen_calls: 0,
            partial: false,
            owed: false,
            eof: false,
            timer: None,
            last_words: None,
            linger: None,
        }
    }

    /// Ends the connection with these words once hyper reads on.
    pub(super) fn refuse(&mut self, refusal: Refusal) {
        self.last_words = Some(refusal.wire(&self.limits));
    }

    fn catch_up(&mut self) {
        let calls = self.turn.calls();
        if calls != self.seen_calls {
            self.seen_calls = calls;
            self.partial = false;
            self.owed = true;
        }
    }

    fn waits_for_head(&self) -> bool {
        self.turn.is_idle() && !self.turn.is_upgraded()
    }

    /// The dispatcher may still be sending: closing now would reset the connection under the answer.
    fn may_be_sent_more(&self) -> bool {
        !self.turn.is_upgraded()
            && (self.partial || self.last_words.is_some() || self.turn.unread.load(Ordering::Acquire))
    }

    /// Ready when the dispatcher has had its time.
    fn poll_overdue(&mut self, cx: &mut Context<'_>) -> Poll<Wait> {
        let wait = if self.partial { Wait::RestOfHead } else { Wait::Request };
        let limit = match wait {
            Wait::Request => self.limits.idle_timeout,
            Wait::RestOfHead => self.limits.head_timeout,
        };
        let calls = self.seen_calls;
        let timer = self.timer.get_or_insert_with(|| Timer { wait, calls, sleep: Box::pin(tokio::time::sleep(limit)) });
        let mut stale = timer.wait != wait;
        loop {
            if stale {
                timer.sleep.set(tokio::time::sleep(limit));
                (timer.wait, timer.calls) = (wait, calls);
            }
            ready!(timer.sleep.as_mut().poll(cx));
            if timer.calls == calls {
                return Poll::Ready(wait);
            }
            stale = true;
        }
    }

    /// Writes `last_words` to the end.
    fn poll_last_words(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(words) = self.last_words.as_mut().filter(|w| !w.is_empty()) {
            let n = ready!(Pin::new(&mut self.io).poll_write(cx, words))?;
            words.advance(n.min(words.len()));
        }
        Poll::Ready(Ok(()))
    }

    /// Looks at bytes that hyper is about to read.
    fn look_at(&mut self, bytes: &[u8]) {
        if !self.turn.has_lengths() && !self.turn.is_upgraded() && self.lengths.found_in(bytes) {
            self.turn.state_lengths();
        }
    }

    /// Writes what is left of interim answers that have been begun.
    fn poll_begun_interim(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.interim.is_empty() {
            let n = ready!(Pin::new(&mut self.io).poll_write(cx, &self.interim))?;
            if n == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.interim.advance(n);
        }
        Poll::Ready(Ok(()))
    }

    /// Writes all interim answers. Only where hyper has nothing buffered: it gets no final answer before this is done.
    fn poll_interim(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.turn.interim.is_waiting() {
            ready!(self.poll_begun_interim(cx))?;
            self.interim = self.turn.interim.take().unwrap_or_default();
        }
        Poll::Ready(Ok(()))
    }

    /// Whether `head` is a refusal that hyper writes by itself, to be replaced by ours.
    fn is_bare_refusal(&self, head: &[u8]) -> bool {
        !self.owed && !self.turn.is_upgraded() && head.starts_with(b"HTTP/1.1 4")
    }

    /// Writes our words for hyper's `head` of `len` bytes; `None` when it is an ordinary write.
    fn poll_replaced(&mut self, cx: &mut Context<'_>, head: &[u8], len: usize) -> Option<Poll<io::Result<usize>>> {
        self.catch_up();
        if self.last_words.is_none() {
            if !self.is_bare_refusal(head) {
                return None;
            }
            let status = head.get(9..12).unwrap_or_default();
            self.last_words = Some(Refusal::of_status(status).wire(&self.limits));
        }
        Some(self.poll_last_words(cx).map(|done| done.map(|()| len)))
    }
}

impl AsyncRead for Wire {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.catch_up();
        if !this.prefix.is_empty() {
            let n = this.prefix.len().min(buf.remaining());
            let bytes = this.prefix.split_to(n);
            this.look_at(&bytes);
            buf.put_slice(&bytes);
            this.partial = true;
            return Poll::Ready(Ok(()));
        }
        if this.last_words.is_none() {
            let before = buf.filled().len();
            if Pin::new(&mut this.io).poll_read(cx, buf)?.is_ready() {
                this.eof = buf.filled().len() == before;
                this.look_at(buf.filled().get(before..).unwrap_or_default());
                this.partial |= !this.eof && this.waits_for_head();
                return Poll::Ready(Ok(()));
            }
            if !this.waits_for_head() {
                return Poll::Pending;
            }
            match ready!(this.poll_overdue(cx)) {
                Wait::Request => {
                    this.eof = true;
                    return Poll::Ready(Ok(()));
                }
                Wait::RestOfHead => this.last_words = Some(Refusal::HeadTimeout.wire(&this.limits)),
            }
        }
        ready!(this.poll_last_words(cx))?;
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        ready!(this.poll_begun_interim(cx))?;
        match this.poll_replaced(cx, buf, buf.len()) {
            Some(replaced) => replaced,
            None => Pin::new(&mut this.io).poll_write(cx, buf),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        ready!(this.poll_begun_interim(cx))?;
        let head = bufs.first().map(|b| &**b).unwrap_or_default();
        match this.poll_replaced(cx, head, bufs.iter().map(|b| b.len()).sum()) {
            Some(replaced) => replaced,
            None => Pin::new(&mut this.io).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(Pin::new(&mut this.io).poll_flush(cx))?;
        ready!(this.poll_interim(cx))?;
        this.catch_up();
        // hyper flushes when its buffer is empty: with no call in progress, all that was owed is written.
        if this.waits_for_head() {
            this.owed = false;
            // hyper may not ask for the next head before there is one: the wait for it begins here.
            if this.poll_overdue(cx).is_ready() {
                cx.waker().wake_by_ref();
            }
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.linger.is_none() {
            ready!(Pin::new(&mut this.io).poll_shutdown(cx))?;
        }
        if this.eof || !this.may_be_sent_more() {
            return Poll::Ready(Ok(()));
        }
        let mut scratch = [0_u8; 4096];
        loop {
            let mut buf = ReadBuf::new(&mut scratch);
            match Pin::new(&mut this.io).poll_read(cx, &mut buf) {
                Poll::Ready(Ok(())) if !buf.filled().is_empty() => {}
                Poll::Ready(_) => return Poll::Ready(Ok(())),
                Poll::Pending => break,
            }
        }
        let linger = this.linger.get_or_insert_with(|| Box::pin(tokio::time::sleep(LINGER)));
        linger.as_mut().poll(cx).map(Ok)
    }
}
