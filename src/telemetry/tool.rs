//! Handles resolved once: the path of a call increments, it does not look up. A series begins to exist with its first use,
//! so that 500 listed tools that nobody calls cost nothing.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use prometheus::encoding::prometheus_protobuf::prometheus_data_model;

use super::exemplars::Exemplars;
use super::labels::{self, Name, OTHER, Word};
use super::metrics::{Connections, Metrics, NO_CODE};
use super::tally::{Durations, Level, Tally};
use super::trace::TraceContext;
use super::words::{Outcome, Reason, RequestKind, Unjudged};
use crate::clock::Wall;
use crate::rules::{Classification, DispatchCode, Finding};

const CODES: usize = 5;
const OUTCOMES: usize = Outcome::ALL.len();

/// One resolved counter per word of a closed set.
#[derive(Debug)]
struct Slots<const N: usize>([OnceLock<Tally>; N]);

impl<const N: usize> Slots<N> {
    fn new() -> Slots<N> {
        Slots(std::array::from_fn(|_| OnceLock::new()))
    }

    fn inc(&self, index: usize, resolve: impl FnOnce() -> Tally) {
        if let Some(slot) = self.0.get(index) {
            slot.get_or_init(resolve).inc();
        }
    }

    fn get(&self, index: usize) -> u64 {
        self.0.get(index).and_then(OnceLock::get).map_or(0, Tally::get)
    }
}

/// What was counted of one tool since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Calls that were judged.
    pub judged: u64,
    /// Those of them that failed.
    pub failed: u64,
    /// Calls that were answered without the upstream.
    pub refused: u64,
}

impl Totals {
    /// What came in since an earlier time.
    #[must_use]
    pub fn since(self, before: Totals) -> Totals {
        Totals {
            judged: self.judged.saturating_sub(before.judged),
            failed: self.failed.saturating_sub(before.failed),
            refused: self.refused.saturating_sub(before.refused),
        }
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: Totals) -> Totals {
        Totals {
            judged: self.judged.saturating_add(other.judged),
            failed: self.failed.saturating_add(other.failed),
            refused: self.refused.saturating_add(other.refused),
        }
    }
}

/// The handles of one backend.
#[derive(Debug)]
pub struct BackendMetrics {
    metrics: Arc<Metrics>,
    backend: Name,
    requests: Slots<{ RequestKind::ALL.len() }>,
    unjudged: Slots<{ Unjudged::ALL.len() }>,
    in_flight: Level,
    connections: Connections,
    other: Arc<ToolMetrics>,
}

impl BackendMetrics {
    pub(super) fn new(metrics: Arc<Metrics>, backend: Name) -> BackendMetrics {
        let labels = labels::Backend { backend: Arc::clone(&backend) };
        BackendMetrics {
            requests: Slots::new(),
            unjudged: Slots::new(),
            in_flight: metrics.calls_in_flight.get_or_create_owned(&labels),
            connections: Connections {
                open: metrics.upstream_open.get_or_create_owned(&labels),
                opened: metrics.upstream_opened.get_or_create_owned(&labels),
            },
            other: Arc::new(ToolMetrics::new(Arc::clone(&metrics), Arc::clone(&backend), Arc::from(OTHER))),
            metrics,
            backend,
        }
    }

    pub(super) fn name(&self) -> &Name {
        &self.backend
    }

    pub(super) fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// The handles that all tools without a label of their own share.
    pub fn other(&self) -> Arc<ToolMetrics> {
        Arc::clone(&self.other)
    }

    /// Counts a request by what it is.
    pub fn request(&self, kind: RequestKind) {
        self.requests.inc(kind as usize, || {
            let labels = labels::BackendKind { backend: Arc::clone(&self.backend), kind: kind.as_str() };
            self.metrics.requests.get_or_create_owned(&labels)
        });
    }

    /// Counts what passed without being judged.
    pub fn unjudged(&self, reason: Unjudged) {
        self.unjudged.inc(reason as usize, || {
            let labels = labels::BackendReason { backend: Arc::clone(&self.backend), reason: reason.as_str() };
            self.metrics.unjudged.get_or_create_owned(&labels)
        });
    }

    /// A call is in flight from now on.
    pub fn call_begins(&self) {
        self.in_flight.inc();
    }

    /// A call is in flight no more.
    pub fn call_ends(&self) {
        self.in_flight.dec();
    }

    /// The handles for connections to the upstream.
    pub fn connections(&self) -> &Connections {
        &self.connections
    }
}

/// The handles of one tool.
#[derive(Debug)]
pub struct ToolMetrics {
    metrics: Arc<Metrics>,
    backend: Name,
    tool: Name,
    calls: Slots<{ OUTCOMES * CODES }>,
    short_circuits: Slots<{ Reason::ALL.len() }>,
    would_short_circuit: Slots<{ Reason::ALL.len() }>,
    call_duration: OnceLock<Durations>,
    upstream_duration: OnceLock<Durations>,
    findings: Mutex<Vec<Found>>,
    exemplars: Exemplars,
}

/// The counters of one finding.
#[derive(Debug)]
struct Found {
    rule: Arc<str>,
    signature: Arc<str>,
    classification: Classification,
    failures: Tally,
    hits: Tally,
}

/// Findings of one tool whose counters are kept at hand.
const FINDINGS: usize = 16;

impl ToolMetrics {
    pub(super) fn new(metrics: Arc<Metrics>, backend: Name, tool: Name) -> ToolMetrics {
        ToolMetrics {
            metrics,
            backend,
            tool,
            calls: Slots::new(),
            short_circuits: Slots::new(),
            would_short_circuit: Slots::new(),
            call_duration: OnceLock::new(),
            upstream_duration: OnceLock::new(),
            findings: Mutex::default(),
            exemplars: Exemplars::default(),
        }
    }

    /// The backend's label.
    pub fn backend_label(&self) -> &Arc<str> {
        &self.backend
    }

    /// The tool's label: its name, or `other`.
    pub fn tool_label(&self) -> &Arc<str> {
        &self.tool
    }

    /// What was counted so far.
    pub fn totals(&self) -> Totals {
        let of = |outcome: usize| (0..CODES).map(|code| self.calls.get(outcome * CODES + code)).sum::<u64>();
        Totals {
            judged: (0..OUTCOMES).map(of).sum(),
            failed: of(Outcome::Failure as usize),
            refused: (0..Reason::ALL.len()).map(|reason| self.short_circuits.get(reason)).sum(),
        }
    }

    /// Counts a judged call.
    pub(super) fn call(
        &self,
        outcome: Outcome,
        code: Option<DispatchCode>,
        duration: Duration,
        upstream: Option<Duration>,
    ) {
        self.calls.inc(outcome as usize * CODES + code_index(code), || {
            let code = code.map_or(NO_CODE, DispatchCode::as_str);
            let labels = labels::Call {
                backend: Arc::clone(&self.backend),
                tool: Arc::clone(&self.tool),
                outcome: outcome.as_str(),
                code,
            };
            self.metrics.calls.get_or_create_owned(&labels)
        });
        let calls = self.call_duration.get_or_init(|| self.metrics.call_duration.get_or_create_owned(&self.labels()));
        calls.observe(duration);
        if let Some(upstream) = upstream {
            let resolve = || self.metrics.upstream_duration.get_or_create_owned(&self.labels());
            self.upstream_duration.get_or_init(resolve).observe(upstream);
        }
    }

    /// Counts what the rules found.
    pub(super) fn found(&self, finding: &Finding) {
        let mut known = self.findings.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |found: &Found| {
            Arc::ptr_eq(&found.rule, &finding.rule)
                && Arc::ptr_eq(&found.signature, &finding.signature)
                && found.classification == finding.classification
        };
        if let Some(found) = known.iter().find(|found| is_it(found)) {
            found.failures.inc();
            found.hits.inc();
            return;
        }
        let failure = labels::Failure {
            backend: Arc::clone(&self.backend),
            classification: finding.classification.as_str(),
            signature: self.metrics.signature(&finding.signature),
        };
        let rule = labels::Rule { rule: self.metrics.rule(&finding.rule) };
        let found = Found {
            rule: Arc::clone(&finding.rule),
            signature: Arc::clone(&finding.signature),
            classification: finding.classification,
            failures: self.metrics.failures.get_or_create_owned(&failure),
            hits: self.metrics.rule_hits.get_or_create_owned(&rule),
        };
        found.failures.inc();
        found.hits.inc();
        if known.len() >= FINDINGS {
            known.clear();
        }
        known.push(found);
    }

    /// The trace that a judged call belongs to.
    pub(super) fn exemplar(&self, trace: &TraceContext, duration: Duration, at: Wall) {
        self.exemplars.observe(trace, duration, at);
    }

    pub(super) fn fill_exemplars(&self, histogram: &mut prometheus_data_model::Histogram) {
        self.exemplars.fill(histogram);
    }

    /// Counts an answer given without the upstream.
    pub(super) fn short_circuit(&self, reason: Reason) {
        self.short_circuits.inc(reason as usize, || {
            self.metrics.short_circuits.get_or_create_owned(&self.short_circuit_labels(reason))
        });
    }

    /// Counts a call that passed only because its tool is observed.
    pub(super) fn would_short_circuit(&self, reason: Reason) {
        self.would_short_circuit.inc(reason as usize, || {
            self.metrics.would_short_circuit.get_or_create_owned(&self.short_circuit_labels(reason))
        });
    }

    fn short_circuit_labels(&self, reason: Reason) -> labels::ShortCircuit {
        let reason: Word = reason.as_str();
        labels::ShortCircuit { backend: Arc::clone(&self.backend), tool: Arc::clone(&self.tool), reason }
    }

    fn labels(&self) -> labels::Tool {
        labels::Tool { backend: Arc::clone(&self.backend), tool: Arc::clone(&self.tool) }
    }
}

const fn code_index(code: Option<DispatchCode>) -> usize {
    match code {
        None => 0,
        Some(DispatchCode::NotRegistered) => 1,
        Some(DispatchCode::BackendUnreachable) => 2,
        Some(DispatchCode::BackendFailed) => 3,
        Some(DispatchCode::Disallowed) => 4,
    }
}
