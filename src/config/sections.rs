//! The small parts of the file: rules, tenants, manifest, store, limits, log.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::yaml::{At, Fields};

pub(super) const SECOND: Duration = Duration::from_secs(1);
pub(super) const MINUTE: Duration = Duration::from_secs(60);
pub(super) const HOUR: Duration = Duration::from_secs(3600);
pub(super) const DAY: Duration = Duration::from_secs(24 * 3600);
pub(super) const KIB: usize = 1 << 10;
pub(super) const MIB: usize = 1 << 20;

/// Longest name of a tenant, in bytes.
const TENANT_NAME: usize = 128;

/// Rule files, beside the bundled table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleFiles {
    /// Laid over the bundled table in this order.
    pub layers: Vec<PathBuf>,
    /// Holds `<tenant>/error-patterns.yaml` and `<tenant>/<project>/error-patterns.yaml`.
    pub dir: Option<PathBuf>,
}

/// What is different for one tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tenant {
    /// Entries kept in the history of its documents.
    pub history_size: Option<usize>,
    /// Its longest cooldown.
    pub cooldown_max: Option<Duration>,
    /// Rule files laid over those that hold for everybody.
    pub layers: Vec<PathBuf>,
}

/// How `tools/list` is annotated (DESIGN 10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// Where the facts are put.
    pub annotate: Annotate,
    /// What becomes of tools that are not set up.
    pub unready: WhenUnready,
    /// Shortest time between two `list_changed` notifications to a client, after the first.
    pub notify_interval: Duration,
}

/// What becomes of tools that are not set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WhenUnready {
    /// They are not listed.
    Hide,
    /// They are listed with the reason.
    Annotate,
}

/// Where a tool's health is put in `tools/list`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Annotate {
    /// At the end of the description.
    Description,
    /// Under `_meta["toolvane/health"]`.
    Meta,
    /// In both places.
    Both,
    /// Nowhere: lists pass unchanged.
    Off,
}

impl Annotate {
    /// Whether descriptions are changed.
    pub fn in_description(self) -> bool {
        matches!(self, Annotate::Description | Annotate::Both)
    }

    /// Whether `_meta` is added.
    pub fn in_meta(self) -> bool {
        matches!(self, Annotate::Meta | Annotate::Both)
    }
}

/// Where health documents are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Store {
    /// In a file. A relative path starts at the working directory, since configuration often lies where nothing may be
    /// written.
    Redb(PathBuf),
    /// In memory alone: forgotten at the end.
    Memory,
}

/// Where outcomes of calls are recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The file; a relative path starts at the working directory. The older half lies beside it as `<file>.1`.
    pub file: PathBuf,
    /// How large the two may become together.
    pub max_bytes: u64,
}

/// Bounds on what others may make us hold. Sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Request line and headers of one request.
    pub head: usize,
    /// Headers of one request or answer.
    pub headers: usize,
    /// How much of a request body is held to see what it is; a larger one streams on and is not judged.
    pub body_peek: usize,
    /// The largest `tools/list` answer that is held to be annotated; a larger one passes unchanged.
    pub list: usize,
    /// How much of a failure's text is kept for rules, head and tail.
    pub failure_text: usize,
    /// Calls at the same time.
    pub calls: usize,
    /// Downstream connections at the same time.
    pub connections: usize,
    /// How long a request head may take to arrive.
    pub header_timeout: Duration,
    /// How long an idle downstream connection is kept.
    pub idle: Duration,
}

/// What is logged and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Log {
    /// The form of a line.
    pub format: LogFormat,
    /// The least grave line that is written.
    pub level: LogLevel,
}

/// The form of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LogFormat {
    /// Text on a terminal, JSON elsewhere.
    Auto,
    /// One JSON object a line.
    Json,
    /// For people.
    Text,
}

/// How grave a log line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LogLevel {
    /// Somebody must act.
    Error,
    /// We coped.
    Warn,
    /// A status changed.
    Info,
    /// For those who look for a fault.
    Debug,
    /// Everything.
    Trace,
}

impl LogLevel {
    /// The word for it, as filters of `tracing` take it.
    pub fn as_str(self) -> &'static str {
        LEVELS.iter().find(|level| level.1 == self).map_or("info", |level| level.0)
    }
}

const LEVELS: [(&str, LogLevel); 5] = [
    ("error", LogLevel::Error),
    ("warn", LogLevel::Warn),
    ("info", LogLevel::Info),
    ("debug", LogLevel::Debug),
    ("trace", LogLevel::Trace),
];

pub(super) fn rule_files(f: &Fields<'_>, directory: &Path) -> RuleFiles {
    let layers = layers(f, directory);
    let dir = f.opt(
        "dir",
        "Directory with `<tenant>/error-patterns.yaml` and `<tenant>/<project>/error-patterns.yaml`.",
        |at| path(at, directory),
    );
    RuleFiles { layers, dir }
}

fn layers(f: &Fields<'_>, directory: &Path) -> Vec<PathBuf> {
    let doc = "Rule files laid over the table so far, in this order; relative paths start where this file lies.";
    f.opt("layers", doc, |at| at.list(|at| path(at, directory))).unwrap_or_default()
}

pub(super) fn path(at: At<'_>, directory: &Path) -> Option<PathBuf> {
    at.line(4096).map(|text| directory.join(&*text))
}

pub(super) fn tenants(at: At<'_>, directory: &Path) -> Option<BTreeMap<Arc<str>, Tenant>> {
    let all = at.entries(|name, at| {
        if name.is_empty() || name.len() > TENANT_NAME || name.chars().any(char::is_control) {
            return at
                .fail_key(format!("a tenant id has 1 to {TENANT_NAME} bytes and no control characters"), |problem| {
                    problem
                });
        }
        at.map(|f| tenant(f, directory))
    })?;
    Some(all.into_iter().collect())
}

fn tenant(f: &Fields<'_>, directory: &Path) -> Tenant {
    let history = |f: &Fields<'_>| f.opt("size", HISTORY_SIZE, |at| at.count(HISTORY));
    let cooldown = |f: &Fields<'_>| f.opt("max", COOLDOWN_MAX, |at| at.duration(COOLDOWN));
    Tenant {
        history_size: f.section("history", "History of this tenant's health documents.", history),
        cooldown_max: f.section("cooldown", "Cooldowns of this tenant.", cooldown),
        layers: f.section("rules", "Rules of this tenant.", |f| layers(f, directory)),
    }
}

const HISTORY: std::ops::RangeInclusive<usize> = 1..=1_000;
const COOLDOWN: std::ops::RangeInclusive<Duration> = MINUTE..=DAY;
const HISTORY_SIZE: &str = "Entries kept; the oldest go first.";
const COOLDOWN_MAX: &str = "Longest cooldown.";

pub(super) fn history_size(f: &Fields<'_>) -> usize {
    f.count("size", HISTORY_SIZE, 20, HISTORY)
}

pub(super) fn cooldown_max(f: &Fields<'_>) -> Duration {
    f.duration("max", COOLDOWN_MAX, DAY, COOLDOWN)
}

pub(super) fn hint_max(f: &Fields<'_>) -> Duration {
    let doc = "Longest recovery time that an answer may state (Retry-After and the like); longer ones are cut to it.";
    f.duration("max", doc, HOUR, SECOND..=DAY)
}

pub(super) fn manifest(f: &Fields<'_>) -> Manifest {
    let words = [
        ("description", Annotate::Description),
        ("meta", Annotate::Meta),
        ("both", Annotate::Both),
        ("off", Annotate::Off),
    ];
    let doc = "Where `tools/list` says that a tool is not well: at the end of its description, \
        under `_meta[\"toolvane/health\"]`, both, or nowhere.";
    let unready = "`hide` takes tools that are not set up off the list, `annotate` lists them with the reason.";
    let every = "Shortest time between two `tools/list_changed` notifications to one client.";
    Manifest {
        annotate: f.word("annotate", doc, Annotate::Description, &words),
        unready: f.word(
            "unready",
            unready,
            WhenUnready::Hide,
            &[("hide", WhenUnready::Hide), ("annotate", WhenUnready::Annotate)],
        ),
        notify_interval: f.duration("notify_interval", every, 30 * SECOND, SECOND..=HOUR),
    }
}

pub(super) fn store(f: &Fields<'_>) -> Store {
    let engine = f.word(
        "engine",
        "`redb` keeps health documents in a file, `memory` forgets them at the end.",
        "redb",
        &[("redb", "redb"), ("memory", "memory")],
    );
    let doc = "The file; a relative path starts at the working directory.";
    let path = f.with_default("path", doc, Some("toolvane.redb".into()), |at| path(at, Path::new("")));
    if engine == "memory" {
        if path.is_some() {
            f.fail::<()>("path", "`path` has no meaning with `engine: memory`", |problem| {
                problem.help("remove `path`, or use `engine: redb`")
            });
        }
        return Store::Memory;
    }
    Store::Redb(path.unwrap_or_else(|| PathBuf::from("toolvane.redb")))
}

pub(super) fn record(at: At<'_>) -> Option<Record> {
    at.map(|f| {
        let file =
            "The file; a relative path starts at the working directory. Its older half lies beside it as `<file>.1`.";
        let file = f.need("file", file, |at| path(at, Path::new("")));
        let max = f.size("max_bytes", "How large the two may become together.", 16 * MIB, MIB..=1024 * MIB);
        Some(Record { file: file?, max_bytes: u64::try_from(max).unwrap_or(u64::MAX) })
    })?
}

pub(super) fn limits(f: &Fields<'_>) -> Limits {
    let head = "Request line and headers of one request.";
    let peek = "How much of a request body is held to see which call it is; a larger one streams on and is not judged.";
    let list = "Largest `tools/list` answer that is annotated; a larger one passes unchanged.";
    let text = "How much of a failure's text rules see, head and tail.";
    let connections = "Downstream connections at the same time.";
    let header = "How long a request head may take to arrive.";
    let idle = "How long an idle downstream connection is kept.";
    Limits {
        head: f.size("head", head, 64 * KIB, KIB..=MIB),
        headers: f.count("headers", "Headers of one request or answer.", 128, 16..=1_000),
        body_peek: f.size("body_peek", peek, MIB, KIB..=64 * MIB),
        list: f.size("list", list, 8 * MIB, 64 * KIB..=64 * MIB),
        failure_text: f.size("failure_text", text, 64 * KIB, KIB..=MIB),
        calls: f.count("calls", "Calls at the same time; more are answered 429.", 10_000, 1..=1_000_000),
        connections: f.count("connections", connections, 20_000, 1..=1_000_000),
        header_timeout: f.duration("header_timeout", header, 30 * SECOND, SECOND..=10 * MINUTE),
        idle: f.duration("idle", idle, 75 * SECOND, SECOND..=DAY),
    }
}

pub(super) fn metrics_tools_max(f: &Fields<'_>) -> usize {
    f.count("tools_max", "Tools with metric series of their own; the rest share `other`.", 200, 1..=10_000)
}

pub(super) fn log(f: &Fields<'_>) -> Log {
    let formats = [("auto", LogFormat::Auto), ("json", LogFormat::Json), ("text", LogFormat::Text)];
    Log {
        format: f.word("format", "`auto` is text on a terminal and JSON elsewhere.", LogFormat::Auto, &formats),
        level: f.word("level", "The least grave line that is written.", LogLevel::Info, &LEVELS),
    }
}
