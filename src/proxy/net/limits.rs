//! The bounds of the downstream side, and the count of calls in flight.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::workers::Workers;

/// hyper takes this default number of header fields from the stack, any other from the heap.
pub(super) const HYPER_HEADERS: usize = 100;

/// Bounds on connections and heads. In the configuration they are `limits.head`, `headers`, `header_timeout`, `idle` and
/// `connections`; the others keep their defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a request's head, the request line included: 8 KiB to 1 MiB. Past it: 431.
    pub head_size: usize,
    /// Number of header fields of a request, 1 to 1,000. Past it: 431.
    pub headers: usize,
    /// From the first byte of a head to its end. Past it: 408.
    pub head_timeout: Duration,
    /// How long a connection may stay without a request; it is closed between one and two times this after its last.
    pub idle_timeout: Duration,
    /// Connections open at once over all listeners. Past it: 429 to the next one, and its connection closed.
    pub connections: usize,
    /// HTTP/2 streams of one connection.
    pub streams: u32,
    /// How often an HTTP/2 dispatcher is asked whether it still lives, and how long it may take to answer.
    pub h2_ping: Option<(Duration, Duration)>,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            head_size: 64 * 1024,
            headers: 100,
            head_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(75),
            connections: 10_000,
            streams: 256,
            h2_ping: Some((Duration::from_secs(30), Duration::from_secs(20))),
        }
    }
}

/// How many calls may be in flight at once. Clones share the count.
///
/// Each worker keeps a few free places at hand, so that the count is not handed from core to core with every call. A call is
/// refused only if there is none anywhere.
#[derive(Clone, Debug)]
pub struct CallLimit {
    places: Arc<Places>,
}

/// Free places.
#[derive(Debug)]
struct Places {
    limit: usize,
    /// How many a worker takes at a time.
    batch: usize,
    common: AtomicUsize,
    at_hand: [AtHand; Workers::MOST],
}

/// Places at hand of one worker, on a cache line of their own.
#[derive(Debug, Default)]
#[repr(align(64))]
struct AtHand(AtomicUsize);

/// The place of one call; dropped, it is free again.
#[derive(Debug)]
pub struct CallPermit {
    limit: Arc<CallLimit>,
}

impl CallLimit {
    /// Room for `limit` calls.
    pub fn new(limit: usize) -> CallLimit {
        let places = Places {
            limit,
            batch: (limit / (4 * Workers::MOST)).min(16),
            common: AtomicUsize::new(limit),
            at_hand: std::array::from_fn(|_| AtHand::default()),
        };
        CallLimit { places: Arc::new(places) }
    }

    /// A place, if one is free. Nothing waits: a queue in front of a slow backend only makes answers late.
    pub fn enter(self: &Arc<Self>) -> Option<CallPermit> {
        let places = &self.places;
        let free = take(places.here(), 1) == 1 || places.fill() || places.others();
        free.then(|| CallPermit { limit: Arc::clone(self) })
    }

    /// The limit.
    pub fn limit(&self) -> usize {
        self.places.limit
    }

    /// Calls in flight.
    pub fn in_flight(&self) -> usize {
        let at_hand: usize = self.places.at_hand.iter().map(|places| places.0.load(Ordering::Relaxed)).sum();
        self.places.limit.saturating_sub(self.places.common.load(Ordering::Relaxed) + at_hand)
    }
}

impl Places {
    fn here(&self) -> &AtomicUsize {
        let [first, ..] = &self.at_hand;
        &self.at_hand.get(Workers::here()).unwrap_or(first).0
    }

    /// Takes a place, and some to have at hand, of those that belong to nobody.
    fn fill(&self) -> bool {
        let taken = take(&self.common, self.batch.max(1));
        if taken > 1 {
            self.here().fetch_add(taken - 1, Ordering::AcqRel);
        }
        taken > 0
    }

    /// Takes a place that another worker has at hand.
    fn others(&self) -> bool {
        self.at_hand.iter().any(|places| take(&places.0, 1) == 1)
    }

    fn give_back(&self) {
        if self.batch == 0 {
            self.common.fetch_add(1, Ordering::AcqRel);
        } else if self.here().fetch_add(1, Ordering::AcqRel) >= 2 * self.batch {
            let surplus = take(self.here(), self.batch);
            self.common.fetch_add(surplus, Ordering::AcqRel);
        }
    }
}

impl Drop for CallPermit {
    fn drop(&mut self) {
        self.limit.places.give_back();
    }
}

/// Takes up to `count` places and says how many it got.
fn take(from: &AtomicUsize, count: usize) -> usize {
    let less = |free: usize| (free > 0).then(|| free.saturating_sub(count));
    from.fetch_update(Ordering::AcqRel, Ordering::Acquire, less).map_or(0, |free| free.min(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_given_out_once_and_given_back() {
        for limit in [0, 1, 3, 255, 256, 5_000] {
            let room = Arc::new(CallLimit::new(limit));
            for _ in 0..2 {
                let inside: Vec<_> = (0..limit).map(|_| room.enter().unwrap()).collect();
                assert!(room.enter().is_none(), "{limit}");
                assert_eq!(room.in_flight(), limit);
                drop(inside);
                assert_eq!(room.in_flight(), 0);
            }
        }
    }

    #[test]
    fn a_call_gets_the_last_place_whichever_worker_has_it_at_hand() {
        let room = Arc::new(CallLimit::new(5_000));
        room.places.common.store(0, Ordering::Relaxed);
        room.places.at_hand[Workers::MOST - 1].0.store(1, Ordering::Relaxed);
        assert!(room.enter().is_some());
    }

    #[test]
    fn no_place_is_lost_between_workers() {
        let workers = Workers::start(4).unwrap();
        let room = Arc::new(CallLimit::new(600));
        let (tell, told) = std::sync::mpsc::channel();
        let seats: Vec<_> = (0..4).map(|_| workers.seat().unwrap()).collect();
        for seat in &seats {
            let (room, tell) = (Arc::clone(&room), tell.clone());
            seat.handle.spawn(async move {
                for n in 0..2_000 {
                    let inside: Vec<_> = (0..n % 200).filter_map(|_| room.enter()).collect();
                    assert!(room.in_flight() <= 600 && inside.len() < 200);
                }
                tell.send(()).unwrap();
            });
        }
        seats.iter().for_each(|_| told.recv().unwrap());
        assert_eq!(room.in_flight(), 0);
        assert_eq!((0..600).map(|_| room.enter().unwrap()).collect::<Vec<_>>().len(), 600);
    }
}
