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
    /// A chunk of which the first `read` bytes, the beginning of an event, have been read before.
    pub(super) fn new(chunk: &'a [u8], begun: &[u8], read: usize) -> Splice<'a> {
        Splice { chunk, begun: begun.to_vec(), start: 0, end: read, out: None }
    }

    /// The event that is being read, as far as it is in this chunk.
    pub(super) fn event(&self) -> &'a [u8] {
        self.chunk.get(self.start..self.end).unwrap_or_default()
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

    /// What goes out now if the event that is being read is kept back, and where that event begins.
    pub(super) fn keeping_back(self) -> (Bytes, usize) {
        let before = self.chunk.get(..self.start).unwrap_or_default();
        (self.out.unwrap_or_else(|| before.to_vec()).into(), self.start)
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
        let mut splice = Splice::new(chunk.as_bytes(), if in_event { b"!gone!" } else { b"" }, 0);
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
    fn an_event_that_is_kept_back_is_whole_when_its_end_comes() {
        let splice = Splice::new(b"a\n\nbeg", b"", 0);
        let mut splice = splice;
        splice.line(2);
        splice.line(1);
        splice.border();
        splice.line(3);
        let (out, start) = splice.keeping_back();
        assert_eq!((&out[..], start), (&b"a\n\n"[..], 3));
        let mut splice = Splice::new(b"begin\n\nc", b"", 3);
        splice.line(3);
        splice.line(1);
        assert_eq!(splice.event(), b"begin\n\n");
        splice.replace(b"[ours]");
        assert_eq!(splice.finish().unwrap(), "[ours]c");
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
