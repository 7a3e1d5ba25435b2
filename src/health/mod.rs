//! What we believe about a tool (DESIGN 5, 7 and 8): documents, the evidence judge, cooldowns, trials and the cascade read.
//! Pure: `now` and random numbers are arguments.

pub mod backing;
pub mod caller;
pub mod document;
pub mod policy;

pub use backing::{Backing, MemoryOnly};
pub use caller::{ANONYMOUS, Caller, CredentialHash};
pub use document::{Document, Key, Origin, Status};
pub use policy::{Mode, Policy, Tuning};
