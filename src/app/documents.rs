//! Keys and OpenAPI documents that lie in files: read before the start, so that mistakes in them are told like those of the
//! configuration. Those behind a URL are read in the background once the process runs.

use std::path::Path;
use std::sync::Arc;

use crate::config::Config;
use crate::config::openapi::Document;
use crate::fetch::Location;
use crate::proxy;
use crate::yaml::{Place, Problem, Report, Source};

/// A document that is fine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadDocument {
    /// Its file.
    pub name: String,
    /// How many things it holds.
    pub entries: usize,
    /// What these are: keys, tools.
    pub noun: &'static str,
    /// What in it was not taken over, each with its place.
    pub notes: Vec<String>,
}

/// Reads every such file that the configuration names.
///
/// # Errors
/// Every problem of every file.
pub fn check_documents(config: &Config) -> Result<Vec<ReadDocument>, Report> {
    let (mut documents, mut report) = (Vec::new(), Report::new());
    let keys = config.identity.jwt.iter().map(|jwt| &jwt.jwks).filter_map(file).map(keys);
    let tools = config.backends.iter().filter_map(|backend| backend.openapi.as_ref()).filter_map(file).map(tools);
    for read in keys.chain(tools) {
        match read {
            Ok(document) => documents.push(document),
            Err(problems) => report.merge(problems),
        }
    }
    report.into_result(documents)
}

fn file(location: &Location) -> Option<&Path> {
    match location {
        Location::File(path) => Some(path),
        Location::Url(_) => None,
    }
}

fn keys(path: &Path) -> Result<ReadDocument, Report> {
    let source = Source::load(path)?;
    let entries = proxy::count_keys(source.text()).map_err(|why| {
        Problem::new(&source, Place::START, why).help("a key set looks like `{\"keys\": [{\"kty\": \"RSA\", …}]}`")
    })?;
    Ok(fine(&source, entries, ["key", "keys"], Vec::new()))
}

fn tools(path: &Path) -> Result<ReadDocument, Report> {
    let source = Source::load(path)?;
    let document = Document::read(&source, "/")?;
    let note = |problem: &Problem| format!("{}: {}", problem.position(), problem.message());
    let notes = document.notes.problems().iter().map(note).collect();
    Ok(fine(&source, document.operations.len(), ["tool", "tools"], notes))
}

fn fine(source: &Arc<Source>, entries: usize, [one, many]: [&'static str; 2], notes: Vec<String>) -> ReadDocument {
    let noun = if entries == 1 { one } else { many };
    ReadDocument { name: source.name().to_owned(), entries, noun, notes }
}
