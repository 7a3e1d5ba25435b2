//! Spans and metrics over OTLP/HTTP, protobuf (feature `otel`).
//!
//! Spans go through the official SDK: its batch processor drops what it cannot keep and never makes a call wait. Metrics are
//! those of the Prometheus registry, translated when they are due, so that there is one count of everything.

mod client;
mod metrics;
mod spans;

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use opentelemetry::KeyValue;
use opentelemetry_otlp::{ExporterBuildError, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};
use tokio::runtime::Handle;

use super::{Sample, Telemetry};
use crate::clock::Clock;
use client::Client;
use metrics::{Exporter, export_forever};
use spans::CallSpans;

/// Where to send, and how much.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The base address of a collector; `/v1/traces` and `/v1/metrics` are added.
    pub endpoint: String,
    /// Headers of every export, credentials among them.
    pub headers: HeaderMap,
    /// Share of calls without a parent that get a span, 0 to 1. A call with a parent does as its parent.
    pub sample: f64,
    /// The version of the program.
    pub version: &'static str,
}

/// The export, for as long as it is to go on.
#[derive(Clone, Debug)]
pub struct Otlp {
    provider: SdkTracerProvider,
    client: Client,
    base: String,
    resource: Resource,
}

impl Otlp {
    /// Begins to export the spans that `telemetry` is told of. Must be called within a tokio runtime, which does the sending.
    ///
    /// # Errors
    /// When the exporter cannot be made.
    pub fn start(settings: Settings, telemetry: &Arc<Telemetry>) -> Result<Otlp, String> {
        let client = Client::new(Handle::current(), settings.headers).map_err(|error| error.to_string())?;
        let base = settings.endpoint.trim_end_matches('/').to_owned();
        let resource = Resource::builder()
            .with_attribute(KeyValue::new("service.version", settings.version))
            .with_attribute(KeyValue::new("service.instance.id", instance()))
            .build();
        let resource = named(resource);
        let exporter = exporter(&base, client.clone()).map_err(|error| error.to_string())?;
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_sampler(Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(settings.sample))))
            .with_resource(resource.clone())
            .build();
        telemetry.trace_to(Box::new(CallSpans::new(&provider)));
        Ok(Otlp { provider, client, base, resource })
    }

    /// Exports the metrics too, together with the state of the moment, every so often.
    pub async fn export_metrics(
        self,
        telemetry: Arc<Telemetry>,
        clock: Arc<dyn Clock>,
        sample: impl Fn() -> Sample + Send,
        every: Duration,
    ) {
        let target = format!("{}/v1/metrics", self.base);
        let exporter = Exporter { client: self.client, target, resource: self.resource, clock };
        export_forever(exporter, telemetry, sample, every).await;
    }

    /// Sends what waits, for at most `within`. Blocks.
    pub fn finish(&self, within: Duration) {
        if let Err(error) = self.provider.shutdown_with_timeout(within) {
            tracing::warn!(target: "toolvane::otlp", %error, "spans that waited could not be sent");
        }
    }
}

fn exporter(base: &str, client: Client) -> Result<SpanExporter, ExporterBuildError> {
    SpanExporter::builder().with_http().with_http_client(client).with_endpoint(format!("{base}/v1/traces")).build()
}

/// The SDK's word for a service without a name is replaced by ours; `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` stand.
fn named(resource: Resource) -> Resource {
    let name = resource.get(&"service.name".into()).map(|name| name.to_string()).unwrap_or_default();
    if !name.starts_with("unknown_service") && !name.is_empty() {
        return resource;
    }
    let all = resource.iter().map(|(key, value)| KeyValue::new(key.clone(), value.clone()));
    Resource::builder_empty().with_attributes(all).with_service_name("toolvane").build()
}

/// Tells this process from others of the same service: the host's name, which in a pod is the pod's.
fn instance() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
