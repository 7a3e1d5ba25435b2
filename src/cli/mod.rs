//! The command line: one file per command. A command takes values and gives back what to print and the exit code; data goes
//! to standard output, words to standard error.

pub mod args;
pub mod ask;
pub mod check;
pub mod classify;
pub mod events;
pub mod explain;
mod follow;
pub mod healthcheck;
pub mod integrations;
mod junit;
mod lints;
pub mod main;
pub mod replay;
pub mod rules;
pub mod run;
pub mod settings;
pub mod status;
pub mod steer;
pub mod table;
pub mod test;
pub mod top;

/// All is fine.
pub const FINE: u8 = 0;
/// What was checked is bad.
pub const BAD: u8 = 1;
/// Wrong usage.
pub const USAGE: u8 = 2;
/// Nobody answers on the admin listener (`EX_UNAVAILABLE`).
pub const UNAVAILABLE: u8 = 69;
/// The configuration or a rule file is invalid (`EX_CONFIG`).
pub const CONFIG: u8 = 78;

/// So many of something, in words.
fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
