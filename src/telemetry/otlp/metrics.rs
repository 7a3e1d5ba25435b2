//! The metrics of the Prometheus registry, as OTLP says them: cumulative, since the start of the process.

use std::sync::Arc;
use std::time::Duration;

use http::{Request, header};
use opentelemetry_http::HttpClient;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint, ResourceMetrics,
    ScopeMetrics, Sum, metric, number_data_point,
};
use opentelemetry_proto::tonic::resource::v1;
use opentelemetry_sdk::Resource;
use prometheus::encoding::prometheus_protobuf::prometheus_data_model as prom;
use prost::Message;

use super::client::Client;
use crate::clock::{Clock, Wall};
use crate::telemetry::{Sample, Telemetry};

/// What is sent, and where.
#[derive(Debug)]
pub(super) struct Exporter {
    pub(super) client: Client,
    pub(super) target: String,
    pub(super) resource: Resource,
    pub(super) clock: Arc<dyn Clock>,
}

/// Sends the metrics every so often. What could not be sent is in the next export.
pub(super) async fn export_forever(
    exporter: Exporter,
    telemetry: Arc<Telemetry>,
    sample: impl Fn() -> Sample + Send,
    every: Duration,
) {
    let resource = v1::Resource { attributes: attributes_of(&exporter.resource), ..v1::Resource::default() };
    let started = nanos(exporter.clock.now().wall);
    let mut due = tokio::time::interval(every);
    due.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        due.tick().await;
        let Ok(families) = telemetry.families(sample()) else { return };
        let span = (started, nanos(exporter.clock.now().wall));
        let body = request(resource.clone(), families, span).encode_to_vec();
        if let Err(error) = post(&exporter.client, &exporter.target, body).await {
            tracing::warn!(target: "toolvane::otlp", error, "metrics could not be sent; the next export holds them");
        }
    }
}

fn nanos(at: Wall) -> u64 {
    u64::try_from(at.0).unwrap_or_default().saturating_mul(1_000_000)
}

async fn post(client: &Client, target: &str, body: Vec<u8>) -> Result<(), String> {
    let request = Request::post(target).header(header::CONTENT_TYPE, "application/x-protobuf").body(body.into());
    let answer = client.send_bytes(request.map_err(|error| error.to_string())?).await;
    let status = answer.map_err(|error| error.to_string())?.status();
    if status.is_success() { Ok(()) } else { Err(format!("the collector answered {status}")) }
}

/// One export; `span` is the start of counting and now, in nanoseconds since the Unix epoch.
fn request(resource: v1::Resource, families: Vec<prom::MetricFamily>, span: (u64, u64)) -> ExportMetricsServiceRequest {
    let metrics = families.into_iter().filter_map(|family| metric(family, span)).collect();
    let scope = InstrumentationScope { name: "toolvane".into(), ..InstrumentationScope::default() };
    let scope = ScopeMetrics { scope: Some(scope), metrics, ..ScopeMetrics::default() };
    let all = ResourceMetrics { resource: Some(resource), scope_metrics: vec![scope], ..ResourceMetrics::default() };
    ExportMetricsServiceRequest { resource_metrics: vec![all] }
}

fn metric(family: prom::MetricFamily, span: (u64, u64)) -> Option<Metric> {
    let cumulative = AggregationTemporality::Cumulative.into();
    let data = match prom::MetricType::try_from(family.r#type).ok()? {
        prom::MetricType::Counter => {
            let value = |metric: &prom::Metric| metric.counter.as_ref().map(|counter| counter.value);
            let data_points = points(&family.metric, span, value);
            metric::Data::Sum(Sum { data_points, aggregation_temporality: cumulative, is_monotonic: true })
        }
        prom::MetricType::Gauge => {
            let value = |metric: &prom::Metric| metric.gauge.as_ref().map(|gauge| gauge.value);
            metric::Data::Gauge(Gauge { data_points: points(&family.metric, (0, span.1), value) })
        }
        prom::MetricType::Histogram => {
            let data_points = family.metric.iter().filter_map(|metric| histogram(metric, span)).collect();
            metric::Data::Histogram(Histogram { data_points, aggregation_temporality: cumulative })
        }
        _ => return None,
    };
    let unit = if family.name.ends_with("_seconds") { "s" } else { "" };
    Some(Metric {
        name: family.name,
        description: family.help,
        unit: unit.into(),
        data: Some(data),
        ..Metric::default()
    })
}

fn points(
    metrics: &[prom::Metric],
    (start_time_unix_nano, time_unix_nano): (u64, u64),
    value: impl Fn(&prom::Metric) -> Option<f64>,
) -> Vec<NumberDataPoint> {
    let point = |metric: &prom::Metric| {
        Some(NumberDataPoint {
            attributes: attributes(&metric.label),
            start_time_unix_nano,
            time_unix_nano,
            value: Some(number_data_point::Value::AsDouble(value(metric)?)),
            ..NumberDataPoint::default()
        })
    };
    metrics.iter().filter_map(point).collect()
}

/// Prometheus counts what is at most a bound, OTLP what lies between two.
fn histogram(metric: &prom::Metric, (start_time_unix_nano, time_unix_nano): (u64, u64)) -> Option<HistogramDataPoint> {
    let seen = metric.histogram.as_ref()?;
    let buckets: Vec<_> = seen.bucket.iter().filter(|bucket| bucket.upper_bound.is_finite()).collect();
    let mut below = 0;
    let mut bucket_counts: Vec<u64> = buckets
        .iter()
        .map(|bucket| bucket.cumulative_count.saturating_sub(std::mem::replace(&mut below, bucket.cumulative_count)))
        .collect();
    bucket_counts.push(seen.sample_count.saturating_sub(below));
    Some(HistogramDataPoint {
        attributes: attributes(&metric.label),
        start_time_unix_nano,
        time_unix_nano,
        count: seen.sample_count,
        sum: Some(seen.sample_sum),
        bucket_counts,
        explicit_bounds: buckets.iter().map(|bucket| bucket.upper_bound).collect(),
        ..HistogramDataPoint::default()
    })
}

fn attributes(labels: &[prom::LabelPair]) -> Vec<KeyValue> {
    labels.iter().map(|label| attribute(label.name.clone(), label.value.clone())).collect()
}

fn attributes_of(resource: &Resource) -> Vec<KeyValue> {
    resource.iter().map(|(key, value)| attribute(key.to_string(), value.to_string())).collect()
}

fn attribute(key: String, value: String) -> KeyValue {
    let value = AnyValue { value: Some(any_value::Value::StringValue(value)) };
    KeyValue { key, value: Some(value), ..KeyValue::default() }
}
