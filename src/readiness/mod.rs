//! Whether what backs a tool is set up (DESIGN 11): credentials that are there or not, and probes that ask a service.
//!
//! | module | does |
//! | --- | --- |
//! | `verdict` | what we believe about an integration, from one probe to the next; pure, `now` is an argument |
//! | `meaning` | what one answer of a service means; pure |
//! | `cache` | the beliefs, read without waiting; who must be asked next, each at most once at a time |
//! | `secret`, `env_file`, `watch` | credentials: where they stand, whether they are there, when they change |
//! | `probe`, `client` | one question to a service |
//! | `service` | all of it together, as the path of a call and the admin surface see it |
//!
//! No reader ever waits: what is not known is `unknown`, which hides nothing, and is asked in the background. A value that
//! is secret is read when a probe needs it, goes to the service alone, and is in no answer, log line, metric or message.

mod cache;
mod client;
mod env_file;
mod meaning;
mod probe;
mod secret;
mod service;
mod show;
mod verdict;
mod watch;

pub use service::Integrations;
pub use show::{CredentialShown, IntegrationShown};
pub use verdict::{Finding, Verdict};
pub use watch::Presence;
