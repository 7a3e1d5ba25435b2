//! Reading a compressed answer along (RFC 9110, 8.4): what passes stays compressed, the observer reads a decoded copy.

use std::fmt;
use std::io::Write;

use flate2::write::{MultiGzDecoder, ZlibDecoder};
use http::HeaderMap;
use http::header::CONTENT_ENCODING;

/// Compressed bytes are decoded in pieces of this size, so that a small chunk cannot become a large copy: deflate expands
/// no more than about 1,000 times.
const PIECE: usize = 1024;

/// Decodes one answer, piece by piece.
pub(super) enum Decoder {
    /// Nothing to decode.
    Identity,
    /// `gzip`.
    Gzip(Box<MultiGzDecoder<Vec<u8>>>),
    /// `deflate`, which means zlib (RFC 9110, 8.4.1.2).
    Deflate(Box<ZlibDecoder<Vec<u8>>>),
    /// A coding that is not read here, or bytes that are not what they claim to be.
    Unreadable,
}

impl Decoder {
    /// The decoder for an answer under these headers.
    pub(super) fn of(headers: &HeaderMap) -> Decoder {
        let mut codings =
            headers.get_all(CONTENT_ENCODING).iter().flat_map(|value| value.to_str().unwrap_or("?").split(','));
        let first = codings.next().map(|coding| coding.trim().to_ascii_lowercase());
        match (first.as_deref(), codings.next()) {
            (None | Some("" | "identity"), None) => Decoder::Identity,
            (Some("gzip" | "x-gzip"), None) => Decoder::Gzip(Box::new(MultiGzDecoder::new(Vec::new()))),
            (Some("deflate"), None) => Decoder::Deflate(Box::new(ZlibDecoder::new(Vec::new()))),
            _ => Decoder::Unreadable,
        }
    }

    /// Whether the answer passes as it is read.
    pub(super) fn is_identity(&self) -> bool {
        matches!(self, Decoder::Identity)
    }

    /// Whether nothing can be read.
    pub(super) fn is_unreadable(&self) -> bool {
        matches!(self, Decoder::Unreadable)
    }

    /// Hands the decoded form of `bytes` to `read`, as far as it is known by now.
    pub(super) fn push(&mut self, bytes: &[u8], mut read: impl FnMut(&[u8])) {
        if self.is_identity() {
            read(bytes);
            return;
        }
        for piece in bytes.chunks(PIECE) {
            match self.decode(piece) {
                Some(decoded) => read(&decoded),
                None => *self = Decoder::Unreadable,
            }
        }
    }

    fn decode(&mut self, piece: &[u8]) -> Option<Vec<u8>> {
        match self {
            Decoder::Gzip(decoder) => {
                decoder.write_all(piece).and_then(|()| decoder.flush()).ok()?;
                Some(std::mem::take(decoder.get_mut()))
            }
            Decoder::Deflate(decoder) => {
                decoder.write_all(piece).and_then(|()| decoder.flush()).ok()?;
                Some(std::mem::take(decoder.get_mut()))
            }
            Decoder::Identity | Decoder::Unreadable => None,
        }
    }
}

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Decoder::Identity => "Identity",
            Decoder::Gzip(_) => "Gzip",
            Decoder::Deflate(_) => "Deflate",
            Decoder::Unreadable => "Unreadable",
        })
    }
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::{GzEncoder, ZlibEncoder};

    use super::*;

    fn under(coding: &str) -> Decoder {
        Decoder::of(&HeaderMap::from_iter([(CONTENT_ENCODING, coding.parse().unwrap())]))
    }

    fn decoded(decoder: &mut Decoder, bytes: &[u8], chunk: usize) -> Vec<u8> {
        let mut all = Vec::new();
        bytes.chunks(chunk).for_each(|chunk| decoder.push(chunk, |piece| all.extend_from_slice(piece)));
        all
    }

    #[test]
    fn a_compressed_answer_reads_the_same_under_any_chunking() {
        let text = "{\"jsonrpc\":\"2.0\"}".repeat(5_000);
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(text.as_bytes()).unwrap();
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
        zlib.write_all(text.as_bytes()).unwrap();
        for (coding, bytes) in [("gzip", gzip.finish().unwrap()), ("deflate", zlib.finish().unwrap())] {
            for chunk in [1, 7, 4_096] {
                assert!(decoded(&mut under(coding), &bytes, chunk) == text.as_bytes(), "{coding} by {chunk}");
            }
        }
    }

    #[test]
    fn a_flushed_event_is_read_before_the_stream_goes_on() {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(b"data: 1\n\n").unwrap();
        gzip.flush().unwrap();
        assert_eq!(decoded(&mut under("gzip"), gzip.get_ref(), 4_096), b"data: 1\n\n");
    }

    #[test]
    fn what_is_not_known_or_not_true_is_unreadable() {
        for coding in ["br", "zstd", "gzip, br", "é"] {
            assert!(under(coding).is_unreadable(), "{coding}");
        }
        let mut decoder = under("gzip");
        assert_eq!(decoded(&mut decoder, b"this is plain text", 4_096), b"");
        assert!(decoder.is_unreadable());
        assert!(under("identity").is_identity());
    }
}
