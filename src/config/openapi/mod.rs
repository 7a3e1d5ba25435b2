//! Tools that an OpenAPI document names (DESIGN 3): its operations by `operationId`.
//!
//! Read are 3.0 and 3.1, YAML or JSON: `paths` with their `servers` and `parameters`, `operationId`, `security`, and local
//! `$ref`s of path items and parameters. What a document holds besides is not looked at. What keeps an operation from being
//! a tool is a note, not an error: the document is seldom the operator's own.

mod reader;
mod servers;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use super::route::Route;
use crate::yaml::{self, Report, Source};

/// The largest document that is read, in bytes.
pub const MAX_DOCUMENT: usize = yaml::MAX_FILE;
/// Most routes that one document may give.
pub const MAX_OPERATIONS: usize = 5_000;

/// What a document says about tools.
#[derive(Clone, Debug, Default)]
pub struct Document {
    /// The tools, in the order of the document; one for each method and path.
    pub operations: Vec<Operation>,
    /// What in the document is no tool though it looks like one, and why; bounded.
    pub notes: Report,
}

/// One operation that is a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The request that calls it; the tool's name is the `operationId`.
    pub route: Route,
    /// Whether its method (GET, HEAD) says that calling it changes nothing.
    pub safe: bool,
    /// The security schemes that every alternative of its `security` demands, by name.
    pub credentials_required: Arc<[Arc<str>]>,
}

impl Document {
    /// Reads a document. `home` is the path of the URL that it was read from, `/` for a file: relative server addresses
    /// start there.
    ///
    /// # Errors
    /// Why it names no tool at all: it is neither YAML nor JSON, or no OpenAPI 3 document.
    pub fn read(source: &Arc<Source>, home: &str) -> Result<Document, Report> {
        reader::read(source, home)
    }

    /// Its routes.
    pub fn routes(&self) -> Vec<Route> {
        self.operations.iter().map(|operation| operation.route.clone()).collect()
    }
}
