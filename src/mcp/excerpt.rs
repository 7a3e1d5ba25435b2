//! The bounded text of a message: its beginning and its end, whatever lies between.

use std::borrow::Cow;

/// What stands where the middle of a long text was left out; no needle of a rule can match across it.
const GAP: &str = "\n…\n";

/// A text of at most the configured size: all of it, or its head and its tail.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Excerpt {
    bytes: Vec<u8>,
    gap: Option<usize>,
    total: u64,
}

impl Excerpt {
    /// The whole text as it arrived, or `None` if its middle was left out.
    pub fn whole(&self) -> Option<&[u8]> {
        self.gap.is_none().then_some(self.bytes.as_slice())
    }

    /// Whether the middle was left out.
    pub fn is_truncated(&self) -> bool {
        self.gap.is_some()
    }

    /// The length of the full text in bytes.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The text for reading and searching; a left-out middle is marked, and what is not UTF-8 is replaced.
    pub fn text(&self) -> Cow<'_, str> {
        match self.gap.and_then(|at| self.bytes.split_at_checked(at)) {
            None => String::from_utf8_lossy(&self.bytes),
            Some((head, tail)) => {
                Cow::Owned(String::from_utf8_lossy(head).into_owned() + GAP + &String::from_utf8_lossy(tail))
            }
        }
    }
}

/// Collects an [`Excerpt`] while the text streams by.
#[derive(Debug)]
pub(crate) struct Clip {
    /// Bytes of head and tail that are kept.
    halves: (usize, usize),
    head: Vec<u8>,
    tail: Vec<u8>,
    total: u64,
}

impl Clip {
    /// Keeps at most `limit` bytes of each text.
    pub(crate) fn new(limit: usize) -> Clip {
        let half = limit / 2;
        Clip { halves: (half, limit - half), head: Vec::new(), tail: Vec::new(), total: 0 }
    }

    /// Takes up the next bytes of the text.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let (first, end) = self.halves;
        let room = first.saturating_sub(self.head.len()).min(bytes.len());
        let (head, rest) = bytes.split_at_checked(room).unwrap_or((bytes, &[]));
        self.head.extend_from_slice(head);
        self.tail.extend_from_slice(last(rest, end));
        if self.tail.len() > end.saturating_mul(2) {
            let surplus = self.tail.len() - end;
            self.tail.drain(..surplus);
        }
    }

    /// Forgets what was collected.
    pub(crate) fn clear(&mut self) {
        self.head.clear();
        self.tail = Vec::new();
        self.total = 0;
    }

    /// Hands out what was collected and starts afresh, holding no memory.
    pub(crate) fn take(&mut self) -> Excerpt {
        let (mut bytes, tail) = (std::mem::take(&mut self.head), std::mem::take(&mut self.tail));
        let tail = last(&tail, self.halves.1);
        let total = std::mem::take(&mut self.total);
        let gap = ((bytes.len() + tail.len()) as u64) < total;
        let gap = gap.then_some(bytes.len());
        bytes.extend_from_slice(tail);
        Excerpt { bytes, gap, total }
    }
}

fn last(bytes: &[u8], count: usize) -> &[u8] {
    bytes.get(bytes.len().saturating_sub(count)..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Clip;

    #[test]
    fn a_text_within_the_limit_is_kept_whole() {
        for text in ["12345678", "123456789"] {
            let mut clip = Clip::new(text.len());
            clip.add(text.as_bytes());
            let excerpt = clip.take();
            assert_eq!(excerpt.whole(), Some(text.as_bytes()));
            assert_eq!(excerpt.text(), text);
        }
    }

    #[test]
    fn of_a_longer_text_head_and_tail_are_kept_and_the_gap_is_marked() {
        let mut clip = Clip::new(8);
        clip.add(b"12345678");
        clip.add(b"9");
        let excerpt = clip.take();
        assert!(excerpt.is_truncated());
        assert_eq!((excerpt.whole(), excerpt.total()), (None, 9));
        assert_eq!(excerpt.text(), "1234\n…\n6789");
        assert_eq!(clip.take().text(), "", "a taken text is gone");
    }

    proptest! {
        #[test]
        fn chunking_never_shows_in_an_excerpt(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..20),
            limit in 0usize..64,
        ) {
            let (mut many, mut one) = (Clip::new(limit), Clip::new(limit));
            chunks.iter().for_each(|chunk| many.add(chunk));
            one.add(&chunks.concat());
            prop_assert_eq!(many.take(), one.take());
        }
    }
}
