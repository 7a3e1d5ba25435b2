//! What a collector of OpenTelemetry is sent.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::Receiver;

use crate::program::{Program, config, exchange, rules};
use crate::receiver::{Posted, receiver};
use crate::wire::PATIENCE;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value};
use opentelemetry_proto::tonic::metrics::v1::{metric::Data, number_data_point};
use opentelemetry_proto::tonic::trace::v1::{Span, status::StatusCode};
use prost::Message;
use rustix::process::{Pid, Signal, kill_process};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

fn start(more: &str) -> Program {
    let text = config(&format!("rules: {{layers: [own.yaml]}}\n{more}"));
    Program::start(&text, |home| {
        fs::write(home.join("own.yaml"), rules("sandbox-down")).unwrap();
        fs::write(home.join("key"), "s3cret\n").unwrap();
    })
}

fn stop(program: &mut Program) {
    kill_process(Pid::from_child(&program.child), Signal::INT).unwrap();
    assert_eq!(program.child.wait().unwrap().code(), Some(0));
}

fn attribute<'a>(attributes: &'a [KeyValue], key: &str) -> &'a str {
    let found = attributes.iter().find(|attribute| attribute.key == key);
    match found.and_then(|attribute| attribute.value.as_ref()?.value.as_ref()) {
        Some(Value::StringValue(text)) => text,
        _ => panic!("no {key} in {attributes:?}"),
    }
}

/// All spans that were posted, which must be done with.
fn spans(posted: &Receiver<Posted>) -> Vec<Span> {
    let mut spans = Vec::new();
    for posted in posted.try_iter() {
        assert_eq!((posted.path(), posted.header("x-key")), ("/v1/traces", Some("s3cret")));
        assert!(!posted.text().contains("0123456789abcdef"));
        for resource in ExportTraceServiceRequest::decode(posted.body.as_slice()).unwrap().resource_spans {
            assert_eq!(attribute(&resource.resource.unwrap().attributes, "service.name"), "toolvane");
            spans.extend(resource.scope_spans.into_iter().flat_map(|scope| scope.spans));
        }
    }
    spans
}

#[test]
fn every_call_is_a_span_under_its_callers_and_the_last_ones_are_sent_before_the_end() {
    let (address, posted) = receiver("200 OK");
    let mut program = start(&format!(
        "otlp: {{endpoint: \"http://{address}\", headers: {{x-key: {{file: key}}}}, metrics_interval: \"off\"}}\n"
    ));
    let call = |traceparent: &str| {
        let head =
            format!("GET /t HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer 0123456789abcdef\r\n{traceparent}");
        assert_eq!(exchange(program.listen, &head, "").0, 503);
    };
    call(&format!("traceparent: 00-{TRACE}-00f067aa0ba902b7-01\r\n"));
    call("");
    call(&format!("traceparent: 00-{TRACE}-00f067aa0ba902b7-00\r\n"));
    stop(&mut program);

    let spans = spans(&posted);
    assert_eq!(spans.len(), 2, "a call whose caller does not record is not recorded: {spans:?}");
    let child = spans.iter().find(|span| !span.parent_span_id.is_empty()).unwrap();
    assert_eq!(
        u128::from_be_bytes(child.trace_id.as_slice().try_into().unwrap()),
        u128::from_str_radix(TRACE, 16).unwrap()
    );
    assert_eq!(child.parent_span_id, 0x00f0_67aa_0ba9_02b7_u64.to_be_bytes());
    assert_eq!(child.name, "execute_tool t");
    assert_eq!(attribute(&child.attributes, "gen_ai.tool.name"), "t");
    assert_eq!(attribute(&child.attributes, "error.type"), "503");
    assert_eq!(attribute(&child.attributes, "toolvane.signature"), "sandbox-down");
    assert_eq!(child.status.as_ref().unwrap().code(), StatusCode::Error);
}

#[test]
fn each_call_of_a_batch_is_a_span_under_the_parent_of_its_own_or_of_the_request() {
    let (address, posted) = receiver("200 OK");
    let text = config(&format!(
        "otlp: {{endpoint: \"http://{address}\", headers: {{x-key: {{file: key}}}}, metrics_interval: \"off\"}}\n"
    ));
    let text = text.replace("kind: http", "kind: mcp").replace("    routes: [{tool: t, method: GET, path: /t}]\n", "");
    let mut program = Program::start(&text, |home| fs::write(home.join("key"), "s3cret\n").unwrap());
    let call = |id: u8, meta: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t{id}","arguments":{{}}{meta}}}}}"#
        )
    };
    let own = format!(r#","_meta":{{"traceparent":"00-{TRACE}-1111111111111111-01"}}"#);
    let quiet = format!(r#","_meta":{{"traceparent":"00-{TRACE}-2222222222222222-00"}}"#);
    let note = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let body = [note.to_owned(), call(1, ""), call(2, &own), call(3, &quiet)].join(",");
    let head = format!(
        "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         traceparent: 00-{TRACE}-00f067aa0ba902b7-01\r\n"
    );
    assert_eq!(exchange(program.listen, &head, &format!("[{body}]")).0, 503);
    stop(&mut program);
    let mut told: Vec<_> = spans(&posted)
        .into_iter()
        .map(|span| {
            let parent = u64::from_be_bytes(span.parent_span_id.as_slice().try_into().unwrap());
            let links: Vec<_> = span.links.iter().map(|link| link.span_id.clone()).collect();
            (span.name, format!("{parent:016x}"), links, attribute(&span.attributes, "jsonrpc.request.id").to_owned())
        })
        .collect();
    told.sort();
    let carrier = vec![0x00f0_67aa_0ba9_02b7_u64.to_be_bytes().to_vec()];
    let expected =
        [("tools/call t1", "00f067aa0ba902b7", Vec::new(), "1"), ("tools/call t2", "1111111111111111", carrier, "2")];
    let expected = expected.map(|(name, parent, links, id)| (name.to_owned(), parent.to_owned(), links, id.to_owned()));
    assert_eq!(told, expected, "and none of a member whose caller does not record");
}

#[test]
fn a_trace_is_looked_for_only_once_somebody_wants_to_know_of_it() {
    let program = start("");
    let call = |trace: char| {
        let trace = format!("4bf92f3577b34da6a3ce929d0e0e473{trace}");
        let head = format!("GET /t HTTP/1.1\r\nhost: localhost\r\ntraceparent: 00-{trace}-00f067aa0ba902b7-01\r\n");
        assert_eq!(exchange(program.listen, &head, "").0, 503);
        trace
    };
    let scraped = |accept: &str| {
        let mut stream = TcpStream::connect(program.admin).unwrap();
        write!(stream, "GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\naccept: {accept}\r\n\r\n")
            .unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    };
    let protobuf = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited";
    call('1');
    scraped("text/plain");
    call('2');
    let first = scraped(protobuf);
    assert!(first.contains("toolvane_call_duration_seconds") && !first.contains("4bf92f35"), "no trace was kept");
    let last = call('3');
    assert!(scraped(protobuf).contains(&last), "exemplars are kept for a scraper that takes them");
}

#[test]
fn metrics_are_sent_as_they_are_scraped() {
    let (address, posted) = receiver("200 OK");
    let program = start(&format!("otlp: {{endpoint: \"http://{address}/\", metrics_interval: 1s}}\n"));
    assert_eq!(exchange(program.listen, "GET /t HTTP/1.1\r\nhost: localhost\r\n", "").0, 503);
    loop {
        let post = posted.recv_timeout(PATIENCE).unwrap();
        if post.path() != "/v1/metrics" {
            continue;
        }
        let request = ExportMetricsServiceRequest::decode(post.body.as_slice()).unwrap();
        let metrics: Vec<_> = request
            .resource_metrics
            .into_iter()
            .flat_map(|all| all.scope_metrics)
            .flat_map(|scope| scope.metrics)
            .collect();
        let named =
            |name: &str| metrics.iter().find(|metric| metric.name == name).and_then(|metric| metric.data.as_ref());
        let Some(Data::Sum(calls)) =
            named("toolvane_calls_total").filter(|data| matches!(data, Data::Sum(sum) if !sum.data_points.is_empty()))
        else {
            continue;
        };
        let point = &calls.data_points[0];
        assert!(calls.is_monotonic);
        assert_eq!(attribute(&point.attributes, "tool"), "t");
        assert_eq!(point.value, Some(number_data_point::Value::AsDouble(1.0)));
        assert!(point.start_time_unix_nano > 0 && point.start_time_unix_nano <= point.time_unix_nano);
        let Some(Data::Histogram(durations)) = named("toolvane_call_duration_seconds") else { panic!("{metrics:?}") };
        let point = &durations.data_points[0];
        assert_eq!((point.count, point.bucket_counts.iter().sum::<u64>()), (1, 1));
        assert_eq!(point.bucket_counts.len(), point.explicit_bounds.len() + 1);
        assert!(matches!(named("toolvane_health_documents"), Some(Data::Gauge(_))), "{metrics:?}");
        return;
    }
}

#[test]
fn a_collector_that_is_away_keeps_nobody_from_calling_or_leaving() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut program = start(&format!("otlp: {{endpoint: \"http://{nobody}\", metrics_interval: 1s}}\n"));
    assert_eq!(exchange(program.listen, "GET /t HTTP/1.1\r\nhost: localhost\r\n", "").0, 503);
    program.logged("metrics could not be sent; the next export holds them");
    stop(&mut program);
}
