//! All needles of a table gathered into one automaton, so that a text is read once whatever the number of rules, and its
//! regexes, each behind the literals that it cannot match without.

use std::collections::HashMap;
use std::sync::Arc;

use aho_corasick::automaton::Automaton;
use aho_corasick::nfa::contiguous;
use aho_corasick::{Anchored, MatchKind, StartKind, dfa};

use super::bits::Bits;
use super::dense::Dense;
use super::facts::{Facts, View};
use super::pattern::Pattern;
use super::prefilter::{required, required_too};

/// Up to how many needles the automaton is built for speed; beyond that, for memory.
const FAST_NEEDLES_MAX: usize = 4_000;

/// Gathers the needles and regexes for one view of a failure, each once.
#[derive(Debug)]
pub(crate) struct Search {
    view: View,
    needles: HashMap<String, usize>,
    texts: Vec<String>,
    known: HashMap<String, usize>,
    regexes: Vec<Guarded>,
}

/// A regex and the needles of which one must have been seen; `None` if it has to be tried on every text.
#[derive(Clone, Debug)]
struct Guarded {
    regex: Pattern,
    needles: Option<Vec<usize>>,
    /// Further sets of needles, of each of which one must have been seen.
    too: Vec<Vec<usize>>,
}

impl Search {
    /// Nothing yet.
    pub(crate) fn new(view: View) -> Search {
        Search { view, needles: HashMap::new(), texts: Vec::new(), known: HashMap::new(), regexes: Vec::new() }
    }

    /// The number of a folded needle.
    pub(crate) fn needle(&mut self, text: &str) -> usize {
        if let Some(number) = self.needles.get(text) {
            return *number;
        }
        let number = self.texts.len();
        self.texts.push(text.to_owned());
        self.needles.insert(text.to_owned(), number);
        number
    }

    fn numbers(&mut self, needles: &[String]) -> Vec<usize> {
        needles.iter().map(|text| self.needle(text)).collect()
    }

    /// The number of a regex.
    pub(crate) fn regex(&mut self, regex: &Pattern) -> usize {
        if let Some(number) = self.known.get(regex.as_str()) {
            return *number;
        }
        let needles = required(regex.as_str());
        let needles = needles.map(|all| self.numbers(&all));
        let too = required_too(regex.as_str()).iter().map(|all| self.numbers(all)).collect();
        let number = self.regexes.len();
        self.regexes.push(Guarded { regex: regex.clone(), needles, too });
        self.known.insert(regex.as_str().to_owned(), number);
        number
    }

    /// Compiles what was gathered.
    ///
    /// # Errors
    /// If the needles exceed what one automaton can hold.
    pub(crate) fn build(self) -> Result<Built, String> {
        let needles = if self.texts.len() <= FAST_NEEDLES_MAX {
            let built = dfa::Builder::new()
                .match_kind(MatchKind::Standard)
                .start_kind(StartKind::Unanchored)
                .prefilter(false)
                .build(&self.texts);
            built.map(|automaton| Needles::Fast(Arc::new(Dense::new(&automaton, &self.texts))))
        } else {
            let built = contiguous::Builder::new().match_kind(MatchKind::Standard).prefilter(false).build(&self.texts);
            built.map(|automaton| Needles::Small(Arc::new(automaton)))
        };
        let needles = needles.map_err(|e| format!("the needles of all rules do not fit into one automaton: {e}"))?;
        Ok(Built { view: self.view, needles, needle_count: self.texts.len(), regexes: self.regexes })
    }
}

/// All needles in one automaton. Capitals of ASCII are read as small letters.
#[derive(Clone, Debug)]
enum Needles {
    Fast(Arc<Dense>),
    Small(Arc<contiguous::NFA>),
}

impl Needles {
    fn seen_in(&self, text: &[u8], count: usize) -> Bits {
        let mut seen = Bits::empty(count);
        match self {
            Needles::Fast(dense) => dense.walk(text, &mut seen),
            Needles::Small(automaton) => walk(&**automaton, text, &mut seen),
        }
        seen
    }
}

/// Reads a text once, byte by byte, and notes every needle that ends at each. The library's own searches hand out one match
/// and are asked for the next; here nothing is handed out.
fn walk(automaton: &impl Automaton, text: &[u8], seen: &mut Bits) {
    let Ok(mut state) = automaton.start_state(Anchored::No) else { return };
    for byte in text {
        state = automaton.next_state(Anchored::No, state, byte.to_ascii_lowercase());
        if automaton.is_special(state) && automaton.is_match(state) {
            (0..automaton.match_len(state)).for_each(|at| seen.insert(automaton.match_pattern(state, at).as_usize()));
        }
    }
}

/// The table's needles and regexes for one view, ready to be looked for.
#[derive(Clone, Debug)]
pub(crate) struct Built {
    view: View,
    needles: Needles,
    needle_count: usize,
    regexes: Vec<Guarded>,
}

impl Built {
    /// How many needles there are, those of regexes included.
    pub(crate) fn needle_count(&self) -> usize {
        self.needle_count
    }

    /// Which needles occur in the view.
    pub(crate) fn needles<'f>(&self, facts: &'f Facts<'_>) -> &'f Bits {
        facts.needles(self.view, |text| self.needles.seen_in(text, self.needle_count))
    }

    /// Whether a regex matches the view.
    pub(crate) fn regex_matches(&self, number: usize, facts: &Facts<'_>) -> bool {
        let Some(guarded) = self.regexes.get(number) else { return false };
        let seen = self.needles(facts);
        guarded.needles.iter().chain(&guarded.too).all(|set| set.iter().any(|needle| seen.contains(*needle)))
            && guarded.regex.is_match(facts.bytes(self.view))
    }

    /// The needles of which one must have been seen for any of these regexes to match; `None` if one has no such needles.
    pub(crate) fn guards(&self, regexes: &[usize]) -> Option<Vec<usize>> {
        let mut all = Vec::new();
        for number in regexes {
            all.extend(self.regexes.get(*number)?.needles.as_ref()?);
        }
        Some(all)
    }
}
