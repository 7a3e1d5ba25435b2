//! What happens to tool lists.

use super::super::labels::{self, harmless};
use super::super::logs::Shown;
use super::super::metrics::Metrics;
use super::super::words::ListResult;
use super::{Event, backend_result};

/// An answer to `tools/list` went by, or was made.
#[derive(Clone, Copy, Debug)]
pub struct ListHandled<'a> {
    /// The backend.
    pub backend: &'a str,
    /// What was done to it.
    pub result: ListResult,
}

impl Event for ListHandled<'_> {
    fn emit(self, metrics: &Metrics) {
        let result = self.result.as_str();
        metrics.list_rewrites.get_or_create(&backend_result(self.backend, result)).inc();
        let backend = Shown(self.backend);
        match self.result {
            ListResult::TooLarge | ListResult::Unreadable => {
                tracing::warn!(target: "toolvane::manifest", %backend, result, "tool list passed unread");
            }
            _ => tracing::debug!(target: "toolvane::manifest", %backend, result, "tool list"),
        }
    }
}

/// Clients were told that the tool list changed.
#[derive(Clone, Copy, Debug)]
pub struct ListNotified<'a> {
    /// The backend.
    pub backend: &'a str,
    /// How many clients.
    pub clients: u64,
}

impl Event for ListNotified<'_> {
    fn emit(self, metrics: &Metrics) {
        let backend = harmless(self.backend).into();
        metrics.list_notifications.get_or_create(&labels::Backend { backend }).inc_by(self.clients);
        let clients = self.clients;
        tracing::debug!(target: "toolvane::manifest", backend = %Shown(self.backend), clients, "clients told of a changed list");
    }
}
