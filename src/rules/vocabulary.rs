//! The closed sets of words that rules, health and everything after them share (DESIGN 2, 6 and 7).

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a failure (or success) says about the tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Classification {
    /// The tool fails for everybody in the scope.
    TechnicallyBroken,
    /// A technical fault of one user's connection: token expired, account suspended.
    UserSpecificTechnical,
    /// Understood and refused. Never a health matter.
    UserPermission,
    /// The tool works, the arguments do not fit. Never a health matter.
    UserInput,
    /// Passes by itself: throttling, overload, a blip.
    Intermittent,
    /// The call did what it should.
    Working,
    /// Rules cannot decide; a diagnosis is asked once.
    Unclear,
}

/// Who is affected by a fault, from the narrowest to the widest; the order of the lookup cascade.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Scope {
    /// One session of one client.
    Session,
    /// One user of a tenant.
    User,
    /// Everybody in a project.
    Project,
    /// Everybody in a tenant. Written only by the write API or a rule with an explicit scope.
    Tenant,
    /// Everybody. Written only by the write API or a rule with an explicit scope.
    Global,
}

impl Scope {
    /// All scopes, narrowest first.
    pub const ALL: [Scope; 5] = [Scope::Session, Scope::User, Scope::Project, Scope::Tenant, Scope::Global];
}

/// How a failed call is named to the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum DispatchCode {
    /// The backend says that the tool does not exist.
    NotRegistered,
    /// No valid answer came, or the call was short-circuited.
    BackendUnreachable,
    /// An answer came, with an error.
    BackendFailed,
    /// Policy excludes the tool, or the backend says that it is switched off.
    Disallowed,
}

/// What a rule does to the status at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum HealthAction {
    /// Nothing beyond the evidence that the classification counts as.
    #[default]
    None,
    /// DOWN at once.
    MarkUnavailable,
    /// DEGRADED at once.
    MarkDegraded,
}

/// Why no complete answer arrived; the values of `exceptionType` in a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TransportFault {
    /// Nobody listens at the address.
    ConnectRefused,
    /// The name does not resolve.
    Dns,
    /// The TLS handshake failed.
    Tls,
    /// The connection was reset or closed before the answer.
    Reset,
    /// No answer in time, while connecting or while waiting for the head.
    Timeout,
    /// The body ended before its stated end.
    BodyTruncated,
    /// An MCP stream ended without the answer.
    StreamEnded,
    /// The child process that serves the tool is gone.
    ChildExited,
    /// What arrived is not HTTP or not MCP.
    Protocol,
}

impl TransportFault {
    /// Whether it ends a call before any part of an answer arrives: there is no status then, and no header field.
    pub const fn is_before_any_answer(self) -> bool {
        use TransportFault::{ChildExited, ConnectRefused, Dns, Tls};
        matches!(self, ConnectRefused | Dns | Tls | ChildExited)
    }
}

macro_rules! names {
    ($type:ty { $($variant:ident => $name:literal),+ $(,)? }) => {
        impl $type {
            /// The name as it is written in files, answers and metrics.
            pub const fn as_str(self) -> &'static str {
                match self { $(<$type>::$variant => $name),+ }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

names!(Classification {
    TechnicallyBroken => "TECHNICALLY_BROKEN",
    UserSpecificTechnical => "USER_SPECIFIC_TECHNICAL",
    UserPermission => "USER_PERMISSION",
    UserInput => "USER_INPUT",
    Intermittent => "INTERMITTENT",
    Working => "WORKING",
    Unclear => "UNCLEAR",
});

names!(Scope {
    Session => "SESSION",
    User => "USER",
    Project => "PROJECT",
    Tenant => "TENANT",
    Global => "GLOBAL",
});

names!(DispatchCode {
    NotRegistered => "NOT_REGISTERED",
    BackendUnreachable => "BACKEND_UNREACHABLE",
    BackendFailed => "BACKEND_FAILED",
    Disallowed => "DISALLOWED",
});

names!(HealthAction {
    None => "none",
    MarkUnavailable => "markUnavailable",
    MarkDegraded => "markDegraded",
});

names!(TransportFault {
    ConnectRefused => "connect-refused",
    Dns => "dns",
    Tls => "tls",
    Reset => "reset",
    Timeout => "timeout",
    BodyTruncated => "body-truncated",
    StreamEnded => "stream-ended",
    ChildExited => "child-exited",
    Protocol => "protocol",
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_reads_in_files_as_it_prints() {
        for scope in Scope::ALL {
            assert_eq!(serde_json::to_value(scope).unwrap(), scope.as_str());
        }
        for fault in [TransportFault::ConnectRefused, TransportFault::ChildExited, TransportFault::BodyTruncated] {
            assert_eq!(serde_json::to_value(fault).unwrap(), fault.as_str());
        }
        assert_eq!(serde_json::to_value(HealthAction::MarkDegraded).unwrap(), HealthAction::MarkDegraded.as_str());
        assert_eq!(serde_json::to_value(Classification::Unclear).unwrap(), Classification::Unclear.as_str());
        assert_eq!(serde_json::to_value(DispatchCode::Disallowed).unwrap(), DispatchCode::Disallowed.as_str());
    }
}
