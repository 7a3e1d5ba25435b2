//! Reading from a socket without holding memory while nothing comes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::io::AsyncRead;
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;
use tokio_util::io::poll_read_buf;

/// Room for a head and a body of the usual size.
pub(super) const FEW: usize = 16 * 1024;

/// Room where much is to come.
const MANY: u64 = 128 * 1024;

/// Less room than this is not worth a read.
const WORTH_READING: usize = 1024;

/// A socket that tells whether a read is worth trying.
pub(super) trait Readable: AsyncRead + Unpin {
    /// Ready when it is.
    fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
}

impl Readable for TcpStream {
    fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_read_ready(cx)
    }
}

impl Readable for OwnedReadHalf {
    fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.as_ref().poll_read_ready(cx)
    }
}

/// How much to read at once when `missing` bytes are to come.
pub(super) fn most(missing: u64) -> usize {
    usize::try_from(missing.min(MANY)).unwrap_or(FEW)
}

/// Reads at most `room` bytes to the end of `buffer`, which takes memory only when there is something to read. 0 is the end.
pub(super) fn poll_read<R: Readable>(
    io: &mut R,
    cx: &mut Context<'_>,
    buffer: &mut BytesMut,
    room: usize,
) -> Poll<io::Result<usize>> {
    let ready = io.poll_ready(cx)?;
    if ready.is_pending() {
        give_back(buffer);
        return Poll::Pending;
    }
    if buffer.capacity() - buffer.len() < room.min(WORTH_READING) {
        buffer.reserve(room);
    }
    let polled = poll_read_buf(Pin::new(io), cx, &mut buffer.limit(room));
    give_back(buffer);
    polled
}

/// A buffer that holds nothing is not kept.
fn give_back(buffer: &mut BytesMut) {
    if buffer.is_empty() {
        *buffer = BytesMut::new();
    }
}

/// Takes the first `n` bytes into memory of their own: whoever keeps a part of them keeps no more than them.
pub(super) fn take_copy(buffer: &mut BytesMut, n: usize) -> Bytes {
    let bytes = Bytes::copy_from_slice(buffer.get(..n).unwrap_or(buffer));
    buffer.advance(bytes.len());
    bytes
}
