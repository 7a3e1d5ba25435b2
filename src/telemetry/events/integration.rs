//! What happens to integrations and the tools that they unlock.

use std::time::Duration;

use super::super::labels::{self, harmless};
use super::super::logs::Shown;
use super::super::metrics::Metrics;
use super::super::words::ProbeResult;
use super::Event;
use crate::clock::millis;

/// A service was asked whether it is set up.
#[derive(Clone, Copy, Debug)]
pub struct IntegrationProbed<'a> {
    /// The integration.
    pub integration: &'a str,
    /// What came of it.
    pub result: ProbeResult,
    /// In our own words, without anything that the service said.
    pub detail: &'a str,
    /// How long it took.
    pub took: Duration,
}

impl Event for IntegrationProbed<'_> {
    fn emit(self, metrics: &Metrics) {
        let result = self.result.as_str();
        let labels = labels::IntegrationResult { integration: harmless(self.integration).into(), result };
        metrics.integration_probes.get_or_create(&labels).inc();
        let (integration, detail, took_ms) = (Shown(self.integration), self.detail, millis(self.took));
        match self.result {
            ProbeResult::Error => {
                tracing::warn!(target: "toolvane::readiness", %integration, result, detail, took_ms, "integration probed");
            }
            _ => {
                tracing::debug!(target: "toolvane::readiness", %integration, result, detail, took_ms, "integration probed")
            }
        }
    }
}

/// Something else is believed about an integration.
#[derive(Clone, Copy, Debug)]
pub struct IntegrationChanged<'a> {
    /// The integration.
    pub integration: &'a str,
    /// What was believed.
    pub from: &'static str,
    /// What is believed.
    pub to: &'static str,
    /// What the last probe found, in our own words.
    pub detail: &'a str,
}

impl Event for IntegrationChanged<'_> {
    fn emit(self, _: &Metrics) {
        let IntegrationChanged { integration, from, to, detail } = self;
        let integration = Shown(integration);
        tracing::info!(target: "toolvane::readiness", %integration, from, to, detail, "integration changed");
    }
}

/// A tool went off the list, or came back.
#[derive(Clone, Copy, Debug)]
pub struct ToolHidden<'a> {
    /// The backend.
    pub backend: &'a str,
    /// The tool.
    pub tool: &'a str,
    /// Why it is not set up; `None`: it is again.
    pub reason: Option<&'static str>,
    /// What backs it.
    pub integration: Option<&'a str>,
}

impl Event for ToolHidden<'_> {
    fn emit(self, _: &Metrics) {
        let (backend, tool, integration) = (Shown(self.backend), Shown(self.tool), self.integration.map(Shown));
        let integration = integration.map(tracing::field::display);
        match self.reason {
            Some(reason) => {
                tracing::info!(target: "toolvane::readiness", %backend, %tool, reason, integration, "tool is not set up");
            }
            None => tracing::info!(target: "toolvane::readiness", %backend, %tool, integration, "tool is set up"),
        }
    }
}
