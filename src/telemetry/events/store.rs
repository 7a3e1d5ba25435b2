//! What happens to the state file. Its counters come from [`crate::store::Stats`] when somebody scrapes.

use std::path::Path;

use super::super::metrics::Metrics;
use super::Event;
use crate::store::{Opened, Report};

/// The state file was opened.
#[derive(Clone, Copy, Debug)]
pub struct StoreOpened<'a> {
    /// The file.
    pub path: &'a Path,
    /// How it was found.
    pub opened: &'a Opened,
    /// Documents that were read from it.
    pub documents: usize,
}

impl Event for StoreOpened<'_> {
    fn emit(self, _: &Metrics) {
        let path = self.path.display();
        let documents = self.documents;
        match self.opened {
            Opened::Fresh => tracing::info!(target: "toolvane::store", %path, "new state file"),
            Opened::Existing => tracing::info!(target: "toolvane::store", %path, documents, "state file opened"),
            Opened::Quarantined { to, why } => set_aside(to, why),
            Opened::Unwritable { why } => tracing::error!(
                target: "toolvane::store",
                %path,
                documents,
                why,
                "state file cannot be written; health lives in memory only until it can"
            ),
        }
    }
}

/// The store has something to say.
#[derive(Clone, Copy, Debug)]
pub struct StoreReported<'a>(pub &'a Report);

impl Event for StoreReported<'_> {
    fn emit(self, _: &Metrics) {
        match self.0 {
            Report::Repairing { percent } => {
                tracing::info!(target: "toolvane::store", percent, "checking the state file");
            }
            Report::CommitFailed { why, attempt: attempt @ 1, queued } => tracing::error!(
                target: "toolvane::store",
                why,
                attempt,
                queued,
                "state file cannot be written; memory goes on, trying again"
            ),
            // The first line was loud; the metric shows that it goes on, and a line now and then says so.
            Report::CommitFailed { why, attempt, queued } if attempt.is_power_of_two() => {
                tracing::warn!(target: "toolvane::store", why, attempt, queued, "state file still cannot be written");
            }
            Report::CommitFailed { why, attempt, queued } => {
                tracing::debug!(target: "toolvane::store", why, attempt, queued, "state file still cannot be written");
            }
            Report::Recovered { attempts, failing_since } => {
                tracing::info!(target: "toolvane::store", attempts, %failing_since, "state file can be written again");
            }
            Report::QueueFull { dropped } => {
                tracing::warn!(target: "toolvane::store", dropped, "too many documents wait to be written, new ones are dropped");
            }
            Report::Quarantined { to, why } => set_aside(to, why),
            Report::Unreadable { why } => tracing::warn!(target: "toolvane::store", why, "a document was left out"),
        }
    }
}

fn set_aside(to: &Path, why: &str) {
    let to = to.display();
    tracing::error!(target: "toolvane::store", %to, why, "state file was not usable, set aside and started afresh");
}
