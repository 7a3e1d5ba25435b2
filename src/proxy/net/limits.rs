//! The bounds of the downstream side, and the count of calls in flight.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

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
#[derive(Clone, Debug)]
pub struct CallLimit {
    free: Arc<Semaphore>,
    limit: usize,
}

/// The place of one call; dropped, it is free again.
#[derive(Debug)]
pub struct CallPermit {
    _place: OwnedSemaphorePermit,
}

impl CallLimit {
    /// Room for `limit` calls.
    pub fn new(limit: usize) -> CallLimit {
        let limit = limit.min(Semaphore::MAX_PERMITS);
        CallLimit { free: Arc::new(Semaphore::new(limit)), limit }
    }

    /// A place, if one is free. Nothing waits: a queue in front of a slow backend only makes answers late.
    pub fn enter(&self) -> Option<CallPermit> {
        let place = Arc::clone(&self.free).try_acquire_owned().ok()?;
        Some(CallPermit { _place: place })
    }

    /// The limit.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Calls in flight.
    pub fn in_flight(&self) -> usize {
        self.limit.saturating_sub(self.free.available_permits())
    }
}
