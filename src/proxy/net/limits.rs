//! The bounds of the downstream side, and the count of calls in flight.

use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

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

/// A bound that makes no sense.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("limits.{key} is {value}, it must be between {least} and {most}")]
pub struct LimitsError {
    /// The field.
    pub key: &'static str,
    /// What it is.
    pub value: u128,
    /// The least allowed value.
    pub least: u128,
    /// The largest allowed value.
    pub most: u128,
}

impl Limits {
    /// Whether the values lie within their bounds; durations are given in milliseconds.
    ///
    /// # Errors
    /// The first value that does not.
    pub fn checked(self) -> Result<Limits, LimitsError> {
        const DAY: u128 = 24 * 60 * 60 * 1000;
        let bounds = [
            ("head_size", self.head_size as u128, 8 * 1024, 1024 * 1024),
            ("headers", self.headers as u128, 1, 1000),
            ("head_timeout", self.head_timeout.as_millis(), 1, DAY),
            ("idle_timeout", self.idle_timeout.as_millis(), 1, DAY),
            ("connections", self.connections as u128, 1, 1_000_000),
            ("streams", u128::from(self.streams), 1, 100_000),
        ];
        match bounds.into_iter().find(|(_, value, least, most)| value < least || value > most) {
            Some((key, value, least, most)) => Err(LimitsError { key, value, least, most }),
            None => Ok(self),
        }
    }
}

/// How many calls may be in flight at once. Clones share the count.
#[derive(Clone, Debug)]
pub struct CallLimit {
    free: Arc<Semaphore>,
    limit: usize,
}

/// The place of one call; dropped, it is free again. Keep it with the answer's body: [`Body::guarded`](super::Body::guarded).
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
