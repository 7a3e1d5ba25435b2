//! The configuration: what the file may contain, and the valid form that everything else relies on.
//!
//! Each part of the file has one module with its type and its reader. A reader declares every key once, with bounds,
//! default and meaning, and the JSON Schema is drawn from the same readers (see [`crate::yaml`]). What comes out has no
//! gaps: nothing is optional that must be there, names are unique, patterns are compiled, paths are resolved.
//! Reading touches no file but the text it is given and opens no port. Rule files, keys and OpenAPI documents are only
//! named here.

mod access;
mod admin;
mod args;
mod backend;
mod changes;
mod credential;
mod diagnosis;
mod headers;
mod identity;
mod integrations;
mod jwt;
mod location;
mod matching;
mod network;
pub mod openapi;
mod otlp;
mod probe;
mod read;
mod route;
mod sections;
mod tools;

#[cfg(test)]
mod mistakes;
#[cfg(test)]
mod tests;

pub use access::{Access, Lists};
pub use admin::{AdminAccess, Environment, LocalWrites, ROLES, Role, SecretSource, Token};
pub use args::Arguments;
pub use backend::{Backend, BackendKind, Forwarded, HostPolicy, HttpVersion, Pool, Timeouts};
pub use changes::needing_restart;
pub use credential::{Credential, Part, Template};
pub use diagnosis::{Diagnosis, EngineKind, Model, Probes, Receiver};
pub use headers::SecretHeaders;
pub use identity::{Identity, IdentitySource};
pub use integrations::{Integration, Readiness};
pub use jwt::{Claim, Jwt};
pub use matching::Match;
pub use network::Network;
pub use otlp::Otlp;
pub use probe::{Condition, Meaning, Oauth, Probe, ProbeFault, ProbeRequest, ProbeTls, Statuses, Wanted};
pub use route::{PathPattern, Route, Routes, percent_encoded};
pub use sections::{
    Annotate, Limits, Log, LogFormat, LogLevel, Manifest, Record, RuleFiles, Store, Tenant, WhenUnready,
};
pub use tools::{Needs, ToolSettings, Tools};

pub use crate::rules::target::TargetSource as Target;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::health::{Mode, Tuning};
use crate::yaml::{self, Report, Source};

/// Where the schema of the file is published; the first line of a file may point editors to it.
pub const SCHEMA_ID: &str = "https://toolvane.dev/schema/toolvane.schema.json";

/// Everything that the operator decides, checked and complete.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where downstream connects; at least one address.
    pub listen: Vec<SocketAddr>,
    /// Where the admin API, metrics and probes answer.
    pub admin: SocketAddr,
    /// What guards that listener.
    pub admin_access: AdminAccess,
    /// Who finds out what unclear failures mean.
    pub diagnosis: Diagnosis,
    /// In whose name tools are tried.
    pub probes: Probes,
    /// Who is notified of failures and recoveries.
    pub notify: Option<Receiver>,
    /// The environment that secrets and credentials may be read from; empty until the command line fills it.
    pub environment: Environment,
    /// The file as it may be shown: with secrets as `*`.
    pub shown: Arc<str>,
    /// Whether the gate acts, unless a tool says otherwise. Held by each tool's policy already.
    pub mode: Mode,
    /// The upstreams, at least one, their names and matches unique.
    pub backends: Vec<Arc<Backend>>,
    /// Settings of every tool.
    pub tools: Tools,
    /// Where a caller's identity is read from.
    pub identity: Identity,
    /// Rule files that hold for everybody.
    pub rules: RuleFiles,
    /// What is different for single tenants, by tenant id.
    pub tenants: BTreeMap<Arc<str>, Tenant>,
    /// Which tools exist for whom.
    pub access: Access,
    /// What backs tools, by name.
    pub integrations: BTreeMap<Arc<str>, Integration>,
    /// How it is found out whether that is set up.
    pub readiness: Readiness,
    /// How `tools/list` is annotated.
    pub manifest: Manifest,
    /// Numbers of the health machine.
    pub tuning: Tuning,
    /// The longest recovery hint of an answer that is believed without a rule that allows more.
    pub hint_max: Duration,
    /// Where health documents are kept.
    pub store: Store,
    /// Where outcomes are recorded, if they are.
    pub record: Option<Record>,
    /// Where spans and metrics are sent, if they are.
    pub otlp: Option<Otlp>,
    /// Bounds on what downstream and upstream may make us hold.
    pub limits: Limits,
    /// How long new calls are still taken after SIGTERM, while callers learn that we leave.
    pub drain_announce: Duration,
    /// How long running calls may go on after SIGTERM, the time of the announcement included.
    pub drain_timeout: Duration,
    /// How many tools have metric series of their own; the rest share `other`.
    pub metrics_tools_max: usize,
    /// What is logged and how.
    pub log: Log,
}

impl Config {
    /// Reads a configuration file. Relative paths of rule files start at `directory`, where the file lies.
    ///
    /// # Errors
    /// Every problem of the file, each with its place.
    pub fn read(source: &Arc<Source>, directory: &Path) -> Result<Config, Report> {
        yaml::read(source, |at| read::config(at, directory))
    }

    /// The JSON Schema (2020-12) of the file.
    pub fn schema() -> serde_json::Value {
        yaml::schema("toolvane configuration", SCHEMA_ID, |at| read::config(at, Path::new("")))
    }

    /// The backend that a request goes to: the one with the request's host before those for any host, then the longest
    /// path prefix. `host` may carry a port; `path` is without query.
    pub fn backend_for(&self, host: Option<&str>, path: &str) -> Option<&Arc<Backend>> {
        self.backends
            .iter()
            .filter_map(|backend| backend.matching.rank(host, path).map(|rank| (rank, backend)))
            .max_by_key(|(rank, _)| *rank)
            .map(|(_, backend)| backend)
    }

    /// The backend of this name.
    pub fn backend(&self, name: &str) -> Option<&Arc<Backend>> {
        self.backends.iter().find(|backend| &*backend.name == name)
    }

    /// Every place that a credential is looked for: of integrations, probes and tools, and those mapped for backends.
    pub fn credential_places(&self) -> impl Iterator<Item = &Credential> {
        integrations::places(&self.integrations, &self.readiness).chain(self.tools.credentials())
    }

    /// The numbers of the health machine as they hold for a tenant.
    pub fn tuning_of(&self, tenant: &str) -> Tuning {
        let own = self.tenants.get(tenant);
        Tuning {
            history_size: own.and_then(|own| own.history_size).unwrap_or(self.tuning.history_size),
            cooldown_max: own.and_then(|own| own.cooldown_max).unwrap_or(self.tuning.cooldown_max),
            ..self.tuning.clone()
        }
    }
}
