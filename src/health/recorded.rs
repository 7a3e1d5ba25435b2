//! One judged call as a line of a recording: who called (ids hashed), what it came to, what the rules then said.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::caller::Caller;
use crate::clock::Wall;
use crate::rules::{Outcome, Verdict};

/// One line of a recording. `toolvane replay`, `classify`, `explain` and `test` read it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Recorded {
    /// When the call ended.
    pub at: Wall,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
    /// Who called.
    pub caller: RecordedCaller,
    /// What it came to.
    pub outcome: Outcome,
    /// What the rules said then.
    pub verdict: Verdict,
}

/// A caller: sessions and users only as hashes, which tell them apart and name nobody.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordedCaller {
    /// The session's hash.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<Arc<str>>,
    /// The user's hash; absent means anonymous.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<Arc<str>>,
    /// The project.
    pub project: Arc<str>,
    /// The tenant.
    pub tenant: Arc<str>,
    /// The keyed hash of the credential.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credential: Option<Arc<str>>,
}

impl RecordedCaller {
    /// A caller whose session and user are known by `hash` alone.
    pub fn of(caller: &Caller, hash: impl Fn(&str) -> String) -> RecordedCaller {
        let hashed = |id: &Arc<str>| Arc::from(hash(id));
        RecordedCaller {
            session: caller.session.as_ref().map(hashed),
            user: caller.user.as_ref().map(hashed),
            project: Arc::clone(&caller.project),
            tenant: Arc::clone(&caller.tenant),
            credential: caller.credential.map(|credential| Arc::from(credential.to_string())),
        }
    }

    /// The caller as the state machine takes it.
    pub fn into_caller(self) -> Caller {
        Caller {
            session: self.session,
            user: self.user,
            project: self.project,
            tenant: self.tenant,
            roles: Vec::new(),
            credential: self.credential.and_then(|hash| hash.parse().ok()),
        }
    }
}
