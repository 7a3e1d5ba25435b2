//! A timer for things that hardly ever take too long: armed once and left alone while they come and go, for arming it anew
//! for each would cost more than carrying it out.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep, sleep_until};

/// Waits for a time that may be put off.
#[derive(Debug, Default)]
pub(super) struct Alarm {
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Alarm {
    /// Ready once `due` has come.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, due: Instant) -> Poll<()> {
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(due)));
        if sleep.deadline() > due {
            sleep.as_mut().reset(due);
        }
        loop {
            ready!(sleep.as_mut().poll(cx));
            if sleep.deadline() >= due {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(due);
        }
    }
}

/// The time in `limit` from now.
pub(super) fn due_in(limit: Duration) -> Instant {
    sleep(limit).deadline()
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_rings_when_it_is_due_however_it_was_armed_before() {
        let mut alarm = Alarm::default();
        let began = due_in(Duration::ZERO);
        for seconds in [5, 9, 10, 60, 61] {
            let due = began + Duration::from_secs(seconds);
            poll_fn(|cx| alarm.poll(cx, due)).await;
            assert_eq!(due_in(Duration::ZERO).duration_since(began).as_secs(), seconds);
            // A later time that is given up, and then an earlier one again.
            let far = due_in(Duration::from_secs(1000));
            assert!(poll_fn(|cx| Poll::Ready(alarm.poll(cx, far))).await.is_pending());
        }
    }
}
