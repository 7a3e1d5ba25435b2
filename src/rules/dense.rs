//! The automaton of all needles as one table, of which a text is read in four places at once: one step of it waits for the last
//! one, four of them do not wait for each other.

use std::collections::BTreeSet;

use aho_corasick::automaton::{Automaton, StateID};
use aho_corasick::{Anchored, dfa};
use foldhash::HashMap;

use super::bits::Bits;

/// In how many places a text is read at once.
const LANES: usize = 4;
/// A text is cut only where a lane is this much longer than what it must read twice.
const WORTH_CUTTING: usize = 2;

/// Where each state goes with each class of bytes. Capitals of ASCII are in the class of their small letters.
#[derive(Debug)]
pub(crate) struct Dense {
    classes: [u8; 256],
    /// A state is the place of its first entry. Those with which a needle ends come last.
    next: Vec<u32>,
    start: u32,
    first_match: u32,
    stride: u32,
    /// The needles that end with each state from `first_match` on.
    matches: Vec<Box<[u32]>>,
    /// The length of the longest needle.
    longest: usize,
}

impl Dense {
    /// The automaton of these needles as a table. They are in small letters.
    pub(crate) fn new(automaton: &dfa::DFA, needles: &[String]) -> Dense {
        let (classes, examples) = classes(needles);
        let stride = u32::try_from(examples.len()).unwrap_or(0);
        let start = automaton.start_state(Anchored::No).ok();
        let mut states: Vec<StateID> = start.into_iter().collect();
        let mut numbers: HashMap<StateID, u32> = HashMap::default();
        numbers.extend(start.map(|state| (state, 0)));
        // Where each state goes, by the number under which it was met.
        let mut met: Vec<u32> = Vec::new();
        let mut at = 0;
        while let Some(state) = states.get(at).copied() {
            for byte in &examples {
                let to = automaton.next_state(Anchored::No, state, *byte);
                met.push(*numbers.entry(to).or_insert_with(|| {
                    states.push(to);
                    u32::try_from(states.len() - 1).unwrap_or(0)
                }));
            }
            at += 1;
        }
        let (matching, plain): (Vec<_>, Vec<_>) = states.iter().enumerate().partition(|(_, s)| automaton.is_match(**s));
        let order = || plain.iter().chain(&matching).map(|(number, _)| *number);
        let mut places = vec![0; states.len()];
        for (number, place) in order().zip((0_u32..).map(|place| place * stride)) {
            if let Some(known) = places.get_mut(number) {
                *known = place;
            }
        }
        let place = |number: u32| places.get(number as usize).copied().unwrap_or(0);
        let row = |number: usize| met.chunks(examples.len()).nth(number).unwrap_or_default();
        let needles = |state: StateID| {
            let numbers = (0..automaton.match_len(state)).map(|at| automaton.match_pattern(state, at).as_u32());
            numbers.collect::<Box<[u32]>>()
        };
        Dense {
            classes,
            next: order().flat_map(|number| row(number).iter().map(|to| place(*to))).collect(),
            start: place(0),
            first_match: matching.first().map_or(u32::MAX, |(number, _)| places.get(*number).copied().unwrap_or(0)),
            stride,
            matches: matching.iter().map(|(_, state)| needles(**state)).collect(),
            longest: automaton.max_pattern_len(),
        }
    }

    /// Reads a text once and notes every needle in it. What two lanes have in common is read by both, so that no needle is
    /// cut: in the second one it begins as if nothing came before, which no needle minds.
    pub(crate) fn walk(&self, text: &[u8], seen: &mut Bits) {
        let twice = self.longest.saturating_sub(1);
        let lane = (text.len() + (LANES - 1) * twice).div_ceil(LANES);
        if lane < WORTH_CUTTING * twice.max(LANES) {
            self.walk_on(self.start, text, seen);
            return;
        }
        let step = lane - twice;
        let part = |number: usize| text.get(number * step..text.len().min(number * step + lane)).unwrap_or_default();
        let parts: [&[u8]; LANES] = [part(0), part(1), part(2), part(3)];
        let [a, b, c, d] = parts;
        let mut states = [self.start; LANES];
        let (classes, next, first_match) = (&self.classes, self.next.as_slice(), self.first_match);
        for (((a, b), c), d) in a.iter().zip(b).zip(c).zip(d) {
            let [at_a, at_b, at_c, at_d] = states;
            let at_a = go(classes, next, at_a, *a);
            let at_b = go(classes, next, at_b, *b);
            let at_c = go(classes, next, at_c, *c);
            let at_d = go(classes, next, at_d, *d);
            states = [at_a, at_b, at_c, at_d];
            if at_a.max(at_b).max(at_c.max(at_d)) >= first_match {
                self.note_each(states, seen);
            }
        }
        // The last lane may be some bytes shorter than the others.
        for (state, part) in states.into_iter().zip(parts) {
            self.walk_on(state, part.get(d.len()..).unwrap_or_default(), seen);
        }
    }

    fn walk_on(&self, mut state: u32, text: &[u8], seen: &mut Bits) {
        for byte in text {
            state = go(&self.classes, &self.next, state, *byte);
            self.note(state, seen);
        }
    }

    #[inline(never)]
    fn note_each(&self, states: [u32; LANES], seen: &mut Bits) {
        states.into_iter().for_each(|state| self.note(state, seen));
    }

    #[inline]
    fn note(&self, state: u32, seen: &mut Bits) {
        if state >= self.first_match {
            let needles = self.matches.get(((state - self.first_match) / self.stride) as usize);
            needles.into_iter().flatten().for_each(|needle| seen.insert(*needle as usize));
        }
    }
}

/// Where a byte leads.
#[inline]
fn go(classes: &[u8; 256], next: &[u32], state: u32, byte: u8) -> u32 {
    let class = classes.get(usize::from(byte)).copied().unwrap_or(0);
    next.get(state as usize + usize::from(class)).copied().unwrap_or(0)
}

/// The class of each byte, and a byte of each class: one of its own for each byte that a needle has, the first for all others.
fn classes(needles: &[String]) -> ([u8; 256], Vec<u8>) {
    let used: BTreeSet<u8> = needles.iter().flat_map(|needle| needle.bytes()).collect();
    let unused = (0..=u8::MAX).find(|byte| !used.contains(byte)).unwrap_or(0);
    let examples: Vec<u8> = std::iter::once(unused).chain(used).collect();
    let class = |byte: u8| examples.iter().skip(1).position(|used| *used == byte).map_or(0, |at| at + 1);
    let mut classes = [0; 256];
    for (byte, place) in (0..=u8::MAX).zip(&mut classes) {
        *place = u8::try_from(class(byte.to_ascii_lowercase())).unwrap_or(0);
    }
    (classes, examples)
}

#[cfg(test)]
mod tests {
    use aho_corasick::{MatchKind, StartKind};
    use proptest::prelude::*;

    use super::*;

    fn seen(needles: &[String], text: &str) -> Bits {
        let mut builder = dfa::Builder::new();
        builder.match_kind(MatchKind::Standard).start_kind(StartKind::Unanchored).prefilter(false);
        let dense = Dense::new(&builder.build(needles).unwrap(), needles);
        let mut seen = Bits::empty(needles.len());
        dense.walk(text.as_bytes(), &mut seen);
        seen
    }

    fn looked_for_one_by_one(needles: &[String], text: &str) -> Bits {
        let text = text.to_ascii_lowercase();
        let mut seen = Bits::empty(needles.len());
        needles.iter().enumerate().filter(|(_, needle)| text.contains(&**needle)).for_each(|(at, _)| seen.insert(at));
        seen
    }

    #[test]
    fn a_needle_is_found_wherever_it_stands() {
        let needles = ["needle".to_owned(), "eed".to_owned(), "é".to_owned()];
        for before in 0..200 {
            let text = format!("{}NeedlE{}", "n".repeat(before), "e".repeat(200 - before));
            assert_eq!(seen(&needles, &text).iter().collect::<Vec<_>>(), [0, 1], "{text}");
        }
        assert_eq!(seen(&[], "text").iter().count(), 0);
    }

    proptest! {
        #[test]
        fn needles_are_those_of_a_search_for_each(
            needles in prop::collection::vec("[abé ]{1,6}", 0..12),
            text in "([abABé ]{0,40}|[a-zA-Z]{0,60}|\\PC{0,60}){0,6}",
        ) {
            prop_assert_eq!(seen(&needles, &text), looked_for_one_by_one(&needles, &text));
        }
    }
}
