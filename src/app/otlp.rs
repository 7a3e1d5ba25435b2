//! Spans and metrics to a collector, where the configuration names one.

use std::sync::Arc;
use std::time::Duration;

use super::start::VERSION;
use crate::admin::Admin;
use crate::config::Config;
use crate::telemetry::Telemetry;
use crate::telemetry::otlp::{Otlp, Settings};

/// How long the end of the process waits for spans that have not been sent.
const LAST_EXPORT: Duration = Duration::from_secs(3);

/// What is exported, for as long as the process lives.
#[derive(Clone, Debug, Default)]
pub(super) struct Export(Option<Otlp>);

impl Export {
    /// Begins to send spans, if they are to be sent.
    ///
    /// # Errors
    /// Which secret cannot be read, or why the exporter cannot be made.
    pub(super) fn start(config: &Config, telemetry: &Arc<Telemetry>) -> Result<Export, String> {
        let Some(wanted) = &config.otlp else { return Ok(Export(None)) };
        let settings = Settings {
            endpoint: wanted.endpoint.to_string(),
            headers: config.read_headers(&wanted.headers)?,
            sample: f64::from(u8::try_from(wanted.sample_percent).unwrap_or(100)) / 100.0,
            version: VERSION,
        };
        Otlp::start(settings, telemetry).map(|otlp| Export(Some(otlp)))
    }

    /// Begins to send metrics, if they are to be sent.
    pub(super) fn metrics(&self, admin: &Arc<Admin>) {
        let every = admin.config.otlp.as_ref().and_then(|otlp| otlp.metrics_interval);
        if let (Some(otlp), Some(every)) = (self.0.clone(), every) {
            let (telemetry, clock, admin) = (Arc::clone(&admin.telemetry), Arc::clone(&admin.clock), Arc::clone(admin));
            tokio::spawn(otlp.export_metrics(telemetry, clock, move || admin.sample(), every));
        }
    }

    /// Sends the spans that wait.
    pub(super) async fn finish(&self) {
        if let Some(otlp) = self.0.clone() {
            let _ = tokio::task::spawn_blocking(move || otlp.finish(LAST_EXPORT)).await;
        }
    }
}
