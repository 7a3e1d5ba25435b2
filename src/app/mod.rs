//! Wiring: from a configuration to a running proxy, and from a signal to its orderly end.

mod diagnosis;
mod rules;
pub mod service_manager;
mod start;

pub use rules::compile;
pub use start::{App, Running, StartError};
