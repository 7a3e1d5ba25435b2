//! What kind of cause a DOWN has, so that an outcome can disprove it (DESIGN 7): a 403 ends a `connect-refused` one.

use crate::rules::{Disproves, Evidence, Finding, TransportFault};

/// The cause of a status other than OK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Cause {
    /// No answer arrives. Any answer disproves it.
    Transport,
    /// Answers arrive, and say that the server fails. A sensible answer disproves it.
    ServerError,
    /// Anything else. Only a success ends it.
    #[default]
    Other,
}

impl Cause {
    /// The cause that a failing call shows.
    pub(super) fn of(finding: &Finding) -> Cause {
        match (finding.evidence, finding.disproves) {
            (Evidence::Transport, _) | (Evidence::Down, Disproves::Nothing) => Cause::Transport,
            _ => Cause::of_signature(&finding.signature),
        }
    }

    /// The cause that a stored signature names; all that is left of it after a restart.
    pub(super) fn of_signature(signature: &str) -> Cause {
        const TRANSPORT: [TransportFault; 9] = [
            TransportFault::ConnectRefused,
            TransportFault::Dns,
            TransportFault::Tls,
            TransportFault::Reset,
            TransportFault::Timeout,
            TransportFault::BodyTruncated,
            TransportFault::StreamEnded,
            TransportFault::ChildExited,
            TransportFault::Protocol,
        ];
        if TRANSPORT.iter().any(|fault| signature == fault.as_str()) {
            Cause::Transport
        } else if signature.starts_with("http-5") || signature == "rpc-32603" {
            Cause::ServerError
        } else {
            Cause::Other
        }
    }

    /// Whether an outcome that proves this much ends it.
    pub(super) fn is_disproved_by(self, proof: Disproves) -> bool {
        match proof {
            Disproves::Nothing => false,
            Disproves::Transport => self == Cause::Transport,
            Disproves::TransportAndServerError => self != Cause::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_ends_what_it_disproves_and_nothing_else() {
        let table = [
            ("connect-refused", Disproves::Transport, true),
            ("timeout", Disproves::Nothing, false),
            ("http-503", Disproves::Transport, false),
            ("http-5xx", Disproves::TransportAndServerError, true),
            ("rpc-32603", Disproves::TransportAndServerError, true),
            ("token-expired", Disproves::TransportAndServerError, false),
        ];
        for (signature, proof, ends) in table {
            assert_eq!(Cause::of_signature(signature).is_disproved_by(proof), ends, "{signature} {proof:?}");
        }
    }
}
