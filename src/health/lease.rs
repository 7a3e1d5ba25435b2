//! The right to send the one trial of a RETESTING entry (DESIGN 8): a lease with a deadline in one atomic word.
//!
//! A permit gives itself back when it is dropped, on every way out of a call. If its holder never comes back, the lease
//! runs out and the next caller takes it; what the late holder then gives back is no longer his and is left alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::document::Key;
use super::slot::Slot;
use crate::clock::Tick;

/// The longest that a trial may keep others waiting, whatever the route's timeout.
pub const LEASE_MAX: Duration = Duration::from_secs(30);

/// Bits that count the holders, so that one holder's word never equals the next one's.
const HOLDER_BITS: u32 = 16;
const HOLDER_MASK: u64 = (1 << HOLDER_BITS) - 1;

/// Deadline in the high bits, holder number in the low ones; deadline 0 means free.
#[derive(Debug, Default)]
pub(super) struct Lease(AtomicU64);

impl Lease {
    /// Takes the lease until `now + length` (at most [`LEASE_MAX`]); `None` while another holder has it.
    pub(super) fn take(&self, now: Tick, length: Duration) -> Option<u64> {
        let held = self.0.load(Ordering::Acquire);
        if held >> HOLDER_BITS > now.0 {
            return None;
        }
        let deadline = now.after(length.min(LEASE_MAX)).0.max(now.0 + 1);
        let word = (deadline << HOLDER_BITS) | (held.wrapping_add(1) & HOLDER_MASK);
        self.0.compare_exchange(held, word, Ordering::AcqRel, Ordering::Acquire).ok().map(|_| word)
    }

    /// When the present lease runs out at the latest; `None` if it is free.
    pub(super) fn held_until(&self, now: Tick) -> Option<Tick> {
        let deadline = self.0.load(Ordering::Acquire) >> HOLDER_BITS;
        (deadline > now.0).then_some(Tick(deadline))
    }

    fn give_back(&self, word: u64) {
        let free = word & HOLDER_MASK;
        // Fails if the lease ran out and went to somebody else, whose it then is.
        let _lost = self.0.compare_exchange(word, free, Ordering::AcqRel, Ordering::Acquire);
    }
}

/// The one trial of an entry. Dropping it gives the right back.
#[derive(Debug)]
pub struct Permit {
    slot: Arc<Slot>,
    word: u64,
}

impl Permit {
    pub(super) fn take(slot: &Arc<Slot>, now: Tick, length: Duration) -> Option<Permit> {
        let word = slot.lease.take(now, length)?;
        Some(Permit { slot: Arc::clone(slot), word })
    }

    /// The entry whose trial this is.
    pub fn key(&self) -> &Key {
        &self.slot.key
    }

    pub(super) fn slot(&self) -> &Arc<Slot> {
        &self.slot
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.slot.lease.give_back(self.word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_lease_has_one_holder_until_it_is_given_back_or_runs_out() {
        let lease = Lease::default();
        let first = lease.take(Tick(1_000), SECOND).unwrap();
        assert!(lease.take(Tick(1_999), SECOND).is_none());
        lease.give_back(first);
        let second = lease.take(Tick(1_999), SECOND).unwrap();
        assert_eq!(lease.held_until(Tick(2_000)), Some(Tick(2_999)));
        assert!(lease.take(Tick(2_999), SECOND).is_some(), "run out");
        lease.give_back(second);
        assert!(lease.take(Tick(3_000), SECOND).is_none(), "a late holder gives back nothing");
    }

    #[test]
    fn no_lease_is_longer_than_thirty_seconds() {
        let lease = Lease::default();
        lease.take(Tick(0), Duration::from_secs(3_600)).unwrap();
        assert_eq!(lease.held_until(Tick(1)), Some(Tick(30_000)));
    }
}
