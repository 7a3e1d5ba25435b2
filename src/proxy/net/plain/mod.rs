//! Plain HTTP/1.1 exchanges, on both sides without hyper: what nearly every call is, at a fraction of the cost.
//!
//! `serve` reads the heads of a dispatcher. What is plain (one of the usual methods and a path, one `Host`, a body of a stated
//! length or none, nothing that changes how the connection is spoken over) is served here and goes to the backend over a
//! `Line`. At the first thing that is anything else, or wrong, the connection goes to hyper with all that was read and not
//! used, for the rest of its life: no refusal and no unusual framing is decided here, and what is accepted here is a part of
//! what hyper accepts, read the same way (`oracle`).

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
mod reply;
mod sending;
mod server;

pub(super) use answer::Answer;
pub(super) use client::{Call, Failed, Lines};
pub(super) use received::Received;
pub(super) use server::{Handover, serve};
