//! Telling clients that the tool list changed (DESIGN 10): the first change at once, then at most one word per interval.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::clock::{Tick, millis};

/// What is to be done about a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// Say so now.
    Now,
    /// Say so after this long.
    After(Duration),
    /// Somebody will say so already.
    Pending,
}

/// When the clients of each backend were told last.
#[derive(Debug)]
pub(super) struct Notifier {
    interval: Duration,
    told: Mutex<HashMap<Arc<str>, Told>>,
}

#[derive(Clone, Copy, Debug)]
struct Told {
    at: Tick,
    pending: bool,
}

impl Notifier {
    pub(super) fn new(interval: Duration) -> Notifier {
        Notifier { interval, told: Mutex::default() }
    }

    /// The list of a backend reads differently from now on.
    pub(super) fn changed(&self, backend: &Arc<str>, now: Tick) -> Word {
        let mut all = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(told) = all.get_mut(backend) else {
            all.insert(Arc::clone(backend), Told { at: now, pending: false });
            return Word::Now;
        };
        if told.pending {
            return Word::Pending;
        }
        let passed = now.since(told.at);
        if passed >= self.interval {
            told.at = now;
            return Word::Now;
        }
        told.pending = true;
        Word::After(Duration::from_millis(millis(self.interval) - millis(passed)))
    }

    /// What was put off is said now.
    pub(super) fn caught_up(&self, backend: &str, now: Tick) {
        let mut all = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(told) = all.get_mut(backend) {
            *told = Told { at: now, pending: false };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_change_is_told_at_once_and_a_burst_once_more_at_the_end_of_the_interval() {
        let notifier = Notifier::new(Duration::from_secs(30));
        let backend: Arc<str> = "demo".into();
        assert_eq!(notifier.changed(&backend, Tick(1_000)), Word::Now);
        assert_eq!(notifier.changed(&backend, Tick(11_000)), Word::After(Duration::from_secs(20)));
        assert_eq!(notifier.changed(&backend, Tick(12_000)), Word::Pending);
        notifier.caught_up("demo", Tick(31_000));
        assert_eq!(notifier.changed(&backend, Tick(61_000)), Word::Now);
        assert_eq!(notifier.changed(&"other".into(), Tick(61_000)), Word::Now);
    }
}
