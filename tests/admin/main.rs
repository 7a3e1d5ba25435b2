//! The admin surface over real sockets: who may come in, what writes do, what is told of them, and what survives a kill.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::expect_used,
    reason = "the lint knows test functions, not their helpers"
)]

mod diagnosis;
mod door;
mod events;
mod explain;
mod kill;
mod mcp;
mod notify;
mod overrides;
mod page;
mod server;
mod support;
mod writes;
