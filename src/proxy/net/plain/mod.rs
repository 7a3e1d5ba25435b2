//! Plain HTTP/1.1 exchanges, on both sides without hyper: what nearly every call is, at a fraction of the cost.
//!
//! `serve` reads the heads of a dispatcher. What is plain (one of the usual methods and a path, one `Host`, a body of a stated
//! length or none, nothing that changes how the connection is spoken over) is served here and goes to the backend over a
//! `Line`. At the first thing that is anything else, or wrong, the connection goes to hyper with all that was read and not
//! used, for the rest of its life: no refusal and no unusual framing is decided here, and what is accepted here is a part of
//! what hyper accepts, read the same way (`oracle`).
//!
//! Over one connection nearly every head is the one before, byte for byte but for its length (`again`). What a service found out
//! about it (`Repeated`), the head that goes to the backend (`Outgoing`) and the one that comes back to the dispatcher
//! (`Whole`) are made once and then only written.

mod again;
mod alarm;
mod answer;
mod chunks;
mod client;
mod head;
#[cfg(test)]
mod oracle;
mod outbox;
mod read;
mod received;
mod repeated;
mod reply;
mod sending;
mod server;
mod template;

pub(super) use answer::Answer;
pub(super) use client::{Call, Failed, Finish, Lines};
pub(super) use received::Received;
pub use repeated::{Repeated, Whole};
pub(super) use sending::Outgoing;
pub(super) use server::{Handover, serve};
