//! Name patterns: `*` stands for any run of characters, `?` for one; everything else for itself, case included.

use std::fmt;
use std::sync::Arc;

/// The longest pattern, in bytes.
pub const MAX_PATTERN: usize = 256;

/// A pattern that has been found sound.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Glob {
    pattern: Arc<str>,
}

/// Why a text is no pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a pattern has 1 to {MAX_PATTERN} bytes and no control characters")]
pub struct BadGlob;

impl Glob {
    /// Reads a pattern.
    ///
    /// # Errors
    /// If it is empty, too long, or holds control characters.
    pub fn new(pattern: &str) -> Result<Glob, BadGlob> {
        if pattern.is_empty() || pattern.len() > MAX_PATTERN || pattern.chars().any(char::is_control) {
            return Err(BadGlob);
        }
        Ok(Glob { pattern: Arc::from(pattern) })
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.pattern
    }

    /// Whether it stands for one name only.
    pub fn is_literal(&self) -> bool {
        !self.pattern.contains(['*', '?'])
    }

    /// Whether the whole of `text` fits. Time grows with text × pattern at worst, never faster.
    pub fn matches(&self, text: &str) -> bool {
        let (mut pattern, mut rest) = (self.pattern.chars(), text.chars());
        let mut retry: Option<(std::str::Chars<'_>, std::str::Chars<'_>)> = None;
        loop {
            let here = rest.clone();
            match (pattern.next(), rest.next()) {
                (None, None) => return true,
                (Some('*'), _) => {
                    rest = here.clone();
                    retry = Some((pattern.clone(), here));
                }
                (Some(wanted), Some(found)) if wanted == '?' || wanted == found => {}
                _ => {
                    let Some((after_star, mut from)) = retry.take() else { return false };
                    if from.next().is_none() {
                        return false;
                    }
                    pattern = after_star.clone();
                    rest = from.clone();
                    retry = Some((after_star, from));
                }
            }
        }
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.pattern)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names_only() {
        for (pattern, text, fits) in [
            ("jira_*", "jira_search", true),
            ("jira_*", "jira_", true),
            ("jira_*", "my_jira_search", false),
            ("*", "", true),
            ("*", "anything", true),
            ("?", "", false),
            ("?", "ä", true),
            ("a*b*c", "a--b--b--c", true),
            ("a*b*c", "a--c--b", false),
            ("*_read", "client_file_read", true),
            ("*_read", "client_file_read2", false),
            ("**", "x", true),
            ("Jira", "jira", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
        ] {
            assert_eq!(Glob::new(pattern).unwrap().matches(text), fits, "{pattern} on {text}");
        }
    }

    #[test]
    fn a_hostile_pattern_costs_no_more_than_text_times_pattern() {
        let glob = Glob::new(&"*a".repeat(128)).unwrap();
        assert!(!glob.matches(&format!("{}b", "a".repeat(100_000))));
    }

    #[test]
    fn empty_and_endless_patterns_are_refused() {
        assert_eq!(Glob::new(""), Err(BadGlob));
        assert_eq!(Glob::new(&"a".repeat(257)), Err(BadGlob));
        assert_eq!(Glob::new("a\u{7}"), Err(BadGlob));
    }
}
