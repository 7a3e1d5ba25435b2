//! Interim answers (1xx) on their way to an HTTP/1.1 dispatcher. RFC 9110, 15.2 has a proxy pass on those that it did not ask
//! for, and hyper's server cannot send them; so they wait here until the [`Wire`](super::wire::Wire) stands between two
//! writes of hyper's, and the final answer waits for them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::{Bytes, BytesMut};
use http::header;
use http::{HeaderMap, StatusCode};

use super::wire::Turn;
use crate::http::hop;

/// Bytes of interim answers that wait for a slow dispatcher. What comes on top of it is left out: it only informs.
const MOST: usize = 16 * 1024;

/// Those of one connection, which carries one call at a time.
#[derive(Debug, Default)]
pub(super) struct Interim {
    state: Mutex<State>,
    /// Something is waiting, or is being written.
    waiting: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    /// The call whose final answer is still to come, by its number on the connection; 0 if there is none that may have any.
    call: u64,
    bytes: BytesMut,
    /// Turns the connection's task.
    waker: Option<Waker>,
}

/// Takes the interim answers of one call.
#[derive(Debug)]
pub(super) struct Relay {
    turn: Arc<Turn>,
    call: u64,
}

impl Relay {
    /// For the call that is in progress; `waker` is that of the connection's task.
    pub(super) fn of(turn: Arc<Turn>, waker: Waker) -> Relay {
        let call = turn.calls();
        let mut state = turn.interim.lock();
        state.call = call;
        state.waker = Some(waker);
        drop(state);
        Relay { turn, call }
    }

    /// Passes one on, without what belongs to the backend's connection. The reason phrase is the usual one: hyper tells no
    /// other, nor the letter case of names.
    pub(super) fn pass(&self, status: StatusCode, headers: &HeaderMap) {
        let interim = &self.turn.interim;
        let mut state = interim.lock();
        let head = serialised(status, headers);
        // The final answer may have come from elsewhere: a timeout, say.
        if state.call == self.call && state.bytes.len() + head.len() <= MOST {
            state.bytes.extend_from_slice(&head);
            interim.waiting.store(true, Ordering::Release);
            if let Some(waker) = &state.waker {
                waker.wake_by_ref();
            }
        }
    }
}

impl Interim {
    /// Whether the connection has something to write.
    pub(super) fn is_waiting(&self) -> bool {
        self.waiting.load(Ordering::Acquire)
    }

    /// What is to be written next; `None` when all that was taken before is written and nothing has come since.
    pub(super) fn take(&self) -> Option<Bytes> {
        let mut state = self.lock();
        if !state.bytes.is_empty() {
            return Some(state.bytes.split().freeze());
        }
        self.waiting.store(false, Ordering::Release);
        if let Some(waker) = &state.waker {
            waker.wake_by_ref();
        }
        None
    }

    /// Ready when the final answer may be given: everything before it is written, and nothing comes after it.
    pub(super) fn poll_closed(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        if self.is_waiting() {
            state.waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        *state = State::default();
        Poll::Ready(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn serialised(status: StatusCode, headers: &HeaderMap) -> Vec<u8> {
    let mut headers = headers.clone();
    hop::strip(&mut headers);
    // It has no body, whatever its fields say.
    headers.remove(header::CONTENT_LENGTH);
    let reason = status.canonical_reason().unwrap_or_default();
    let mut head = format!("HTTP/1.1 {} {reason}\r\n", status.as_str()).into_bytes();
    for (name, value) in &headers {
        head.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    head.extend_from_slice(b"\r\n");
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_for_a_slow_dispatcher_is_bounded_and_nothing_comes_after_the_final_answer() {
        let turn = Arc::new(Turn::default());
        let _busy = turn.begin();
        let relay = Relay::of(Arc::clone(&turn), Waker::noop().clone());
        (0..10_000).for_each(|_| relay.pass(StatusCode::PROCESSING, &HeaderMap::new()));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(turn.interim.poll_closed(&mut cx).is_pending());
        assert!(turn.interim.take().unwrap().len() <= MOST);
        assert!(turn.interim.poll_closed(&mut cx).is_pending(), "taken is not yet written");
        assert_eq!(turn.interim.take(), None);
        assert!(turn.interim.poll_closed(&mut cx).is_ready());
        relay.pass(StatusCode::PROCESSING, &HeaderMap::new());
        assert!(!turn.interim.is_waiting());
    }
}
