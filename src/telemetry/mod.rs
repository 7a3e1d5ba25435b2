//! What toolvane tells its operator (DESIGN 16): Prometheus metrics and logs.
//!
//! - `events`: one struct per thing that happens; emitting it writes the log line *and* the metric, so they cannot drift.
//! - `tool`: the handles of one tool, resolved once, so that the path of a call looks up no label.
//! - `tally`: metrics that every call touches, counted without crossing cores.
//! - `metrics`: every family, its name and help. `labels` and `words`: which labels exist, and what bounds them.
//! - `sample`: state that is read when somebody scrapes (tools, cooldowns, store) rather than kept twice.
//! - `trace`: one span a call, for whoever takes them; `otlp` (feature `otel`) sends them, and the metrics, to a collector.
//! - `bus`: what happens, as a stream that can be followed; `facts` says what it tells of our belief.
//! - `exposition`: text, OpenMetrics or protobuf, as the scraper asks. `exemplars`: the traces of single calls, in protobuf. `process`: CPU, memory, descriptors.
//! - `logs`: JSON or text, filtered, with names from outside made harmless.
//!
//! Labels are bounded: backends come from the configuration, tools and signatures are capped with `other`, everything else
//! is a closed set. Users and sessions are never labels.

pub mod bus;
pub mod events;
mod exemplars;
mod exposition;
mod facts;
mod labels;
pub mod logs;
mod metrics;
#[cfg(feature = "otel")]
pub mod otlp;
mod process;
mod sample;
mod tally;
mod tool;
pub mod trace;
mod words;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

#[cfg(feature = "otel")]
use prometheus::encoding::prometheus_protobuf;
use prometheus::encoding::prometheus_protobuf::prometheus_data_model::MetricFamily;
use prometheus::registry::Registry;
use serde_json::Value;

pub use events::Event;
pub use exposition::Rendered;
pub use metrics::Connections;
pub use sample::{HiddenTools, IntegrationState, Sample, ToolState};
pub use tool::{BackendMetrics, ToolMetrics, Totals};
pub use words::{ListResult, Outcome, ProbeResult, Reason, RequestKind, TrialResult, Unjudged};

use bus::{Bus, Kind};
use metrics::Metrics;
use sample::SampleCollector;
use trace::{CallSpan, Spans};

use crate::clock::Wall;
use crate::health::Effect;

/// What build information and bounds the metrics start from.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The version of the program.
    pub version: String,
    /// The revision it was built from, `unknown` if that was not recorded.
    pub revision: String,
    /// Most tools that get a label of their own, over all backends (`metrics.tools_max`, 500); the rest share `other`.
    pub tools_max: usize,
}

/// The metrics of the process. One per process, shared by reference.
pub struct Telemetry {
    metrics: Arc<Metrics>,
    registry: Registry,
    sample: Arc<SampleCollector>,
    bus: Bus,
    spans: OnceLock<Box<dyn Spans>>,
    /// Whether a scraper has taken exemplars; before, nobody looks for the traces that they name.
    gives_exemplars: AtomicBool,
    tools: Mutex<Tools>,
    /// Those of `tools` whose label is their very name, to be found by a call without a lock.
    labelled: Labelled,
    tools_max: usize,
}

type Labelled = papaya::HashMap<(Arc<str>, Arc<str>), Arc<ToolMetrics>, foldhash::fast::RandomState>;

/// A key of [`Labelled`] that borrows.
#[derive(Hash)]
struct Named<'a>(&'a str, &'a str);

impl papaya::Equivalent<(Arc<str>, Arc<str>)> for Named<'_> {
    fn equivalent(&self, (backend, tool): &(Arc<str>, Arc<str>)) -> bool {
        *self.0 == **backend && *self.1 == **tool
    }
}

#[derive(Default)]
struct Tools {
    backends: HashMap<Arc<str>, Arc<BackendMetrics>>,
    tools: HashMap<(Arc<str>, Arc<str>), Arc<ToolMetrics>>,
    /// How many of `tools` no list and no configuration had named when they got their label.
    unlisted: usize,
}

impl Telemetry {
    /// All families registered, nothing counted yet.
    pub fn new(settings: &Settings) -> Telemetry {
        let mut registry = Registry::default();
        let ours = registry.sub_registry_with_prefix("toolvane");
        let metrics = Arc::new(Metrics::register(ours, settings));
        let sample = Arc::new(SampleCollector::default());
        ours.register_collector(Box::new(Arc::clone(&sample)));
        registry.register_collector(Box::new(process::ProcessCollector));
        Telemetry {
            metrics,
            registry,
            sample,
            bus: Bus::default(),
            spans: OnceLock::new(),
            gives_exemplars: AtomicBool::new(false),
            tools: Mutex::default(),
            labelled: Labelled::default(),
            tools_max: settings.tools_max,
        }
    }

    /// Tells the operator that something happened: the log line and the metric.
    pub fn emit(&self, event: impl Event) {
        event.emit(&self.metrics);
    }

    /// Whom to tell of every call that is over. The first one counts.
    pub fn trace_to(&self, spans: Box<dyn Spans>) {
        let _ = self.spans.set(spans);
    }

    /// Whether somebody is told of every call that is over.
    pub fn traces(&self) -> bool {
        self.spans.get().is_some()
    }

    /// Whether somebody takes the traces of calls as exemplars.
    pub fn gives_exemplars(&self) -> bool {
        self.gives_exemplars.load(Ordering::Relaxed)
    }

    /// A call is over.
    pub fn span(&self, span: &CallSpan<'_>) {
        if let Some(spans) = self.spans.get() {
            spans.call(span);
        }
    }

    /// Tells those who follow that something happened: `facts` is a JSON object, what belongs to the kind.
    pub fn publish(&self, kind: Kind, at: Wall, facts: Value) {
        if let Value::Object(facts) = facts {
            self.bus.publish(kind, at, facts);
        }
    }

    /// The same for what a step of the health machine did.
    pub fn publish_effect(&self, effect: &Effect, at: Wall) {
        if let Some((kind, facts)) = facts::of_effect(effect) {
            self.bus.publish(kind, at, facts);
        }
    }

    /// What happens, to be followed.
    pub fn bus(&self) -> &Bus {
        &self.bus
    }

    /// The handles of one backend, which must come from the configuration.
    pub fn backend(&self, backend: &str) -> Arc<BackendMetrics> {
        let mut tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = tools.backends.get(backend) {
            return Arc::clone(known);
        }
        let name: Arc<str> = Arc::from(labels::harmless(backend));
        let new = Arc::new(BackendMetrics::new(Arc::clone(&self.metrics), Arc::clone(&name)));
        tools.backends.insert(name, Arc::clone(&new));
        new
    }

    /// The handles of one tool that the configuration or the backend's own list names; beyond the bound, those of `other`.
    /// Keep them: this looks up, they do not.
    pub fn tool(&self, backend: &str, tool: &str) -> Arc<ToolMetrics> {
        self.label(backend, tool, true)
    }

    /// The handles of a tool that a success proved to exist and no list names. Such names get a label only while fewer than
    /// half of the bound went to their like: a backend that succeeds whatever it is asked for leaves room for the tools that
    /// it lists.
    pub fn proven_tool(&self, backend: &str, tool: &str) -> Arc<ToolMetrics> {
        self.label(backend, tool, false)
    }

    fn label(&self, backend: &str, tool: &str, listed: bool) -> Arc<ToolMetrics> {
        let of_backend = self.backend(backend);
        let name = labels::harmless(tool);
        let mut tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (Arc::clone(of_backend.name()), Arc::from(name));
        if let Some(known) = tools.tools.get(&key) {
            return Arc::clone(known);
        }
        if tools.tools.len() >= self.tools_max || (!listed && tools.unlisted >= self.tools_max / 2) {
            self.metrics.capped("tool");
            return of_backend.other();
        }
        let new = Arc::new(ToolMetrics::new(Arc::clone(of_backend.metrics()), Arc::clone(&key.0), Arc::clone(&key.1)));
        if *key.1 == *tool {
            self.labelled.pin().insert(key.clone(), Arc::clone(&new));
        }
        tools.tools.insert(key, Arc::clone(&new));
        tools.unlisted += usize::from(!listed);
        new
    }

    /// The handles of a tool that has a label of its own by now. Takes no lock and allocates nothing.
    pub fn labelled(&self, backend: &str, tool: &str) -> Option<Arc<ToolMetrics>> {
        self.labelled.pin().get(&Named(backend, tool)).cloned()
    }

    /// The handles for calls of names that nobody vouches for: whatever a client sends must not use up the bound.
    pub fn unlisted_tool(&self, backend: &str) -> Arc<ToolMetrics> {
        self.backend(backend).other()
    }

    /// What was counted of each tool that has a label of its own.
    pub fn totals(&self) -> Vec<(Arc<str>, Arc<str>, Totals)> {
        let tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        tools.tools.iter().map(|((backend, tool), of)| (backend.clone(), tool.clone(), of.totals())).collect()
    }

    /// What was counted of each backend under the label that tools without one of their own share.
    pub fn other_totals(&self) -> Vec<(Arc<str>, Totals)> {
        let tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        tools.backends.values().map(|of| (Arc::clone(of.name()), of.other().totals())).collect()
    }

    /// How many outcomes a rule has decided since the start.
    pub fn rule_hits(&self, rule: &str) -> u64 {
        let labels = labels::Rule { rule: labels::harmless(rule).into() };
        self.metrics.rule_hits.get(&labels).map_or(0, |hits| hits.get())
    }

    /// The handles for connections to one of our own listeners: `proxy` or `admin`.
    pub fn listener(&self, listener: &'static str) -> Connections {
        let labels = labels::Listener { listener };
        Connections {
            open: self.metrics.downstream_open.get_or_create_owned(&labels),
            opened: self.metrics.downstream_opened.get_or_create_owned(&labels),
        }
    }

    /// All metrics in the format that the `Accept` header of the scraper asks for, together with the state of the moment.
    ///
    /// # Errors
    /// When a metric cannot be written in that format, which would be a mistake of ours.
    pub fn render(&self, accept: Option<&str>, sample: Sample) -> Result<Rendered, fmt::Error> {
        // Two scrapes at once must not see each other's half.
        let _turn = self.sample.set(sample, self.tools_max);
        exposition::render(&self.registry, accept, |families| self.fill_exemplars(families))
    }

    /// Durations by the tools that they belong to.
    fn fill_exemplars(&self, families: &mut [MetricFamily]) {
        self.gives_exemplars.store(true, Ordering::Relaxed);
        let durations = families.iter_mut().filter(|family| family.name == metrics::CALL_DURATION);
        let tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        for metric in durations.flat_map(|family| &mut family.metric) {
            let label =
                |name: &str| metric.label.iter().find(|label| label.name == name).map(|label| label.value.as_str());
            let key = (label("backend").unwrap_or_default().into(), label("tool").unwrap_or_default().into());
            if let Some((tool, histogram)) = tools.tools.get(&key).zip(metric.histogram.as_mut()) {
                tool.fill_exemplars(histogram);
            }
        }
    }

    /// The same, as values.
    #[cfg(feature = "otel")]
    fn families(&self, sample: Sample) -> Result<Vec<MetricFamily>, fmt::Error> {
        let _turn = self.sample.set(sample, self.tools_max);
        prometheus_protobuf::encode(&self.registry)
    }
}

impl fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Telemetry").field("tools_max", &self.tools_max).finish_non_exhaustive()
    }
}

impl Settings {
    /// Names that any one label other than `tool` may take before the rest share `other`.
    const NAMES_MAX: usize = 1_000;
}
