//! All needles of a table gathered into one automaton, so that a text is read once whatever the number of rules, and its
//! regexes, each behind the literals that it cannot match without.

use std::collections::HashMap;
use std::sync::Arc;

use aho_corasick::automaton::{Automaton, StateID};
use aho_corasick::nfa::contiguous;
use aho_corasick::{Anchored, MatchKind, StartKind, dfa};

use super::bits::Bits;
use super::facts::{Facts, View};
use super::pattern::Pattern;
use super::prefilter::required;

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

    /// The number of a regex.
    pub(crate) fn regex(&mut self, regex: &Pattern) -> usize {
        if let Some(number) = self.known.get(regex.as_str()) {
            return *number;
        }
        let needles = required(regex.as_str());
        let needles = needles.map(|all| all.iter().map(|text| self.needle(text)).collect());
        let number = self.regexes.len();
        self.regexes.push(Guarded { regex: regex.clone(), needles });
        self.known.insert(regex.as_str().to_owned(), number);
        number
    }

    /// Compiles what was gathered.
    ///
    /// # Errors
    /// If the needles exceed what one automaton can hold.
    pub(crate) fn build(self) -> Result<Built, String> {
        let automaton = if self.texts.len() <= FAST_NEEDLES_MAX {
            let built = dfa::Builder::new()
                .match_kind(MatchKind::Standard)
                .start_kind(StartKind::Unanchored)
                .prefilter(false)
                .build(&self.texts);
            built.map(|automaton| Needles::Fast(Arc::new(automaton)))
        } else {
            let built = contiguous::Builder::new().match_kind(MatchKind::Standard).prefilter(false).build(&self.texts);
            built.map(|automaton| Needles::Small(Arc::new(automaton)))
        };
        let automaton =
            automaton.map_err(|e| format!("the needles of all rules do not fit into one automaton: {e}"))?;
        let longest = self.texts.iter().map(String::len).max().unwrap_or(0);
        Ok(Built { view: self.view, automaton, needle_count: self.texts.len(), longest, regexes: self.regexes })
    }
}

/// All needles in one automaton.
#[derive(Clone, Debug)]
enum Needles {
    Fast(Arc<dfa::DFA>),
    Small(Arc<contiguous::NFA>),
}

impl Needles {
    fn seen_in(&self, text: &str, count: usize, longest: usize) -> Bits {
        let mut seen = Bits::empty(count);
        match self {
            Needles::Fast(automaton) => walk(&**automaton, text.as_bytes(), longest, &mut seen),
            Needles::Small(automaton) => walk(&**automaton, text.as_bytes(), longest, &mut seen),
        }
        seen
    }
}

/// How many times the longest needle a text must be for four readers to share it.
const SHARED_FROM: usize = 8;

/// Reads a text once and notes every needle that ends at each byte. Four readers take turns, each in a quarter of its own and
/// on until a needle that began there has ended: a step of one waits for its step before, and the processor does the others'
/// meanwhile. The library's own searches hand out one match and are asked for the next; here nothing is handed out.
fn walk(automaton: &impl Automaton, text: &[u8], longest: usize, seen: &mut Bits) {
    let Ok(start) = automaton.start_state(Anchored::No) else { return };
    let mut step = |state: &mut StateID, byte: u8| {
        *state = automaton.next_state(Anchored::No, *state, byte);
        if automaton.is_special(*state) && automaton.is_match(*state) {
            (0..automaton.match_len(*state)).for_each(|at| seen.insert(automaton.match_pattern(*state, at).as_usize()));
        }
    };
    let share = if text.len() < SHARED_FROM * longest { text.len() } else { text.len().div_ceil(4) };
    let parts: [&[u8]; 4] = std::array::from_fn(|reader| {
        let from = (reader * share).min(text.len());
        text.get(from..(from + share + longest).min(text.len())).unwrap_or_default()
    });
    let [mut first, mut second, mut third, mut last] = [start; 4];
    let together = parts[0].iter().zip(parts[1]).zip(parts[2]).zip(parts[3]);
    for (((a, b), c), d) in together {
        step(&mut first, *a);
        step(&mut second, *b);
        step(&mut third, *c);
        step(&mut last, *d);
    }
    let done = parts.map(<[u8]>::len).into_iter().min().unwrap_or(0);
    for (part, mut state) in parts.into_iter().zip([first, second, third, last]) {
        part.get(done..).unwrap_or_default().iter().for_each(|byte| step(&mut state, *byte));
    }
}

/// The table's needles and regexes for one view, ready to be looked for.
#[derive(Clone, Debug)]
pub(crate) struct Built {
    view: View,
    automaton: Needles,
    needle_count: usize,
    /// The length of the longest needle, in bytes.
    longest: usize,
    regexes: Vec<Guarded>,
}

impl Built {
    /// How many needles there are, those of regexes included.
    pub(crate) fn needle_count(&self) -> usize {
        self.needle_count
    }

    /// Which needles occur in the view.
    pub(crate) fn needles<'f>(&self, facts: &'f Facts<'_>) -> &'f Bits {
        facts.needles(self.view, |text| self.automaton.seen_in(text, self.needle_count, self.longest))
    }

    /// Whether a regex matches the view.
    pub(crate) fn regex_matches(&self, number: usize, facts: &Facts<'_>) -> bool {
        let Some(guarded) = self.regexes.get(number) else { return false };
        let seen = self.needles(facts);
        guarded.needles.as_ref().is_none_or(|needles| needles.iter().any(|needle| seen.contains(*needle)))
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_needle_is_seen_wherever_it_stands(
            needles in prop::collection::vec("[ab]{1,6}", 1..6),
            text in "[abc]{0,400}",
            is_fast: bool,
        ) {
            let mut search = Search::new(View::Text);
            let numbers: Vec<usize> = needles.iter().map(|needle| search.needle(needle)).collect();
            if !is_fast {
                (0..FAST_NEEDLES_MAX).for_each(|n| { search.needle(&format!("x{n}")); });
            }
            let built = search.build().unwrap();
            prop_assert_eq!(matches!(built.automaton, Needles::Fast(_)), is_fast);
            let seen = built.automaton.seen_in(&text, built.needle_count, built.longest);
            for (needle, number) in needles.iter().zip(numbers) {
                prop_assert_eq!(seen.contains(number), text.contains(needle.as_str()), "{} in {}", needle, text);
            }
        }
    }
}
