//! One span a call, and the trace that a caller's call belongs to (DESIGN 16).
//!
//! Trace context passes the proxy untouched: what is read here is for our own spans and exemplars alone.

use std::fmt;
use std::time::Duration;

use http::HeaderMap;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::words::Outcome;
use crate::clock::Now;
use crate::rules::Finding;

/// Longest `tracestate` that is kept, in bytes (W3C Trace Context 3.3.1.5 asks for at least 512).
const STATE_MAX: usize = 512;

/// Where a caller's trace stands (W3C Trace Context).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace; never 0.
    pub trace_id: u128,
    /// The caller's span; never 0.
    pub span_id: u64,
    /// Whether the caller records it.
    pub sampled: bool,
    /// `tracestate`, as sent.
    pub state: Option<Box<str>>,
}

impl TraceContext {
    /// Reads a `traceparent`; `None` if it is not valid (W3C Trace Context 3.2.2). Later versions are read as the first one,
    /// with whatever they add left out.
    pub fn parse(traceparent: &str, tracestate: Option<&str>) -> Option<TraceContext> {
        let mut fields = traceparent.trim().split('-');
        let (version, trace, span, flags) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        let more = fields.next().is_some();
        if version.len() != 2 || version == "ff" || version == "00" && more {
            return None;
        }
        hex(version, 2)?;
        let trace_id = hex(trace, 32).filter(|id| *id != 0)?;
        let span_id = hex(span, 16).and_then(|id| u64::try_from(id).ok()).filter(|id| *id != 0)?;
        let sampled = hex(flags, 2)? & 1 == 1;
        let state = tracestate.filter(|state| !state.is_empty() && state.len() <= STATE_MAX).map(Box::from);
        Some(TraceContext { trace_id, span_id, sampled, state })
    }

    /// That of an HTTP request.
    pub fn of_headers(headers: &HeaderMap) -> Option<TraceContext> {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        TraceContext::parse(text("traceparent")?, text("tracestate"))
    }

    /// That of a JSON-RPC message, in `params._meta` (MCP, SEP-414). A message without one is not parsed.
    pub fn of_message(message: &[u8]) -> Option<TraceContext> {
        if !may_name(message) {
            return None;
        }
        let meta = crate::json::read::<Message>(message).ok()?.params?.meta?;
        TraceContext::parse(&meta.traceparent?, meta.tracestate.as_deref())
    }
}

/// Exactly so many lower-case hexadecimal digits.
fn hex(text: &str, digits: usize) -> Option<u128> {
    let lower = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if text.len() != digits || !text.bytes().all(lower) {
        return None;
    }
    u128::from_str_radix(text, 16).ok()
}

#[derive(Deserialize)]
struct Message {
    params: Option<Params>,
}

#[derive(Deserialize)]
struct Params {
    #[serde(rename = "_meta")]
    meta: Option<Meta>,
}

#[derive(Deserialize)]
struct Meta {
    traceparent: Option<String>,
    tracestate: Option<String>,
}

/// What is kept of a request until its span is written.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// The span that asked for the call: of the message, or else of the HTTP request.
    pub parent: Option<TraceContext>,
    /// The span of the HTTP request, where the message names another.
    pub carrier: Option<TraceContext>,
    /// The JSON-RPC id as a raw token; `None` for HTTP tools.
    pub id: Option<Box<str>>,
    /// The protocol version that the request states.
    pub version: Option<Box<str>>,
}

/// Whether a message may name a trace.
fn may_name(message: &[u8]) -> bool {
    memchr::memmem::find(message, b"\"traceparent\"").is_some()
}

/// The members of a batch, each as it came; none if none of them names a trace.
pub fn members(batch: &[u8]) -> Vec<&[u8]> {
    let read = || serde_json::from_slice::<Vec<&RawValue>>(batch).unwrap_or_default();
    let members = if may_name(batch) { read() } else { Vec::new() };
    members.into_iter().map(|member| member.get().as_bytes()).collect()
}

impl Origin {
    /// Whether there may be a trace that such a request belongs to.
    pub fn is_named(headers: &HeaderMap, message: Option<(&[u8], &str)>) -> bool {
        headers.contains_key("traceparent") || message.is_some_and(|(bytes, _)| may_name(bytes))
    }

    /// That of a request with these headers and, for MCP, this message and id.
    pub fn of(headers: &HeaderMap, message: Option<(&[u8], &str)>) -> Origin {
        let carrier = TraceContext::of_headers(headers);
        let version = headers.get("mcp-protocol-version").and_then(|value| value.to_str().ok());
        let version = version.filter(|version| version.len() <= 32).map(Box::from);
        let id = message.map(|(_, id)| Box::from(id));
        match message.and_then(|(bytes, _)| TraceContext::of_message(bytes)) {
            Some(parent) => {
                let carrier = carrier.filter(|carrier| carrier.span_id != parent.span_id);
                Origin { parent: Some(parent), carrier, id, version }
            }
            None => Origin { parent: carrier, carrier: None, id, version },
        }
    }
}

/// How a call ended.
#[derive(Clone, Copy, Debug)]
pub enum Ended<'a> {
    /// It was judged, or given up by its caller.
    Judged {
        /// What it came to.
        outcome: Outcome,
        /// What the rules found.
        finding: Option<&'a Finding>,
        /// What kind of failure the answer is; `None` for a success.
        error: Option<&'a str>,
    },
    /// It was answered without the upstream, for this reason.
    ShortCircuited(&'static str),
}

/// A call that is over.
#[derive(Clone, Copy, Debug)]
pub struct CallSpan<'a> {
    /// The backend.
    pub backend: &'a str,
    /// The tool's real name: spans are no labels.
    pub tool: &'a str,
    /// Host and port of the backend.
    pub server: (&'a str, u16),
    /// What its request said.
    pub origin: &'a Origin,
    /// When its request began.
    pub started: Now,
    /// Until the end of its answer.
    pub duration: Duration,
    /// How it ended.
    pub ended: Ended<'a>,
}

/// Who is told of every call that is over.
pub trait Spans: fmt::Debug + Send + Sync {
    /// A call is over. Must not wait.
    fn call(&self, span: &CallSpan<'_>);
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: u128 = 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736;
    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_traceparent_is_read_as_the_recommendation_says() {
        let context = TraceContext::parse(PARENT, Some("vendor=1")).unwrap();
        assert_eq!((context.trace_id, context.span_id, context.sampled), (TRACE, 0x00f0_67aa_0ba9_02b7, true));
        assert_eq!(context.state.as_deref(), Some("vendor=1"));
        let unsampled = TraceContext::parse(&PARENT.replace("-01", "-00"), None).unwrap();
        assert!(!unsampled.sampled && unsampled.state.is_none());
        let later = TraceContext::parse(&format!("{}-what-comes-later", PARENT.replacen("00", "cc", 1)), None).unwrap();
        assert_eq!(later.trace_id, TRACE);
    }

    #[test]
    fn what_is_no_traceparent_names_no_trace() {
        let bad = [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
            "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "0é-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ];
        for text in bad {
            assert_eq!(TraceContext::parse(text, None), None, "{text}");
        }
    }

    #[test]
    fn the_message_names_the_parent_and_the_request_that_carried_it_is_linked() {
        let mut headers = HeaderMap::new();
        headers.insert("traceparent", PARENT.replace("00f067aa0ba902b7", "1111111111111111").parse().unwrap());
        let message =
            format!(r#"{{"method":"tools/call","params":{{"name":"a","_meta":{{"traceparent":"{PARENT}"}}}}}}"#);
        let origin = Origin::of(&headers, Some((message.as_bytes(), "7")));
        assert_eq!(origin.parent.unwrap().span_id, 0x00f0_67aa_0ba9_02b7);
        assert_eq!(origin.carrier.unwrap().span_id, 0x1111_1111_1111_1111);

        let plain = br#"{"method":"tools/call","params":{"name":"a","arguments":{"traceparent":1}}}"#;
        let origin = Origin::of(&headers, Some((plain, "7")));
        assert_eq!(origin.parent.unwrap().span_id, 0x1111_1111_1111_1111);
        assert_eq!((origin.carrier, origin.id.as_deref()), (None, Some("7")));
    }
}
