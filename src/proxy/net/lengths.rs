//! Whether a connection has ever stated a `Content-Length`. A request with both a length and chunks is answered and its
//! connection then closed (RFC 9112, 6.3), but hyper takes the length out before anybody sees it; so the bytes are looked at
//! before hyper reads them, once, until the first length.

/// The field, as it may begin a line.
const NAME: &[u8] = b"content-length:";

/// Looks for the name at the beginning of lines. What it finds in a body counts too: all that follows is one connection more.
#[derive(Debug, Default)]
pub(super) struct Lengths {
    /// How much of the name the current line has matched; `None` if it does not begin with it.
    matched: Option<usize>,
}

impl Lengths {
    /// Takes the next bytes, in pieces of any size; tells whether a line up to here begins with the name.
    pub(super) fn found_in(&mut self, bytes: &[u8]) -> bool {
        let mut rest = bytes;
        loop {
            if let Some(mut matched) = self.matched {
                for byte in rest.iter().take(NAME.len() - matched) {
                    if NAME.get(matched) != Some(&byte.to_ascii_lowercase()) {
                        self.matched = None;
                        break;
                    }
                    matched += 1;
                    self.matched = Some(matched);
                }
                if self.matched == Some(NAME.len()) {
                    return true;
                }
            }
            let Some(end) = memchr::memchr(b'\n', rest) else { return false };
            rest = rest.get(end + 1..).unwrap_or_default();
            self.matched = Some(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_found_at_the_beginning_of_a_line_however_the_bytes_arrive() {
        for (text, expected) in [
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n", true),
            ("POST / HTTP/1.1\nCONTENT-length:5\n", true),
            ("\n\n\ncontent-length:", true),
            ("POST / HTTP/1.1\r\nX-Content-Length: 5\r\n\r\n", false),
            ("POST / HTTP/1.1\r\nContent-Lengths: 5\r\n\r\n", false),
            ("POST / HTTP/1.1\r\nContent\r\n-Length: 5\r\n\r\n", false),
        ] {
            for piece in [1, 2, 3, 7, 1000] {
                let mut lengths = Lengths::default();
                let found = text.as_bytes().chunks(piece).any(|bytes| lengths.found_in(bytes));
                assert_eq!(found, expected, "{text:?} in pieces of {piece}");
            }
        }
    }
}
