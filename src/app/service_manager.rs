//! What a service manager hears from us (sd_notify(3)): that we serve, that we leave, and again and again that we are alive.
//! Where no service manager listens (`NOTIFY_SOCKET` is not set) nothing is said.

use std::io;
use std::time::Duration;

use sd_notify::NotifyState;

/// A quarter of a second is soon enough for any watchdog, and cheap.
const SHORTEST_BEAT: Duration = Duration::from_millis(250);

/// Says that the listeners are bound and calls are answered.
///
/// # Errors
/// When the service manager named a socket that cannot be written to.
pub fn ready() -> io::Result<()> {
    sd_notify::notify(&[NotifyState::Ready, NotifyState::Status("serving")])
}

/// Says that the process finishes what it has and then ends.
///
/// # Errors
/// As [`ready`].
pub fn stopping() -> io::Result<()> {
    sd_notify::notify(&[NotifyState::Stopping, NotifyState::Status("draining")])
}

/// Tells the watchdog that we are alive, three times in the time that it allows, for as long as it is polled: a runtime that
/// stands still sends nothing, and the service manager starts the process anew. Ends at once if there is no watchdog.
pub async fn keep_alive() {
    let Some(limit) = sd_notify::watchdog_enabled() else { return };
    let mut beat = tokio::time::interval((limit / 3).max(SHORTEST_BEAT));
    loop {
        beat.tick().await;
        // A socket that is full or gone now may be there at the next beat; the watchdog itself is the report.
        let _ = sd_notify::notify(&[NotifyState::Watchdog]);
    }
}
