//! The border of the module: an exchange goes in, a verdict comes out.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::prelude::*;
use serde_json::json;

use super::vocabulary::{Classification as C, DispatchCode as D, HealthAction, Scope, TransportFault as F};
use super::*;
use crate::yaml::Source;

static BUNDLED: LazyLock<Table> = LazyLock::new(|| load(&[], Limits::default()).unwrap());

fn table(text: &str) -> Table {
    file::load_alone(&Arc::new(Source::new("rules.yaml", text)), Limits::default()).unwrap()
}

fn http(status: u16, headers: &[(&str, &str)], body: &str) -> Exchange {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(HeaderName::try_from(*name).unwrap(), HeaderValue::from_str(value).unwrap());
    }
    let mut exchange = Exchange { kind: BackendKind::Http, status: Some(status), headers: map, ..Exchange::default() };
    exchange.take_body(body.to_owned());
    exchange
}

fn result(is_error: bool, text: &str) -> Exchange {
    Exchange {
        answer: Answer::Result { is_error, result_type: None, task_started: false, structured: None },
        text: text.to_owned(),
        status: Some(200),
        ..Exchange::default()
    }
}

fn rpc(code: i64, message: &str) -> Exchange {
    Exchange {
        answer: Answer::Error { code, message: message.to_owned(), data: None },
        status: Some(200),
        ..Exchange::default()
    }
}

fn fault(kind: F) -> Exchange {
    Exchange { fault: Some(Fault { kind, detail: String::new() }), ..Exchange::default() }
}

fn finding(exchange: &Exchange) -> Finding {
    BUNDLED.judge(exchange).finding.unwrap()
}

#[test]
fn a_success_is_a_success_whatever_its_text_says() {
    let alarming = "Error: 403 Forbidden, rate limit exceeded, token expired, ECONNREFUSED, unknown tool";
    for exchange in [
        result(false, alarming),
        result(false, ""),
        http(200, &[], alarming),
        http(204, &[], ""),
        http(302, &[], alarming),
        http(200, &[("content-type", "application/json")], &json!({"message": alarming}).to_string()),
    ] {
        assert_eq!(BUNDLED.judge(&exchange), Verdict::SUCCESS, "{:?}", exchange.text);
    }
}

#[test]
fn an_error_envelope_is_a_failure_of_which_only_the_codes_are_read() {
    let envelope = |error: &str| {
        let mut exchange = result(false, &json!({"ok": false, "error": error}).to_string());
        exchange.json = Some(json!({"ok": false, "error": error}));
        exchange.disguised = true;
        exchange
    };
    assert_eq!(&*finding(&envelope("token_expired")).signature, "auth-expired");
    let told = finding(&envelope("the token has expired"));
    assert_eq!(
        (&*told.signature, told.classification, told.evidence),
        ("envelope-error", C::Unclear, Evidence::Nothing)
    );
    let own = table("patterns: [{id: fallback, match: {}, classification: UNCLEAR}]");
    assert_eq!(
        own.judge(&envelope("token_expired")),
        Verdict::SUCCESS,
        "a table that knows no envelopes sees a success"
    );
}

#[test]
fn a_log_speaks_only_where_no_answer_does() {
    let logged = |text: &str| {
        let mut exchange = result(true, text);
        exchange.take_log("rate limit exceeded");
        finding(&exchange).signature
    };
    assert_eq!((&*logged(""), &*logged("permission denied")), ("rate-limited", "denied"));
}

#[test]
fn what_is_not_yet_an_outcome_is_neutral() {
    let mut cancelled = fault(F::Reset);
    cancelled.cancelled = true;
    let mut asks = result(false, "");
    asks.answer = Answer::Result {
        is_error: false,
        result_type: Some("input_required".to_owned()),
        task_started: false,
        structured: None,
    };
    let mut task = result(false, "");
    task.answer = Answer::Result { is_error: false, result_type: None, task_started: true, structured: None };
    for exchange in [cancelled, asks, task] {
        assert_eq!(BUNDLED.judge(&exchange), Verdict::NEUTRAL);
    }
}

#[test]
fn protocol_answers_neither_trip_nor_clear() {
    let mut lost = rpc(-32001, "Session not found");
    lost.status = Some(404);
    let mut plain = http(404, &[("content-type", "text/plain")], "session not found");
    plain.kind = BackendKind::Mcp;
    for (exchange, signature) in [
        (lost, "session-lost"),
        (plain, "session-lost"),
        (rpc(-32601, "Method not found"), "rpc-32601"),
        (rpc(-32020, "header mismatch"), "protocol-mismatch"),
        (rpc(-32022, "unsupported version"), "protocol-mismatch"),
    ] {
        let verdict = BUNDLED.judge(&exchange);
        let found = verdict.finding.unwrap();
        assert_eq!((verdict.kind, &*found.signature, found.evidence), (Kind::Neutral, signature, Evidence::Nothing));
    }
}

#[test]
fn an_mcp_answer_that_never_came_is_no_success() {
    let accepted = Exchange { status: Some(202), ..Exchange::default() };
    assert_eq!(BUNDLED.judge(&accepted).kind, Kind::Failure);
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of data")]
fn outcomes_count_and_disprove_as_the_table_says() {
    use {Disproves as P, Evidence as E};
    let edge = |status| Exchange { status: Some(status), ..Exchange::default() };
    for (exchange, classification, kind, code, evidence, disproves) in [
        (
            fault(F::ConnectRefused),
            C::TechnicallyBroken,
            Kind::Failure,
            D::BackendUnreachable,
            E::Transport,
            P::Nothing,
        ),
        (fault(F::Dns), C::TechnicallyBroken, Kind::Failure, D::BackendUnreachable, E::Transport, P::Nothing),
        (fault(F::Tls), C::TechnicallyBroken, Kind::Failure, D::BackendUnreachable, E::Transport, P::Nothing),
        (fault(F::ChildExited), C::TechnicallyBroken, Kind::Failure, D::BackendUnreachable, E::Transport, P::Nothing),
        (fault(F::Timeout), C::Intermittent, Kind::Failure, D::BackendUnreachable, E::Down, P::Nothing),
        (fault(F::Reset), C::Intermittent, Kind::Failure, D::BackendUnreachable, E::Down, P::Nothing),
        (fault(F::StreamEnded), C::Intermittent, Kind::Failure, D::BackendUnreachable, E::Down, P::Nothing),
        (fault(F::BodyTruncated), C::Intermittent, Kind::Failure, D::BackendUnreachable, E::Down, P::Nothing),
        (edge(502), C::Intermittent, Kind::Failure, D::BackendUnreachable, E::Down, P::Nothing),
        (edge(504), C::Intermittent, Kind::Failure, D::BackendUnreachable, E::Down, P::Nothing),
        (http(500, &[], ""), C::Intermittent, Kind::Failure, D::BackendFailed, E::Down, P::Transport),
        (rpc(-32603, "boom"), C::Unclear, Kind::Failure, D::BackendFailed, E::Down, P::Transport),
        (http(429, &[], ""), C::Intermittent, Kind::Failure, D::BackendFailed, E::Degraded, P::Transport),
        (
            http(401, &[], ""),
            C::UserSpecificTechnical,
            Kind::Failure,
            D::BackendFailed,
            E::Nothing,
            P::TransportAndServerError,
        ),
        (
            http(403, &[], ""),
            C::UserPermission,
            Kind::Neutral,
            D::BackendFailed,
            E::Nothing,
            P::TransportAndServerError,
        ),
        (http(404, &[], ""), C::UserInput, Kind::Neutral, D::BackendFailed, E::Nothing, P::TransportAndServerError),
        (rpc(-32602, "bad"), C::UserInput, Kind::Neutral, D::BackendFailed, E::Nothing, P::TransportAndServerError),
        (result(true, "zxcv"), C::Unclear, Kind::Failure, D::BackendFailed, E::Nothing, P::TransportAndServerError),
        (
            result(true, "rate limit exceeded"),
            C::Intermittent,
            Kind::Failure,
            D::BackendFailed,
            E::Degraded,
            P::Transport,
        ),
        (
            result(true, "connect ECONNREFUSED 10.0.0.1:5432"),
            C::TechnicallyBroken,
            Kind::Failure,
            D::BackendFailed,
            E::Down,
            P::Transport,
        ),
    ] {
        let verdict = BUNDLED.judge(&exchange);
        let f = verdict.finding.unwrap();
        assert_eq!(
            (f.classification, verdict.kind, f.dispatch_code, f.evidence, f.disproves),
            (classification, kind, code, evidence, disproves),
            "{} on {:?} {:?}",
            f.rule,
            exchange.status,
            exchange.answer
        );
    }
}

#[test]
fn a_credentials_fault_goes_to_its_user_and_the_rest_to_the_project() {
    for (mut exchange, credentialed, session_tool, expected) in [
        (http(429, &[], ""), true, false, Scope::User),
        (http(429, &[], ""), false, false, Scope::Project),
        (http(402, &[], ""), true, false, Scope::User),
        (http(401, &[], ""), false, false, Scope::User),
        (http(403, &[], ""), false, false, Scope::User),
        (http(500, &[], ""), true, false, Scope::Project),
        (fault(F::Timeout), true, false, Scope::Project),
        (fault(F::Timeout), true, true, Scope::Session),
        (http(403, &[], ""), true, true, Scope::Session),
    ] {
        exchange.credentialed = credentialed;
        exchange.session_tool = session_tool;
        assert_eq!(default_scope(&finding(&exchange), session_tool), expected, "{:?}", exchange.status);
    }
    let wide = table("patterns: [{id: x, match: {}, classification: USER_PERMISSION, scope: TENANT}]");
    assert_eq!(default_scope(&wide.judge(&http(403, &[], "")).finding.unwrap(), true), Scope::Tenant);
}

#[test]
fn an_unknown_tool_that_is_in_the_list_is_not_unknown() {
    for (listed, session_tool, kind, code, classification, action, scope) in [
        (false, false, Kind::Neutral, D::NotRegistered, C::UserInput, HealthAction::None, None),
        (false, true, Kind::Neutral, D::NotRegistered, C::UserInput, HealthAction::None, None),
        (true, false, Kind::Failure, D::BackendFailed, C::Unclear, HealthAction::None, None),
        (
            true,
            true,
            Kind::Failure,
            D::BackendUnreachable,
            C::TechnicallyBroken,
            HealthAction::MarkUnavailable,
            Some(Scope::Session),
        ),
    ] {
        for mut exchange in [rpc(-32602, "Unknown tool: client_read"), result(true, "Tool client_read not found")] {
            exchange.listed = listed;
            exchange.session_tool = session_tool;
            let verdict = BUNDLED.judge(&exchange);
            let f = verdict.finding.unwrap();
            assert_eq!(
                (verdict.kind, f.dispatch_code, f.classification, f.health_action, f.scope),
                (kind, code, classification, action, scope)
            );
        }
    }
}

#[test]
fn a_failing_target_is_not_the_tools_fault() {
    let text = "failed to fetch http://site.test/page: connect ECONNREFUSED 192.0.2.1:80";
    let mut exchange = result(true, text);
    exchange.targets = target::hosts(&json!({"url": "http://site.test/page"}), &target::TargetSource::Auto);
    let found = finding(&exchange);
    assert_eq!((&*found.rule, found.classification), ("target-unreachable", C::UserInput));
    exchange.backend_host = Some("site.test".into());
    assert_eq!(finding(&exchange).classification, C::TechnicallyBroken, "the backend's own host is no target");
    exchange.backend_host = None;
    exchange.targets = vec!["te.test".to_owned()];
    assert_eq!(finding(&exchange).classification, C::TechnicallyBroken, "a part of a host is another host");
}

#[test]
fn hints_come_from_429_and_503_and_from_rules_that_ask() {
    let retry = [("retry-after", "40")];
    for (exchange, expected) in [
        (http(429, &retry, ""), Some(40)),
        (http(503, &retry, ""), Some(40)),
        (http(500, &retry, ""), None),
        (http(403, &retry, ""), None),
        (http(403, &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "40")], ""), Some(40)),
        (result(true, "rate limit exceeded, try again in 40s"), Some(40)),
        (result(true, "that did not work, try again in 40s"), None),
    ] {
        let found = finding(&exchange);
        assert_eq!(found.hint, expected.map(Duration::from_secs), "{}", found.rule);
    }
    let header =
        table("patterns: [{id: x, match: {}, classification: INTERMITTENT, cooldown: 'header:x-wait', hintMax: 2m}]");
    let found = header.judge(&http(500, &[("x-wait", "1h")], "")).finding.unwrap();
    assert_eq!((found.hint, found.cooldown), (Some(Duration::from_secs(120)), Some(Duration::from_secs(120))));
    let none = header.judge(&http(500, &[], "")).finding.unwrap();
    assert_eq!((none.hint, none.cooldown), (None, None));
}

#[test]
fn a_rule_for_successes_may_look_into_them_for_its_own_tool() {
    let table = table(
        r#"
patterns:
  - id: disguised
    match: {tool: "old_*", mcpError: false, bodyContains: "error:"}
    classification: TECHNICALLY_BROKEN
  - id: envelope
    match: {kind: http, httpStatusRange: [200, 299], json: {/ok: "false"}}
    classification: UNCLEAR
"#,
    );
    let mut old = result(false, "Error: it broke");
    assert_eq!(table.judge(&old), Verdict::SUCCESS);
    old.tool = "old_search".into();
    assert_eq!(&*table.judge(&old).finding.unwrap().rule, "disguised");
    assert!(table.reads_success_body(&old));
    let plain = http(200, &[], r#"{"ok": true}"#);
    assert_eq!(table.judge(&plain), Verdict::SUCCESS);
    assert_eq!(&*table.judge(&http(200, &[], r#"{"ok": false}"#)).finding.unwrap().rule, "envelope");
    assert!(table.reads_success_body(&plain));
    assert!(!table.reads_success_body(&result(false, "")));
}

#[test]
fn codes_are_found_wherever_apis_put_them() {
    let table = table("patterns: [{id: x, match: {errorCode: rate_limited}, classification: INTERMITTENT}]");
    let codes = [
        http(400, &[], r#"{"error": {"code": "RateLimited"}}"#),
        http(400, &[], r#"{"errors": [{"extensions": {"code": "RATE_LIMITED"}}]}"#),
        http(400, &[], r#"{"__type": "com.example.v1#RateLimited", "message": "x"}"#),
        http(400, &[], r#"{"type": "https://example.com/problems/rate-limited", "title": "Slow down"}"#),
        http(400, &[], "<Response><Errors><Error><Code>RateLimited</Code></Error></Errors></Response>"),
        http(400, &[("www-authenticate", "Bearer realm=\"x\", error=\"rate_limited\"")], ""),
        http(400, &[("x-amzn-errortype", "RateLimited:http://internal/")], ""),
        result(true, "API error: {\"reason\": \"rateLimited\"}"),
        Exchange {
            answer: Answer::Error { code: -32000, message: String::new(), data: Some(json!({"code": "rate_limited"})) },
            ..Exchange::default()
        },
    ];
    for exchange in codes {
        assert!(table.judge(&exchange).finding.is_some_and(|f| &*f.rule == "x"), "{:?}", exchange.text);
    }
    let text_only = http(400, &[], r#"{"message": "rate_limited"}"#);
    assert_eq!(&*table.judge(&text_only).finding.unwrap().rule, "fallback", "words are no code");
}

/// Words that rules look for, beside some that none does.
fn words() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "rate limit",
        "exceeded",
        "token",
        "expired",
        "not found",
        "tool",
        "ECONNREFUSED",
        "timed out",
        "permission denied",
        "session",
        "invalid",
        "arguments",
        "503",
        "status code",
        "quota",
        "https://site.test/",
        "{\"code\": \"x\"}",
        "été",
        "\u{2026}",
    ]);
    prop::collection::vec(prop_oneof![known.prop_map(str::to_owned), "[a-z ]{0,12}"], 0..12)
        .prop_map(|all| all.join(" "))
}

fn exchanges() -> impl Strategy<Value = Exchange> {
    let status = prop::option::of(prop::sample::select(vec![200u16, 400, 401, 403, 404, 409, 429, 500, 502, 503, 700]));
    let answer = prop_oneof![
        Just(Answer::None),
        any::<bool>().prop_map(|is_error| Answer::Result {
            is_error,
            result_type: None,
            task_started: false,
            structured: None
        }),
        (prop::sample::select(vec![-32603i64, -32602, -32601, -32001, -32000, 429, 7]), words())
            .prop_map(|(code, message)| Answer::Error { code, message, data: None }),
    ];
    let fault =
        prop::option::weighted(0.2, prop::sample::select(vec![F::ConnectRefused, F::Dns, F::Timeout, F::Protocol]));
    (status, answer, fault, words(), any::<bool>()).prop_map(|(status, answer, fault, text, is_http)| {
        let kind = if is_http { BackendKind::Http } else { BackendKind::Mcp };
        let fault = fault.map(|kind| Fault { kind, detail: String::new() });
        Exchange { kind, status, answer, fault, text, targets: vec!["site.test".to_owned()], ..Exchange::default() }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// The index may only leave out rules that cannot match.
    #[test]
    fn the_first_rule_whose_clauses_all_hold_decides(exchange in exchanges()) {
        let unmet = BUNDLED.unmet_clauses(&exchange);
        let expected = BUNDLED.rules().get(unmet.len()).map(|rule| &rule.id);
        let found = BUNDLED.judge(&exchange).finding.map(|finding| finding.rule);
        prop_assert_eq!(found.as_ref(), expected);
    }

    #[test]
    fn the_chunking_of_a_text_changes_no_verdict(text in words(), filler in 0usize..5_000, bound in 200usize..4_000, sizes in prop::collection::vec(1usize..700, 1..8)) {
        let whole = format!("{text}{}{text}", "~".repeat(filler));
        let mut exchange = result(true, &bounded(&whole, bound));
        let expected = BUNDLED.judge(&exchange);
        let mut collector = TextCollector::new(bound);
        let (mut rest, mut at) = (whole.as_bytes(), 0);
        while !rest.is_empty() {
            let (chunk, after) = rest.split_at(sizes[at % sizes.len()].min(rest.len()));
            collector.push(chunk);
            (rest, at) = (after, at + 1);
        }
        exchange.text = collector.finish();
        prop_assert_eq!(BUNDLED.judge(&exchange), expected);
    }

    /// What stands in head and tail decides, not how much was left out between them.
    #[test]
    fn the_length_of_what_was_left_out_changes_no_verdict(text in words(), one in 3_000usize..4_000, other in 5_000usize..90_000) {
        let judged = |filler: usize| {
            let whole = format!("{text}{}{text}", "~".repeat(filler));
            BUNDLED.judge(&result(true, &bounded(&whole, 2_000)))
        };
        prop_assert_eq!(judged(one), judged(other));
    }

    #[test]
    fn no_text_at_all_makes_a_failure_of_a_success(text in "\\PC{0,300}", words in words()) {
        prop_assert_eq!(BUNDLED.judge(&result(false, &format!("{text}{words}"))), Verdict::SUCCESS);
    }

    #[test]
    fn signatures_come_from_the_table(exchange in exchanges()) {
        if let Some(finding) = BUNDLED.judge(&exchange).finding {
            prop_assert!(finding.signature.len() <= 64);
            prop_assert!(BUNDLED.rules().iter().any(|rule| rule.then.signature == finding.signature));
        }
    }
}
