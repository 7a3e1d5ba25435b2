//! A failure's text in bounded memory, and the folded form in which rules look at it.

use std::borrow::Cow;

/// What stands between head and tail of a text that was too long; no needle matches across it.
const GAP: &str = "\n\u{2026}\n";

/// Collects the text of a failure: the first half of the bound and the last half, whatever the chunks were.
#[derive(Clone, Debug)]
pub struct TextCollector {
    /// Bytes of head and tail that are kept.
    halves: (usize, usize),
    head: Vec<u8>,
    tail: Vec<u8>,
    skipped: bool,
}

impl TextCollector {
    /// Keeps at most `bound` bytes in the end (`limits.failure_text`, 64 KiB by default).
    pub fn new(bound: usize) -> TextCollector {
        let half = bound / 2;
        TextCollector { halves: (half, bound - half), head: Vec::new(), tail: Vec::new(), skipped: false }
    }

    /// Takes the next bytes. Memory stays within twice the bound.
    pub fn push(&mut self, chunk: &[u8]) {
        let (first, last) = self.halves;
        let to_head = (first - self.head.len()).min(chunk.len());
        let (to_head, rest) = chunk.split_at(to_head);
        self.head.extend_from_slice(to_head);
        for piece in rest.chunks(last.max(1)) {
            self.tail.extend_from_slice(piece);
            if self.tail.len() > last.saturating_mul(2) {
                self.shorten_tail();
            }
        }
    }

    /// The text; bytes that are no UTF-8 are replaced.
    pub fn finish(mut self) -> String {
        self.shorten_tail();
        if !self.skipped {
            self.head.append(&mut self.tail);
            return into_text(self.head);
        }
        let mut text = into_text(self.head);
        text.push_str(GAP);
        text.push_str(&String::from_utf8_lossy(&self.tail));
        text
    }

    fn shorten_tail(&mut self) {
        let surplus = self.tail.len().saturating_sub(self.halves.1);
        if surplus > 0 {
            self.tail.drain(..surplus);
            self.skipped = true;
        }
    }
}

fn into_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
}

/// A whole text cut to `bound` bytes as [`TextCollector`] would.
pub fn bounded(text: &str, bound: usize) -> Cow<'_, str> {
    if text.len() <= bound {
        return Cow::Borrowed(text);
    }
    let mut collector = TextCollector::new(bound);
    collector.push(text.as_bytes());
    Cow::Owned(collector.finish())
}

/// The form in which needles and text meet: lower case, typographic apostrophes made plain.
pub(crate) fn fold(text: &str) -> String {
    // This letter's lower case depends on where it stands.
    if text.contains('\u{3a3}') {
        return text.to_lowercase().replace(APOSTROPHES, "'");
    }
    let mut folded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((plain, wide)) = rest.split_at_checked(plain_length(rest)) {
        folded.push_str(plain);
        let mut letters = wide.chars();
        match letters.next() {
            None => break,
            Some(letter) if APOSTROPHES.contains(&letter) => folded.push('\''),
            Some(letter) => folded.extend(letter.to_lowercase()),
        }
        rest = letters.as_str();
    }
    folded.make_ascii_lowercase();
    folded
}

/// Typographic apostrophes.
const APOSTROPHES: [char; 2] = ['\u{2019}', '\u{2018}'];

/// How many bytes of ASCII the text begins with.
fn plain_length(text: &str) -> usize {
    let chunks = text.as_bytes().chunks(64).take_while(|chunk| chunk.is_ascii());
    let plain: usize = chunks.map(<[u8]>::len).sum();
    let rest = text.as_bytes().get(plain..).unwrap_or_default();
    plain + rest.iter().position(|byte| !byte.is_ascii()).unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_text_within_the_bound_stays_whole() {
        assert_eq!(bounded("short", 10), "short");
    }

    #[test]
    fn a_text_of_just_the_bound_stays_whole_in_whatever_pieces_it_comes() {
        for bound in [10, 11] {
            let text = "0123456789a".get(..bound).unwrap();
            let mut collector = TextCollector::new(bound);
            text.as_bytes().chunks(3).for_each(|piece| collector.push(piece));
            assert_eq!(collector.finish(), text);
        }
    }

    #[test]
    fn of_a_long_text_head_and_tail_remain() {
        let long = format!("begin{}end", "x".repeat(100));
        let kept = bounded(&long, 12);
        assert!(kept.starts_with("beginx") && kept.ends_with("xxxend"), "{kept}");
    }

    proptest! {
        #[test]
        fn a_folded_text_is_in_lower_case_with_plain_apostrophes(text in "([ -~]{0,90}|\\PC{0,4}|[ΣσAİÖ\u{2019}\u{2018}]{0,3}){0,8}") {
            let expected = text.to_lowercase().replace(['\u{2019}', '\u{2018}'], "'");
            prop_assert_eq!(fold(&text), expected);
        }

        #[test]
        fn chunk_boundaries_change_nothing(text in "\\PC{0,200}", bound in 0usize..120, cuts in prop::collection::vec(0usize..200, 0..6)) {
            let bytes = text.as_bytes();
            let mut whole = TextCollector::new(bound);
            whole.push(bytes);
            let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c.min(bytes.len())).collect();
            cuts.sort_unstable();
            let mut pieces = TextCollector::new(bound);
            let mut from = 0;
            for to in cuts.into_iter().chain([bytes.len()]) {
                pieces.push(&bytes[from..to]);
                from = to;
            }
            prop_assert_eq!(whole.finish(), pieces.finish());
        }

        #[test]
        fn memory_stays_bounded(chunk in 0usize..5_000, times in 0usize..20, bound in 0usize..1_000) {
            let mut collector = TextCollector::new(bound);
            for _ in 0..times {
                collector.push(&vec![b'a'; chunk]);
                prop_assert!(collector.head.len() + collector.tail.len() <= 2 * bound + 2);
            }
        }
    }
}
