//! The port through which the path of a call learns whether what backs a tool is set up (DESIGN 11). Implemented by
//! `readiness`, wired by `app`.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};

use super::cascade::ToolRef;
use crate::clock::{Now, Wall};

/// Says whether a tool's integration and credentials are there.
pub trait Readiness: fmt::Debug + Send + Sync + 'static {
    /// What is not set up behind the tool; `None` while nothing is known against it. Returns at once, whatever the network
    /// does: what has to be asked is asked in the background.
    fn unready(&self, at: &ToolRef, declared: Option<&Declared>, now: Now) -> Option<Unready>;

    /// Whether there is anything that must be set up behind the tool. Where there is nothing, nothing is ever
    /// [`unready`](Readiness::unready) either, as long as configuration and declaration stay as they are.
    fn is_backed(&self, at: &ToolRef, declared: Option<&Declared>) -> bool;

    /// The integration that backs a tool, whether or not it is configured.
    fn integration(&self, at: &ToolRef, declared: Option<&Declared>) -> Option<Arc<str>>;

    /// Credentials that the backend declares for a tool and that nobody can check here, since `readiness.credentials` does
    /// not map them. They never hide a tool.
    fn unchecked(&self, at: &ToolRef, declared: Option<&Declared>) -> Vec<Arc<str>>;
}

/// What a backend says of a tool in its own list (`annotations` or `_meta`). The configuration goes before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Declared {
    /// The integration that backs the tool.
    pub integration: Option<Arc<str>>,
    /// Names of credentials that the tool needs.
    pub credentials: Vec<Arc<str>>,
    /// Roles that a caller must hold, all of them, to see the tool.
    pub roles: Vec<Arc<str>>,
    /// What it can be called with, by the examples of its schema; kept only for tools that may be tried.
    pub sample: Option<Arc<Map<String, Value>>>,
}

/// Why a tool is not set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StatusReason {
    /// A required credential is absent.
    CredentialsMissing,
    /// The integration's probe said that it is not configured, or refused its credentials.
    IntegrationUnconfigured,
}

impl StatusReason {
    /// The name in answers, labels and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            StatusReason::CredentialsMissing => "credentials_missing",
            StatusReason::IntegrationUnconfigured => "integration_unconfigured",
        }
    }
}

/// What is not set up behind a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unready {
    /// Why.
    pub reason: StatusReason,
    /// The integration, if one is named.
    pub integration: Option<Arc<str>>,
    /// What somebody has to do, in the operator's words.
    pub setup_hint: Option<Arc<str>>,
    /// Names of the credentials that are absent; never their values.
    pub missing: Vec<Arc<str>>,
    /// Since when, as far as this process knows.
    pub since: Option<Wall>,
    /// When that may be found to have changed.
    pub next_check: Wall,
}
