//! Where spans and metrics are sent (DESIGN 16).

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::diagnosis::url;
use super::headers::{SecretHeaders, secret_headers};
use super::sections::{HOUR, MINUTE, SECOND};
use crate::yaml::{At, Fields};

/// A collector of OpenTelemetry.
#[derive(Clone, Debug, PartialEq)]
pub struct Otlp {
    /// Its base address for OTLP over HTTP.
    pub endpoint: Arc<str>,
    /// Headers of every export.
    pub headers: SecretHeaders,
    /// Percent of the calls without a parent that get a span.
    pub sample_percent: usize,
    /// How often metrics are sent; `None`: never.
    pub metrics_interval: Option<Duration>,
}

pub(super) const OTLP: &str = "The collector that spans of calls and metrics are sent to, over OTLP/HTTP. Left out: nothing is sent. \
    `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` name this process.";

pub(super) fn otlp(at: At<'_>, directory: &Path) -> Option<Otlp> {
    at.map(|f| read(f, directory))?
}

fn read(f: &Fields<'_>, directory: &Path) -> Option<Otlp> {
    const SAMPLE: &str = "Percent of calls that get a span, of those whose caller names no span; a call with a parent is \
        recorded if its parent is.";
    let endpoint = f.need("endpoint", "The base address; `/v1/traces` and `/v1/metrics` are added to it.", url);
    let headers = f.opt("headers", "Headers of every export, by name.", |at| secret_headers(at, directory));
    let sample_percent = f.count("sample_percent", SAMPLE, 100, 0..=100);
    let metrics_interval =
        f.duration_or_off("metrics_interval", "How often metrics are sent.", Some(MINUTE), SECOND..=HOUR);
    if !cfg!(feature = "otel") {
        return f.at().fail("`otlp` needs a build with the feature `otel`, and this one goes without");
    }
    Some(Otlp { endpoint: endpoint?, headers: headers.unwrap_or_default(), sample_percent, metrics_interval })
}
