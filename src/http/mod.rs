//! Pure helpers for HTTP heads: no sockets, no clock, no tools.

pub mod accept;
pub mod forwarded;
pub mod hop;
pub mod media;
pub mod problem;
