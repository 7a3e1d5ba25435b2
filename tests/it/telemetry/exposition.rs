//! What a scraper reads.

use std::collections::{HashMap, HashSet};

use toolvane::telemetry::trace::TraceContext;
use toolvane::telemetry::{Outcome, Reason, Sample, Telemetry};

use super::happenings::{NOON, call, everything, finding, sample, telemetry, traced_call};

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0";
const PROTOBUF: &str = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited";

fn text(telemetry: &Telemetry, sample: Sample) -> String {
    String::from_utf8(telemetry.render(None, sample).unwrap().body).unwrap()
}

/// The value of the one series with exactly this text before it.
fn value(text: &str, series: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok())
}

#[test]
fn tokens_that_give_no_identity_and_documents_that_are_read_are_counted_by_what_they_came_to() {
    let telemetry = telemetry(100);
    everything(&telemetry);
    let text = text(&telemetry, sample());
    assert_eq!(value(&text, "toolvane_identity_tokens_refused_total{reason=\"signature\"}"), Some(1.0));
    for result in ["changed", "unchanged", "failed"] {
        let series = format!("toolvane_document_reads_total{{what=\"jwks\",result=\"{result}\"}}");
        assert_eq!(value(&text, &series), Some(1.0), "{series}");
    }
}

#[test]
fn each_thing_that_happens_is_counted_under_its_labels() {
    let telemetry = telemetry(100);
    everything(&telemetry);
    let text = text(&telemetry, sample());
    let expected = [
        ("toolvane_build_info{version=\"1.2.3\",revision=\"abc\"}", 1.0),
        ("toolvane_calls_total{backend=\"jira\",tool=\"search\",outcome=\"success\",code=\"none\"}", 1.0),
        ("toolvane_calls_total{backend=\"jira\",tool=\"search\",outcome=\"failure\",code=\"BACKEND_FAILED\"}", 1.0),
        (
            "toolvane_calls_total{backend=\"jira\",tool=\"odd \\\"name\\\\ \u{fffd}\",outcome=\"neutral\",code=\"none\"}",
            1.0,
        ),
        ("toolvane_call_duration_seconds_bucket{backend=\"jira\",tool=\"search\",le=\"0.2\"}", 0.0),
        ("toolvane_call_duration_seconds_bucket{backend=\"jira\",tool=\"search\",le=\"0.5\"}", 2.0),
        ("toolvane_call_duration_seconds_count{backend=\"jira\",tool=\"search\"}", 2.0),
        ("toolvane_upstream_duration_seconds_sum{backend=\"jira\",tool=\"search\"}", 0.5),
        ("toolvane_calls_in_flight{backend=\"jira\"}", 0.0),
        ("toolvane_requests_total{backend=\"jira\",kind=\"tool_call\"}", 1.0),
        ("toolvane_unjudged_total{backend=\"jira\",reason=\"peek_limit\"}", 1.0),
        ("toolvane_short_circuits_total{backend=\"jira\",tool=\"search\",reason=\"down\"}", 1.0),
        ("toolvane_failures_total{backend=\"jira\",classification=\"TECHNICALLY_BROKEN\",signature=\"http-503\"}", 1.0),
        ("toolvane_rule_hits_total{rule=\"http-5xx\"}", 1.0),
        ("toolvane_transitions_total{backend=\"jira\",scope=\"PROJECT\",from=\"OK\",to=\"DOWN\"}", 1.0),
        ("toolvane_tool_state{backend=\"jira\",tool=\"search\",state=\"down\"}", 1.0),
        ("toolvane_tool_state{backend=\"jira\",tool=\"search\",state=\"ok\"}", 0.0),
        ("toolvane_tool_state_since_timestamp_seconds{backend=\"jira\",tool=\"search\"}", 1_772_452_800.5),
        ("toolvane_cooldowns_active{backend=\"jira\",classification=\"USER_PERMISSION\"}", 3.0),
        ("toolvane_cooldowns_started_total{backend=\"jira\",classification=\"USER_PERMISSION\"}", 1.0),
        ("toolvane_diagnosis_claims_total{backend=\"jira\",result=\"claimed\"}", 1.0),
        ("toolvane_trials_total{backend=\"jira\",result=\"given_back\"}", 1.0),
        ("toolvane_probes_total{backend=\"jira\",result=\"answered\"}", 1.0),
        ("toolvane_evictions_total{what=\"document\"}", 2.0),
        ("toolvane_list_rewrites_total{backend=\"jira\",result=\"annotated\"}", 1.0),
        ("toolvane_list_changed_notifications_total{backend=\"jira\"}", 3.0),
        ("toolvane_identity_headers_dropped_total", 1.0),
        ("toolvane_limit_rejections_total{limit=\"limits.body_peek\"}", 1.0),
        ("toolvane_upstream_connections{backend=\"jira\"}", 1.0),
        ("toolvane_upstream_connect_failures_total{backend=\"jira\",reason=\"connect-refused\"}", 1.0),
        ("toolvane_downstream_connections_accepted_total{listener=\"proxy\"}", 1.0),
        ("toolvane_config_reloads_total{result=\"failure\"}", 1.0),
        ("toolvane_config_last_reload_successful", 0.0),
        ("toolvane_config_last_reload_success_timestamp_seconds", 1_772_452_800.5),
        ("toolvane_config_info{hash=\"0123abcd\"}", 1.0),
        ("toolvane_draining", 1.0),
        ("toolvane_internal_errors_total{place=\"store\"}", 1.0),
        ("toolvane_health_documents", 7.0),
        ("toolvane_store_commits_total", 4.0),
        ("toolvane_store_commit_failures_total", 0.0),
        ("toolvane_store_healthy", 1.0),
        ("toolvane_store_queued_documents", 0.0),
        ("toolvane_store_file_size_bytes", 4096.0),
        ("toolvane_store_last_commit_timestamp_seconds", 1_772_452_800.5),
    ];
    for (series, expected) in expected {
        assert_eq!(value(&text, series), Some(expected), "{series}\n{text}");
    }
    assert!(value(&text, "process_cpu_seconds_total").is_some(), "{text}");
    for name in ["resident_memory_bytes", "open_fds", "max_fds", "start_time_seconds", "threads"] {
        assert!(value(&text, &format!("process_{name}")).is_some_and(|value| value > 0.0), "process_{name}\n{text}");
    }
}

#[test]
fn every_family_is_described_once_and_every_series_appears_once() {
    let telemetry = telemetry(100);
    everything(&telemetry);
    let text = text(&telemetry, sample());
    let mut seen = HashSet::new();
    for line in text.lines() {
        let is_unique = seen.insert(line.rsplit_once(' ').map_or(line, |(series, _)| series));
        assert!(is_unique, "twice: {line}");
    }
    let helped: HashMap<&str, &str> = text.lines().filter_map(|l| l.strip_prefix("# HELP ")?.split_once(' ')).collect();
    assert!(helped.len() > 45, "only {} families", helped.len());
    for (name, help) in helped {
        assert!(name.starts_with("toolvane_") || name.starts_with("process_"), "{name}");
        assert!(help.len() > 6 && help.ends_with('.') && !help.ends_with(".."), "{name}: {help}");
    }
}

#[test]
fn the_answer_is_in_the_format_that_was_asked_for() {
    let telemetry = telemetry(100);
    everything(&telemetry);
    let plain = telemetry.render(Some("text/plain"), sample()).unwrap();
    assert!(plain.content_type.starts_with("text/plain; version=0.0.4"), "{}", plain.content_type);
    let open = telemetry.render(Some(OPEN_METRICS), sample()).unwrap();
    assert!(open.content_type.starts_with("application/openmetrics-text; version=1.0.0"), "{}", open.content_type);
    let open = String::from_utf8(open.body).unwrap();
    assert!(open.ends_with("# EOF\n") && open.contains("# UNIT toolvane_call_duration_seconds seconds"), "{open}");
    let protobuf = telemetry.render(Some(PROTOBUF), sample()).unwrap();
    assert!(protobuf.content_type.contains("encoding=delimited"), "{}", protobuf.content_type);
}

/// The message of one family is found by its name; field 7 of its histogram, the sum of native buckets, follows inside.
#[test]
fn durations_are_native_histograms_where_the_format_has_them() {
    use prometheus::encoding::prometheus_protobuf::prometheus_data_model::MetricFamily;
    let telemetry = telemetry(100);
    call(&telemetry, "search", Outcome::Success, None);
    let body = telemetry.render(Some(PROTOBUF), Sample::default()).unwrap().body;
    let mut rest = body.as_slice();
    let mut native = Vec::new();
    while !rest.is_empty() {
        let family: MetricFamily = prost::Message::decode_length_delimited(&mut rest).unwrap();
        for histogram in family.metric.iter().filter_map(|metric| metric.histogram.as_ref()) {
            assert_eq!(histogram.bucket.len(), 15, "the classic buckets are there too");
            native.push((family.name.clone(), histogram.positive_span.len()));
        }
    }
    let expected = ["toolvane_call_duration_seconds", "toolvane_upstream_duration_seconds"];
    assert_eq!(native, expected.map(|name| (name.to_owned(), 1)));
}

#[test]
fn the_last_recorded_trace_of_a_bucket_is_its_exemplar() {
    use prometheus::encoding::prometheus_protobuf::prometheus_data_model::MetricFamily;
    let telemetry = telemetry(100);
    let trace = |last: char, flags: &str| {
        TraceContext::parse(&format!("00-4bf92f3577b34da6a3ce929d0e0e473{last}-00f067aa0ba902b7-{flags}"), None)
            .unwrap()
    };
    for trace in [trace('1', "01"), trace('2', "01"), trace('3', "00")] {
        traced_call(&telemetry, "search", Outcome::Success, None, Some(&trace));
    }
    call(&telemetry, "search", Outcome::Success, None);
    let body = telemetry.render(Some(PROTOBUF), Sample::default()).unwrap().body;
    let mut rest = body.as_slice();
    let durations = loop {
        let family: MetricFamily = prost::Message::decode_length_delimited(&mut rest).unwrap();
        if family.name == "toolvane_call_duration_seconds" {
            break family.metric[0].histogram.clone().unwrap();
        }
    };
    let classic: Vec<_> =
        durations.bucket.iter().filter_map(|bucket| Some((bucket.upper_bound, bucket.exemplar.as_ref()?))).collect();
    assert_eq!(classic.len(), 1);
    assert_eq!((classic[0].0, classic[0].1.value), (0.5, 0.3));
    assert_eq!(classic[0].1.label[0].value, "4bf92f3577b34da6a3ce929d0e0e4732", "the last one that is recorded");
    assert_eq!(classic[0].1.timestamp.unwrap().seconds, NOON.unix_seconds());
    assert_eq!(durations.exemplars, [classic[0].1.clone()]);
}

#[test]
fn ten_thousand_tools_rules_and_signatures_are_a_bounded_number_of_series() {
    let telemetry = telemetry(50);
    for n in 0..10_000 {
        let finding = finding(&format!("rule-{n}"), &format!("signature-{n}"));
        call(&telemetry, &format!("tool-{n}"), Outcome::Failure, Some(&finding));
    }
    let text = text(&telemetry, Sample::default());
    let series = |name: &str| text.lines().filter(|line| line.starts_with(&format!("{name}{{"))).count();
    assert_eq!(series("toolvane_calls_total"), 51);
    assert_eq!(series("toolvane_call_duration_seconds_count"), 51);
    assert_eq!(series("toolvane_failures_total"), 1_001);
    assert_eq!(series("toolvane_rule_hits_total"), 1_001);
    let other = "toolvane_calls_total{backend=\"jira\",tool=\"other\",outcome=\"failure\",code=\"BACKEND_FAILED\"}";
    assert_eq!(value(&text, other), Some(9_950.0));
    assert!(value(&text, "toolvane_label_overflows_total{label=\"tool\"}").is_some_and(|capped| capped >= 9_950.0));
}

#[test]
fn names_that_nobody_vouches_for_do_not_use_up_the_bound() {
    let telemetry = telemetry(1);
    (0..100).for_each(|_| drop(telemetry.unlisted_tool("jira")));
    call(&telemetry, "search", Outcome::Success, None);
    let search = "toolvane_calls_total{backend=\"jira\",tool=\"search\",outcome=\"success\",code=\"none\"}";
    assert_eq!(value(&text(&telemetry, Sample::default()), search), Some(1.0));
}

#[test]
fn a_backend_that_succeeds_on_invented_names_leaves_half_of_the_labels_to_the_tools_that_are_listed() {
    let telemetry = telemetry(10);
    let proven = |n: usize| telemetry.proven_tool("jira", &format!("invented-{n}")).tool_label().to_string();
    let named = (0..100).filter(|n| proven(*n) != "other").count();
    assert_eq!(named, 5);
    let listed = |n: usize| telemetry.tool("jira", &format!("listed-{n}")).tool_label().to_string();
    assert_eq!((0..5).filter(|n| listed(*n) == format!("listed-{n}")).count(), 5);
    assert_eq!(listed(5), "other");
    // Whoever has a label keeps it.
    assert_eq!(proven(0), "invented-0");
}

#[test]
fn of_more_sampled_tools_than_the_bound_those_that_are_down_are_shown() {
    let mut many = sample();
    let down = many.tools.first().unwrap().clone();
    for n in 0..100 {
        let tool = format!("tool-{n}").into();
        many.tools
            .insert(0, toolvane::telemetry::ToolState { tool, status: toolvane::health::Status::Ok, ..down.clone() });
    }
    let text = text(&telemetry(3), many);
    assert_eq!(text.lines().filter(|line| line.starts_with("toolvane_tool_state{")).count(), 9);
    assert_eq!(value(&text, "toolvane_tool_state{backend=\"jira\",tool=\"search\",state=\"down\"}"), Some(1.0));
}

#[test]
fn a_call_is_in_flight_until_it_ends_on_whatever_thread() {
    let telemetry = telemetry(10);
    let backend = telemetry.backend("jira");
    backend.call_begins();
    let series = "toolvane_calls_in_flight{backend=\"jira\"}";
    assert_eq!(value(&text(&telemetry, Sample::default()), series), Some(1.0));
    std::thread::scope(|scope| drop(scope.spawn(|| backend.call_ends())));
    assert_eq!(value(&text(&telemetry, Sample::default()), series), Some(0.0));
}

#[test]
fn a_tool_that_nobody_calls_makes_no_series() {
    let telemetry = telemetry(10);
    drop(telemetry.tool("jira", "search"));
    let text = text(&telemetry, Sample::default());
    assert!(!text.contains("search"), "{text}");
    assert!(Reason::ALL.iter().all(|reason| !text.contains(&format!("\"{}\"", reason.as_str()))), "{text}");
}
