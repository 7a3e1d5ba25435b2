//! Calls that go on as tasks (MCP 2025-11-25 and the tasks extension): judged once, by their terminal state (DESIGN 4).

use std::sync::Arc;
use std::time::Duration;

use moka::sync::Cache;

use super::inflight::Waiting;

/// Tasks that are waited for at once.
const MOST: u64 = 10_000;

/// How long a task is waited for; after that its call counts as abandoned.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// Tasks whose end is still to come.
#[derive(Debug)]
pub(super) struct Tasks {
    waiting: Cache<(Arc<str>, String), Arc<Waiting>>,
}

impl Tasks {
    pub(super) fn new() -> Tasks {
        Tasks { waiting: Cache::builder().max_capacity(MOST).time_to_live(LONGEST).build() }
    }

    /// A call was answered by a task.
    pub(super) fn started(&self, backend: &Arc<str>, task: &str, call: Arc<Waiting>) {
        self.waiting.insert((Arc::clone(backend), task.to_owned()), call);
    }

    /// The call behind a task, left where it is.
    pub(super) fn call(&self, backend: &Arc<str>, task: &str) -> Option<Arc<Waiting>> {
        self.waiting.get(&(Arc::clone(backend), task.to_owned()))
    }

    /// The call behind a task that has come to its end.
    pub(super) fn over(&self, backend: &Arc<str>, task: &str) -> Option<Arc<Waiting>> {
        self.waiting.remove(&(Arc::clone(backend), task.to_owned()))
    }
}
