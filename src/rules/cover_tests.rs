//! What covers what, and that "covers" is never said in vain.

use std::sync::Arc;

use proptest::prelude::*;

use super::super::file::load_alone;
use super::super::never::{contradiction, empty_lists};
use super::super::{Answer, BackendKind, Exchange, Fault, Limits, Table, TransportFault};
use super::covers;
use crate::yaml::{Report, Source};

/// A table of two rules with these clauses, in this order.
fn read(wide: &str, narrow: &str) -> Result<Table, Report> {
    let text = format!(
        "patterns:\n  - {{id: wide, match: {{{wide}}}, classification: UNCLEAR}}\n  \
         - {{id: narrow, match: {{{narrow}}}, classification: UNCLEAR}}\n"
    );
    load_alone(&Arc::new(Source::new("rules.yaml", text)), Limits::default())
}

fn table(wide: &str, narrow: &str) -> Table {
    read(wide, narrow).unwrap()
}

fn is_covered(wide: &str, narrow: &str) -> bool {
    let table = table(wide, narrow);
    covers(&table.rules()[0].when, &table.rules()[1].when)
}

#[test]
fn a_rule_covers_another_if_each_of_its_clauses_is_at_least_as_wide() {
    for (wide, narrow) in [
        ("", "httpStatus: 403"),
        ("httpStatus: [403, 404]", "httpStatus: 404, bodyContains: x y"),
        ("httpStatusRange: [400, 499]", "httpStatus: [403, 404]"),
        ("httpStatusRange: [400, 499]", "httpStatusRange: [410, 420]"),
        ("bodyContains: token", "bodyContains: [expired token, TOKEN gone]"),
        ("errorCode: \"rate*\"", "errorCode: [rate_limited, RateLimit]"),
        ("tool: \"jira_*\"", "tool: \"jira_a*\""),
        ("exceptionType: [dns, tls]", "exceptionType: dns"),
        ("header: {retry-after: true}", "header: {retry-after: \"3*\", date: true}"),
        ("json: {/a: [\"x*\"]}", "json: {/a: [xy]}"),
        ("bodyRegex: [aaa, bbb]", "bodyRegex: aaa"),
        ("not: {bodyContains: long needle}", "not: {bodyContains: needle}"),
        ("rpcCode: [1, 2]", "rpcCode: 2, mcpError: true"),
        ("kind: http", "kind: http, httpStatus: 403"),
        ("backend: \"a*\"", "backend: [ab, ac]"),
        ("contentType: \"text/*\"", "contentType: text/html"),
        ("envelope: true", "envelope: true, httpStatus: 403"),
        ("target: true", "target: true, bodyContains: abc"),
        ("reasonWords: [token expired, quota]", "reasonWords: quota"),
        ("quotedStatus: [429, 503]", "quotedStatus: 503"),
        ("quotedRpcCode: [-32001, -32603]", "quotedRpcCode: -32001"),
    ] {
        assert!(is_covered(wide, narrow), "{{{wide}}} and {{{narrow}}}");
        assert!(!is_covered(narrow, wide), "{{{narrow}}} and {{{wide}}}");
    }
}

#[test]
fn what_only_looks_alike_is_not_covered() {
    for (wide, narrow) in [
        ("tool: \"jira_?\"", "tool: \"jira_*\""),
        ("httpStatus: 403", "bodyContains: abc"),
        ("not: {bodyContains: abc}", "httpStatus: 403"),
        ("not: {httpStatus: 403}", "not: {bodyContains: abc}"),
        ("json: {/a: true}", "json: {/a: [\"null\"]}"),
        ("not: {json: {/a: true}}", "not: {exceptionType: timeout}"),
        ("bodyContains: abc", "httpStatus: 200, tool: t, bodyContains: abc"),
        ("exceptionType: dns", "exceptionType: [dns, com.example.ToolException]"),
        ("kind: http", "kind: mcp"),
        ("envelope: true", "envelope: false"),
        ("target: true", "target: false"),
        ("quotedStatus: 503", "httpStatus: 503"),
        ("quotedRpcCode: -32001", "rpcCode: -32001"),
        // Words may stand in another order or form in another phrase; only the same phrase is known to be no narrower.
        ("reasonWords: token", "reasonWords: token expired"),
        ("reasonWords: quota", "bodyContains: quota"),
    ] {
        assert!(!is_covered(wide, narrow), "{{{wide}}} and {{{narrow}}}");
    }
}

fn clause() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::subsequence(vec![200, 400, 403, 429, 503], 1..4).prop_map(|set| format!("httpStatus: {set:?}")),
        (400u16..420, 420u16..600).prop_map(|(low, high)| format!("httpStatusRange: [{low}, {high}]")),
        prop::sample::subsequence(vec!["abc", "abcd", "bcd", "zz"], 1..3)
            .prop_map(|set| format!("bodyContains: {set:?}")),
        prop::sample::subsequence(vec!["abc", "(?i)ABCD", "zz+"], 1..3).prop_map(|set| format!("bodyRegex: {set:?}")),
        prop::sample::subsequence(vec!["a*", "a?", "ab", "*"], 1..3).prop_map(|set| format!("tool: {set:?}")),
        prop::sample::subsequence(vec!["abc", "a*", "z?"], 1..3).prop_map(|set| format!("errorCode: {set:?}")),
        prop::sample::subsequence(vec!["dns", "timeout", "a.B"], 1..3)
            .prop_map(|set| format!("exceptionType: {set:?}")),
        prop::sample::select(vec!["kind: http", "kind: mcp", "mcpError: true", "rpcCode: [1, 2]", "rpcCode: 2"])
            .prop_map(str::to_owned),
        prop::sample::select(vec!["json: {/code: true}", "json: {/code: [\"a*\"]}", "json: {/code: [\"null\", abc]}"])
            .prop_map(str::to_owned),
        prop::sample::select(vec!["header: {date: true}", "header: {date: \"a*\"}"]).prop_map(str::to_owned),
        prop::sample::subsequence(vec!["abc", "token .. expired", "zz"], 1..3)
            .prop_map(|set| format!("reasonWords: {set:?}")),
        prop::sample::subsequence(vec![404, 429, 503], 1..3).prop_map(|set| format!("quotedStatus: {set:?}")),
        prop::sample::subsequence(vec![-32602, -32603], 1..3).prop_map(|set| format!("quotedRpcCode: {set:?}")),
        prop::sample::select(vec!["envelope: true", "envelope: false", "target: true", "target: false"])
            .prop_map(str::to_owned),
        prop::sample::select(vec!["contentType: \"text/*\"", "contentType: text/html"]).prop_map(str::to_owned),
        prop::sample::select(vec!["backend: \"a*\"", "backend: ab"]).prop_map(str::to_owned),
    ]
}

fn clauses() -> impl Strategy<Value = String> {
    let name = |clause: &String| clause.split(':').next().unwrap_or_default().to_owned();
    let unique = move |all: Vec<String>| {
        let mut seen = std::collections::HashSet::new();
        all.into_iter().filter(|clause| seen.insert(name(clause))).collect::<Vec<_>>().join(", ")
    };
    (prop::collection::vec(clause(), 0..4), prop::option::of(clause())).prop_map(move |(all, not)| {
        let all = unique(all);
        match not {
            Some(not) if all.is_empty() => format!("not: {{{not}}}"),
            Some(not) => format!("{all}, not: {{{not}}}"),
            None => all,
        }
    })
}

fn exchange() -> impl Strategy<Value = Exchange> {
    let status = prop::option::of(prop::sample::select(vec![200u16, 400, 403, 415, 429, 503]));
    let text = prop::sample::select(vec![
        "",
        "abc",
        "xabcdx",
        "zz",
        "{\"code\":\"abc\"}",
        "{\"code\":null}",
        "ABCD zzz",
        "{\"error\":\"abc\"}",
        "the token has expired",
        "HTTP 503 from a.test",
        "MCP error -32602: status 429",
    ]);
    let answer = prop::sample::select(vec![
        Answer::None,
        Answer::Error { code: 2, message: "abc".to_owned(), data: None },
        Answer::Result { is_error: true, result_type: None, task_started: false, structured: None },
    ]);
    let fault = prop::option::of(prop::sample::select(vec![TransportFault::Dns, TransportFault::Timeout]));
    let tool = prop::sample::select(vec!["a", "ab", "abc", "z"]);
    (status, text, answer, fault, tool, any::<bool>()).prop_map(|(status, text, answer, fault, tool, dated)| {
        let kind = if answer == Answer::None { BackendKind::Http } else { BackendKind::Mcp };
        let mut exchange = Exchange { kind, status, answer, tool: tool.into(), ..Exchange::default() };
        exchange.take_body(text.to_owned());
        exchange.fault = fault.map(|kind| Fault { kind, detail: text.to_owned() });
        exchange.backend = tool.into();
        exchange.targets = if dated { vec!["a.test".into()] } else { Vec::new() };
        if dated {
            exchange.headers.insert("content-type", "text/html".parse().unwrap());
            exchange.headers.insert("date", "abc".parse().unwrap());
        }
        exchange
    })
}

proptest! {
    #![proptest_config(ProptestConfig { max_global_rejects: 1_000_000, ..ProptestConfig::default() })]

    #[test]
    fn a_rule_that_is_covered_never_decides(
        wide in clauses(),
        narrow in clauses(),
        exchanges in prop::collection::vec(exchange(), 40),
    ) {
        // Texts of successes are read for a named tool only; such tables are refused.
        let read = read(&wide, &narrow);
        prop_assume!(read.is_ok());
        let table = read.unwrap();
        if covers(&table.rules()[0].when, &table.rules()[1].when) {
            for exchange in &exchanges {
                let rule = table.judge(exchange).finding.map(|finding| finding.rule);
                prop_assert_ne!(rule.as_deref(), Some("narrow"), "{{{}}} and {{{}}}: {:?}", wide, narrow, exchange);
            }
        }
    }

    #[test]
    fn a_rule_that_contradicts_itself_never_decides(
        clauses in clauses(),
        exchanges in prop::collection::vec(exchange(), 40),
    ) {
        let read = read(&clauses, &clauses);
        prop_assume!(read.is_ok());
        let table = read.unwrap();
        let when = &table.rules()[0].when;
        if contradiction(when).is_some() || !empty_lists(when).is_empty() {
            for exchange in exchanges.iter().filter(|exchange| is_possible(exchange)) {
                let rule = table.judge(exchange).finding.map(|finding| finding.rule);
                prop_assert!(!matches!(rule.as_deref(), Some("wide" | "narrow")), "{{{}}}: {:?}", clauses, exchange);
            }
        }
    }
}

/// With a fault no MCP answer comes, and with one before the answer nothing of it.
fn is_possible(exchange: &Exchange) -> bool {
    exchange.fault.as_ref().is_none_or(|fault| {
        let is_headless = exchange.status.is_none() && exchange.headers.is_empty();
        exchange.answer == Answer::None && (is_headless || !fault.kind.is_before_any_answer())
    })
}
