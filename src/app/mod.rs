//! Wiring: from a configuration to a running proxy, and from a signal to its orderly end.

mod diagnosis;
mod documents;
#[cfg(feature = "otel")]
mod otlp;
#[cfg(not(feature = "otel"))]
#[path = "otlp_off.rs"]
mod otlp;
mod reload;
mod rules;
pub mod service_manager;
mod start;
mod watch;

pub use documents::{ReadDocument, check_documents};
pub use reload::Reloader;
pub use rules::{Stack, compile, compile_named, stacks, where_named};
pub use start::{App, Running, StartError};
