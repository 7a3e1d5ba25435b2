//! What happens to documents that others publish, and to the tokens that some of them verify.

use super::super::labels;
use super::super::metrics::Metrics;
use super::Event;

/// A document was read in the background, or could not be.
#[derive(Clone, Copy, Debug)]
pub struct DocumentRead<'a> {
    /// Which kind of document: `jwks` or `openapi`.
    pub what: &'static str,
    /// Where it is, without a query.
    pub place: &'a str,
    /// How many keys or tools it holds, `None` if it is the one that is known; or why it cannot be used.
    pub result: Result<Option<usize>, &'a str>,
    /// Whether the last attempt came to something else, so that it is news.
    pub news: bool,
}

impl Event for DocumentRead<'_> {
    fn emit(self, metrics: &Metrics) {
        let DocumentRead { what, place, result, news } = self;
        let word = match result {
            Ok(Some(_)) => "changed",
            Ok(None) => "unchanged",
            Err(_) => "failed",
        };
        metrics.document_reads.get_or_create(&labels::WhatResult { what, result: word }).inc();
        match result {
            Ok(Some(entries)) => {
                tracing::info!(target: "toolvane::document", what, place, entries, "document in force")
            }
            Ok(None) if news => tracing::info!(target: "toolvane::document", what, place, "document readable again"),
            Ok(None) => {}
            Err(why) if news => {
                tracing::warn!(target: "toolvane::document", what, place, why, "document not usable, the last good one stays")
            }
            Err(why) => tracing::debug!(target: "toolvane::document", what, place, why, "document still not usable"),
        }
    }
}

/// Something in a document is no tool though it looks like one.
#[derive(Clone, Copy, Debug)]
pub struct DocumentNote<'a> {
    /// File or URL with line and column.
    pub position: &'a str,
    /// What and why; names from the document are made harmless and short.
    pub note: &'a str,
}

impl Event for DocumentNote<'_> {
    fn emit(self, _: &Metrics) {
        let DocumentNote { position, note } = self;
        tracing::warn!(target: "toolvane::document", position, note, "not taken over from a document");
    }
}

/// A bearer token that looks like a JWT gives no identity. Nothing of the token is told.
#[derive(Clone, Copy, Debug)]
pub struct TokenRefused {
    /// Why, as a word of a closed set.
    pub reason: &'static str,
}

impl Event for TokenRefused {
    fn emit(self, metrics: &Metrics) {
        metrics.identity_tokens_refused.get_or_create(&labels::ReasonAlone { reason: self.reason }).inc();
        tracing::debug!(target: "toolvane::call", reason = self.reason, "bearer token gives no identity");
    }
}
