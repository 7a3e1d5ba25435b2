//! Why a call got no complete answer, told by whose side it was and whether the backend may have seen the request.

use std::error::Error as _;
use std::fmt;
use std::io;
use std::sync::LazyLock;
use std::time::Duration;

use crate::rules::TransportFault;

/// The longest detail of a fault, in bytes.
const DETAIL_BYTES: usize = 200;

/// Which side of the proxy broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The dispatcher's side: it went away or sent something that is not HTTP. Never a matter of health.
    Downstream,
    /// The backend's side.
    Upstream,
    /// This proxy's own. Never a matter of health.
    Proxy(Cause),
}

/// Why this proxy gave a call up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The answer was beyond one of our limits.
    Limit,
    /// The process ends.
    Drain,
}

/// A transport fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What it counts as in the rules (DESIGN 6).
    pub kind: TransportFault,
    /// Whose side it was.
    pub side: Side,
    /// Whether any of the request may have reached the backend. Only while this is `false` may a call that is not
    /// idempotent be sent again.
    pub sent: bool,
    /// For logs and answers: one line of at most 200 bytes, made here or by the operating system, never by a peer.
    pub detail: String,
}

impl Fault {
    /// A fault of the backend's side; `detail` is cut at 200 bytes.
    pub fn upstream(kind: TransportFault, sent: bool, detail: impl Into<String>) -> Fault {
        Fault { kind, side: Side::Upstream, sent, detail: bounded(detail.into()) }
    }

    /// The dispatcher went away, or its body broke off, while the request was on its way.
    pub fn downstream(kind: TransportFault, detail: impl Into<String>) -> Fault {
        Fault { kind, side: Side::Downstream, sent: true, detail: bounded(detail.into()) }
    }

    /// A fault of our own; `detail` is cut at 200 bytes.
    pub fn own(cause: Cause, sent: bool, detail: impl Into<String>) -> Fault {
        let kind = match cause {
            Cause::Limit => TransportFault::Protocol,
            Cause::Drain => TransportFault::Reset,
        };
        Fault { kind, side: Side::Proxy(cause), sent, detail: bounded(detail.into()) }
    }

    /// The head of the answer did not come in time.
    pub(super) fn silent(limit: Duration) -> Fault {
        Fault::upstream(TransportFault::Timeout, true, format!("no answer within {limit:?}"))
    }

    /// The dispatcher did not send its body in time.
    pub(super) fn starved(limit: Duration) -> Fault {
        Fault::downstream(TransportFault::Timeout, format!("no part of the request's body arrived for {limit:?}"))
    }

    /// The head of the answer is beyond the limits.
    pub(super) fn head_too_large(max_head: usize, max_headers: usize) -> Fault {
        let detail = format!(
            "the head of the answer has more than {max_head} bytes (limits.head) or {max_headers} fields (limits.headers)"
        );
        Fault::own(Cause::Limit, true, detail)
    }

    /// What an error of hyper's client means for a call that is waiting for its head.
    pub(super) fn from_call(error: &hyper::Error, sent: bool) -> Fault {
        if let Some(own) = own_fault(error) {
            return own;
        }
        if let Some(fault) = h2_fault(error, sent) {
            return fault;
        }
        let kind = if error.is_parse() || error.is_parse_too_large() {
            TransportFault::Protocol
        } else if error.is_timeout() {
            TransportFault::Timeout
        } else {
            TransportFault::Reset
        };
        Fault::upstream(kind, sent, describe(error, "the connection broke before the answer's head"))
    }

    /// What an error of hyper means for a body that was being read from `side`.
    pub(super) fn from_body(error: &hyper::Error, side: Side) -> Fault {
        let invalid = io_source(error).is_some_and(|e| {
            matches!(e.kind(), io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput) && e.get_ref().is_some()
        });
        let kind = if invalid { TransportFault::Protocol } else { TransportFault::BodyTruncated };
        // What the system calls such an error ("invalid input parameter") reads as if the caller were to blame.
        let detail =
            if invalid { "the body's framing is broken".to_owned() } else { describe(error, "the body broke off") };
        Fault { kind, side, sent: true, detail: bounded(detail) }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.detail)
    }
}

/// Found by hyper among the causes of a body's error, it becomes the reason of the stream's reset.
static CANCEL: LazyLock<h2::Error> = LazyLock::new(|| h2::Error::from(h2::Reason::CANCEL));

impl std::error::Error for Fault {
    /// What the dispatcher gave up is cancelled at the backend, not broken.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self.side {
            Side::Downstream => Some(&*CANCEL),
            Side::Upstream | Side::Proxy(_) => None,
        }
    }
}

/// A fault that one of our own bodies raised and hyper wrapped.
fn own_fault(error: &hyper::Error) -> Option<Fault> {
    sources(error).find_map(|e| e.downcast_ref::<Fault>()).cloned()
}

/// HTTP/2 says more than "broken": a refused stream was certainly not processed (RFC 9113, 8.7).
fn h2_fault(error: &hyper::Error, sent: bool) -> Option<Fault> {
    let h2 = sources(error).find_map(|e| e.downcast_ref::<h2::Error>())?;
    let reason = h2.reason()?;
    let sent = sent && reason != h2::Reason::REFUSED_STREAM;
    let kind = if reason == h2::Reason::PROTOCOL_ERROR || reason == h2::Reason::FRAME_SIZE_ERROR {
        TransportFault::Protocol
    } else {
        TransportFault::Reset
    };
    Some(Fault::upstream(kind, sent, format!("HTTP/2 stream ended: {}", reason.description())))
}

fn describe(error: &hyper::Error, what: &str) -> String {
    match io_source(error) {
        Some(io) => format!("{what}: {}", io.kind()),
        None => format!("{what}: {error}"),
    }
}

fn io_source(error: &hyper::Error) -> Option<&io::Error> {
    sources(error).find_map(|e| e.downcast_ref::<io::Error>())
}

fn sources(error: &hyper::Error) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
    std::iter::successors(error.source(), |&e| e.source())
}

fn bounded(mut text: String) -> String {
    if text.len() > DETAIL_BYTES {
        let cut = (0..=DETAIL_BYTES).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0);
        text.truncate(cut);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_detail_is_cut_at_its_bound_between_characters() {
        let fault = Fault::upstream(TransportFault::Reset, true, "ä".repeat(300));
        assert_eq!(fault.detail.len(), DETAIL_BYTES);
    }
}
