//! Leaving without hurting anybody: first the word that we leave, then the end of what is in flight.

use std::time::Duration;

use tokio::sync::watch;

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
}

impl Drain {
    /// A hand and what it moves, both at [`Phase::Serving`].
    pub fn new() -> (Drain, DrainSignal) {
        let (sender, receiver) = watch::channel(Phase::Serving);
        (Drain { phase: sender }, DrainSignal { phase: receiver })
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

    /// Ends serving, with `drain_timeout` for what is in flight. Said twice, the first timeout stands.
    pub fn stop(&self, drain_timeout: Duration) {
        self.phase.send_if_modified(|phase| {
            let forward = !matches!(phase, Phase::Stopping(_));
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

    /// Waits for [`Phase::Stopping`] and gives its timeout.
    pub async fn stopping(&mut self) -> Duration {
        self.until(|phase| matches!(phase, Phase::Stopping(_))).await;
        match self.phase() {
            Phase::Stopping(timeout) => timeout,
            // The hand is gone: whoever owned us has ended.
            Phase::Serving | Phase::Draining => Duration::ZERO,
        }
    }

    async fn until(&mut self, reached: impl FnMut(&Phase) -> bool) {
        // An error means that the hand is gone, which is as good as the last phase.
        let _ = self.phase.wait_for(reached).await;
    }
}
