//! Layers, compatibility with older tables, and the bundled table itself.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use super::{BUNDLED, BUNDLED_NAME, load, load_alone, read, schema};
use crate::rules::exchange::{Answer, BackendKind, Exchange, Fault};
use crate::rules::rule::{Cooldown, FALLBACK};
use crate::rules::table::Limits;
use crate::rules::{Classification, DispatchCode, HealthAction, Kind, Scope, Table, TransportFault};
use crate::yaml::Source;

fn source(text: &str) -> Arc<Source> {
    Arc::new(Source::new("rules.yaml", text))
}

fn alone(text: &str) -> Table {
    load_alone(&source(text), Limits::default()).unwrap()
}

fn ids(table: &Table) -> Vec<&str> {
    table.rules().iter().map(|rule| &*rule.id).collect()
}

fn http(status: u16, body: &str) -> Exchange {
    let mut exchange = Exchange { kind: BackendKind::Http, status: Some(status), ..Exchange::default() };
    exchange.take_body(body.to_owned());
    exchange
}

fn fault(kind: TransportFault, detail: &str) -> Exchange {
    Exchange { fault: Some(Fault { kind, detail: detail.to_owned() }), ..Exchange::default() }
}

fn mcp_error(text: &str) -> Exchange {
    Exchange {
        answer: Answer::Result { is_error: true, result_type: None, task_started: false, structured: None },
        text: text.to_owned(),
        ..Exchange::default()
    }
}

/// A table as it existed before: the first block of fields only, class names of Java, durations in ISO 8601, no signatures.
const OLDER: &str = r#"
patterns:
  - id: connect-refused
    match:
      exceptionType: ["java.net.ConnectException", "java.net.NoRouteToHostException"]
    classification: TECHNICALLY_BROKEN
    cooldown: PT15M
    healthAction: markUnavailable
  - id: unknown-host
    match:
      exceptionType: "java.net.UnknownHostException"
    classification: TECHNICALLY_BROKEN
    healthAction: markUnavailable
  - id: tls-cert-path
    match:
      exceptionType: ["javax.net.ssl.SSLHandshakeException"]
      bodyContains: ["PKIX path"]
    classification: TECHNICALLY_BROKEN
    healthAction: none
  - id: timeout
    match:
      exceptionType: ["java.net.SocketTimeoutException", "java.util.concurrent.TimeoutException"]
    classification: INTERMITTENT
    cooldown: PT30S
    healthAction: markDegraded
  - id: http-401-expired
    match:
      httpStatus: 401
      bodyContains: ["expired_token", "token has expired"]
    signature: http-401-expired
    classification: USER_SPECIFIC_TECHNICAL
    cooldown: PT24H
    healthAction: none
    locked: true
  - id: http-401
    match: {httpStatus: 401}
    classification: USER_SPECIFIC_TECHNICAL
  - id: http-403
    match: {httpStatus: 403}
    classification: USER_PERMISSION
    cooldown: PT24H
  - id: http-429
    match: {httpStatus: 429}
    classification: INTERMITTENT
    cooldown: PT1M
    healthAction: markDegraded
  - id: quota
    match:
      errorCode: ["quota_exceeded"]
    classification: TECHNICALLY_BROKEN
    cooldown: PT6H
  - id: http-404
    match: {httpStatus: [404, 410]}
    classification: USER_INPUT
  - id: http-400
    match: {httpStatus: [400, 422]}
    classification: USER_INPUT
    cooldown: PT5M
  - id: http-5xx
    match:
      httpStatusRange: [500, 599]
    classification: UNCLEAR
  - id: tool-argument
    match:
      exceptionType: ["com.example.tools.ToolException"]
      bodyContains: ["missing argument", "invalid argument"]
    classification: USER_INPUT
  - id: fallback
    match: {}
    classification: UNCLEAR
    healthAction: none
"#;

#[test]
fn an_older_table_decides_as_it_did() {
    use Classification as C;
    let table = alone(OLDER);
    assert_eq!(table.rules().len(), 14);
    for (exchange, rule, classification, action) in [
        (
            fault(TransportFault::ConnectRefused, ""),
            "connect-refused",
            C::TechnicallyBroken,
            HealthAction::MarkUnavailable,
        ),
        (fault(TransportFault::Dns, ""), "unknown-host", C::TechnicallyBroken, HealthAction::MarkUnavailable),
        (
            fault(TransportFault::Tls, "pkix Path building failed"),
            "tls-cert-path",
            C::TechnicallyBroken,
            HealthAction::None,
        ),
        (fault(TransportFault::Tls, "bad record"), "fallback", C::Unclear, HealthAction::None),
        (fault(TransportFault::Timeout, ""), "timeout", C::Intermittent, HealthAction::MarkDegraded),
        (http(401, "{\"error\":\"EXPIRED_TOKEN\"}"), "http-401-expired", C::UserSpecificTechnical, HealthAction::None),
        (http(401, ""), "http-401", C::UserSpecificTechnical, HealthAction::None),
        (http(403, ""), "http-403", C::UserPermission, HealthAction::None),
        (http(429, ""), "http-429", C::Intermittent, HealthAction::MarkDegraded),
        (http(402, "{\"code\":\"quota_exceeded\"}"), "quota", C::TechnicallyBroken, HealthAction::None),
        (http(410, ""), "http-404", C::UserInput, HealthAction::None),
        (http(422, ""), "http-400", C::UserInput, HealthAction::None),
        (http(503, ""), "http-5xx", C::Unclear, HealthAction::None),
        (mcp_error("Missing argument: path"), "tool-argument", C::UserInput, HealthAction::None),
        (mcp_error("something else"), "fallback", C::Unclear, HealthAction::None),
    ] {
        let finding = table.judge(&exchange).finding.unwrap();
        assert_eq!((&*finding.rule, finding.classification, finding.health_action), (rule, classification, action));
        let signature = if rule == "http-401-expired" { "http-401-expired" } else { rule };
        assert_eq!(&*finding.signature, signature, "the id stands in for a signature that is left out");
    }
    let locked: Vec<&str> = table.rules().iter().filter(|rule| rule.locked).map(|rule| &*rule.id).collect();
    assert_eq!(locked, ["http-401-expired"]);
    assert_eq!(table.judge(&http(403, "")).finding.unwrap().cooldown, Some(Duration::from_secs(86_400)));
    assert_eq!(table.judge(&http(200, "expired_token")).kind, Kind::Success);
}

#[test]
fn a_layer_replaces_whole_rules_where_they_stand_and_adds_before_the_fallback() {
    let base = load(&[], Limits::default()).unwrap();
    let layer = source(
        r#"
patterns:
  - id: http-403
    match: {httpStatus: 403}
    signature: ours
    classification: UNCLEAR
  - id: ours-new
    match: {bodyContains: "zebra"}
    signature: zebra
    classification: USER_INPUT
"#,
    );
    let table = load(&[layer], Limits::default()).unwrap();
    let place = |table: &Table, id: &str| ids(table).iter().position(|known| *known == id).unwrap();
    assert_eq!(place(&table, "http-403"), place(&base, "http-403"));
    assert_eq!(place(&table, "ours-new") + 1, place(&table, FALLBACK));
    assert_eq!(table.rules().len(), base.rules().len() + 1);
    let finding = table.judge(&http(403, "")).finding.unwrap();
    assert_eq!((&*finding.signature, finding.classification, finding.note), ("ours", Classification::Unclear, None));
    let mut zebra = fault(TransportFault::Protocol, "zebra");
    zebra.fault = None;
    zebra.text = "a ZEBRA".to_owned();
    assert_eq!(&*table.judge(&zebra).finding.unwrap().rule, "ours-new");
}

/// A rule that is put before another, for a table whose order is looked at.
fn put(id: &str, before: &str) -> String {
    format!("  - {{id: {id}, before: {before}, match: {{httpStatus: 618}}, classification: UNCLEAR}}\n")
}

fn layer(rules: &[String]) -> Arc<Source> {
    source(&format!("patterns:\n{}", rules.concat()))
}

fn said(layers: &[Arc<Source>]) -> String {
    load(layers, Limits::default()).unwrap_err().to_string()
}

#[test]
fn a_rule_of_a_layer_goes_before_the_rule_that_it_names() {
    let base = load(&[], Limits::default()).unwrap();
    let tenant = layer(&[put("first", "http-403"), put("second", "http-403"), put("zeroth", "first")]);
    let project = layer(&[put("third", "http-403"), put("http-429", "http-403"), put("end", "fallback")]);
    let table = load(&[tenant, project], Limits::default()).unwrap();
    let mut expected = ids(&base);
    expected.retain(|id| *id != "http-429");
    let at = expected.iter().position(|id| *id == "http-403").unwrap();
    expected.splice(at..at, ["zeroth", "first", "second", "third", "http-429"]);
    expected.insert(expected.len() - 1, "end");
    assert_eq!(ids(&table), expected);
    assert_eq!(&*table.judge(&http(618, "")).finding.unwrap().rule, "zeroth");
}

#[test]
fn a_rule_that_cannot_come_before_another_is_told_why() {
    let unknown = said(&[layer(&[put("a", "http-430")])]);
    assert!(unknown.contains("there is no rule `http-430` below this layer that `a` could come before"), "{unknown}");
    assert!(unknown.contains("did you mean `http-40") && unknown.contains("rules.yaml:2:21"), "{unknown}");
    let waiting = said(&[layer(&[put("a", "b"), put("b", "a")])]);
    assert!(waiting.contains("the rule `b` stands further down in this file"), "{waiting}");
    assert!(waiting.contains("no rule `a`") && waiting.contains("`b` could come before"), "{waiting}");
    assert!(said(&[layer(&[put("a", "a")])]).contains("a rule cannot come before itself"));
    assert!(said(&[layer(&[put("fallback", "http-403")])]).contains("`fallback` is the last rule and stays it"));
    let above = said(&[layer(&[put("a", "of-project")]), layer(&[put("of-project", "fallback")])]);
    assert!(above.contains("there is no rule `of-project` below this layer"), "{above}");
}

#[test]
fn later_layers_win_over_earlier_ones() {
    let layer = |signature: &str| {
        source(&format!(
            "patterns:\n  - {{id: http-403, match: {{httpStatus: 403}}, signature: {signature}, classification: UNCLEAR}}"
        ))
    };
    let table = load(&[layer("tenant"), layer("project")], Limits::default()).unwrap();
    assert_eq!(&*table.judge(&http(403, "")).finding.unwrap().signature, "project");
}

#[test]
fn problems_of_all_layers_are_reported_together() {
    let bad = |name: &str| Arc::new(Source::new(name, "patterns:\n  - {id: x, match: {}, classification: NONE}"));
    let report = load(&[bad("tenant.yaml"), bad("project.yaml")], Limits::default()).unwrap_err();
    let positions: Vec<String> = report.problems().iter().map(crate::yaml::Problem::position).collect();
    assert_eq!(positions, ["tenant.yaml:2:40", "project.yaml:2:40"]);
}

#[test]
fn every_field_of_the_format_is_read() {
    let table = alone(
        r#"
patterns:
  - id: all
    match:
      httpStatus: [429, 503]
      httpStatusRange: [400, 599]
      bodyContains: slow down
      errorCode: "rate_*"
      tool: ["jira_*", exact]
      backend: atlassian
      kind: http
      header: {x-ratelimit-remaining: "0", retry-after: true}
      contentType: application/*
      json: {/error/code: [rate_limited], /error: true}
      bodyRegex: "(?i)slow\\s+down"
      not: {bodyContains: [forever], httpStatus: 500}
    signature: rate-limited
    classification: INTERMITTENT
    cooldown: hint
    hintMax: 2h
    healthAction: markDegraded
    scope: USER
    dispatchCode: BACKEND_FAILED
    answer: result
    locked: true
    note: shown in history
"#,
    );
    let mut exchange = http(429, r#"{"error":{"code":"rate_limited","message":"Slow down"}}"#);
    exchange.tool = "jira_search".into();
    exchange.backend = "atlassian".into();
    for (name, value) in
        [("X-RateLimit-Remaining", "0"), ("retry-after", "5000"), ("content-type", "application/json; x=y")]
    {
        exchange.headers.insert(http::HeaderName::try_from(name).unwrap(), value.parse().unwrap());
    }
    let finding = table.judge(&exchange).finding.unwrap();
    assert_eq!(&*finding.rule, "all");
    assert_eq!(finding.hint, Some(Duration::from_secs(5000)));
    assert_eq!((finding.scope, finding.dispatch_code), (Some(Scope::User), DispatchCode::BackendFailed));
    assert!(finding.answer_as_result);
    assert_eq!(finding.note.as_deref(), Some("shown in history"));

    type Change = (&'static str, fn(&mut Exchange));
    let spoilers: [Change; 9] = [
        ("httpStatus", |e| e.status = Some(430)),
        ("kind", |e| e.kind = BackendKind::Mcp),
        ("tool", |e| e.tool = "confluence".into()),
        ("backend", |e| e.backend = "other".into()),
        ("contentType", |e| drop(e.headers.insert("content-type", "text/plain".parse().unwrap()))),
        ("header", |e| drop(e.headers.remove("retry-after"))),
        ("json", |e| e.take_body(r#"{"code":"rate_x","error":"slow down"}"#.to_owned())),
        ("errorCode", |e| e.take_body(r#"{"error":{"kode":"slow down"}}"#.to_owned())),
        ("not", |e| e.text.push_str("forever")),
    ];
    for (clause, spoil) in spoilers {
        let mut other = exchange.clone();
        spoil(&mut other);
        assert_eq!(&*table.judge(&other).finding.unwrap().rule, "fallback", "{clause}");
        if clause != "errorCode" {
            assert_eq!(table.unmet_clauses(&other), [(Arc::from("all"), clause)]);
        }
    }
}

#[test]
fn cooldowns_are_read_in_every_form() {
    for (text, expected) in [
        ("PT24H", Cooldown::Fixed(Duration::from_secs(86_400))),
        ("30s", Cooldown::Fixed(Duration::from_secs(30))),
        ("5m", Cooldown::Fixed(Duration::from_secs(300))),
        ("hint", Cooldown::Hint),
        ("header:X-Wait", Cooldown::Header(http::HeaderName::from_static("x-wait"))),
    ] {
        let text = format!("patterns:\n  - {{id: x, match: {{}}, classification: INTERMITTENT, cooldown: \"{text}\"}}");
        assert_eq!(read(&source(&text)).unwrap()[0].then.cooldown, expected);
    }
}

#[test]
fn the_bundled_table_is_sound() {
    let rules = read(&Arc::new(Source::new(BUNDLED_NAME, BUNDLED))).unwrap_or_else(|report| panic!("{report}"));
    assert!(rules.len() > 80, "{}", rules.len());
    let last = rules.last().unwrap();
    assert_eq!(&*last.id, FALLBACK);
    assert_eq!((last.then.classification, last.then.health_action), (Classification::Unclear, HealthAction::None));
    for rule in &rules {
        assert!(
            !matches!(rule.then.scope, Some(Scope::Tenant | Scope::Global)),
            "{}: bundled rules never write TENANT or GLOBAL",
            rule.id
        );
        assert!(
            rule.then.signature.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'),
            "{}",
            rule.id
        );
    }
    let signatures: HashSet<&str> = rules.iter().map(|rule| &*rule.then.signature).collect();
    assert!(signatures.len() < 100, "signatures are metric labels and stay few");
}

#[test]
fn every_test_of_a_bundled_rule_holds() {
    let table = load(&[], Limits::default()).unwrap_or_else(|report| panic!("{report}"));
    let (mut seen, mut wrong) = (0, Vec::new());
    for rule in table.rules() {
        for test in &rule.tests {
            let found = table.judge(&test.exchange).finding.map(|finding| finding.rule);
            if (found.as_ref() == Some(&rule.id)) != test.expect_match {
                wrong.push(format!(
                    "{}: found {found:?} for {:?} {:?}",
                    rule.id, test.exchange.answer, test.exchange.text
                ));
            }
            seen += 1;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen >= 100, "{seen}");
}

#[test]
fn every_bundled_rule_says_why_and_is_hit_by_a_test_of_its_own() {
    let rules = read(&Arc::new(Source::new(BUNDLED_NAME, BUNDLED))).unwrap_or_else(|report| panic!("{report}"));
    for rule in &rules {
        assert!(rule.then.note.is_some(), "{} has no note", rule.id);
        assert!(rule.tests.iter().any(|test| test.expect_match), "{} has no test that it matches", rule.id);
    }
}

/// Rules that name a service or repeat a sentence know one failure; the bundled ones are to know kinds of failures.
#[test]
fn no_bundled_rule_names_a_service_or_repeats_a_sentence() {
    const SERVICES: &str = "airtable amazon anthropic asana atlassian aws azure bitbucket brave chromium cloudflare \
        confluence datadog discord docker dropbox elastic elasticsearch everything facebook fastmcp figma firecrawl github \
        gitlab gmail google grafana heroku hubspot intercom jira kubernetes linear linkedin mailchimp microsoft mongodb \
        mysql neon netlify notion okta openai opensearch outlook paypal pinecone playwright postgres postgresql posthog \
        puppeteer qdrant redis reddit salesforce sendgrid sentry shopify slack snowflake spotify sqlite square stripe \
        supabase supergateway tavily telegram trello twilio twitter vercel whatsapp wikipedia youtube zendesk zoom";
    let text = BUNDLED.lines().filter(|line| !line.trim_start().starts_with('#')).collect::<Vec<_>>().join("\n");
    let words: HashSet<String> = text.to_lowercase().split(|c: char| !c.is_alphanumeric()).map(str::to_owned).collect();
    let named: Vec<&str> = SERVICES.split_whitespace().filter(|name| words.contains(*name)).collect();
    assert!(named.is_empty(), "{named:?}");

    let sentence = regex::Regex::new("[a-z']+(?: [a-z']+){3}").unwrap();
    let rules = read(&Arc::new(Source::new(BUNDLED_NAME, BUNDLED))).unwrap_or_else(|report| panic!("{report}"));
    for rule in &rules {
        for when in std::iter::once(&rule.when).chain(rule.when.not.as_deref()) {
            let regexes = when.regex.iter().flatten().map(|regex| regex.as_str());
            let phrases = when.phrases.iter().flatten().map(|phrase| phrase.as_str());
            let plain = phrases.map(|phrase| {
                phrase.replace("(?: [^ .]+){0,4} ", "|").replace("(?:", "").replace("s?", "").replace(')', "")
            });
            let needles = when.contains.iter().flatten().map(|needle| needle.to_string());
            for needle in regexes.map(str::to_owned).chain(plain).chain(needles) {
                assert!(!sentence.is_match(&needle), "{}: `{needle}` has four words or more", rule.id);
            }
        }
    }
}

#[test]
fn the_schema_knows_every_key() {
    let drawn = schema();
    let rule = &drawn["properties"]["patterns"]["items"]["properties"];
    for key in ["id", "before", "match", "signature", "classification", "cooldown", "hintMax", "answer", "tests"] {
        assert!(rule.get(key).is_some(), "{key}");
    }
    assert!(rule["match"]["properties"]["not"]["properties"].get("bodyRegex").is_some());
    assert!(rule["match"]["properties"]["not"]["properties"].get("not").is_none());
}
