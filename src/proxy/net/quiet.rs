//! What an HTTP/2 peer sends, without the frames that say nothing.
//!
//! A `DATA` frame that is empty and does not end its stream is legal (RFC 9113, 6.1), and some implementations send one
//! with every message, or to keep a stream alive. The protocol library counts them over the whole life of a connection
//! and ends it, with all of its calls, at the 101st; that bound cannot be set. Taken out before the library reads, such
//! frames cost a look at nine bytes each, which leaves a flood of them nothing to gain.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncBufRead, AsyncRead, BufReader, ReadBuf};

/// Length (3 bytes), type, flags, stream (4 bytes): RFC 9113, 4.1.
const HEAD: usize = 9;
const END_STREAM: u8 = 0x1;
/// On an empty frame, padding is an error that the library is to see.
const PADDED: u8 = 0x8;

/// The reading side of an HTTP/2 connection.
#[derive(Debug)]
pub(super) struct Quiet<R> {
    inner: BufReader<R>,
    /// Bytes until the next frame begins.
    pass: usize,
    /// The head of a frame, as far as it has been read.
    head: Vec<u8>,
    /// The head is complete and on its way to the reader.
    decided: bool,
}

impl<R: AsyncRead> Quiet<R> {
    /// Reads from `inner`, whose first frame begins after `preface` bytes.
    pub(super) fn new(inner: R, preface: usize) -> Quiet<R> {
        Quiet { inner: BufReader::new(inner), pass: preface, head: Vec::with_capacity(HEAD), decided: false }
    }
}

impl<R> Quiet<R> {
    fn give_head(&mut self, buf: &mut ReadBuf<'_>) {
        if self.decided {
            let n = self.head.len().min(buf.remaining());
            for byte in self.head.drain(..n) {
                buf.put_slice(&[byte]);
            }
            self.decided = !self.head.is_empty();
        }
    }

    fn decide(&mut self) {
        let &[a, b, c, kind, flags, s1, s2, s3, s4] = self.head.as_slice() else { return };
        let (length, stream) = (u32::from_be_bytes([0, a, b, c]), u32::from_be_bytes([s1, s2, s3, s4]));
        if length == 0 && kind == 0 && flags & (END_STREAM | PADDED) == 0 && stream != 0 {
            self.head.clear();
        } else {
            self.pass = usize::try_from(length).unwrap_or(usize::MAX);
            self.decided = true;
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Quiet<R> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        loop {
            this.give_head(buf);
            let has_some = buf.filled().len() > before;
            if buf.remaining() == 0 || (has_some && this.inner.buffer().is_empty()) {
                return Poll::Ready(Ok(()));
            }
            let read = ready!(Pin::new(&mut this.inner).poll_fill_buf(cx))?;
            if read.is_empty() {
                return Poll::Ready(Ok(()));
            }
            let wanted = if this.pass > 0 { this.pass.min(buf.remaining()) } else { HEAD - this.head.len() };
            let part = read.get(..wanted).unwrap_or(read);
            let n = part.len();
            if this.pass > 0 {
                buf.put_slice(part);
                this.pass -= n;
            } else {
                this.head.extend_from_slice(part);
            }
            Pin::new(&mut this.inner).consume(n);
            if this.pass == 0 {
                this.decide();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;

    fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
        let length = u8::try_from(payload.len()).unwrap();
        [&[0, 0, length, kind, flags, 0, 0, 0, stream], payload].concat()
    }

    #[tokio::test]
    async fn only_frames_that_say_nothing_are_left_out_however_the_bytes_arrive() {
        let silent = frame(0, 0, 1, b"");
        let said = [
            frame(4, 0, 0, b""),
            frame(0, 0, 1, &silent),
            frame(0, END_STREAM, 1, b""),
            frame(0, PADDED, 1, b""),
            frame(0, PADDED, 1, b"\0"),
            frame(0, 0, 0, b""),
            frame(9, 0, 1, b""),
            frame(0, 0, 3, b"x"),
        ];
        let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        let mut sent = preface.clone();
        for frame in &said {
            sent.extend([silent.clone(), frame.clone(), silent.clone()].concat());
        }
        let expected = [preface.clone(), said.concat()].concat();
        for piece in [1, 2, 5, 9, 10, 1000] {
            for room in [1, 4, 8, 9, 1000] {
                let mut io = in_pieces(&sent, piece);
                let mut quiet = Quiet::new(&mut io, preface.len());
                let (mut got, mut some) = (Vec::new(), vec![0; room]);
                while let n @ 1.. = quiet.read(&mut some).await.unwrap() {
                    got.extend_from_slice(&some[..n]);
                }
                assert_eq!(got, expected, "pieces of {piece} into room for {room}");
            }
        }
    }

    /// A reader that gives `piece` bytes at a time.
    fn in_pieces(bytes: &[u8], piece: usize) -> impl AsyncRead + Unpin + use<> {
        let (read, mut write) = tokio::io::duplex(piece);
        let bytes = bytes.to_vec();
        tokio::spawn(async move { tokio::io::AsyncWriteExt::write_all(&mut write, &bytes).await });
        read
    }
}
