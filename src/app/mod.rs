//! Wiring: from a configuration to a running proxy, and from a signal to its orderly end.

mod documents;
mod rules;
pub mod service_manager;
mod start;

pub use documents::{ReadDocument, check_documents};
pub use rules::compile;
pub use start::{App, Running, StartError};
