//! A set of small numbers as bits: which rules are still in question, which needles were seen.

/// A set of numbers below a bound fixed at its making.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bits(Vec<u64>);

impl Bits {
    /// No member; room for numbers below `len`.
    pub(crate) fn empty(len: usize) -> Bits {
        Bits(vec![0; len.div_ceil(64)])
    }

    /// Adds a number; one beyond the bound is ignored.
    pub(crate) fn insert(&mut self, at: usize) {
        if let Some(word) = self.0.get_mut(at / 64) {
            *word |= 1 << (at % 64);
        }
    }

    /// Whether the number is a member.
    pub(crate) fn contains(&self, at: usize) -> bool {
        self.0.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
    }

    /// Keeps what `other` has too.
    pub(crate) fn keep(&mut self, other: &Bits) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine &= theirs;
        }
    }

    /// The members from the smallest up.
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().flat_map(|(at, word)| Ones(*word).map(move |bit| at * 64 + bit))
    }
}

struct Ones(u64);

impl Iterator for Ones {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let bit = self.0.trailing_zeros();
        self.0 &= self.0 - 1;
        usize::try_from(bit).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_come_back_in_order_and_sets_intersect() {
        let mut bits = Bits::empty(200);
        for at in [199, 0, 64, 63, 500] {
            bits.insert(at);
        }
        assert_eq!(bits.iter().collect::<Vec<_>>(), [0, 63, 64, 199]);
        let mut other = Bits::empty(200);
        other.insert(64);
        bits.keep(&other);
        assert_eq!(bits.iter().collect::<Vec<_>>(), [64]);
        assert!(bits.contains(64) && !bits.contains(0) && !bits.contains(9_999));
    }
}
