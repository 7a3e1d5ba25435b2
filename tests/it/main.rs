//! The product at its borders. One crate for all of it: each binary of tests links the whole library, which costs a minute and
//! a hundred megabytes of disk.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "tests may panic; the lints know test functions, not their helpers"
)]

mod admin;
mod again;
mod bodies;
mod calls;
mod cascade_read;
mod cases;
mod commands;
mod connections;
mod drain;
mod exchanges;
mod framing;
mod health;
mod http2;
mod identity;
mod layers;
mod openapi;
mod operate;
#[cfg(feature = "otel")]
mod otlp;
mod passthrough;
mod plain;
mod program;
mod readiness;
mod receiver;
mod record;
mod reload;
mod secrets;
mod store;
mod streams;
mod support;
mod table_memory;
mod telemetry;
#[cfg(feature = "verify")]
mod verify_streaming;
mod wire;
