//! The traits through which siblings of the program meet: who is asked for a diagnosis, and who can try a tool. Implemented by
//! `diagnosis` and `proxy`, wired by `app`.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use super::cascade::ToolRef;
use super::effect::Claim;
use crate::clock::Now;
use crate::rules::Classification;

/// Something that comes later.
pub type Later<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Who is asked for diagnoses (DESIGN 13). Never waits.
pub trait Diagnoser: fmt::Debug + Send + Sync + 'static {
    /// A failure has claimed its diagnosis; `detail` is what it said.
    fn claimed(&self, claim: &Claim, detail: &str, now: Now);

    /// Another failure of a kind that may be under diagnosis.
    fn again(&self, at: &ToolRef, signature: &str, detail: &str, now: Now);
}

/// In whose name a tool is tried.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ProbeAs {
    /// toolvane's own.
    System,
    /// A user's, with the credentials that the configuration holds for him.
    User(Arc<str>),
}

/// What trying a tool showed.
#[derive(Clone, Debug, PartialEq)]
pub enum Tried {
    /// It did what it should.
    Works,
    /// It failed.
    Fails {
        /// How.
        signature: Arc<str>,
        /// What rules make of it.
        classification: Classification,
        /// What it said; not redacted.
        text: String,
    },
    /// It may not be tried, or cannot: no SAFE_PROBE, no sample, no credentials.
    Impossible(String),
}

/// Who can try tools. Only such as are SAFE_PROBE, whoever asks (DESIGN 12).
pub trait Prober: fmt::Debug + Send + Sync + 'static {
    /// Calls a tool once with its sample input, in no caller's name.
    fn probe(&self, at: &ToolRef, who: &ProbeAs) -> Later<Tried>;
}
