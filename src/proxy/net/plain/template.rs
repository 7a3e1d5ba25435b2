//! Heads that are written again and again with nothing but another length.

use bytes::BytesMut;

use super::again::{Stated, stated_length};

/// A head as it goes out, but for the digits of its length.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Template {
    before: Box<[u8]>,
    after: Box<[u8]>,
}

impl Template {
    /// Of a head as it goes out with some length; `None` where the length of its body is not stated once and plainly.
    pub(super) fn of(head: &[u8]) -> Option<Template> {
        let Stated::Once(at) = stated_length(head) else { return None };
        Some(Template { before: head.get(..at.start)?.into(), after: head.get(at.end..)?.into() })
    }

    /// Writes the head of a body of `length` bytes; there will be room for `more` bytes behind it.
    pub(super) fn write(&self, out: &mut BytesMut, length: usize, more: usize) {
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(length);
        out.reserve(self.before.len() + digits.len() + self.after.len() + more);
        for part in [&*self.before, digits.as_bytes(), &*self.after] {
            out.extend_from_slice(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_written_as_it_stood_with_another_length() {
        let template = Template::of(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nx-a: 5\r\n\r\n").unwrap();
        let mut out = BytesMut::new();
        template.write(&mut out, 1234, 0);
        assert_eq!(out, b"HTTP/1.1 200 OK\r\nContent-Length: 1234\r\nx-a: 5\r\n\r\n".as_slice());
    }

    #[test]
    fn a_head_without_one_plain_length_is_no_template() {
        for head in [
            "HTTP/1.1 200 OK\r\nx-a: 5\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 5\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 5, 5\r\n\r\n",
        ] {
            assert!(Template::of(head.as_bytes()).is_none(), "{head:?}");
        }
    }
}
