//! The command line: each command reads what it was given, calls the library, and writes data to stdout, words to stderr.

pub mod classify;
