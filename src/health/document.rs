//! The health document (DESIGN 8): all we hold about one `(tenant, scope, scopeId, backend, tool)`, in the form in which it
//! is stored and shown. Times are wall times; decisions run on the in-memory form.

use std::hash::{Hash, Hasher};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::overrides::Override;
use crate::clock::Wall;
use crate::rules::{Classification, Scope};

/// The reserved tool name under which faults of a whole backend are held.
pub const WHOLE_BACKEND: &str = "*";

/// The backend name of GLOBAL entries that hold for every backend.
pub const ANY_BACKEND: &str = "*";

/// Whether a tool is usable. RETESTING is derived, never stored: DOWN whose `nextTrialAt` has passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Status {
    /// Usable.
    #[default]
    Ok,
    /// Usable, fails now and then.
    Degraded,
    /// Not usable until the next trial.
    Down,
}

/// Whose hand wrote the status last, lowest rank first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// The evidence judge or a rule's `healthAction`.
    #[default]
    Evidence,
    /// A successful call.
    Success,
    /// A system event.
    System,
    /// A diagnosis.
    Engine,
    /// The write API.
    Admin,
}

/// What makes a document unique. GLOBAL has no tenant and no scope id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Key {
    /// The tenant that the entry belongs to; `None` for GLOBAL.
    pub tenant_id: Option<String>,
    /// Who is affected.
    pub scope: Scope,
    /// Session, user, project or tenant id; `None` for GLOBAL.
    pub scope_id: Option<String>,
    /// The backend, or [`ANY_BACKEND`] at GLOBAL.
    pub backend: String,
    /// The tool, or [`WHOLE_BACKEND`].
    pub tool_name: String,
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        hash_parts(self.scope, self.scope_id.as_deref(), (&self.backend, &self.tool_name), state);
    }
}

/// How a key hashes, owned or borrowed. The tenant is left out: within one scope id it hardly ever tells keys apart, and each
/// call hashes ten keys.
pub(super) fn hash_parts<H: Hasher>(scope: Scope, scope_id: Option<&str>, at: (&str, &str), state: &mut H) {
    state.write_u8(scope as u8);
    state.write(scope_id.unwrap_or_default().as_bytes());
    state.write(at.0.as_bytes());
    state.write(at.1.as_bytes());
}

/// What is believed about one tool at one scope, and how that came about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Document {
    /// What makes it unique.
    #[serde(flatten)]
    pub key: Key,
    /// OK, DEGRADED or DOWN.
    pub status: Status,
    /// When the status was set; changes only when the status does.
    pub since: Wall,
    /// The last probe, diagnosis or judged call.
    pub last_checked_at: Option<Wall>,
    /// When somebody *estimated* the tool to be back; null when nobody did.
    pub expected_recovery_at: Option<Wall>,
    /// From when a trial is allowed; set on every DOWN, null otherwise.
    pub next_trial_at: Option<Wall>,
    /// The last diagnosis, if one was made.
    pub last_diagnosis: Option<Diagnosis>,
    /// Newest last; bounded.
    pub history: Vec<HistoryEntry>,
    /// Bounded, one per `(errorSignature, userId)`.
    pub cooldowns: Vec<Cooldown>,
    /// Levels that survive a clear; bounded.
    #[serde(default)]
    pub tombstones: Vec<Tombstone>,
    /// Start of the evidence that set the status.
    pub as_of: Wall,
    /// Whose hand set the status.
    pub origin: Origin,
    /// The signature that set a status other than OK.
    pub signature: Option<String>,
    /// The classification that set a status other than OK.
    #[serde(default)]
    pub classification: Option<Classification>,
    /// Grows by one with every change of status.
    pub epoch: u64,
    /// Grows by one with every change.
    pub version: u64,
    /// Level of the retest schedule, from 1.
    pub level: u32,
    /// The decaying flap penalty.
    pub flap: Flap,
    /// For a USER entry written for a credential problem: the hash of that credential, 16 hex digits.
    pub credential: Option<String>,
    /// What an operator decided against all evidence, while it stands.
    #[serde(default, rename = "override", skip_serializing_if = "Option::is_none")]
    pub overridden: Option<Override>,
    /// When the document came to be.
    pub created_at: Wall,
    /// When it changed last.
    pub updated_at: Wall,
}

/// A diagnosis, as an engine gave it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Diagnosis {
    /// What was found.
    pub classification: Classification,
    /// In words, at most 512 bytes.
    pub note: String,
    /// Who says so.
    pub by: String,
    /// When.
    pub at: Wall,
    /// What the user concerned can do.
    pub user_action_hint: Option<String>,
}

/// One remembered change or repeated finding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HistoryEntry {
    /// What was found.
    pub classification: Classification,
    /// The status that it led to or stood beside.
    pub status: Status,
    /// In words, at most 512 bytes.
    pub note: String,
    /// Whose hand.
    pub by: String,
    /// When.
    pub at: Wall,
    /// The recovery time estimated then.
    pub recovery_at: Option<Wall>,
}

/// Until when a failure of one kind starts no new diagnosis. It never blocks a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Cooldown {
    /// The kind of failure.
    pub error_signature: String,
    /// Whose; null is scope-wide.
    pub user_id: Option<String>,
    /// The deadline.
    pub next_spawn_allowed_at: Wall,
    /// All triggers.
    pub hits: u64,
    /// What it was classified as last.
    pub last_classification: Classification,
    /// When it was triggered last.
    pub last_triggered_at: Wall,
    /// Re-arms, from 1.
    pub level: u32,
}

/// A cooldown's level after a clear, so that a returning fault starts where it was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tombstone {
    /// The kind of failure.
    pub error_signature: String,
    /// Whose; null is scope-wide.
    pub user_id: Option<String>,
    /// The level that stood when it was cleared.
    pub level: u32,
    /// How long the last interval was, in milliseconds.
    pub interval_ms: u64,
    /// When it was cleared.
    pub cleared_at: Wall,
}

/// A penalty that halves every five minutes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Flap {
    /// The penalty at `at`.
    pub penalty: f64,
    /// When it was raised last; null if never.
    pub at: Option<Wall>,
}
