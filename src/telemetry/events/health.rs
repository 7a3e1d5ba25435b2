//! What happens to our belief about tools.

use super::super::labels::{self, Name, harmless};
use super::super::logs::Shown;
use super::super::metrics::Metrics;
use super::super::words::TrialResult;
use super::{Event, backend_result};
use crate::clock::Wall;
use crate::health::{Origin, Status};
use crate::rules::{Classification, Scope, TransportFault};

/// Why a status changed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cause<'a> {
    /// The signature of the failure, if it was one.
    pub signature: Option<&'a str>,
    /// Its classification.
    pub classification: Option<Classification>,
    /// The rule that matched.
    pub rule: Option<&'a str>,
    /// Whose hand wrote it.
    pub origin: Origin,
}

/// The status of a health document changed.
#[derive(Clone, Copy, Debug)]
pub struct StatusChanged<'a> {
    /// The backend.
    pub backend: &'a str,
    /// The tool, or `*`.
    pub tool: &'a str,
    /// Who is affected.
    pub scope: Scope,
    /// Which of them. Logged for PROJECT and TENANT only: users and sessions are not the log's business.
    pub scope_id: Option<&'a str>,
    /// The status before.
    pub from: Status,
    /// The status now.
    pub to: Status,
    /// Why.
    pub cause: Cause<'a>,
    /// From when a trial is allowed, for DOWN.
    pub next_trial_at: Option<Wall>,
    /// The estimated recovery.
    pub expected_recovery_at: Option<Wall>,
}

impl Event for StatusChanged<'_> {
    fn emit(self, metrics: &Metrics) {
        let (from, to) = (status_word(self.from), status_word(self.to));
        let scope = self.scope.as_str();
        metrics.transitions.get_or_create(&labels::Transition { backend: name(self.backend), scope, from, to }).inc();
        let scope_id = self.scope_id.filter(|_| matches!(self.scope, Scope::Project | Scope::Tenant));
        tracing::info!(
            target: "toolvane::health",
            backend = %Shown(self.backend),
            tool = %Shown(self.tool),
            scope,
            scope_id = scope_id.map(|id| tracing::field::display(Shown(id))),
            from,
            to,
            signature = self.cause.signature,
            classification = self.cause.classification.map(Classification::as_str),
            rule = self.cause.rule,
            by = ?self.cause.origin,
            next_trial_at = self.next_trial_at.map(tracing::field::display),
            expected_recovery_at = self.expected_recovery_at.map(tracing::field::display),
            "tool status changed"
        );
    }
}

/// A cooldown was armed or re-armed.
#[derive(Clone, Copy, Debug)]
pub struct CooldownStarted<'a> {
    /// The backend.
    pub backend: &'a str,
    /// The tool, or `*`.
    pub tool: &'a str,
    /// The level of the document that holds it.
    pub scope: Scope,
    /// The kind of failure.
    pub signature: &'a str,
    /// What it was classified as.
    pub classification: Classification,
    /// Its level, from 1.
    pub level: u32,
    /// Its deadline.
    pub until: Wall,
}

impl Event for CooldownStarted<'_> {
    fn emit(self, metrics: &Metrics) {
        let classification = self.classification.as_str();
        let labels = labels::BackendClassification { backend: name(self.backend), classification };
        metrics.cooldowns_started.get_or_create(&labels).inc();
        tracing::debug!(
            target: "toolvane::health",
            backend = %Shown(self.backend),
            tool = %Shown(self.tool),
            scope = self.scope.as_str(),
            signature = self.signature,
            classification,
            level = self.level,
            until = %self.until,
            "cooldown started"
        );
    }
}

/// An unclear failure asked for a diagnosis (DESIGN 13).
#[derive(Clone, Copy, Debug)]
pub struct DiagnosisClaim<'a> {
    /// The backend.
    pub backend: &'a str,
    /// The tool.
    pub tool: &'a str,
    /// The kind of failure.
    pub signature: &'a str,
    /// Whether this failure starts one, or an active cooldown refused it.
    pub claimed: bool,
}

impl Event for DiagnosisClaim<'_> {
    fn emit(self, metrics: &Metrics) {
        let result = if self.claimed { "claimed" } else { "refused" };
        metrics.diagnosis_claims.get_or_create(&backend_result(self.backend, result)).inc();
        tracing::debug!(
            target: "toolvane::health",
            backend = %Shown(self.backend),
            tool = %Shown(self.tool),
            signature = self.signature,
            claimed = self.claimed,
            "unclear failure asked for a diagnosis"
        );
    }
}

/// The trial of a tool that is DOWN began or ended.
#[derive(Clone, Copy, Debug)]
pub struct TrialChanged<'a> {
    /// The backend.
    pub backend: &'a str,
    /// The tool, or `*`.
    pub tool: &'a str,
    /// What happened.
    pub result: TrialResult,
}

impl Event for TrialChanged<'_> {
    fn emit(self, metrics: &Metrics) {
        let result = self.result.as_str();
        metrics.trials.get_or_create(&backend_result(self.backend, result)).inc();
        tracing::debug!(target: "toolvane::health", backend = %Shown(self.backend), tool = %Shown(self.tool), result, "trial");
    }
}

/// toolvane probed a backend or a tool itself.
#[derive(Clone, Copy, Debug)]
pub struct Probed<'a> {
    /// The backend.
    pub backend: &'a str,
    /// What went wrong; `None` if it answered.
    pub fault: Option<TransportFault>,
}

impl Event for Probed<'_> {
    fn emit(self, metrics: &Metrics) {
        let result = self.fault.map_or("answered", TransportFault::as_str);
        metrics.probes.get_or_create(&backend_result(self.backend, result)).inc();
        tracing::debug!(target: "toolvane::health", backend = %Shown(self.backend), result, "probe");
    }
}

/// Something was dropped to keep a bound.
#[derive(Clone, Copy, Debug)]
pub struct Evicted {
    /// What, as a word of a closed set: `document`, `cooldown`, `tombstone`, `pending_call`, …
    pub what: &'static str,
    /// How many.
    pub count: u64,
}

impl Event for Evicted {
    fn emit(self, metrics: &Metrics) {
        metrics.evictions.get_or_create(&labels::What { what: self.what }).inc_by(self.count);
        tracing::debug!(target: "toolvane::health", what = self.what, count = self.count, "dropped to keep a bound");
    }
}

const fn status_word(status: Status) -> &'static str {
    match status {
        Status::Ok => "OK",
        Status::Degraded => "DEGRADED",
        Status::Down => "DOWN",
    }
}

fn name(backend: &str) -> Name {
    harmless(backend).into()
}
