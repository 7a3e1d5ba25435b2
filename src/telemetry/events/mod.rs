//! One struct per thing that happens. Emitting it writes the log line and the metric.
//!
//! INFO: a status changed, or the process did. WARN: we coped. ERROR: somebody must act. Single calls are DEBUG.

mod call;
mod document;
mod health;
mod integration;
mod life;
mod manifest;
mod store;

pub use call::{CallEnded, ConnectFailed, IdentityHeaderDropped, LimitRejected, ShortCircuited, WouldShortCircuit};
pub use document::{DocumentNote, DocumentRead, TokenRefused};
pub use health::{Cause, CooldownStarted, DiagnosisClaim, Evicted, Probed, StatusChanged, TrialChanged};
pub use integration::{IntegrationChanged, IntegrationProbed, ToolHidden};
pub use life::{Audited, Draining, InternalError, Reloaded, Started, Stopped};
pub use manifest::{ListHandled, ListNotified};
pub use store::{StoreOpened, StoreReported};

use super::metrics::Metrics;

/// Something that happened. Emitted through [`super::Telemetry::emit`].
pub trait Event {
    /// Writes the log line and the metric.
    fn emit(self, metrics: &Metrics);
}

/// A label set for events that know their backend by name.
fn backend_result(backend: &str, result: super::labels::Word) -> super::labels::BackendResult {
    super::labels::BackendResult { backend: super::labels::harmless(backend).into(), result }
}
