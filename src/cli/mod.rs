//! The command line: one file per command. A command takes values and returns what to print and the exit code.

pub mod check;
