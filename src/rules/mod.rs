//! What an outcome means: the rule table and the words it judges in (DESIGN 4, 6 and 7). Pure: values in, values out.

pub mod verdict;
pub mod vocabulary;

pub use verdict::{Disproves, Evidence, Finding, Kind, Verdict};
pub use vocabulary::{Classification, DispatchCode, HealthAction, Scope, TransportFault};
