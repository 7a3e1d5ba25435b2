//! Who calls (DESIGN 5): the identity that a health entry is looked up and written for.

use std::fmt;
use std::sync::Arc;

/// The name under which a caller without any user keeps his cooldowns, on the PROJECT document.
pub const ANONYMOUS: &str = "anonymous";

/// The caller of one request, as the configured identity sources gave it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Caller {
    /// MCP session or what stands for it; absent on stateless calls.
    pub session: Option<Arc<str>>,
    /// The user; absent means anonymous.
    pub user: Option<Arc<str>>,
    /// The project; never absent, `default` if nothing names one.
    pub project: Arc<str>,
    /// The tenant; never absent, `default` if nothing names one.
    pub tenant: Arc<str>,
    /// Roles that the caller holds.
    pub roles: Vec<Arc<str>>,
    /// The keyed hash of the credential that the call carried, if it carried one.
    pub credential: Option<CredentialHash>,
}

impl Caller {
    /// A user of whom nothing else is known, for outcomes that do not say who called.
    pub fn somebody() -> Caller {
        Caller {
            session: None,
            user: Some(Arc::from("somebody")),
            project: Arc::from("default"),
            tenant: Arc::from("default"),
            roles: Vec::new(),
            credential: None,
        }
    }
}

/// A keyed hash of a credential: enough to see that another one is used, useless to anybody who reads it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CredentialHash(pub u64);

impl fmt::Display for CredentialHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for CredentialHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CredentialHash({self})")
    }
}

impl std::str::FromStr for CredentialHash {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<CredentialHash, Self::Err> {
        u64::from_str_radix(text, 16).map(CredentialHash)
    }
}
