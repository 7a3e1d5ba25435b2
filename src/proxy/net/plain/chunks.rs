//! The chunked coding (RFC 9112, 7.1): undone strictly, and done.

use std::fmt::Write as _;

use bytes::{Buf, Bytes, BytesMut};
use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};

/// Bytes of chunk extensions in one body, and of its trailers.
const MOST_BESIDES: usize = 16 * 1024;

/// Fields of the trailers.
const MOST_TRAILERS: usize = 100;

/// The framing is broken.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Broken;

/// Undoes the coding of one body.
#[derive(Debug, Default)]
pub(super) struct Dechunk {
    state: State,
    /// Of the present chunk, what is still to come.
    size: u64,
    /// Bytes of extensions so far.
    extensions: usize,
    trailers: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Start,
    Size,
    /// White space behind the size.
    Space,
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    /// The beginning of a line behind the last chunk.
    LineStart,
    Trailer,
    TrailerLf,
    EndLf,
    End,
}

impl Dechunk {
    /// Takes what it can from `input` and gives the data in it, as one piece.
    ///
    /// # Errors
    /// When the framing is broken, and no data stands before that.
    pub(super) fn decode(&mut self, input: &mut BytesMut) -> Result<Bytes, Broken> {
        let (mut read, mut start, mut end) = (0, 0, 0);
        while self.state != State::End && read < input.len() {
            if self.state == State::Data {
                let n = usize::try_from(self.size).unwrap_or(usize::MAX).min(input.len() - read);
                if end == start {
                    // The first data stays where it is; what follows is moved up to it.
                    (start, end) = (read, read);
                }
                if end != read {
                    input.copy_within(read..read + n, end);
                }
                (read, end) = (read + n, end + n);
                self.size -= u64::try_from(n).unwrap_or(u64::MAX);
                if self.size == 0 {
                    self.state = State::DataCr;
                }
            } else if let Some(&byte) = input.get(read) {
                match self.step(byte) {
                    Ok(next) => self.state = next,
                    // What came before goes on; the byte is met again.
                    Err(Broken) if end > start => break,
                    broken => return broken.map(|_| Bytes::new()),
                }
                read += 1;
            }
        }
        input.advance(start);
        let data = input.split_to(end - start).freeze();
        input.advance(read - end);
        Ok(data)
    }

    /// The body is complete.
    pub(super) fn is_over(&self) -> bool {
        self.state == State::End
    }

    /// The fields behind the last chunk; `None` if there were none.
    ///
    /// # Errors
    /// When they are no fields.
    pub(super) fn trailers(&mut self) -> Result<Option<HeaderMap>, Broken> {
        if self.trailers.is_empty() {
            return Ok(None);
        }
        let mut bytes = std::mem::take(&mut self.trailers);
        bytes.extend_from_slice(b"\r\n");
        let mut fields = [httparse::EMPTY_HEADER; MOST_TRAILERS];
        let Ok(httparse::Status::Complete((_, fields))) = httparse::parse_headers(&bytes, &mut fields) else {
            return Err(Broken);
        };
        let mut trailers = HeaderMap::with_capacity(fields.len());
        for field in fields {
            let name = HeaderName::from_bytes(field.name.as_bytes()).map_err(|_| Broken)?;
            trailers.append(name, HeaderValue::from_bytes(field.value).map_err(|_| Broken)?);
        }
        Ok(Some(trailers))
    }

    fn step(&mut self, byte: u8) -> Result<State, Broken> {
        Ok(match (self.state, byte) {
            (State::Start | State::Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => self.digit(byte)?,
            (State::Size | State::Space, b' ' | b'\t') => State::Space,
            (State::Size | State::Space, b';') => State::Extension,
            (State::Size | State::Space | State::Extension, b'\r') => State::SizeLf,
            (State::Extension, byte) if byte != b'\n' => {
                self.extensions += 1;
                if self.extensions > MOST_BESIDES {
                    return Err(Broken);
                }
                State::Extension
            }
            (State::SizeLf, b'\n') if self.size == 0 => State::LineStart,
            (State::SizeLf, b'\n') => State::Data,
            (State::DataCr, b'\r') => State::DataLf,
            (State::DataLf, b'\n') => State::Start,
            (State::LineStart, b'\r') => State::EndLf,
            (State::Trailer, b'\r') => State::TrailerLf,
            (State::LineStart | State::Trailer, byte) if byte != b'\n' => self.trailer(byte, State::Trailer)?,
            (State::TrailerLf, b'\n') => {
                self.trailer(b'\r', State::LineStart)?;
                self.trailer(b'\n', State::LineStart)?
            }
            (State::EndLf, b'\n') => State::End,
            _ => return Err(Broken),
        })
    }

    fn digit(&mut self, byte: u8) -> Result<State, Broken> {
        let digit = char::from(byte).to_digit(16).ok_or(Broken)?;
        self.size = self.size.checked_mul(16).and_then(|size| size.checked_add(u64::from(digit))).ok_or(Broken)?;
        Ok(State::Size)
    }

    fn trailer(&mut self, byte: u8, next: State) -> Result<State, Broken> {
        self.trailers.push(byte);
        if self.trailers.len() >= MOST_BESIDES { Err(Broken) } else { Ok(next) }
    }
}

/// Writes the line before a chunk of `size` bytes.
pub(super) fn write_size(out: &mut BytesMut, size: usize) {
    // Memory does not refuse to be written.
    let _ = write!(out, "{size:X}\r\n");
}

/// What follows the data of a chunk.
pub(super) const CHUNK_END: &[u8] = b"\r\n";

/// The end of a body without trailers.
pub(super) const LAST_CHUNK: &[u8] = b"0\r\n\r\n";
