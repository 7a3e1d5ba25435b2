//! All needles and regexes of a table gathered into one automaton and one set, so that a text is read once whatever
//! the number of rules.

use std::collections::HashMap;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use regex::{RegexSet, RegexSetBuilder};

use super::matcher::Built;

/// How much memory the compiled regexes of a table may take, in bytes; a single regex has its own bound.
const REGEX_SET_BOUND: usize = 32 * 1024 * 1024;
/// How much the lazily built states of the regexes may take, in bytes.
const REGEX_DFA_BOUND: usize = 8 * 1024 * 1024;

/// Gathers needles and regexes, each once.
#[derive(Debug, Default)]
pub(crate) struct Search {
    needles: Numbered,
    regexes: Numbered,
}

#[derive(Debug, Default)]
struct Numbered {
    numbers: HashMap<String, usize>,
    texts: Vec<String>,
}

impl Numbered {
    fn number(&mut self, text: &str) -> usize {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.texts.len();
        self.texts.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }
}

impl Search {
    /// The number of a folded needle.
    pub(crate) fn needle(&mut self, text: &str) -> usize {
        self.needles.number(text)
    }

    /// The number of a regex.
    pub(crate) fn regex(&mut self, pattern: &str) -> usize {
        self.regexes.number(pattern)
    }

    /// Compiles what was gathered.
    ///
    /// # Errors
    /// Says which bound the table's needles or regexes exceed together.
    pub(crate) fn build(self) -> Result<Built, String> {
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::Standard)
            .kind(Some(AhoCorasickKind::DFA).filter(|_| self.needles.texts.len() <= 4_000))
            .build(&self.needles.texts)
            .map_err(|e| format!("the needles of all rules do not fit into one automaton: {e}"))?;
        let regexes: RegexSet = RegexSetBuilder::new(&self.regexes.texts)
            .size_limit(REGEX_SET_BOUND)
            .dfa_size_limit(REGEX_DFA_BOUND)
            .build()
            .map_err(|e| format!("the regexes of all rules together are too large: {e}"))?;
        Ok(Built { automaton, needle_count: self.needles.texts.len(), regexes })
    }
}
