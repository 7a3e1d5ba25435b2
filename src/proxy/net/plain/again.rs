//! Heads that come again. Over one connection nearly every message has the same head as the one before, but for the length
//! of its body: what is the same, byte for byte, was read before and reads the same.

use std::hash::{BuildHasher, Hasher};
use std::ops::Range;
use std::sync::Arc;

use foldhash::fast::FixedState;
use http::HeaderValue;
use http::header::CONTENT_LENGTH;

use super::head::{AnswerHead, Framing, RequestHead, digits};

/// Longer heads are not kept.
const LONGEST: usize = 4 * 1024;

/// The head that came last over a connection, once it has come twice in a row.
#[derive(Debug)]
pub(super) struct Again<H> {
    /// Of the head that came last, but for its length.
    fingerprint: u64,
    known: Option<Arc<Known<H>>>,
}

/// A head, and what was read from it.
#[derive(Debug)]
pub(super) struct Known<H> {
    bytes: Box<[u8]>,
    /// Where the digits of its length are.
    length: Option<Range<usize>>,
    pub(super) read: H,
}

/// A known head at the beginning of what was read.
#[derive(Debug)]
pub(super) struct Found<'a, H> {
    pub(super) known: &'a Arc<Known<H>>,
    /// Where it ends.
    pub(super) end: usize,
    /// The length that it states this time.
    pub(super) length: Option<u64>,
}

/// What is read from a head.
pub(super) trait Head: Clone {
    /// How many bytes of body the head states by its `Content-Length`; `None` where it tells nothing by one.
    fn length(&self) -> Option<u64>;

    /// What is read from a head that is the same but states another length.
    fn set_length(&mut self, value: HeaderValue, length: u64);
}

impl<H> Default for Again<H> {
    fn default() -> Again<H> {
        Again { fingerprint: 0, known: None }
    }
}

impl<H: Head> Again<H> {
    /// The known head, if `input` begins with it.
    pub(super) fn find(&self, input: &[u8]) -> Option<Found<'_, H>> {
        let known = self.known.as_ref()?;
        let Some(length) = &known.length else {
            let found = Found { known, end: known.bytes.len(), length: None };
            return input.starts_with(&known.bytes).then_some(found);
        };
        let rest = input.strip_prefix(known.bytes.get(..length.start)?)?;
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (stated, rest) = rest.split_at_checked(count)?;
        let after = known.bytes.get(length.end..)?;
        // A number that is written otherwise than we write it has to go on as it came.
        let is_usual = stated.len() == 1 || stated.first() != Some(&b'0');
        let number = digits(stated).filter(|_| is_usual && rest.starts_with(after))?;
        Some(Found { known, end: length.start + count + after.len(), length: Some(number) })
    }

    /// Remembers what was read from `head`, if it has come before; tells whether it has.
    pub(super) fn note(&mut self, head: &[u8], read: &H) -> bool {
        if head.len() > LONGEST {
            return false;
        }
        let length = match (stated_length(head), read.length()) {
            (Stated::Nowhere, _) => None,
            (Stated::Once(at), Some(length)) if head.get(at.clone()).and_then(digits) == Some(length) => Some(at),
            _ => return false,
        };
        let fingerprint = fingerprint(head, length.as_ref());
        let has_come = self.fingerprint == fingerprint;
        if has_come {
            self.known = Some(Arc::new(Known { bytes: head.into(), length, read: read.clone() }));
        }
        self.fingerprint = fingerprint;
        has_come
    }
}

impl<H: Head> Known<H> {
    /// What is read from this head where it states another length.
    pub(super) fn with_length(&self, length: Option<u64>) -> H {
        let mut read = self.read.clone();
        if let Some(length) = length {
            read.set_length(HeaderValue::from(length), length);
        }
        read
    }
}

/// Where a head states the length of its body.
pub(super) enum Stated {
    Nowhere,
    Once(Range<usize>),
    Oddly,
}

pub(super) fn stated_length(head: &[u8]) -> Stated {
    let (mut found, mut at) = (Stated::Nowhere, 0);
    for line in head.split_inclusive(|byte| *byte == b'\n') {
        if let Some((name, value)) = line.split_at_checked(CONTENT_LENGTH.as_str().len())
            && name.eq_ignore_ascii_case(CONTENT_LENGTH.as_str().as_bytes())
        {
            let before = value.iter().take_while(|byte| matches!(byte, b':' | b' ' | b'\t')).count();
            let count = value.iter().skip(before).take_while(|byte| byte.is_ascii_digit()).count();
            let start = at + name.len() + before;
            let is_alone = value.iter().skip(before + count).all(u8::is_ascii_whitespace);
            found = match found {
                Stated::Nowhere if count > 0 && is_alone => Stated::Once(start..start + count),
                _ => Stated::Oddly,
            };
        }
        at += line.len();
    }
    found
}

fn fingerprint(head: &[u8], length: Option<&Range<usize>>) -> u64 {
    let mut hasher = FixedState::default().build_hasher();
    let (before, after) = match length {
        Some(length) => (head.get(..length.start), head.get(length.end..)),
        None => (Some(head), None),
    };
    hasher.write(before.unwrap_or_default());
    hasher.write(after.unwrap_or_default());
    hasher.finish()
}

impl Head for RequestHead {
    fn length(&self) -> Option<u64> {
        self.states_length.then_some(self.length)
    }

    fn set_length(&mut self, value: HeaderValue, length: u64) {
        self.request.headers_mut().insert(CONTENT_LENGTH, value);
        self.length = length;
    }
}

impl Head for AnswerHead {
    fn length(&self) -> Option<u64> {
        match self.framing {
            Framing::Length(length) => Some(length),
            Framing::Chunked | Framing::Close => None,
        }
    }

    fn set_length(&mut self, value: HeaderValue, length: u64) {
        self.response.headers_mut().insert(CONTENT_LENGTH, value);
        self.framing = Framing::Length(length);
    }
}

#[cfg(test)]
mod tests {
    use bytes::{Bytes, BytesMut};
    use http::Method;

    use super::super::head::{answer, request, write_fields};
    use super::*;

    fn read(head: &str) -> RequestHead {
        request(&Bytes::copy_from_slice(head.as_bytes()), 100).unwrap()
    }

    fn read_answer(head: &str) -> AnswerHead {
        answer(&Bytes::copy_from_slice(head.as_bytes()), &Method::POST, 100).unwrap()
    }

    /// All that a request says, for comparison.
    fn told(head: &RequestHead) -> (String, BytesMut, (u64, bool, bool)) {
        let mut fields = BytesMut::new();
        write_fields(&mut fields, head.request.headers(), head.request.extensions().get());
        let line = format!("{} {} {:?}", head.request.method(), head.request.uri(), head.request.version());
        (line, fields, (head.length, head.states_length, head.is_last))
    }

    fn told_answer(head: &AnswerHead) -> (u16, BytesMut, Framing, bool) {
        let mut fields = BytesMut::new();
        write_fields(&mut fields, head.response.headers(), head.response.extensions().get());
        (head.response.status().as_u16(), fields, head.framing, head.keeps)
    }

    /// What is remembered after this head has come twice.
    fn known(head: &str) -> Again<RequestHead> {
        let mut again = Again::default();
        again.note(head.as_bytes(), &read(head));
        assert!(again.find(head.as_bytes()).is_none(), "what came once may never come again");
        again.note(head.as_bytes(), &read(head));
        again
    }

    #[test]
    fn a_head_that_comes_again_reads_as_if_it_were_read_again() {
        for (first, again) in [
            ("GET /mcp HTTP/1.1\r\nhost: a\r\n\r\n", "GET /mcp HTTP/1.1\r\nhost: a\r\n\r\n"),
            (
                "POST /mcp HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\nx-a: 1\r\n\r\n",
                "POST /mcp HTTP/1.1\r\nhost: a\r\ncontent-length: 1234\r\nx-a: 1\r\n\r\n",
            ),
            (
                "POST /mcp?x HTTP/1.1\r\nHost: a\r\nX-A: 1\r\nx-a: 2\r\nContent-Length:\t 5 \r\nConnection: close\r\n\r\n",
                "POST /mcp?x HTTP/1.1\r\nHost: a\r\nX-A: 1\r\nx-a: 2\r\nContent-Length:\t 70 \r\nConnection: close\r\n\r\n",
            ),
        ] {
            let known = known(first);
            let pipelined = format!("{again}GET / HTTP/1.1");
            let Found { known: found, end, length } = known.find(pipelined.as_bytes()).unwrap();
            assert_eq!(end, again.len());
            assert_eq!(told(&found.with_length(length)), told(&read(again)), "{again:?}");
        }
    }

    #[test]
    fn a_head_that_differs_in_anything_else_is_not_known() {
        let again = known("POST /mcp HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\nx-a: 1\r\n\r\n");
        for other in [
            "POST /mcp HTTP/1.1\r\nhost: a\r\ncontent-length: \r\nx-a: 1\r\n\r\n",
            "POST /mcp HTTP/1.1\r\nhost: a\r\ncontent-length: +5\r\nx-a: 1\r\n\r\n",
            "POST /mcp HTTP/1.1\r\nhost: a\r\ncontent-length: 05\r\nx-a: 1\r\n\r\n",
            "POST /mcp HTTP/1.1\r\nhost: a\r\ncontent-length: 5 \r\nx-a: 1\r\n\r\n",
            "POST /mcp HTTP/1.1\r\nhost: a\r\ncontent-length: 5, 5\r\nx-a: 1\r\n\r\n",
            "POST /mcp HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\nte: trailers\r\nx-a: 1\r\n\r\n",
            "POST /mcp HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000000000000000\r\nx-a: 1\r\n\r\n",
            "POST /mcp HTTP/1.1\r\nhost: b\r\ncontent-length: 5\r\nx-a: 1\r\n\r\n",
            "POST /mcp HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\nx-a: 2\r\n\r\n",
            "POST /mcp HTTP/1.1\r\nhost: a\r\nx-a: 1\r\n\r\n",
            "POST /mcp HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\nx-a: 1\r\n",
            "",
        ] {
            assert!(again.find(other.as_bytes()).is_none(), "{other:?}");
        }
    }

    #[test]
    fn only_what_comes_twice_in_a_row_is_remembered_and_only_if_it_is_short() {
        let head = |x: &str| format!("POST /mcp HTTP/1.1\r\nhost: a\r\nx-a: {x}\r\ncontent-length: 5\r\n\r\n");
        let mut again = Again::default();
        for x in ["1", "2", "1", "2"] {
            assert!(!again.note(head(x).as_bytes(), &read(&head(x))));
        }
        assert!(again.known.is_none());
        let long = head(&"x".repeat(LONGEST));
        for _ in 0..2 {
            again.note(long.as_bytes(), &read(&long));
        }
        assert!(again.known.is_none());
    }

    #[test]
    fn an_answer_that_comes_again_reads_as_if_it_were_read_again() {
        let head =
            |length| format!("HTTP/1.1 200 Fine\r\nContent-Type: text/plain\r\ncontent-length: {length}\r\n\r\n");
        let mut again = Again::default();
        for _ in 0..2 {
            again.note(head(5).as_bytes(), &read_answer(&head(5)));
        }
        let other = head(77);
        let Found { known: found, end, length } = again.find(other.as_bytes()).unwrap();
        assert_eq!(end, other.len());
        assert_eq!(told_answer(&found.with_length(length)), told_answer(&read_answer(&other)));
    }

    #[test]
    fn an_answer_whose_length_is_not_that_of_its_body_is_read_each_time() {
        for head in [
            "HTTP/1.1 204 No Content\r\ncontent-length: 5\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 5\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 5, 5\r\n\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n",
        ] {
            let mut again = Again::default();
            for _ in 0..3 {
                again.note(head.as_bytes(), &read_answer(head));
            }
            assert!(again.known.is_none(), "{head:?}");
        }
    }
}
