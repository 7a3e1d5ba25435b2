//! The beliefs about all integrations, read without waiting, and who must be asked next.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use moka::sync::Cache as Moka;
use tokio::sync::Notify;

use super::verdict::Entry;
use crate::clock::{Now, Tick};

/// Integrations that are remembered; the configuration rarely names a dozen.
const ENTRIES: u64 = 10_000;
/// After so long without a reader an entry is let go, to free memory. No decision rests on it: deadlines lie in the entries.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(24 * 3600);

/// How far the question to one integration has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flight {
    Waiting,
    Running,
    /// It is being asked, and something changed meanwhile: it must be asked once more.
    Again,
}

/// What is believed, and what is being asked.
#[derive(Debug)]
pub(super) struct Cache {
    entries: Moka<Arc<str>, Arc<Entry>>,
    flights: Mutex<HashMap<Arc<str>, Flight>>,
    wanted: Notify,
}

impl Cache {
    pub(super) fn new() -> Cache {
        Cache {
            entries: Moka::builder().max_capacity(ENTRIES).time_to_idle(FORGOTTEN_AFTER).build(),
            flights: Mutex::default(),
            wanted: Notify::new(),
        }
    }

    /// What is held, however old it is.
    pub(super) fn get(&self, id: &str) -> Option<Arc<Entry>> {
        self.entries.get(id)
    }

    /// What is held, however old it is. What is absent or due is wanted from now on, by however many readers, once.
    pub(super) fn read(&self, id: &Arc<str>, now: Tick) -> Option<Arc<Entry>> {
        let entry = self.entries.get(id);
        if entry.as_ref().is_none_or(|entry| entry.is_due(now)) {
            self.want(id);
        }
        entry
    }

    /// Puts a belief in place.
    pub(super) fn put(&self, id: &Arc<str>, entry: Entry) {
        self.entries.insert(Arc::clone(id), Arc::new(entry));
    }

    /// Forgets what is believed.
    pub(super) fn forget(&self, id: &str) {
        self.entries.invalidate(id);
    }

    /// What is believed must be asked about, whatever is being asked at this moment.
    pub(super) fn doubt(&self, id: &Arc<str>, now: Now) {
        if let Some(entry) = self.entries.get(id) {
            self.put(id, entry.doubted(now));
        }
        let mut flights = self.flights();
        match flights.get_mut(id) {
            Some(flight @ Flight::Running) => *flight = Flight::Again,
            Some(_) => {}
            None => {
                flights.insert(Arc::clone(id), Flight::Waiting);
                self.wanted.notify_one();
            }
        }
    }

    /// Waits until somebody is to be asked.
    pub(super) async fn wanted(&self) {
        self.wanted.notified().await;
    }

    /// Those who are to be asked; each is in flight from now on until its [`Landing`] is dropped.
    pub(super) fn take_wanted(self: &Arc<Self>) -> Vec<Landing> {
        let mut flights = self.flights();
        let waiting = flights.iter_mut().filter(|(_, flight)| **flight == Flight::Waiting);
        waiting
            .map(|(id, flight)| {
                *flight = Flight::Running;
                Landing { cache: Arc::clone(self), id: Arc::clone(id) }
            })
            .collect()
    }

    fn want(&self, id: &Arc<str>) {
        let mut flights = self.flights();
        if !flights.contains_key(id) {
            flights.insert(Arc::clone(id), Flight::Waiting);
            self.wanted.notify_one();
        }
    }

    fn landed(&self, id: &str) {
        let mut flights = self.flights();
        match flights.get_mut(id) {
            Some(flight @ Flight::Again) => {
                *flight = Flight::Waiting;
                self.wanted.notify_one();
            }
            _ => drop(flights.remove(id)),
        }
    }

    fn flights(&self) -> MutexGuard<'_, HashMap<Arc<str>, Flight>> {
        self.flights.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The one question to an integration that is in flight; dropped, in whatever way it ended, the next may start.
#[derive(Debug)]
pub(super) struct Landing {
    cache: Arc<Cache>,
    pub(super) id: Arc<str>,
}

impl Landing {
    /// Whether what is found was overtaken by a change: it belongs to what was there before.
    pub(super) fn is_overtaken(&self) -> bool {
        self.cache.flights().get(&self.id) == Some(&Flight::Again)
    }
}

impl Drop for Landing {
    fn drop(&mut self) {
        self.cache.landed(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Wall;
    use crate::readiness::verdict::Finding;
    use crate::telemetry::ProbeResult;

    const TTL: Duration = Duration::from_secs(300);
    const START: Now = Now { tick: Tick(1_000_000), wall: Wall(1_772_460_120_000) };

    fn entry(now: Now) -> Entry {
        Entry::after(None, Finding::new(ProbeResult::Ok, ""), TTL, now, 0.0)
    }

    #[test]
    fn however_many_read_what_is_absent_it_is_asked_once() {
        let (cache, id) = (Arc::new(Cache::new()), Arc::from("gmail"));
        (0..1000).for_each(|_| assert!(cache.read(&id, START.tick).is_none()));
        let asked = cache.take_wanted();
        assert_eq!(asked.len(), 1);
        (0..1000).for_each(|_| drop(cache.read(&id, START.tick)));
        assert!(cache.take_wanted().is_empty(), "it is being asked");
        cache.put(&id, entry(START));
        drop(asked);
        assert!(cache.read(&id, START.tick).is_some());
        assert!(cache.take_wanted().is_empty(), "it is known");
    }

    #[test]
    fn what_is_old_is_served_while_it_is_asked_anew() {
        let (cache, id) = (Arc::new(Cache::new()), Arc::from("gmail"));
        cache.put(&id, entry(START));
        let later = START.after(TTL);
        assert!(cache.read(&id, later.tick.before(Duration::from_millis(1))).is_some());
        assert!(cache.take_wanted().is_empty());
        assert!(cache.read(&id, later.tick).is_some());
        assert_eq!(cache.take_wanted().len(), 1);
    }

    #[test]
    fn a_change_in_mid_question_asks_once_more() {
        let (cache, id) = (Arc::new(Cache::new()), Arc::from("gmail"));
        cache.doubt(&id, START);
        let asked = cache.take_wanted();
        assert!(!asked[0].is_overtaken());
        cache.doubt(&id, START);
        cache.doubt(&id, START);
        assert!(asked[0].is_overtaken());
        drop(asked);
        let again = cache.take_wanted();
        assert_eq!(again.len(), 1);
        drop(again);
        assert!(cache.take_wanted().is_empty());
    }
}
