//! What happens to single calls and requests.

use std::time::Duration;

use super::super::labels::{self, harmless};
use super::super::logs::Shown;
use super::super::metrics::Metrics;
use super::super::tool::ToolMetrics;
use super::super::trace::TraceContext;
use super::super::words::{Outcome, Reason};
use super::Event;
use crate::clock::{Wall, millis};
use crate::rules::{Finding, TransportFault};

/// A call's answer is complete, or will never be.
#[derive(Clone, Copy, Debug)]
pub struct CallEnded<'a> {
    /// The tool's handles.
    pub tool: &'a ToolMetrics,
    /// The tool's real name, for the log.
    pub name: &'a str,
    /// What the call came to.
    pub outcome: Outcome,
    /// What the rules found, if they found something.
    pub finding: Option<&'a Finding>,
    /// From the request to the end of the answer.
    pub duration: Duration,
    /// What of it the upstream took; `None` if it was not asked.
    pub upstream: Option<Duration>,
    /// The trace of the caller that it belongs to, and when it ended.
    pub trace: Option<(&'a TraceContext, Wall)>,
}

impl Event for CallEnded<'_> {
    fn emit(self, _: &Metrics) {
        let CallEnded { tool, name, outcome, finding, duration, upstream, trace } = self;
        tool.call(outcome, finding.map(|finding| finding.dispatch_code), duration, upstream);
        if let Some((trace, at)) = trace {
            tool.exemplar(trace, duration, at);
        }
        if let Some(finding) = finding {
            tool.found(finding);
        }
        tracing::debug!(
            target: "toolvane::call",
            backend = %tool.backend_label(),
            tool = %Shown(name),
            outcome = outcome.as_str(),
            code = finding.map(|finding| finding.dispatch_code.as_str()),
            classification = finding.map(|finding| finding.classification.as_str()),
            signature = finding.map(|finding| &*finding.signature),
            rule = finding.map(|finding| &*finding.rule),
            duration_ms = millis(duration),
            upstream_ms = upstream.map(millis),
            "call ended"
        );
    }
}

/// A call was answered without the upstream.
#[derive(Clone, Copy, Debug)]
pub struct ShortCircuited<'a> {
    /// The tool's handles.
    pub tool: &'a ToolMetrics,
    /// The tool's real name, for the log.
    pub name: &'a str,
    /// Why.
    pub reason: Reason,
    /// The signature that the tool is DOWN for.
    pub signature: Option<&'a str>,
}

impl Event for ShortCircuited<'_> {
    fn emit(self, _: &Metrics) {
        self.tool.short_circuit(self.reason);
        tracing::debug!(
            target: "toolvane::call",
            backend = %self.tool.backend_label(),
            tool = %Shown(self.name),
            reason = self.reason.as_str(),
            signature = self.signature,
            "call answered without the upstream"
        );
    }
}

/// A call passed only because its tool is observed: enforced, it would have been answered without the upstream (DESIGN 7).
#[derive(Clone, Copy, Debug)]
pub struct WouldShortCircuit<'a> {
    /// The tool's handles.
    pub tool: &'a ToolMetrics,
    /// The tool's real name, for the log.
    pub name: &'a str,
    /// Why.
    pub reason: Reason,
    /// The signature that the tool is DOWN for.
    pub signature: Option<&'a str>,
}

impl Event for WouldShortCircuit<'_> {
    fn emit(self, _: &Metrics) {
        self.tool.would_short_circuit(self.reason);
        tracing::debug!(
            target: "toolvane::call",
            backend = %self.tool.backend_label(),
            tool = %Shown(self.name),
            reason = self.reason.as_str(),
            signature = self.signature,
            "call of an observed tool passed, enforce mode would have answered it"
        );
    }
}

/// A request was refused by one of our limits.
#[derive(Clone, Copy, Debug)]
pub struct LimitRejected {
    /// The limit, by its name in the configuration.
    pub limit: &'static str,
    /// Its value, in its own unit.
    pub value: u64,
}

impl Event for LimitRejected {
    fn emit(self, metrics: &Metrics) {
        metrics.limit_rejections.get_or_create(&labels::Limit { limit: self.limit }).inc();
        tracing::debug!(target: "toolvane::call", limit = self.limit, value = self.value, "request refused by a limit");
    }
}

/// No connection to the upstream could be opened.
#[derive(Clone, Copy, Debug)]
pub struct ConnectFailed<'a> {
    /// The backend.
    pub backend: &'a str,
    /// What stood in the way.
    pub fault: TransportFault,
}

impl Event for ConnectFailed<'_> {
    fn emit(self, metrics: &Metrics) {
        let backend = harmless(self.backend).into();
        metrics.upstream_failed.get_or_create(&labels::BackendReason { backend, reason: self.fault.as_str() }).inc();
        let fault = self.fault.as_str();
        tracing::debug!(target: "toolvane::call", backend = %Shown(self.backend), fault, "cannot connect to the upstream");
    }
}

/// An identity header from a source that is not trusted was dropped (DESIGN 5).
#[derive(Clone, Copy, Debug)]
pub struct IdentityHeaderDropped<'a> {
    /// The header's name; its value is nobody's business.
    pub header: &'a str,
}

impl Event for IdentityHeaderDropped<'_> {
    fn emit(self, metrics: &Metrics) {
        metrics.identity_headers_dropped.inc();
        tracing::debug!(target: "toolvane::call", header = %Shown(self.header), "identity header from an untrusted source dropped");
    }
}
