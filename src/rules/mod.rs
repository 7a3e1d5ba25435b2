//! What an outcome means: the rule table and the words it judges in (DESIGN 4, 6 and 7). Pure: values in, values out.
//!
//! A finished call becomes an [`Exchange`]; [`Table::judge`] says what it means as a [`Verdict`]. A table is read from the
//! bundled file and the operator's layers by [`load`], which reports every problem of a file at once.

mod bits;
pub mod case;
mod codes;
mod cover;
mod dense;
mod derive;
mod envelope;
pub mod exchange;
mod explain;
mod facts;
pub mod file;
pub mod hint;
mod index;
pub mod lint;
mod matcher;
mod never;
mod outcome;
pub mod pattern;
mod phrase;
mod prefilter;
mod quoted;
mod reading;
mod redact;
pub mod rule;
mod search;
pub mod secrets;
pub mod suite;
mod table;
pub mod target;
#[cfg(test)]
mod tests;
mod text;
pub mod verdict;
pub mod vocabulary;
mod words;

pub use derive::default_scope;
pub use exchange::{Answer, BackendKind, Described, Exchange, Fault, JSON_BOUND, LOG_BOUND, TEXT_BOUND};
pub use explain::{Basis, Explanation, Unmet};
pub use file::load;
pub use matcher::Clause;
pub use outcome::Outcome;
pub use reading::is_plain_success;
pub use redact::redacted;
pub use rule::Rule;
pub use table::{Limits, Table};
pub use text::{TextCollector, bounded};
pub use verdict::{Disproves, Evidence, Finding, Kind, Verdict};
pub use vocabulary::{Classification, DispatchCode, HealthAction, Scope, TransportFault};
