//! Calls as spans, named after OpenTelemetry's conventions for MCP and GenAI (in development).

use std::borrow::Cow;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use opentelemetry::trace::{
    Link, Span as _, SpanContext, SpanId, SpanKind, Status, TraceContextExt, TraceFlags, TraceId, TraceState,
    Tracer as _, TracerProvider as _,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};

use super::super::labels::harmless;
use super::super::trace::{CallSpan, Ended, Spans, TraceContext};
use super::super::words::Outcome;

/// Writes a span for every call.
#[derive(Debug)]
pub(super) struct CallSpans {
    tracer: SdkTracer,
}

impl CallSpans {
    pub(super) fn new(provider: &SdkTracerProvider) -> CallSpans {
        CallSpans { tracer: provider.tracer("toolvane") }
    }
}

impl Spans for CallSpans {
    fn call(&self, call: &CallSpan<'_>) {
        let parent = match &call.origin.parent {
            Some(parent) => Context::new().with_remote_span_context(remote(parent)),
            None => Context::new(),
        };
        let started = wall(call);
        let tool = harmless(call.tool);
        let name: Cow<'static, str> = match call.origin.id {
            Some(_) => format!("tools/call {tool}").into(),
            None => format!("execute_tool {tool}").into(),
        };
        let mut builder = self
            .tracer
            .span_builder(name)
            .with_kind(SpanKind::Client)
            .with_start_time(started)
            .with_attributes(attributes(call, &tool));
        if let Some(carrier) = &call.origin.carrier {
            builder = builder.with_links(vec![Link::with_context(remote(carrier))]);
        }
        let mut span = builder.start_with_context(&self.tracer, &parent);
        if let Some(kind) = error_type(&call.ended) {
            span.set_attribute(KeyValue::new("error.type", kind.to_owned()));
            span.set_status(Status::error(""));
        }
        span.end_with_timestamp(started + call.duration);
    }
}

fn remote(context: &TraceContext) -> SpanContext {
    let state = context.state.as_deref().and_then(|state| TraceState::from_str(state).ok()).unwrap_or_default();
    let flags = if context.sampled { TraceFlags::SAMPLED } else { TraceFlags::default() };
    let (trace, span) = (TraceId::from(context.trace_id), SpanId::from(context.span_id));
    SpanContext::new(trace, span, flags, true, state)
}

fn wall(call: &CallSpan<'_>) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(call.started.wall.0).unwrap_or_default())
}

fn attributes(call: &CallSpan<'_>, tool: &str) -> Vec<KeyValue> {
    let (host, port) = call.server;
    let mut all = vec![
        KeyValue::new("gen_ai.operation.name", "execute_tool"),
        KeyValue::new("gen_ai.tool.name", tool.to_owned()),
        KeyValue::new("network.transport", "tcp"),
        KeyValue::new("server.address", host.to_owned()),
        KeyValue::new("server.port", i64::from(port)),
        KeyValue::new("toolvane.backend", call.backend.to_owned()),
    ];
    if let Some(id) = &call.origin.id {
        all.push(KeyValue::new("mcp.method.name", "tools/call"));
        all.push(KeyValue::new("jsonrpc.request.id", harmless(id.trim_matches('"'))));
    }
    if let Some(version) = &call.origin.version {
        all.push(KeyValue::new("mcp.protocol.version", harmless(version)));
    }
    match call.ended {
        Ended::Judged { outcome, finding, .. } => {
            all.push(KeyValue::new("toolvane.outcome", outcome.as_str()));
            if let Some(finding) = finding {
                all.push(KeyValue::new("toolvane.classification", finding.classification.as_str()));
                all.push(KeyValue::new("toolvane.signature", finding.signature.to_string()));
                all.push(KeyValue::new("toolvane.code", finding.dispatch_code.as_str()));
            }
        }
        Ended::ShortCircuited(reason) => all.push(KeyValue::new("toolvane.short_circuit", reason)),
    }
    all
}

/// Why a span counts as failed; `None` if it does not.
fn error_type<'a>(ended: &Ended<'a>) -> Option<&'a str> {
    match *ended {
        Ended::ShortCircuited(reason) => Some(reason),
        Ended::Judged { outcome: Outcome::Success, .. } => None,
        Ended::Judged { outcome, error, .. } => Some(error.unwrap_or(outcome.as_str())),
    }
}
