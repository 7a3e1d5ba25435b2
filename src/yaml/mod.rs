//! YAML files as a tree that knows its places, and readers on it that collect every problem of a file, not one alone.
//!
//! A file becomes a [`Source`]; [`read`] parses it and hands its root to a reader written by the module that knows the
//! format. The reader declares each key once, at the place where it takes it: name, kind, bounds, default and what it is
//! for. Whatever does not fit becomes a [`Problem`] with its place; unknown keys are noticed by themselves. Given no
//! file but a pencil ([`schema`]), the same reader draws the JSON Schema of its format, so that the two cannot differ.
//!
//! Bounds: a file holds at most [`MAX_FILE`] bytes, 64 levels and, aliases counted each time, 100,000 nodes. Keys that
//! start with `x-` are allowed everywhere and mean nothing: a place for anchors and for other programs.
//! This is the only module that knows which YAML crate stands below.

mod at;
mod fields;
mod foreign;
mod parse;
mod problem;
mod scalars;
mod schema;
mod sheet;
mod source;
mod tree;
mod units;

#[cfg(test)]
mod tests;

pub use at::At;
pub use fields::{Fields, nearest};
pub use foreign::tree;
pub use problem::{Problem, Report, Style};
pub use schema::schema;
pub use source::{MAX_FILE, Place, Source};
pub use tree::{Entry, Kind, Node, Value};
pub use units::{duration_text, parse_duration, parse_size, size_text};

use std::sync::Arc;

use sheet::Sheet;

/// Parses a file and reads it with `reader`. The value comes back only if the whole file holds not one problem.
///
/// # Errors
/// All problems of the file, in the order of their places. A syntax error hides what comes after it.
pub fn read<T>(source: &Arc<Source>, reader: impl FnOnce(At<'_>) -> Option<T>) -> Result<T, Report> {
    let sheet = Sheet::new(source);
    let value = sheet.parse().and_then(|root| reader(At::new(&sheet, &root)));
    let mut report = sheet.into_report();
    match value {
        Some(value) if report.is_empty() => Ok(value),
        _ => {
            if report.is_empty() {
                report.push(Problem::new(source, Place::START, "the file could not be read"));
            }
            Err(report)
        }
    }
}
