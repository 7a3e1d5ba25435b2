//! The threads that carry calls: each with a runtime of its own, so that a call is read, forwarded and answered by one
//! thread, and nothing of it is ever handed from core to core.
//!
//! Connections are given to the worker that holds the fewest, rather than by the kernel (`SO_REUSEPORT`): dispatchers keep
//! few connections open for long, and by chance most of them would land on one thread.

use std::cell::Cell;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio_util::sync::{CancellationToken, DropGuard};

thread_local! {
    static HERE: Cell<usize> = const { Cell::new(0) };
}

/// The worker threads. They end when the last clone is dropped.
#[derive(Clone, Debug)]
pub struct Workers {
    workers: Arc<Vec<Worker>>,
    _end: Arc<DropGuard>,
}

#[derive(Debug)]
struct Worker {
    handle: Handle,
    connections: Arc<AtomicUsize>,
}

/// One connection's place at a worker; given back when dropped.
#[derive(Debug)]
pub(super) struct Seat {
    pub(super) handle: Handle,
    connections: Arc<AtomicUsize>,
}

impl Workers {
    /// More workers than this share what belongs to one: see [`Workers::here`].
    pub(in crate::proxy) const MOST: usize = 64;

    /// Starts `count` threads, at least one.
    ///
    /// # Errors
    /// When the machine has no threads or files left.
    pub fn start(count: usize) -> io::Result<Workers> {
        let end = CancellationToken::new();
        let workers = (0..count.clamp(1, Workers::MOST))
            .map(|index| Worker::start(index, end.clone()))
            .collect::<io::Result<_>>()?;
        Ok(Workers { workers: Arc::new(workers), _end: Arc::new(end.drop_guard()) })
    }

    /// The calling thread alone, for a runtime that is there already.
    pub fn current() -> Workers {
        let worker = Worker { handle: Handle::current(), connections: Arc::default() };
        Workers { workers: Arc::new(vec![worker]), _end: Arc::new(CancellationToken::new().drop_guard()) }
    }

    /// Which worker the calling thread is, below [`Workers::MOST`]; 0 also for threads that are none.
    pub(in crate::proxy) fn here() -> usize {
        HERE.get()
    }

    /// A place at the worker with the fewest connections.
    pub(super) fn seat(&self) -> Option<Seat> {
        let worker = self.workers.iter().min_by_key(|worker| worker.connections.load(Ordering::Relaxed))?;
        worker.connections.fetch_add(1, Ordering::Relaxed);
        Some(Seat { handle: worker.handle.clone(), connections: Arc::clone(&worker.connections) })
    }
}

impl Worker {
    fn start(index: usize, end: CancellationToken) -> io::Result<Worker> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        thread::Builder::new().name(format!("worker-{index}")).spawn(move || {
            HERE.set(index);
            runtime.block_on(end.cancelled());
        })?;
        Ok(Worker { handle, connections: Arc::default() })
    }
}

impl Seat {
    /// Keeps the place as long as `work` runs.
    pub(super) async fn during(self, work: impl Future<Output = ()>) {
        work.await;
        drop(self);
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_go_to_the_worker_that_holds_the_fewest() {
        let workers = Workers::start(2).unwrap();
        let held = |at: usize| workers.workers[at].connections.load(Ordering::Relaxed);
        let (first, _second, _third) = (workers.seat(), workers.seat(), workers.seat());
        assert_eq!((held(0), held(1)), (2, 1));
        drop(first);
        let _fourth = workers.seat();
        assert_eq!(held(0) + held(1), 3);
        assert!(held(0).abs_diff(held(1)) == 1);
    }

    #[test]
    fn each_worker_is_a_thread_of_its_own_that_knows_which_it_is() {
        let workers = Workers::start(3).unwrap();
        let mut seen: Vec<usize> = (0..3)
            .map(|_| {
                let seat = workers.seat().unwrap();
                let (tell, told) = std::sync::mpsc::channel();
                seat.handle.spawn(async move { tell.send(Workers::here()).unwrap() });
                std::mem::forget(seat);
                told.recv().unwrap()
            })
            .collect();
        seen.sort_unstable();
        assert_eq!(seen, [0, 1, 2]);
    }
}
