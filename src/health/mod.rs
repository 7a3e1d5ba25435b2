//! What we believe about a tool (DESIGN 5, 7 and 8): documents, the evidence judge, cooldowns, trials and the cascade read.
//! Pure: `now` and random numbers are arguments.

pub mod backing;
pub mod caller;
mod cascade;
mod cause;
mod claim;
mod confirm;
mod cooldown;
pub mod document;
mod effect;
mod entry;
mod events;
mod evidence;
mod failure;
mod judge;
mod lease;
mod list;
mod orders;
mod overrides;
pub mod policy;
mod ports;
mod record;
mod registry;
mod retest;
mod scene;
pub mod scope;
mod slot;
mod stored;
mod text;
mod view;

pub use backing::{Backing, MemoryOnly};
pub use caller::{ANONYMOUS, Caller, CredentialHash};
pub use cascade::ToolRef;
pub use confirm::{Attempt, CONFIRM_AFTER, ProbeTarget};
pub use document::{Document, Key, Origin, Status};
pub use effect::{Claim, Effect, Transition};
pub use events::Mark;
pub use lease::{LEASE_MAX, Permit};
pub use list::Filter;
pub use orders::{Order, OrderRefused, Written};
pub use overrides::{Force, Forced, OVERRIDE_MAX, OVERRIDES_MAX, Override};
pub use policy::{Mode, Policy, Tuning};
pub use ports::{Diagnoser, Later, ProbeAs, Prober, Tried};
pub use record::Call;
pub use registry::{Admission, Draw, Registry};
pub use view::{Shown, View};
