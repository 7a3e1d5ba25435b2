//! Every metric family: its name, its help, its labels. Counters are registered without `_total`, which encoding adds.

use std::sync::atomic::AtomicU64;

use prometheus::encoding::{EncodeLabelSet, EncodeMetric};
use prometheus::metrics::TypedMetric;
use prometheus::metrics::counter::Counter;
use prometheus::metrics::family::Family;
use prometheus::metrics::gauge::Gauge;
use prometheus::metrics::info::Info;
use prometheus::registry::{Registry, Unit};

use super::Settings;
use super::labels::{self, Name, Names, Word};
use super::tally::{Durations, Level, Tally};

/// Seconds: the bounds of OpenTelemetry's convention for MCP durations.
pub(super) const BUCKETS: [f64; 14] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];
/// The family that has exemplars.
pub(super) const CALL_DURATION: &str = "toolvane_call_duration_seconds";

pub(super) type Counters<L> = Family<L, Counter>;
pub(super) type Gauges<L> = Family<L, Gauge>;

/// Handles of one group of connections.
#[derive(Clone, Debug)]
pub struct Connections {
    /// Open now.
    pub open: Gauge,
    /// Opened since the start.
    pub opened: Counter,
}

/// Every family. Written by events and by the handles of backends and tools.
#[derive(Debug)]
pub struct Metrics {
    // Calls.
    pub(super) requests: Family<labels::BackendKind, Tally>,
    pub(super) calls: Family<labels::Call, Tally>,
    pub(super) call_duration: Family<labels::Tool, Durations>,
    pub(super) upstream_duration: Family<labels::Tool, Durations>,
    pub(super) calls_in_flight: Family<labels::Backend, Level>,
    pub(super) short_circuits: Family<labels::ShortCircuit, Tally>,
    pub(super) would_short_circuit: Family<labels::ShortCircuit, Tally>,
    pub(super) unjudged: Family<labels::BackendReason, Tally>,
    pub(super) failures: Family<labels::Failure, Tally>,
    pub(super) rule_hits: Family<labels::Rule, Tally>,
    // Health.
    pub(super) transitions: Counters<labels::Transition>,
    pub(super) cooldowns_started: Counters<labels::BackendClassification>,
    pub(super) diagnosis_claims: Counters<labels::BackendResult>,
    pub(super) trials: Counters<labels::BackendResult>,
    pub(super) probes: Counters<labels::BackendResult>,
    pub(super) evictions: Counters<labels::What>,
    // Manifest.
    pub(super) list_rewrites: Counters<labels::BackendResult>,
    pub(super) list_notifications: Counters<labels::Backend>,
    pub(super) integration_probes: Counters<labels::IntegrationResult>,
    // Proxy.
    pub(super) identity_headers_dropped: Counter,
    pub(super) identity_tokens_refused: Counters<labels::ReasonAlone>,
    pub(super) document_reads: Counters<labels::WhatResult>,
    pub(super) limit_rejections: Counters<labels::Limit>,
    pub(super) upstream_open: Gauges<labels::Backend>,
    pub(super) upstream_opened: Counters<labels::Backend>,
    pub(super) upstream_failed: Counters<labels::BackendReason>,
    pub(super) downstream_open: Gauges<labels::Listener>,
    pub(super) downstream_opened: Counters<labels::Listener>,
    // Ourselves.
    pub(super) internal_errors: Counters<labels::Place>,
    pub(super) label_overflows: Counters<labels::Label>,
    pub(super) config_reloads: Counters<labels::OneResult>,
    pub(super) config_reload_successful: Gauge,
    pub(super) config_reload_success_time: Gauge<f64, AtomicU64>,
    pub(super) config_info: Gauges<labels::Config>,
    pub(super) draining: Gauge,
    signatures: Names,
    rules: Names,
}

impl Metrics {
    pub(super) fn register(registry: &mut Registry, settings: &Settings) -> Metrics {
        let build = labels::Build { version: settings.version.clone(), revision: settings.revision.clone() };
        registry.register("build", "The running build", Info::new(build));
        let r = &mut Registering(registry);
        Metrics {
            requests: r.family("requests", "Requests by what they are, judged or not"),
            calls: r.family("calls", "Judged calls of tools by outcome and dispatch code"),
            call_duration: r
                .seconds("call_duration", "Time from a call's request to the end of its answer, own answers included"),
            upstream_duration: r.seconds(
                "upstream_duration",
                "Time that the upstream took, from sending the call to the end of its answer",
            ),
            calls_in_flight: r.family("calls_in_flight", "Calls of tools that have no complete answer yet"),
            short_circuits: r.family("short_circuits", "Calls answered without the upstream, by reason"),
            would_short_circuit: r.family(
                "would_short_circuit",
                "Calls that passed in observe mode and that enforce mode would have answered without the upstream",
            ),
            unjudged: r.family("unjudged", "Calls that passed without being judged, by reason"),
            failures: r
                .family("failures", "Failures and neutral findings by classification and signature of the rule table"),
            rule_hits: r.family("rule_hits", "Outcomes that a rule matched"),
            transitions: r.counters("transitions", "Changes of status of health documents"),
            cooldowns_started: r.counters("cooldowns_started", "Cooldowns armed or re-armed"),
            diagnosis_claims: r.counters(
                "diagnosis_claims",
                "Unclear failures that asked for a diagnosis: claimed, or refused by an active cooldown",
            ),
            trials: r.counters("trials", "Calls let through as the one trial of a tool that is DOWN"),
            probes: r.counters("probes", "Calls and connects that toolvane made itself"),
            evictions: r.counters("evictions", "Things dropped to keep a bound"),
            list_rewrites: r.counters("list_rewrites", "Tool lists by what was done to them"),
            list_notifications: r
                .counters("list_changed_notifications", "Notifications that the tool list changed, sent to clients"),
            integration_probes: r.counters("integration_probes", "Probes of integrations by what they came to"),
            identity_headers_dropped: r
                .counter("identity_headers_dropped", "Identity headers from sources that are not trusted, dropped"),
            identity_tokens_refused: r.counters("identity_tokens_refused", "Bearer tokens that gave no identity"),
            document_reads: r.counters("document_reads", "Reads of keys and OpenAPI documents, by result"),
            limit_rejections: r.counters("limit_rejections", "Requests refused by one of our limits"),
            upstream_open: r.gauges("upstream_connections", "Open connections to the upstream"),
            upstream_opened: r.counters("upstream_connections_opened", "Connections opened to the upstream"),
            upstream_failed: r
                .counters("upstream_connect_failures", "Connections to the upstream that could not be opened"),
            downstream_open: r.gauges("downstream_connections", "Open connections by listener"),
            downstream_opened: r.counters("downstream_connections_accepted", "Connections accepted by listener"),
            internal_errors: r.counters("internal_errors", "Faults of toolvane itself; traffic passed"),
            label_overflows: r
                .counters("label_overflows", "Names that got the label other because a bound was reached"),
            config_reloads: r.counters("config_reloads", "Reloads of configuration and rules"),
            config_reload_successful: r.gauge("config_last_reload_successful", "Whether the last reload succeeded"),
            config_reload_success_time: r
                .time("config_last_reload_success_timestamp", "When configuration was loaded successfully last"),
            config_info: r.gauges("config_info", "Hash of the configuration in force"),
            draining: r.gauge("draining", "Whether the process is draining"),
            signatures: Names::new(Settings::NAMES_MAX),
            rules: Names::new(Settings::NAMES_MAX),
        }
    }

    /// The label of a signature from the rule table.
    pub(super) fn signature(&self, signature: &str) -> Name {
        self.admit(&self.signatures, "signature", signature)
    }

    /// The label of a rule's id.
    pub(super) fn rule(&self, rule: &str) -> Name {
        self.admit(&self.rules, "rule", rule)
    }

    pub(super) fn capped(&self, label: Word) {
        self.label_overflows.get_or_create(&labels::Label { label }).inc();
    }

    fn admit(&self, names: &Names, label: Word, name: &str) -> Name {
        let (name, capped) = names.admit(name);
        if capped {
            self.capped(label);
        }
        name
    }
}

/// A registry that hands back what it registers.
struct Registering<'a>(&'a mut Registry);

impl Registering<'_> {
    fn counter(&mut self, name: Word, help: Word) -> Counter {
        let counter = Counter::default();
        self.0.register(name, help, counter.clone());
        counter
    }

    fn gauge(&mut self, name: Word, help: Word) -> Gauge {
        let gauge = Gauge::default();
        self.0.register(name, help, gauge.clone());
        gauge
    }

    fn time(&mut self, name: Word, help: Word) -> Gauge<f64, AtomicU64> {
        let gauge = Gauge::default();
        self.0.register_with_unit(name, help, Unit::Seconds, gauge.clone());
        gauge
    }

    fn counters<L: Labels>(&mut self, name: Word, help: Word) -> Counters<L> {
        let family = Counters::default();
        self.0.register(name, help, family.clone());
        family
    }

    fn gauges<L: Labels>(&mut self, name: Word, help: Word) -> Gauges<L> {
        let family = Gauges::default();
        self.0.register(name, help, family.clone());
        family
    }

    fn family<L: Labels, M: EachCall>(&mut self, name: Word, help: Word) -> Family<L, M> {
        let family = Family::default();
        self.0.register(name, help, family.clone());
        family
    }

    fn seconds<L: Labels>(&mut self, name: Word, help: Word) -> Family<L, Durations> {
        let family = Family::default();
        self.0.register_with_unit(name, help, Unit::Seconds, family.clone());
        family
    }
}

/// A metric that every call touches.
trait EachCall: EncodeMetric + TypedMetric + Default + std::fmt::Debug + Send + Sync + 'static {}
impl<M: EncodeMetric + TypedMetric + Default + std::fmt::Debug + Send + Sync + 'static> EachCall for M {}

trait Labels: EncodeLabelSet + Clone + Eq + std::hash::Hash + std::fmt::Debug + Send + Sync + 'static {}
impl<L: EncodeLabelSet + Clone + Eq + std::hash::Hash + std::fmt::Debug + Send + Sync + 'static> Labels for L {}

/// The label of a dispatch code, or of none.
pub(super) const NO_CODE: Word = "none";
