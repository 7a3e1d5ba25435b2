//! Diagnoses (DESIGN 13): what an unclear failure means is found out once, by whom the configuration says.
//!
//! - `job`: what is to be found out. `queue`: jobs that wait, are worked on or are done; bounded, durable, with leases.
//! - `answer`: what an engine may say, read strictly. `apply`: what that does to health: code decides, never the engine.
//! - `builtin`, `webhook`, `llm`: the engines. `work`: the loop that hands jobs to them.
//! - `redact`: nothing that looks like a secret leaves. `client`: signed requests with bounds.
//!
//! A malformed answer is never a reason to ask again: it becomes DEGRADED for a quarter of an hour, with a note.

pub mod answer;
mod apply;
mod builtin;
mod client;
mod job;
mod llm;
pub mod notify;
mod queue;
mod redact;
mod webhook;
mod work;

pub use client::{Client, Signer};
pub use job::{Job, State, Trigger};
pub use llm::Llm;
pub use queue::{Entry, JobError, LEASE_MAX, Queue};
pub use redact::redact;
pub use webhook::Webhook;
pub use work::{Act, Diagnosis, Engine, Parts};
