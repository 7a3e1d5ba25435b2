//! What is still to be written to a socket: small pieces behind one another in one buffer, large ones as they are.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::AsyncWrite;

/// Up to this, a piece is copied behind what is there: one buffer is cheaper to write than several.
const COPIED: usize = 4096;

/// How many pieces go out in one write.
const SLICES: usize = 16;

/// Bytes on their way out, in their order.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    /// Before all that is in `tail`.
    queue: VecDeque<Bytes>,
    tail: BytesMut,
    queued: usize,
    written: u64,
}

impl Outbox {
    /// Where small things are written straight to.
    pub(super) fn tail(&mut self) -> &mut BytesMut {
        &mut self.tail
    }

    /// How much of a piece of so many bytes is copied behind what is there.
    pub(super) fn copied(len: usize) -> usize {
        if len <= COPIED { len } else { 0 }
    }

    /// Puts `bytes` at the end.
    pub(super) fn push(&mut self, bytes: Bytes) {
        if bytes.len() <= COPIED {
            self.tail.extend_from_slice(&bytes);
            return;
        }
        if !self.tail.is_empty() {
            let before = self.tail.split().freeze();
            self.queued += before.len();
            self.queue.push_back(before);
        }
        self.queued += bytes.len();
        self.queue.push_back(bytes);
    }

    /// Bytes that wait.
    pub(super) fn len(&self) -> usize {
        self.queued + self.tail.len()
    }

    /// Nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that the socket has taken so far.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Writes until nothing waits.
    pub(super) fn poll_write<W>(&mut self, cx: &mut Context<'_>, io: &mut W) -> Poll<io::Result<()>>
    where
        W: AsyncWrite + Unpin,
    {
        while !self.is_empty() {
            let n = if self.queue.is_empty() {
                ready!(Pin::new(&mut *io).poll_write(cx, &self.tail))?
            } else {
                let mut slices = [IoSlice::new(&[]); SLICES];
                let pieces = self.queue.iter().map(|piece| &**piece).chain([&*self.tail]);
                for (slice, piece) in slices.iter_mut().zip(pieces) {
                    *slice = IoSlice::new(piece);
                }
                ready!(Pin::new(&mut *io).poll_write_vectored(cx, &slices))?
            };
            if n == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.advance(n);
        }
        Poll::Ready(Ok(()))
    }

    fn advance(&mut self, mut n: usize) {
        self.written += u64::try_from(n).unwrap_or_default();
        while n > 0
            && let Some(first) = self.queue.front_mut()
        {
            let part = first.len().min(n);
            first.advance(part);
            self.queued -= part;
            n -= part;
            if first.is_empty() {
                self.queue.pop_front();
            }
        }
        self.tail.advance(n.min(self.tail.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;

    proptest::proptest! {
        #[test]
        fn what_is_put_in_comes_out_in_its_order_through_a_socket_of_any_width(
            sizes in proptest::collection::vec(0_usize..3 * COPIED, 0..40), width in 1_usize..20_000,
        ) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(async {
                let (mut near, mut far) = tokio::io::duplex(width);
                let mut outbox = Outbox::default();
                let mut expected = Vec::new();
                for (n, size) in sizes.iter().enumerate() {
                    let piece = vec![b'a' + u8::try_from(n % 26).unwrap(); *size];
                    expected.extend_from_slice(&piece);
                    if n % 3 == 0 { outbox.tail().extend_from_slice(&piece) } else { outbox.push(piece.into()) }
                }
                assert_eq!(outbox.len(), expected.len());
                let read = tokio::spawn(async move {
                    let mut got = Vec::new();
                    far.read_to_end(&mut got).await.unwrap();
                    got
                });
                std::future::poll_fn(|cx| outbox.poll_write(cx, &mut near)).await.unwrap();
                assert_eq!(outbox.written(), expected.len() as u64);
                drop(near);
                assert_eq!(read.await.unwrap(), expected);
            });
        }
    }
}
