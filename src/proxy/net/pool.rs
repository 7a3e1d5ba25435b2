//! Idle connections to one backend: last in, first out, none kept longer than the backend keeps it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use super::upstream::UpstreamSettings;
use super::workers::Workers;
use crate::clock::{Clock, Tick};

/// A connection that can wait for its next call.
pub(super) trait Pooled: Send + 'static {
    /// Whether it can take a call now. Nobody is woken for a connection that waits for one: that the backend has closed it is
    /// seen here.
    fn is_ready(&mut self) -> bool;
}

/// Idle connections, on one shelf for each worker: a connection stays with the thread whose reactor watches its socket, and
/// the mutex of a shelf, held for a push or a pop, is never waited for.
#[derive(Debug)]
pub(super) struct Pool<C> {
    shelves: [Mutex<Shelf<C>>; Workers::MOST],
    /// Over all shelves.
    count: AtomicUsize,
    clock: Arc<dyn Clock>,
    idle_timeout: Duration,
    max_idle: usize,
}

#[derive(Debug)]
struct Shelf<C> {
    connections: VecDeque<(Tick, C)>,
    reaping: bool,
}

impl<C> Default for Shelf<C> {
    fn default() -> Shelf<C> {
        Shelf { connections: VecDeque::new(), reaping: false }
    }
}

impl<C: Pooled> Pool<C> {
    pub(super) fn new(settings: &UpstreamSettings, clock: Arc<dyn Clock>) -> Pool<C> {
        let shelves = std::array::from_fn(|_| Mutex::default());
        let UpstreamSettings { idle_timeout, max_idle, .. } = *settings;
        Pool { shelves, count: AtomicUsize::new(0), clock, idle_timeout, max_idle }
    }

    /// The connection that was used last, if one is ready.
    pub(super) fn take(&self) -> Option<C> {
        let now = self.clock.tick();
        let mut shelf = self.lock(Workers::here());
        while let Some((since, mut connection)) = shelf.connections.pop_back() {
            self.count.fetch_sub(1, Ordering::Relaxed);
            if now.since(since) >= self.idle_timeout {
                self.count.fetch_sub(shelf.connections.len(), Ordering::Relaxed);
                shelf.connections.clear();
                return None;
            }
            if connection.is_ready() {
                return Some(connection);
            }
        }
        None
    }

    /// Keeps a connection for the next call.
    pub(super) fn put(self: &Arc<Self>, connection: C) {
        if self.max_idle == 0 {
            return;
        }
        let here = Workers::here();
        let mut shelf = self.lock(here);
        if self.count.load(Ordering::Relaxed) >= self.max_idle && shelf.connections.pop_front().is_some() {
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
        shelf.connections.push_back((self.clock.tick(), connection));
        self.count.fetch_add(1, Ordering::Relaxed);
        if !std::mem::replace(&mut shelf.reaping, true) {
            tokio::spawn(reap(Arc::downgrade(self), here, self.idle_timeout));
        }
    }

    /// How many connections wait for a call.
    pub(super) fn idle_count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Closes what is idle for too long on a shelf; tells whether anything is left.
    fn prune(&self, shelf: usize) -> bool {
        let now = self.clock.tick();
        let mut shelf = self.lock(shelf);
        let before = shelf.connections.len();
        let idle_timeout = self.idle_timeout;
        shelf.connections.retain_mut(|(since, connection)| now.since(*since) < idle_timeout && connection.is_ready());
        self.count.fetch_sub(before - shelf.connections.len(), Ordering::Relaxed);
        shelf.reaping = !shelf.connections.is_empty();
        shelf.reaping
    }

    fn lock(&self, shelf: usize) -> MutexGuard<'_, Shelf<C>> {
        let [first, rest @ ..] = &self.shelves;
        let shelf = shelf.checked_sub(1).and_then(|at| rest.get(at)).unwrap_or(first);
        shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs while a shelf holds idle connections, so that none outlives its time for want of a next call.
async fn reap<C: Pooled>(pool: Weak<Pool<C>>, shelf: usize, every: Duration) {
    loop {
        tokio::time::sleep(every).await;
        match pool.upgrade() {
            Some(pool) if pool.prune(shelf) => {}
            _ => return,
        }
    }
}
