//! Upgraded connections: opaque bytes in both directions, with an idle limit.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use std::{future::Future, io};

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf, copy_bidirectional};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::rarely::rarely;

/// Everything that must end before the process may.
#[derive(Debug)]
pub(super) struct Tunnels {
    /// Connections, calls and tunnels in progress.
    pub(super) tracker: TaskTracker,
    /// The time for what is in flight is over: ends tunnels, which nobody can say a last word into.
    pub(super) over: CancellationToken,
    /// Cuts connections off.
    pub(super) kill: CancellationToken,
}

impl Tunnels {
    /// None yet, and `over` is still to come.
    pub(super) fn until(over: CancellationToken) -> Tunnels {
        Tunnels { tracker: TaskTracker::new(), over, kill: CancellationToken::new() }
    }

    /// Carries a tunnel until it ends or the time for it is over, and then calls `ended`.
    pub(super) fn carry(
        &self,
        tunnel: impl Future<Output = ()> + Send + 'static,
        ended: impl FnOnce() + Send + 'static,
    ) {
        let over = self.over.clone();
        self.tracker.spawn(async move {
            tokio::select! {
                () = tunnel => ended(),
                () = over.cancelled() => {}
            }
        });
    }

    /// Runs `task` until it is done or everything is cut off.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.spawn_on(&Handle::current(), task);
    }

    /// The same on the runtime of a worker.
    pub(super) fn spawn_on(&self, worker: &Handle, task: impl Future<Output = ()> + Send + 'static) {
        let kill = self.kill.clone();
        let task = async move {
            tokio::select! {
                () = task => {}
                () = rarely(kill.cancelled()) => {}
            }
        };
        self.tracker.spawn_on(task, worker);
    }
}

/// Joins both ends once their heads are through. Ends when either side ends both ways, breaks, or when nothing has moved
/// for `idle` (between once and twice that).
pub(super) async fn tunnel(downstream: OnUpgrade, upstream: OnUpgrade, idle: Duration) {
    let (Ok(downstream), Ok(upstream)) = (downstream.await, upstream.await) else { return };
    let moved = Arc::new(AtomicU64::new(0));
    let mut downstream = Counted { io: TokioIo::new(downstream), moved: Arc::clone(&moved) };
    let mut upstream = TokioIo::new(upstream);
    tokio::select! {
        _ = copy_bidirectional(&mut downstream, &mut upstream) => {}
        () = stalled(&moved, idle) => {}
    }
}

async fn stalled(moved: &AtomicU64, idle: Duration) {
    let mut seen = u64::MAX;
    loop {
        let now = moved.load(Ordering::Relaxed);
        if now == seen {
            return;
        }
        seen = now;
        tokio::time::sleep(idle).await;
    }
}

/// Counts reads and writes: one end sees the traffic of both directions.
struct Counted<T> {
    io: T,
    moved: Arc<AtomicU64>,
}

impl<T: AsyncRead + Unpin> AsyncRead for Counted<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.io).poll_read(cx, buf);
        if polled.is_ready() {
            self.moved.fetch_add(1, Ordering::Relaxed);
        }
        polled
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Counted<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.io).poll_write(cx, buf);
        if polled.is_ready() {
            self.moved.fetch_add(1, Ordering::Relaxed);
        }
        polled
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
