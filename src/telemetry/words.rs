//! The closed sets of words that fill labels.

use crate::rules::Kind;

/// A closed set of label values.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident => $word:literal),+ $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$doc])* $variant),+ }

        impl $name {
            /// All of them.
            pub const ALL: &[$name] = &[$($name::$variant),+];

            /// The value of the label.
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word),+ }
            }
        }
    };
}

words! {
    /// What one call came to (DESIGN 4).
    Outcome {
        /// It clears.
        Success => "success",
        /// It counts, or may count, against the tool.
        Failure => "failure",
        /// It neither trips nor clears.
        Neutral => "neutral",
        /// Downstream went away, drain, or our own fault.
        Abandoned => "abandoned",
    }
}

words! {
    /// Why an answer was given without the upstream (DESIGN 9).
    Reason {
        /// The tool is DOWN for this caller.
        Down => "down",
        /// The whole backend is DOWN.
        BackendDown => "backend_down",
        /// Somebody else holds the trial.
        Retesting => "retesting",
        /// A credential is missing.
        CredentialsMissing => "credentials_missing",
        /// The integration is not set up.
        IntegrationUnconfigured => "integration_unconfigured",
        /// An allow or deny list excludes the tool, or the caller lacks the role.
        Disallowed => "disallowed",
        /// One of our own limits.
        Limit => "limit",
        /// We are draining.
        Draining => "draining",
    }
}

words! {
    /// What a request is. Calls of tools are judged, the rest passes.
    RequestKind {
        /// A call of a tool.
        ToolCall => "tool_call",
        /// `tools/list`.
        ToolList => "tool_list",
        /// `initialize` or `server/discover`.
        Handshake => "handshake",
        /// Any other MCP request.
        OtherRequest => "other_request",
        /// An MCP notification or response.
        Notification => "notification",
        /// A GET stream, its resumption, or a subscription.
        Stream => "stream",
        /// The DELETE of a session.
        SessionEnd => "session_end",
        /// Several messages in one body.
        Batch => "batch",
        /// A request that no route names, an upgrade, or what is not MCP.
        Passthrough => "passthrough",
    }
}

words! {
    /// Why a call of a tool, or what may have been one, was not judged.
    Unjudged {
        /// The request's body is past the peek limit.
        PeekLimit => "peek_limit",
        /// The answer's body is in an encoding that we do not read.
        Encoding => "encoding",
        /// The answer never came by: its stream is read elsewhere.
        AnswerElsewhere => "answer_elsewhere",
        /// Too many calls wait for their answers already.
        TooMany => "too_many",
        /// Not readable as what it claims to be.
        Unreadable => "unreadable",
    }
}

words! {
    /// How the one trial of a tool that is DOWN went (DESIGN 8, RETESTING).
    TrialResult {
        /// A call was let through.
        Started => "started",
        /// It succeeded, or disproved the cause.
        Succeeded => "succeeded",
        /// It failed with the same class.
        Failed => "failed",
        /// It said nothing, was cancelled, or its lease ran out; the permit went back.
        GivenBack => "given_back",
    }
}

words! {
    /// What was done to an answer to `tools/list` (DESIGN 10).
    ListResult {
        /// Passed byte for byte.
        Unchanged => "unchanged",
        /// Something was added.
        Annotated => "annotated",
        /// Answered from the last good copy, the backend being down.
        LastGood => "last_good",
        /// Larger than the limit, passed unread.
        TooLarge => "too_large",
        /// Not readable as a list, passed as it was.
        Unreadable => "unreadable",
    }
}

words! {
    /// What a probe of an integration came to (DESIGN 11).
    ProbeResult {
        /// It is set up.
        Ok => "ok",
        /// It is not set up.
        Unconfigured => "unconfigured",
        /// Its credentials are refused.
        AuthFailed => "auth_failed",
        /// A blip: says nothing.
        Transient => "transient",
        /// An answer that the configuration does not name, or a probe that cannot be made: says nothing.
        Error => "error",
    }
}

impl From<Kind> for Outcome {
    fn from(kind: Kind) -> Outcome {
        match kind {
            Kind::Success => Outcome::Success,
            Kind::Failure => Outcome::Failure,
            Kind::Neutral => Outcome::Neutral,
        }
    }
}
