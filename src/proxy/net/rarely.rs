//! A future that is hardly ever ready, beside one that is polled all the time.
//!
//! Waiting for the end of the process costs a lock that all connections share, each time it is polled. Wrapped in
//! [`rarely`] it is polled only when it has been woken itself, and costs a look at memory that no other thread touches.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// `inner`, polled at first and then only when it was woken.
pub(super) fn rarely<F: Future>(inner: F) -> Rarely<F> {
    let task = Waker::noop();
    let bell = Arc::new(Bell { rung: AtomicBool::new(true), task: Mutex::new(task.clone()) });
    Rarely { inner: Box::pin(inner), waker: Waker::from(Arc::clone(&bell)), bell, task: task.clone() }
}

pub(super) struct Rarely<F> {
    inner: Pin<Box<F>>,
    bell: Arc<Bell>,
    waker: Waker,
    /// The task that the bell wakes.
    task: Waker,
}

/// Rung by what the future waits for; passes it on to the task.
struct Bell {
    rung: AtomicBool,
    task: Mutex<Waker>,
}

impl Bell {
    fn remember(&self, waker: &Waker) {
        self.task.lock().unwrap_or_else(PoisonError::into_inner).clone_from(waker);
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.rung.store(true, Ordering::Release);
        self.task.lock().unwrap_or_else(PoisonError::into_inner).wake_by_ref();
    }
}

impl<F: Future> Future for Rarely<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        // First the waker, then the look: a bell that rings in between wakes the task that is being polled.
        if !this.task.will_wake(cx.waker()) {
            this.task.clone_from(cx.waker());
            this.bell.remember(cx.waker());
        }
        // What rings after this look wakes the task by the waker that is there.
        if !this.bell.rung.load(Ordering::Acquire) || !this.bell.rung.swap(false, Ordering::AcqRel) {
            return Poll::Pending;
        }
        this.inner.as_mut().poll(&mut Context::from_waker(&this.waker))
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::atomic::AtomicUsize;

    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn the_inner_future_is_polled_when_it_was_woken_and_only_then() {
        let (polls, bell) = (AtomicUsize::new(0), Notify::new());
        let mut notified = Box::pin(bell.notified());
        let mut rare = rarely(poll_fn(|cx| {
            polls.fetch_add(1, Ordering::Relaxed);
            notified.as_mut().poll(cx)
        }));
        for _ in 0..10 {
            assert!(poll_fn(|cx| Poll::Ready(Pin::new(&mut rare).poll(cx))).await.is_pending());
        }
        assert_eq!(polls.load(Ordering::Relaxed), 1);
        bell.notify_one();
        rare.await;
        assert_eq!(polls.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn whoever_polled_last_is_woken() {
        let bell = Arc::new(Notify::new());
        let inner = Arc::clone(&bell);
        let mut rare = rarely(async move { inner.notified().await });
        // Polled by this task first, then moved to another.
        assert!(poll_fn(|cx| Poll::Ready(Pin::new(&mut rare).poll(cx))).await.is_pending());
        let elsewhere = tokio::spawn(rare);
        tokio::task::yield_now().await;
        bell.notify_one();
        elsewhere.await.unwrap();
    }
}
