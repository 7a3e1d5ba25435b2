//! The port through which health reaches whatever keeps its documents. Implemented by `store`, wired by `app`.

use std::fmt;

use super::document::{Document, Key};

/// Keeps documents beyond memory. Never on the path of a call that all tools are OK for.
pub trait Backing: fmt::Debug + Send + Sync + 'static {
    /// Takes a changed document for write-behind. Returns at once, never fails: trouble is the store's to report.
    fn write(&self, document: Document);

    /// The stored form of a document that memory does not hold, `None` if there is none or it cannot be read (fail open).
    fn read(&self, key: &Key) -> Option<Document>;
}

/// Keeps nothing: `store: {engine: memory}`, and tests of the core.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemoryOnly;

impl Backing for MemoryOnly {
    fn write(&self, _document: Document) {}

    fn read(&self, _key: &Key) -> Option<Document> {
        None
    }
}
