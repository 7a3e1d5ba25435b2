//! What happens, as a stream that operators and programs can follow (DESIGN 14, `GET /v1/events`).
//!
//! A bounded ring holds the latest happenings. Whoever follows keeps a place in it and asks for what comes after; nobody is
//! waited for, and nothing is kept for anybody. Who falls out of the ring has missed something and is told so.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value};
use tokio::sync::watch;

use crate::clock::Wall;

/// Happenings that are kept.
pub const HAPPENINGS_MAX: usize = 4_096;
/// And how much their data may hold together, in bytes.
pub const BYTES_MAX: usize = 4 << 20;

/// What kind of thing happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A status changed.
    Transition,
    /// A trial failed: DOWN goes on.
    Trial,
    /// A cooldown was armed, or cooldowns were removed.
    Cooldown,
    /// A diagnosis was asked for, refused, begun or given.
    Diagnosis,
    /// An integration became ready, or ceased to be.
    Readiness,
    /// An operator decided against the evidence, or that has ended.
    Override,
    /// A document was deleted.
    Deleted,
    /// Configuration or rules were loaded anew, or refused.
    Reload,
    /// The process starts to leave.
    Drain,
    /// Somebody wrote through the admin surface, or was refused.
    Audit,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 10] = [
        Kind::Transition,
        Kind::Trial,
        Kind::Cooldown,
        Kind::Diagnosis,
        Kind::Readiness,
        Kind::Override,
        Kind::Deleted,
        Kind::Reload,
        Kind::Drain,
        Kind::Audit,
    ];

    /// The name, as streams and filters use it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Kind::Transition => "transition",
            Kind::Trial => "trial",
            Kind::Cooldown => "cooldown",
            Kind::Diagnosis => "diagnosis",
            Kind::Readiness => "readiness",
            Kind::Override => "override",
            Kind::Deleted => "deleted",
            Kind::Reload => "reload",
            Kind::Drain => "drain",
            Kind::Audit => "audit",
        }
    }
}

/// One thing that happened.
#[derive(Debug)]
pub struct Happening {
    /// Its place in the order of this process, from 1.
    pub number: u64,
    /// What kind of thing.
    pub kind: Kind,
    /// The facts: a JSON object with `at`, and what belongs to the kind.
    pub facts: Map<String, Value>,
    /// The same as text.
    pub text: String,
}

/// What came after a place.
#[derive(Debug)]
pub struct Batch {
    /// In order; empty if nothing came.
    pub happenings: Vec<Arc<Happening>>,
    /// How many were missed because the ring no longer holds them.
    pub missed: u64,
}

/// The ring, and the bell that rings when something is added.
#[derive(Debug)]
pub struct Bus {
    ring: Mutex<Ring>,
    latest: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Ring {
    kept: VecDeque<Arc<Happening>>,
    bytes: usize,
    last: u64,
}

impl Default for Bus {
    fn default() -> Bus {
        Bus { ring: Mutex::default(), latest: watch::Sender::new(0) }
    }
}

impl Bus {
    /// Adds something that happened. Never waits for anybody.
    pub fn publish(&self, kind: Kind, at: Wall, mut facts: Map<String, Value>) {
        facts.insert("at".to_owned(), Value::String(at.to_string()));
        facts.insert("kind".to_owned(), Value::String(kind.as_str().to_owned()));
        let text = Value::Object(facts.clone()).to_string();
        let mut ring = self.lock();
        ring.last += 1;
        let number = ring.last;
        ring.bytes += text.len();
        ring.kept.push_back(Arc::new(Happening { number, kind, facts, text }));
        while ring.kept.len() > HAPPENINGS_MAX || (ring.bytes > BYTES_MAX && ring.kept.len() > 1) {
            let oldest = ring.kept.pop_front();
            ring.bytes -= oldest.map_or(0, |oldest| oldest.text.len());
        }
        drop(ring);
        self.latest.send_replace(number);
    }

    /// What came after `place`, at most `max`. A place that lies ahead of everything is one of another life: all is new to it.
    pub fn after(&self, place: u64, max: usize) -> Batch {
        let ring = self.lock();
        let place = if place > ring.last { 0 } else { place };
        let first = ring.kept.front().map_or(ring.last + 1, |oldest| oldest.number);
        let missed = first.saturating_sub(place + 1);
        let skip = usize::try_from((place + 1).saturating_sub(first)).unwrap_or(usize::MAX);
        Batch { happenings: ring.kept.iter().skip(skip).take(max).cloned().collect(), missed }
    }

    /// The place after everything that has happened so far.
    pub fn latest(&self) -> u64 {
        self.lock().last
    }

    /// Tells whenever something is added.
    pub fn bell(&self) -> watch::Receiver<u64> {
        self.latest.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn publish(bus: &Bus, words: &str) {
        let mut facts = Map::new();
        facts.insert("words".to_owned(), words.into());
        bus.publish(Kind::Transition, Wall(0), facts);
    }

    #[test]
    fn whoever_follows_gets_everything_after_his_place_once_and_in_order() {
        let bus = Bus::default();
        for number in 0..10 {
            publish(&bus, &number.to_string());
        }
        let batch = bus.after(3, 4);
        assert_eq!(batch.missed, 0);
        assert_eq!(batch.happenings.iter().map(|one| one.number).collect::<Vec<_>>(), [4, 5, 6, 7]);
        assert!(bus.after(10, 4).happenings.is_empty());
        assert_eq!(bus.after(999, 100).happenings.len(), 10, "a place of another life");
    }

    #[test]
    fn the_ring_is_bounded_and_says_what_was_missed() {
        let bus = Bus::default();
        for _ in 0..HAPPENINGS_MAX + 5 {
            publish(&bus, "");
        }
        let batch = bus.after(0, 1);
        assert_eq!((batch.missed, batch.happenings[0].number), (5, 6));
        let large = "x".repeat(BYTES_MAX / 4);
        for _ in 0..10 {
            publish(&bus, &large);
        }
        let kept = bus.after(0, usize::MAX).happenings;
        assert!(kept.iter().map(|one| one.text.len()).sum::<usize>() <= BYTES_MAX);
    }
}
