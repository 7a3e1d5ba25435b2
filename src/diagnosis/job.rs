//! What is to be found out.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::redact::redact;
use crate::clock::{Now, Wall};
use crate::health::{Claim, Key};

/// Details that are kept: those of the latest failures.
const DETAILS_MAX: usize = 5;

/// What made a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// A failing call.
    ToolCallError,
    /// Somebody asked.
    UserRequest,
    /// Something that happened to the system.
    SystemEvent,
}

/// A job, as engines see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Job {
    /// Its name.
    pub id: String,
    /// What kind of thing is ill: always `tool`.
    pub service_type: String,
    /// The document that it is about.
    #[serde(flatten)]
    pub key: Key,
    /// Whose cooldown was claimed; null is everybody's in the scope.
    pub user_id: Option<String>,
    /// Who made the call.
    pub originating_user_id: Option<String>,
    /// In which session.
    pub originating_session_id: Option<String>,
    /// What made it.
    pub trigger: Trigger,
    /// The kind of failure.
    pub error_signature: String,
    /// What the latest failures said, redacted, oldest first.
    pub error_detail: Vec<String>,
    /// When it was made.
    pub created_at: Wall,
    /// How often it was tried.
    pub attempts: u32,
}

/// Where a job stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", tag = "state")]
pub enum State {
    /// It waits.
    #[serde(rename_all = "camelCase")]
    Queued {
        /// Not before this.
        not_before: Wall,
    },
    /// Somebody works on it; if nothing comes of that, it waits again.
    #[serde(rename_all = "camelCase")]
    Leased {
        /// Who.
        by: String,
        /// Until when.
        until: Wall,
    },
    /// It is over.
    #[serde(rename_all = "camelCase")]
    Done {
        /// When.
        at: Wall,
        /// By whom.
        by: String,
        /// What came of it, in words.
        outcome: String,
    },
}

impl Job {
    /// The job that a claim makes.
    pub(super) fn of_claim(id: String, claim: &Claim, detail: &str, now: Now) -> Job {
        let text = |text: &Option<Arc<str>>| text.as_deref().map(str::to_owned);
        Job {
            id,
            service_type: "tool".to_owned(),
            key: claim.key.clone(),
            user_id: text(&claim.user),
            originating_user_id: text(&claim.originating_user),
            originating_session_id: text(&claim.originating_session),
            trigger: Trigger::ToolCallError,
            error_signature: claim.signature.to_string(),
            error_detail: vec![redact(detail)],
            created_at: now.wall,
            attempts: 0,
        }
    }

    /// Whether a claim asks for the same.
    pub(super) fn is_same(&self, claim: &Claim) -> bool {
        self.key == claim.key
            && self.error_signature == *claim.signature
            && self.user_id.as_deref() == claim.user.as_deref()
    }

    /// Adds what a later failure said; whether that is new.
    pub(super) fn add_detail(&mut self, detail: &str) -> bool {
        let detail = redact(detail);
        if self.error_detail.last() == Some(&detail) {
            return false;
        }
        self.error_detail.push(detail);
        let surplus = self.error_detail.len().saturating_sub(DETAILS_MAX);
        self.error_detail.drain(..surplus);
        true
    }
}
