//! One process from its start to its end.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use thiserror::Error;
use tokio::task::JoinHandle;

use super::diagnosis::diagnose;
use super::otlp::Export;
use super::reload::{self, Reloader};
use super::watch;
use crate::admin::principal::{TokenError, Tokens};
use crate::admin::{self, Admin, Past, Place, Sessions};
use crate::clock::{Clock, Now};
use crate::config::{self, Config};
use crate::health::{Backing, Filter, MemoryOnly, Readiness, Registry};
use crate::proxy::net::{self, Drain, DrainSignal, Limits, Workers};
use crate::proxy::{Counted, Parts, Proxy, RuleSet};
use crate::readiness::Integrations;
use crate::store::{self, InstallKey, OpenError, OutcomeFile, Store};
use crate::telemetry::events::{Draining, Reloaded, Started, Stopped, StoreOpened, StoreReported};
use crate::telemetry::{self, Telemetry};
use crate::yaml::Source;

pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What a process is made of.
pub struct App {
    /// The configuration.
    pub config: Arc<Config>,
    /// The rule tables.
    pub rules: RuleSet,
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// 32 random bytes from the operating system, for an installation that has no key yet.
    pub fresh_key: [u8; 32],
    /// Seed of the random numbers for jitter.
    pub seed: u64,
    /// A name for the configuration in force, for logs and metrics.
    pub config_hash: String,
    /// The configuration file as it was read, by its path: a reload reads it again. `None` where flags took its place.
    pub config_file: Option<Arc<Source>>,
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App").field("config", &self.config).finish_non_exhaustive()
    }
}

/// Why a process cannot start.
#[derive(Debug, Error)]
pub enum StartError {
    /// A listener's address is taken or not ours.
    #[error("cannot listen on {address}: {why}; change `{key}` or stop whoever holds it")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The key of the configuration.
        key: &'static str,
        /// The reason.
        why: std::io::Error,
    },
    /// The unix socket of the admin surface is taken, or cannot be made.
    #[error("cannot answer on the socket {path}: {why}; change `admin.socket` or stop whoever answers there")]
    Socket {
        /// The socket.
        path: PathBuf,
        /// The reason.
        why: std::io::Error,
    },
    /// The file for outcomes cannot be written.
    #[error("cannot write to {path}: {why}; change `record.file` or remove `record`")]
    Record {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: std::io::Error,
    },
    /// What diagnoses and notifications need cannot be had.
    #[error("{0}")]
    Diagnosis(String),
    /// What exports need cannot be had.
    #[error("`otlp`: {0}")]
    Otlp(String),
    /// A token of the admin surface cannot be used.
    #[error("`admin.tokens`: {0}")]
    Token(TokenError),
    /// No thread can be started.
    #[error("cannot start a worker thread: {0}; raise the limits on threads and open files")]
    Workers(std::io::Error),
    /// The state file is in use.
    #[error("cannot open the state file {path}: {why}")]
    Store {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: OpenError,
    },
}

/// A process that serves.
#[derive(Debug)]
pub struct Running {
    /// Where dispatchers connect, with the ports that were taken.
    pub listen: Vec<SocketAddr>,
    /// Where the admin surface answers.
    pub admin: SocketAddr,
    /// Reads configuration and rules again.
    pub reloader: Arc<Reloader>,
    leave: Leaving,
    store: Option<Arc<Store>>,
    serving: JoinHandle<()>,
    integrations: Arc<Integrations>,
    export: Export,
}

impl App {
    /// Binds the listeners, opens the state file and serves.
    ///
    /// # Errors
    /// What stands in the way, and what to do about it.
    #[expect(clippy::too_many_lines, reason = "everything that a process is made of, in the order in which it is made")]
    pub async fn start(self) -> Result<Running, StartError> {
        let config = self.config;
        let telemetry = telemetry(&config);
        let now = self.clock.now();
        telemetry.emit(Reloaded { result: Ok(&self.config_hash), needs_restart: &[], at: now.wall });
        let export = Export::start(&config, &telemetry).map_err(StartError::Otlp)?;
        let tokens = Tokens::read(&config.admin_access, &config.environment).map_err(StartError::Token)?;
        // Before the state file: who finds the address taken leaves nothing behind.
        let listeners = bind(&config, &telemetry).await?;
        let admin_bound = bind_admin(&config).await?;
        let (store, key) = open_store(&config, &self.clock, &telemetry, InstallKey(self.fresh_key))?;
        let registry = remembered(&config, store.as_ref(), now);
        let integrations = integrations(&config, &self.clock, &telemetry, self.seed);
        let proxy = Proxy::new(Parts {
            config: Arc::clone(&config),
            clock: Arc::clone(&self.clock),
            registry: Arc::clone(&registry),
            readiness: Arc::clone(&integrations) as Arc<dyn Readiness>,
            rules: self.rules,
            telemetry: Arc::clone(&telemetry),
            key: key.0,
            random: random(self.seed),
        });
        record_outcomes(&config, &proxy, key)?;
        proxy.read_files().await;
        let reloader = Arc::new(Reloader::new(reload::Parts {
            proxy: proxy.clone(),
            telemetry: Arc::clone(&telemetry),
            clock: Arc::clone(&self.clock),
            config: Arc::clone(&config),
            file: self.config_file,
            hash: self.config_hash.clone(),
        }));
        let diagnosis = diagnose(&config, &proxy, (&self.clock, store.as_ref()), (&registry, &telemetry))
            .map_err(StartError::Diagnosis)?;
        let (drain, signal) = Drain::new();
        let leave = Leaving::new(&config, (&registry, &telemetry, &proxy), drain);
        let leaving = leave.clone();
        let admin = Arc::new(Admin {
            leave: Arc::new(move || leaving.announce()),
            config: Arc::clone(&config),
            config_hash: self.config_hash,
            access: config.admin_access.clone(),
            tokens,
            diagnosis,
            readers: Admin::seats(),
            life: now.wall.0,
            past: Past::new(&registry.documents(&Filter::default(), now), config.tuning.history_size, now),
            place: Place::default(),
            sessions: Sessions::new(&self.fresh_key, now.wall.0),
            clock: self.clock,
            reload: Arc::clone(&reloader) as Arc<dyn admin::Reload>,
            registry: Arc::clone(&registry),
            telemetry: Arc::clone(&telemetry),
            proxy: proxy.clone(),
            integrations: Arc::clone(&integrations),
            store: store.clone(),
            drain: signal.clone(),
            started: AtomicBool::new(false),
        });
        let (listen, admin_address) = (addresses(&listeners), admin_bound.address());
        let serving = serve(listeners, proxy.clone(), limits(&config), signal)?;
        in_background(&proxy, &integrations, &reloader);
        export.metrics(&admin);
        admin.started.store(true, Ordering::Release);
        tokio::spawn(admin_bound.serve(admin));
        announce(&telemetry, &config, &listen, admin_address);
        Ok(Running { listen, admin: admin_address, reloader, leave, store, serving, integrations, export })
    }
}

impl Running {
    /// What is believed about integrations, for tests that speak for a service.
    pub fn integrations(&self) -> &Arc<Integrations> {
        &self.integrations
    }

    /// Leaves in order: nothing is learned any more, new calls are taken for as long as it takes callers to hear of it, and
    /// what is in flight is finished until the drain timeout.
    pub fn drain(&self) {
        self.leave.in_order();
    }

    /// Leaves at once: what is in flight is cut off.
    pub fn stop(&self) {
        self.leave.at_once();
    }

    /// Waits until nothing is served any more, then closes the state file.
    pub async fn ended(&mut self) {
        let _ = (&mut self.serving).await;
        if let Some(store) = &self.store {
            // The store reports by itself what it could not write.
            let _ = store.close().await;
        }
        self.export.finish().await;
        self.leave.telemetry.emit(Stopped { cut_off: self.leave.proxy.cut_off() });
    }
}

/// What it takes to leave.
#[derive(Clone, Debug)]
struct Leaving {
    registry: Arc<Registry>,
    telemetry: Arc<Telemetry>,
    proxy: Proxy,
    drain: Drain,
    announce: Duration,
    timeout: Duration,
}

impl Leaving {
    fn new(
        config: &Config,
        (registry, telemetry, proxy): (&Arc<Registry>, &Arc<Telemetry>, &Proxy),
        drain: Drain,
    ) -> Leaving {
        let (registry, telemetry, proxy) = (Arc::clone(registry), Arc::clone(telemetry), proxy.clone());
        Leaving { registry, telemetry, proxy, drain, announce: config.drain_announce, timeout: config.drain_timeout }
    }

    /// Says that we are about to leave, and goes on serving.
    fn announce(&self) {
        self.freeze();
        self.drain.announce();
    }

    fn in_order(&self) {
        self.announce();
        let announce = self.announce.min(self.timeout);
        let rest = self.timeout.saturating_sub(announce);
        if announce.is_zero() {
            self.drain.stop(rest);
            return;
        }
        let drain = self.drain.clone();
        tokio::spawn(async move {
            tokio::time::sleep(announce).await;
            drain.stop(rest);
        });
    }

    fn at_once(&self) {
        self.freeze();
        self.drain.stop(Duration::ZERO);
    }

    fn freeze(&self) {
        self.registry.freeze();
        self.telemetry.emit(Draining { in_flight: u64::try_from(self.proxy.in_flight()).unwrap_or(u64::MAX) });
    }
}

/// Serves until the end, on a worker thread for each core; what outlives the drain timeout is given up, and told so.
fn serve(
    listeners: Vec<net::Bound>,
    proxy: Proxy,
    limits: Limits,
    signal: DrainSignal,
) -> Result<JoinHandle<()>, StartError> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let workers = Workers::start(cores).map_err(StartError::Workers)?;
    let (over, cut) = (signal.clone(), proxy.clone());
    tokio::spawn(async move {
        over.over().await;
        cut.cut();
    });
    Ok(tokio::spawn(net::serve_on(workers, listeners, proxy, limits, signal)))
}

fn announce(telemetry: &Telemetry, config: &Config, listen: &[SocketAddr], admin: SocketAddr) {
    telemetry.emit(Started {
        version: VERSION,
        listen: &joined(listen),
        admin: &admin.to_string(),
        backends: config.backends.len(),
    });
}

fn telemetry(config: &Config) -> Arc<Telemetry> {
    Arc::new(Telemetry::new(&telemetry::Settings {
        version: VERSION.to_owned(),
        revision: option_env!("TOOLVANE_REVISION").unwrap_or("unknown").to_owned(),
        tools_max: config.metrics_tools_max,
    }))
}

/// What goes on for as long as the process lives: probes of backends and of integrations, watches on files.
fn in_background(proxy: &Proxy, integrations: &Arc<Integrations>, reloader: &Arc<Reloader>) {
    tokio::spawn(watch::watch(Arc::clone(reloader)));
    tokio::spawn(proxy.clone().keep_documents_forever());
    tokio::spawn(proxy.clone().probe_forever());
    let told = proxy.clone();
    tokio::spawn(Arc::clone(integrations).run(move || told.readiness_changed()));
}

/// What backs tools; nothing has been asked yet.
fn integrations(
    config: &Arc<Config>,
    clock: &Arc<dyn Clock>,
    telemetry: &Arc<Telemetry>,
    seed: u64,
) -> Arc<Integrations> {
    let (config, clock, telemetry) = (Arc::clone(config), Arc::clone(clock), Arc::clone(telemetry));
    Arc::new(Integrations::new(config, clock, telemetry, random(seed.rotate_left(32))))
}

fn record_outcomes(config: &Config, proxy: &Proxy, key: InstallKey) -> Result<(), StartError> {
    if let Some(record) = &config.record {
        let opened = OutcomeFile::open(&record.file, record.max_bytes, key.0);
        proxy.record_to(opened.map_err(|why| StartError::Record { path: record.file.clone(), why })?);
    }
    Ok(())
}

/// The registry, with everything that the store remembers.
fn remembered(config: &Config, store: Option<&Arc<Store>>, now: Now) -> Arc<Registry> {
    let backing: Arc<dyn Backing> = match store {
        Some(store) => Arc::clone(store) as Arc<dyn Backing>,
        None => Arc::new(MemoryOnly),
    };
    let registry = Arc::new(Registry::new(config.tuning.clone(), backing));
    for document in store.into_iter().flat_map(|store| store.load_all()) {
        registry.load(document, now);
    }
    registry
}

type Opened = (Option<Arc<Store>>, InstallKey);

fn open_store(
    config: &Config,
    clock: &Arc<dyn Clock>,
    telemetry: &Arc<Telemetry>,
    fresh: InstallKey,
) -> Result<Opened, StartError> {
    let config::Store::Redb(path) = &config.store else { return Ok((None, fresh)) };
    let sink = Arc::clone(telemetry);
    let report = Arc::new(move |report| sink.emit(StoreReported(&report)));
    let settings = store::Settings::new(path, Arc::clone(clock), report, fresh);
    let (store, opened) = Store::open(settings).map_err(|why| StartError::Store { path: path.clone(), why })?;
    telemetry.emit(StoreOpened { path, opened: &opened, documents: store.load_all().len() });
    let key = store.install_key();
    Ok((Some(Arc::new(store)), key))
}

async fn bind_admin(config: &Config) -> Result<admin::Bound, StartError> {
    let address = config.admin;
    let bound = admin::Bound::bind(address).await;
    let bound = bound.map_err(|why| StartError::Listen { address, key: "admin.listen", why })?;
    match &config.admin_access.socket {
        None => Ok(bound),
        Some(path) => bound.with_socket(path).await.map_err(|why| StartError::Socket { path: path.clone(), why }),
    }
}

async fn bind(config: &Config, telemetry: &Arc<Telemetry>) -> Result<Vec<net::Bound>, StartError> {
    let watch = Counted::downstream(telemetry, "proxy");
    let mut bound = Vec::new();
    for &address in &config.listen {
        let listener = net::Bound::bind(address).await;
        let listener = listener.map_err(|why| StartError::Listen { address, key: "listen", why })?;
        bound.push(listener.watched(Arc::clone(&watch)));
    }
    Ok(bound)
}

fn limits(config: &Config) -> Limits {
    Limits {
        head_size: config.limits.head,
        headers: config.limits.headers,
        head_timeout: config.limits.header_timeout,
        idle_timeout: config.limits.idle,
        connections: config.limits.connections,
        ..Limits::default()
    }
}

fn random(seed: u64) -> Box<dyn Fn() -> f64 + Send + Sync> {
    let generator = std::sync::Mutex::new(fastrand::Rng::with_seed(seed));
    Box::new(move || generator.lock().unwrap_or_else(std::sync::PoisonError::into_inner).f64())
}

fn addresses(listeners: &[net::Bound]) -> Vec<SocketAddr> {
    listeners.iter().map(net::Bound::address).collect()
}

fn joined(addresses: &[SocketAddr]) -> String {
    addresses.iter().map(SocketAddr::to_string).collect::<Vec<_>>().join(", ")
}
