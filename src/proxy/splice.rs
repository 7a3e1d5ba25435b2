//! Putting an event of ours in the place of one of the backend's, in the middle of a chunk of a stream.

use bytes::Bytes;

/// One chunk while it is read line by line. Lines belong to the event that began at the last border.
#[derive(Debug)]
pub(super) struct Splice<'a> {
    chunk: &'a [u8],
    /// What to write in place of an event whose beginning went out with an earlier chunk.
    begun: Vec<u8>,
    /// Where the event that is being read began.
    start: usize,
    /// What has been read.
    end: usize,
    /// What goes out, once something was replaced.
    out: Option<Vec<u8>>,
}

impl<'a> Splice<'a> {
    /// A chunk of which nothing has been read.
    pub(super) fn new(chunk: &'a [u8], begun: &[u8]) -> Splice<'a> {
        Splice { chunk, begun: begun.to_vec(), start: 0, end: 0, out: None }
    }

    /// The stream stands between two events: the next line begins one.
    pub(super) fn border(&mut self) {
        if let Some(out) = &mut self.out {
            out.extend_from_slice(self.chunk.get(self.start..self.end).unwrap_or_default());
        }
        self.start = self.end;
        self.begun.clear();
    }

    /// A line of this length was read.
    pub(super) fn line(&mut self, length: usize) {
        self.end += length;
    }

    /// The event that ends with the last line is not to go out; this one is.
    pub(super) fn replace(&mut self, event: &[u8]) {
        let before = self.chunk.get(..self.start).unwrap_or_default();
        let out = self.out.get_or_insert_with(|| before.to_vec());
        out.extend_from_slice(&self.begun);
        out.extend_from_slice(event);
        self.begun.clear();
        self.start = self.end;
    }

    /// What goes out in place of the chunk; `None` if it goes out as it is.
    pub(super) fn finish(self) -> Option<Bytes> {
        let rest = self.chunk.get(self.start..).unwrap_or_default();
        self.out.map(|mut out| {
            out.extend_from_slice(rest);
            Bytes::from(out)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a chunk of events of one line and a blank one each, and replaces those that hold `x`.
    fn spliced(chunk: &str, in_event: bool) -> Option<String> {
        let mut splice = Splice::new(chunk.as_bytes(), if in_event { b"!gone!" } else { b"" });
        let (mut at_border, mut marked) = (!in_event, in_event);
        for line in chunk.split_inclusive('\n') {
            if at_border {
                splice.border();
            }
            splice.line(line.len());
            marked |= line.contains('x');
            at_border = line == "\n";
            if at_border && std::mem::take(&mut marked) {
                splice.replace(b"[ours]");
            }
        }
        splice.finish().map(|bytes| String::from_utf8(bytes.to_vec()).unwrap())
    }

    #[test]
    fn only_the_event_concerned_is_replaced() {
        for (chunk, in_event, out) in [
            ("a\n\nb\n\n", false, None),
            ("x\n\n", false, Some("[ours]")),
            ("a\n\nx\n\nb\n\n", false, Some("a\n\n[ours]b\n\n")),
            ("x\n\na\n\nx\n\nhalf", false, Some("[ours]a\n\n[ours]half")),
            ("end\n\nb\n\n", true, Some("!gone![ours]b\n\n")),
        ] {
            assert_eq!(spliced(chunk, in_event).as_deref(), out, "{chunk:?}");
        }
    }
}
