//! The port through which health reaches whatever keeps its documents. Implemented by `store`, wired by `app`.

use std::fmt;

use super::document::{Document, Key};

/// Keeps documents beyond memory. Never on the path of a call that all tools are OK for.
pub trait Backing: fmt::Debug + Send + Sync + 'static {
    /// Takes a changed document for write-behind. Returns at once, and whether it was taken: a store whose queue is full has no
    /// room, which is its own to report.
    fn write(&self, document: Document) -> bool;

    /// Takes the deletion of a document, as [`Backing::write`] takes a change.
    fn delete(&self, key: &Key) -> bool;

    /// The stored form of a document that memory does not hold, `None` if there is none or it cannot be read (fail open).
    fn read(&self, key: &Key) -> Option<Document>;
}

/// Keeps nothing: `store: {engine: memory}`, and tests of the core.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemoryOnly;

impl Backing for MemoryOnly {
    fn write(&self, _document: Document) -> bool {
        true
    }

    fn delete(&self, _key: &Key) -> bool {
        true
    }

    fn read(&self, _key: &Key) -> Option<Document> {
        None
    }
}
