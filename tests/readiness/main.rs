//! Tools that are not set up, not allowed or not for this caller (DESIGN 10 to 12): the whole process in this process, real
//! servers on both sides, and a clock that a test moves.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "the lint knows test functions, not their helpers"
)]

#[cfg(test)]
mod access;
#[cfg(test)]
mod admin;
#[cfg(test)]
mod credentials;
#[cfg(test)]
mod lists;
#[cfg(test)]
mod oauth;
#[cfg(test)]
mod probes;
#[cfg(test)]
mod secrets;
#[cfg(test)]
mod support;
#[cfg(test)]
mod tls;
#[cfg(test)]
#[path = "../support/wire.rs"]
mod wire;
