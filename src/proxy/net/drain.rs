//! Leaving without hurting anybody: first the word that we leave, then the end of what is in flight.

use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Where a listener stands between serving and gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// As usual.
    Serving,
    /// Everything is still served, new connections too (a sidecar is asked to drain before its neighbours stop calling),
    /// but answers carry `Connection: close`, and HTTP/2 connections get a GOAWAY.
    Draining,
    /// No new connections; idle ones are closed; what is in flight has this long to finish and is then cut off.
    Stopping(Duration),
}

/// The hand that moves the phase. It only ever moves forward.
#[derive(Clone, Debug)]
pub struct Drain {
    phase: watch::Sender<Phase>,
}

/// What listeners watch.
#[derive(Clone, Debug)]
pub struct DrainSignal {
    phase: watch::Receiver<Phase>,
    over: CancellationToken,
}

impl Drain {
    /// A hand and what it moves, both at [`Phase::Serving`].
    pub fn new() -> (Drain, DrainSignal) {
        let (sender, receiver) = watch::channel(Phase::Serving);
        let over = CancellationToken::new();
        (Drain { phase: sender }, DrainSignal { phase: receiver, over })
    }

    /// Says that we are about to leave, and goes on serving.
    pub fn announce(&self) {
        self.phase.send_if_modified(|phase| {
            let forward = *phase == Phase::Serving;
            if forward {
                *phase = Phase::Draining;
            }
            forward
        });
    }

    /// Ends serving, with `drain_timeout` for what is in flight. Said again, only a shorter timeout counts, from then on.
    pub fn stop(&self, drain_timeout: Duration) {
        self.phase.send_if_modified(|phase| {
            let forward = !matches!(phase, Phase::Stopping(timeout) if *timeout <= drain_timeout);
            if forward {
                *phase = Phase::Stopping(drain_timeout);
            }
            forward
        });
    }
}

impl DrainSignal {
    /// Where we stand.
    pub fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    /// Whether answers must say that the connection ends.
    pub fn is_leaving(&self) -> bool {
        self.phase() != Phase::Serving
    }

    /// Waits until we leave: [`Phase::Draining`] or later.
    pub async fn leaving(&mut self) {
        self.until(|phase| *phase != Phase::Serving).await;
    }

    /// Waits for [`Phase::Stopping`].
    pub async fn stopping(&mut self) {
        self.until(|phase| matches!(phase, Phase::Stopping(_))).await;
    }

    /// Waits until the time for what is in flight is over: calls that still wait for their answer get none from a backend.
    pub async fn over(&self) {
        self.over.cancelled().await;
    }

    pub(super) fn over_token(&self) -> CancellationToken {
        self.over.clone()
    }

    /// Waits until the timeout of [`Phase::Stopping`] has passed, also if it is shortened meanwhile.
    pub(super) async fn overdue(&mut self) {
        loop {
            let timeout = match *self.phase.borrow_and_update() {
                Phase::Stopping(timeout) => timeout,
                // The hand is gone: whoever owned us has ended.
                Phase::Serving | Phase::Draining => Duration::ZERO,
            };
            tokio::select! {
                () = tokio::time::sleep(timeout) => return,
                Ok(()) = self.phase.changed() => {}
            }
        }
    }

    async fn until(&mut self, reached: impl FnMut(&Phase) -> bool) {
        // An error means that the hand is gone, which is as good as the last phase.
        let _ = self.phase.wait_for(reached).await;
    }
}
