//! Tools that are not set up, not allowed or not for this caller (DESIGN 10 to 12): the whole process in this process, real
//! servers on both sides, and a clock that a test moves.

mod access;
mod admin;
mod credentials;
mod lists;
mod oauth;
mod probes;
mod secrets;
mod support;
mod tls;
