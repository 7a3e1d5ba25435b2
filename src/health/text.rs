//! Bounds for words that come from elsewhere.

/// The longest note, in bytes (DESIGN 8).
const NOTE_MAX: usize = 512;

/// As much of a text as fits into a note, cut between characters.
pub(super) fn bounded(text: &str) -> &str {
    let mut end = text.len().min(NOTE_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_cut_between_characters() {
        assert_eq!(bounded("short"), "short");
        assert_eq!(bounded(&"é".repeat(400)).len(), 512);
        assert_eq!(bounded(&"€".repeat(400)).len(), 510);
    }
}
