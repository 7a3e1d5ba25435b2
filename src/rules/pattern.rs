//! Regexes that are compiled when a text first needs them. Of the hundreds in a table most never are, since none of the words
//! that they need occurs, and each holds some ten kilobytes.

use std::fmt;
use std::sync::{Arc, OnceLock};

use regex::bytes::{Regex, RegexBuilder};

/// How large one compiled regex may be, in bytes.
const SIZE_MAX: usize = 1 << 20;

/// A regex over bytes, known to compile; classes and case are those of ASCII unless `(?u)` says otherwise. Clones share it.
#[derive(Clone)]
pub struct Pattern(Arc<Inner>);

struct Inner {
    text: Box<str>,
    compiled: OnceLock<Option<Regex>>,
}

impl Pattern {
    /// Compiles the regex to see that it can be, and lets go of it again.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn new(text: &str) -> Result<Pattern, regex::Error> {
        compile(text)?;
        Ok(Pattern(Arc::new(Inner { text: text.into(), compiled: OnceLock::new() })))
    }

    /// The regex as it is written.
    pub fn as_str(&self) -> &str {
        &self.0.text
    }

    /// Whether it matches anywhere.
    pub fn is_match(&self, bytes: &[u8]) -> bool {
        let compiled = self.0.compiled.get_or_init(|| compile(&self.0.text).ok());
        compiled.as_ref().is_some_and(|regex| regex.is_match(bytes))
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pattern").field(&self.as_str()).finish()
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

fn compile(text: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(text).unicode(false).size_limit(SIZE_MAX).build()
}
