//! What the path of a call shares: the parts it asks and the tables it keeps.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use http::Uri;

use super::connections::Counted;
use super::declared::Declarations;
use super::documents::{Kind, Watched};
use super::dues::Dues;
use super::identity::Identifier;
use super::inflight::Inflight;
use super::listed::Shown;
use super::manifest::LastGood;
use super::net::{CallLimit, Cause, Fault, ForwardPolicy, HostPolicy, HttpVersion, Side, Upstream, UpstreamSettings};
use super::notify::Notifier;
use super::streams::Streams;
use super::tasks::Tasks;
use super::tokens::Tokens;
use crate::clock::Clock;
use crate::config::{self, BackendKind, Config, Routes};
use crate::health::{Caller, Diagnoser, Readiness, Registry, ToolRef};
use crate::rules::{self, Table};
use crate::store::OutcomeFile;
use crate::telemetry::{BackendMetrics, Telemetry};

/// Where random numbers in [0, 1) come from.
pub type Random = Box<dyn Fn() -> f64 + Send + Sync>;

/// The rule tables in force: one for everybody, and those of tenants and projects that have layers of their own.
#[derive(Clone, Debug)]
pub struct RuleSet {
    /// For everybody.
    pub base: Arc<Table>,
    /// For a tenant's projects without layers of their own.
    pub tenants: HashMap<Arc<str>, Arc<Table>>,
    /// For one project of a tenant.
    pub projects: HashMap<(Arc<str>, Arc<str>), Arc<Table>>,
}

impl RuleSet {
    /// The same table for everybody.
    pub fn of(base: Table) -> RuleSet {
        RuleSet { base: Arc::new(base), tenants: HashMap::new(), projects: HashMap::new() }
    }

    /// The table that judges this caller's calls.
    pub fn table(&self, caller: &Caller) -> &Arc<Table> {
        if self.tenants.is_empty() && self.projects.is_empty() {
            return &self.base;
        }
        let project = self.projects.get(&(Arc::clone(&caller.tenant), Arc::clone(&caller.project)));
        project.or_else(|| self.tenants.get(&caller.tenant)).unwrap_or(&self.base)
    }
}

/// What the path of a call needs from outside.
pub struct Parts {
    /// The configuration.
    pub config: Arc<Config>,
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// What is believed.
    pub registry: Arc<Registry>,
    /// What is set up.
    pub readiness: Arc<dyn Readiness>,
    /// What outcomes mean.
    pub rules: RuleSet,
    /// Who is told.
    pub telemetry: Arc<Telemetry>,
    /// The key of this installation for credential hashes.
    pub key: [u8; 32],
    /// Random numbers for jitter.
    pub random: Random,
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts").field("config", &self.config).finish_non_exhaustive()
    }
}

/// One upstream, ready to be used.
#[derive(Debug)]
pub(super) struct Backend {
    pub(super) config: Arc<config::Backend>,
    pub(super) name: Arc<str>,
    pub(super) host: Arc<str>,
    pub(super) upstream: Upstream,
    pub(super) policy: ForwardPolicy,
    /// The path of the MCP endpoint, without a slash at its end; `None` takes every path for one.
    pub(super) endpoint: Option<Box<str>>,
    /// Whether the server said that it announces changes of its tools.
    pub(super) announces_tools: AtomicBool,
    /// Whether some tool is for callers with certain roles, by the configuration or by its own list.
    asks_for_roles: AtomicBool,
    pub(super) metrics: Arc<BackendMetrics>,
    /// The requests that are tool calls: those of the file, and those of the document once it has been read.
    pub(super) routes: ArcSwap<Routes>,
    /// The OpenAPI document that names tools.
    pub(super) document: Option<Watched>,
}

impl Backend {
    fn new(config: &Arc<config::Backend>, all: &Config, clock: &Arc<dyn Clock>, telemetry: &Arc<Telemetry>) -> Backend {
        let mut settings = UpstreamSettings::new(config.address_host(), config.port());
        settings.http = match config.http {
            config::HttpVersion::Http1 => HttpVersion::One,
            config::HttpVersion::Http2 => HttpVersion::Two,
        };
        settings.connect_timeout = config.timeouts.connect;
        settings.idle_timeout = config.pool.idle;
        settings.max_idle = config.pool.max_idle;
        settings.max_head = all.limits.head;
        settings.max_headers = all.limits.headers;
        let host = match config.host {
            config::HostPolicy::Preserve => HostPolicy::Preserve,
            config::HostPolicy::Rewrite => HostPolicy::Rewrite,
        };
        let policy = ForwardPolicy {
            host,
            via: config.forwarded.via,
            x_forwarded: config.forwarded.x_forwarded,
            forwarded: config.forwarded.forwarded,
            tunnel_idle: config.timeouts.idle.unwrap_or(Duration::MAX),
        };
        Backend {
            name: Arc::clone(&config.name),
            host: config.address_host().to_ascii_lowercase().into(),
            upstream: Upstream::watched(settings, Arc::clone(clock), Some(Counted::upstream(telemetry, &config.name))),
            policy,
            endpoint: Some(config.url.path().trim_end_matches('/')).filter(|path| !path.is_empty()).map(Box::from),
            announces_tools: AtomicBool::new(false),
            asks_for_roles: AtomicBool::new(all.tools.ask_for_roles()),
            metrics: telemetry.backend(&config.name),
            routes: ArcSwap::from_pointee(config.routes.clone()),
            document: config.openapi.clone().map(|location| Watched::new(location, Kind::OpenApi)),
            config: Arc::clone(config),
        }
    }

    /// Whether some of its tools are for callers with certain roles.
    pub(super) fn asks_for_roles(&self) -> bool {
        self.asks_for_roles.load(Ordering::Relaxed)
    }

    /// Its list says that some tool is for certain roles.
    pub(super) fn declared_roles(&self) {
        self.asks_for_roles.store(true, Ordering::Relaxed);
    }

    /// Whether a request to this path speaks MCP. The old transport posts where its endpoint event said, which may be
    /// anywhere, so every path that a session named is one too.
    pub(super) fn is_endpoint(&self, path: &str) -> bool {
        self.config.kind == BackendKind::Mcp
            && self.endpoint.as_deref().is_none_or(|endpoint| endpoint == path.trim_end_matches('/'))
    }

    /// What it speaks, in the rules' word.
    pub(super) fn kind(&self) -> rules::BackendKind {
        match self.config.kind {
            BackendKind::Mcp => rules::BackendKind::Mcp,
            BackendKind::Http => rules::BackendKind::Http,
        }
    }

    /// A tool of this backend.
    pub(super) fn tool(&self, name: &str) -> ToolRef {
        ToolRef { backend: Arc::clone(&self.name), tool: Arc::from(name) }
    }

    /// The path and query that an endpoint event names, seen from the path of its stream.
    pub(super) fn endpoint_of(stream_path: &str, url: &str) -> String {
        if let Some(target) = url.parse::<Uri>().ok().filter(|uri| uri.scheme().is_some()) {
            return target.path_and_query().map_or("/", |target| target.as_str()).to_owned();
        }
        if url.starts_with('/') {
            return url.to_owned();
        }
        let directory = stream_path.rsplit_once('/').map_or("", |(directory, _)| directory);
        format!("{directory}/{url}")
    }
}

/// Everything on the path of a call.
pub(super) struct Shared {
    pub(super) config: Arc<Config>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) registry: Arc<Registry>,
    pub(super) readiness: Arc<dyn Readiness>,
    pub(super) declared: Declarations,
    pub(super) shown: Shown,
    /// A caller without a name or a role.
    pub(super) nobody: Caller,
    pub(super) rules: ArcSwap<RuleSet>,
    pub(super) telemetry: Arc<Telemetry>,
    pub(super) random: Random,
    pub(super) identifier: Identifier,
    pub(super) backends: Vec<Arc<Backend>>,
    /// Whether there is one backend alone, for whatever is asked.
    takes_all: bool,
    pub(super) calls: CallLimit,
    pub(super) inflight: Inflight,
    pub(super) tasks: Tasks,
    pub(super) streams: Arc<Streams>,
    pub(super) lists: LastGood,
    pub(super) notifier: Notifier,
    /// Who is asked for diagnoses, once there is somebody.
    pub(super) diagnoser: OnceLock<Arc<dyn Diagnoser>>,
    pub(super) dues: Dues,
    /// The time for calls in flight is over: what still breaks breaks because of us.
    cut: AtomicBool,
    /// Calls that were given up since then.
    cut_off: AtomicU64,
    pub(super) outcomes: OnceLock<OutcomeFile>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("backends", &self.backends).finish_non_exhaustive()
    }
}

impl Shared {
    pub(super) fn new(parts: Parts) -> Shared {
        let config = parts.config;
        let backend = |b| Arc::new(Backend::new(b, &config, &parts.clock, &parts.telemetry));
        let backends: Vec<Arc<Backend>> = config.backends.iter().map(backend).collect();
        let takes_all = matches!(backends.as_slice(), [only] if only.config.matching == config::Match::default());
        Shared {
            takes_all,
            identifier: Identifier::new(
                config.identity.clone(),
                Tokens::new(&config.identity, &parts.telemetry),
                parts.key,
            ),
            backends,
            calls: CallLimit::new(config.limits.calls),
            inflight: Inflight::default(),
            tasks: Tasks::new(),
            streams: Arc::default(),
            lists: LastGood::new(),
            notifier: Notifier::new(config.manifest.notify_interval),
            diagnoser: OnceLock::new(),
            dues: Dues::of(&parts.registry, parts.clock.now()),
            cut: AtomicBool::new(false),
            cut_off: AtomicU64::new(0),
            outcomes: OnceLock::new(),
            rules: ArcSwap::from_pointee(parts.rules),
            clock: parts.clock,
            registry: parts.registry,
            readiness: parts.readiness,
            declared: Declarations::new(),
            shown: Shown::default(),
            nobody: nobody(),
            telemetry: parts.telemetry,
            random: parts.random,
            config,
        }
    }

    /// Gives up everything that is in flight.
    pub(super) fn cut(&self) {
        self.cut.store(true, Ordering::Release);
        for backend in &self.backends {
            backend.upstream.cut();
        }
    }

    /// Calls that were given up because they took longer than the process could wait.
    pub(super) fn cut_off(&self) -> u64 {
        self.cut_off.load(Ordering::Acquire)
    }

    /// A call ended without having been judged.
    pub(super) fn abandoned(&self) {
        if self.cut.load(Ordering::Acquire) {
            self.cut_off.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// The fault as it is once it is known whose it was: a connection to the backend that we cut ourselves is none of its.
    pub(super) fn blame(&self, fault: Fault) -> Fault {
        if fault.side == Side::Upstream && self.cut.load(Ordering::Acquire) {
            return Fault::own(Cause::Drain, fault.sent, "toolvane is stopping");
        }
        fault
    }

    /// Whether the operator's will excludes tools of the backend from some callers or from all: then a request must be read to
    /// be let through.
    pub(super) fn has_policy(&self, backend: &Backend) -> bool {
        !backend.config.lists.is_empty() || self.config.access.depends_on_the_caller() || backend.asks_for_roles()
    }

    /// The backend that a request goes to, by its place among all.
    pub(super) fn backend_for(&self, host: Option<&str>, path: &str) -> Option<usize> {
        if self.takes_all {
            return Some(0);
        }
        let chosen = self.config.backend_for(host, path)?;
        self.backends.iter().position(|backend| backend.name == chosen.name)
    }

    /// Whatever was found out about a tool at another count may not hold any more.
    pub(super) fn changes(&self) -> u64 {
        self.declared.changes().wrapping_add(self.config.tools.changes())
    }
}

fn nobody() -> Caller {
    let default: Arc<str> = Arc::from("default");
    Caller {
        session: None,
        user: None,
        project: Arc::clone(&default),
        tenant: default,
        roles: Vec::new(),
        credential: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_found_from_absolute_rooted_and_relative_addresses() {
        for (stream, url, endpoint) in [
            ("/sse", "/messages?sessionId=1", "/messages?sessionId=1"),
            ("/a/sse", "messages?sessionId=1", "/a/messages?sessionId=1"),
            ("/sse", "http://127.0.0.1:9000/m?s=1", "/m?s=1"),
            ("/sse", "http://127.0.0.1:9000", "/"),
        ] {
            assert_eq!(Backend::endpoint_of(stream, url), endpoint);
        }
    }
}
