//! `toolvane run`: the proxy, until a signal ends it.

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::args::Run;
use super::{BAD, CONFIG, FINE, USAGE};
use crate::app::{self, App, Reloader, Running, StartError, service_manager};
use crate::clock::{Clock, SystemClock};
use crate::config::{self, Arguments, Config, LogFormat, LogLevel};
use crate::telemetry::logs;
use crate::yaml::{Report, Source, Style};

const NOTHING_TO_RUN: &str = "\
error: say what to run, in one of two ways
  toolvane run --config toolvane.yaml                      a configuration file; config/toolvane.yaml explains every key
  toolvane run --backend http://127.0.0.1:9000/mcp         one backend, with the path of its MCP endpoint

For more information, try '--help'.";

/// Runs the proxy; gives the exit code.
pub fn run(args: &Run, words: &mut impl Write, style: Style) -> u8 {
    if args.config.is_none() && args.backend.is_none() {
        let _ = writeln!(words, "{NOTHING_TO_RUN}");
        return USAGE;
    }
    // Calls have threads of their own; this one accepts connections and serves the admin listener.
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            let _ = writeln!(words, "error: cannot start the runtime: {error}");
            return BAD;
        }
    };
    runtime.block_on(async {
        // First of all: whoever is asked to leave while it starts leaves in order too.
        let Ok(signals) = Signals::listen() else {
            let _ = writeln!(words, "error: cannot listen for signals");
            return BAD;
        };
        let prepared = match prepare(args) {
            Ok(prepared) => prepared,
            Err(report) => {
                let _ = writeln!(words, "{}", report.render(style));
                return CONFIG;
            }
        };
        if let Err(why) = log(&prepared.config, &prepared.clock) {
            let _ = writeln!(words, "error: {why}");
            return CONFIG;
        }
        serve(prepared, signals, words).await
    })
}

/// The signals that a running toolvane heeds.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    fn listen() -> std::io::Result<Signals> {
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }
}

fn prepare(args: &Run) -> Result<App, Report> {
    let (config, file) = match &args.config {
        Some(path) => {
            let source = Source::load(path)?;
            let config = Config::read(&source, path.parent().unwrap_or(Path::new("")))?;
            (config, Some(source))
        }
        None => {
            let arguments = Arguments {
                listen: args.listen.clone(),
                admin: args.admin.clone(),
                backend: args.backend.clone().unwrap_or_default(),
            };
            (Config::from_args(&arguments)?, None)
        }
    };
    let compiled = app::compile_named(&config, file.as_deref());
    let (rules, config_hash) = compiled.map_err(|report| match (&file, &args.config) {
        (Some(source), Some(path)) => app::where_named(&report, source, path.parent().unwrap_or(Path::new(""))),
        _ => report,
    })?;
    app::check_documents(&config)?;
    let config = Config { environment: environment(), ..config };
    Ok(App {
        rules,
        config: Arc::new(config),
        clock: Arc::new(SystemClock),
        fresh_key: random_bytes(),
        seed: u64::from_ne_bytes(random_bytes()),
        config_hash,
        config_file: file,
    })
}

#[expect(clippy::disallowed_methods, reason = "this is the place that reads the environment")]
pub(super) fn environment() -> config::Environment {
    let text = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
    config::Environment::new(std::env::vars_os().filter_map(text))
}

fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        // Interrupted at most: the pool of a machine that runs programs is ready.
        filled += rustix::rand::getrandom(rest, rustix::rand::GetRandomFlags::empty()).unwrap_or(0);
    }
    bytes
}

fn log(config: &Config, clock: &Arc<dyn Clock>) -> Result<(), String> {
    let terminal = std::io::stdout().is_terminal();
    let format = match config.log.format {
        LogFormat::Json => logs::Format::Json,
        LogFormat::Text => logs::Format::Text { ansi: terminal },
        LogFormat::Auto if terminal => logs::Format::Text { ansi: true },
        LogFormat::Auto => logs::Format::Json,
    };
    let level = match config.log.level {
        LogLevel::Error => "error",
        LogLevel::Warn => "warn",
        LogLevel::Info => "info",
        LogLevel::Debug => "debug",
        LogLevel::Trace => "trace",
    };
    let subscriber =
        logs::subscriber(format, level, Arc::clone(clock), std::io::stdout).map_err(|bad| bad.to_string())?;
    tracing::subscriber::set_global_default(subscriber).map_err(|error| error.to_string())
}

async fn serve(app: App, signals: Signals, words: &mut impl Write) -> u8 {
    let Signals { mut terminate, mut interrupt, hangup } = signals;
    let started = tokio::select! {
        biased;
        _ = terminate.recv() => return FINE,
        _ = interrupt.recv() => return FINE,
        started = app.start() => started,
    };
    let mut running = match started {
        Ok(running) => running,
        Err(error) => {
            let _ = writeln!(words, "error: {error}");
            return if matches!(error, StartError::Token(_) | StartError::Diagnosis(_) | StartError::Otlp(_)) {
                CONFIG
            } else {
                BAD
            };
        }
    };
    announce(&running, words);
    tell_service_manager(service_manager::ready(), words);
    tokio::spawn(service_manager::keep_alive());
    tokio::spawn(reload_on(hangup, Arc::clone(&running.reloader)));
    tokio::select! {
        _ = terminate.recv() => running.drain(),
        _ = interrupt.recv() => running.stop(),
        () = running.ended() => return FINE,
    }
    tell_service_manager(service_manager::stopping(), words);
    tokio::select! {
        () = running.ended() => {}
        _ = async { tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {} } } => {
            running.stop();
        }
    }
    FINE
}

fn tell_service_manager(told: std::io::Result<()>, words: &mut impl Write) {
    if let Err(error) = told {
        let _ =
            writeln!(words, "warning: the service manager cannot be told how we are: {error}; is NOTIFY_SOCKET right?");
    }
}

/// SIGHUP asks for a reload. That a terminal which closes sends it too does no harm: calls go on.
async fn reload_on(mut hangup: Signal, reloader: Arc<Reloader>) {
    while hangup.recv().await.is_some() {
        let reloader = Arc::clone(&reloader);
        // What came of it is in the log and in the metrics.
        let _ = tokio::task::spawn_blocking(move || reloader.reload().is_ok()).await;
    }
}

fn announce(running: &Running, words: &mut impl Write) {
    for address in &running.listen {
        let _ = writeln!(words, "listening on http://{address}");
    }
    let _ = writeln!(words, "admin on http://{}", running.admin);
}
