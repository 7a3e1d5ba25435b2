//! What `toolvane check` warns of in rules that are valid.

use serde_json::Value;

use super::Desk;

#[test]
fn each_oddity_of_a_rule_is_a_warning_with_its_kind() {
    let layer = r#"patterns:
  - {id: bare, match: {httpStatus: 618, bodyContains: ["403"]}, classification: USER_INPUT}
  - {id: wide, match: {httpStatus: 618, bodyRegex: ["(?i)(err|e).*"]}, classification: USER_INPUT}
  - {id: unknown, match: {exceptionType: java.net.ConectException}, classification: TECHNICALLY_BROKEN}
  - {id: long, match: {httpStatus: 619}, classification: USER_INPUT, cooldown: 20h}
  - {id: first, match: {httpStatus: 620, bodyContains: [tea]}, classification: USER_INPUT}
  - {id: second, match: {httpStatus: 620, bodyContains: [green tea, coffee]}, classification: USER_INPUT}
  - {id: third, match: {httpStatus: 620, bodyContains: [black tea, coffee cup]}, classification: USER_INPUT}
  - {id: fine, match: {httpStatus: 621, bodyContains: [water]}, classification: USER_INPUT}
"#;
    let config =
        "backends: [{name: a, kind: mcp, url: 'http://h/mcp'}]\nrules: {layers: [layer.yaml]}\ncooldown: {max: 12h}\n";
    let desk = Desk::with(&[("layer.yaml", layer), ("toolvane.yaml", config)]);
    let said = desk.run(&["check", "toolvane.yaml", "-o", "json"]);
    let answer = said.json();
    assert_eq!((said.code, &answer["valid"]), (0, &Value::Bool(true)));
    let found: Vec<(&str, &str)> = answer["warnings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|warning| (warning["rule"].as_str().unwrap(), warning["kind"].as_str().unwrap()))
        .collect();
    let expected = [
        ("bare", "bare-number"),
        ("wide", "wide-regex"),
        ("unknown", "unknown-exception"),
        ("long", "long-cooldown"),
        ("second", "shadowed"),
        ("third", "unreachable"),
    ];
    assert_eq!(found, expected, "{answer:#}");
    let lines: Vec<i64> = answer["warnings"].as_array().unwrap().iter().map(|w| w["line"].as_i64().unwrap()).collect();
    assert_eq!(lines, [2, 3, 4, 5, 7, 8]);
}

#[test]
fn a_class_of_its_own_that_is_all_a_rule_asks_for_is_a_warning() {
    let rule = |more: &str| {
        format!(
            "patterns: [{{id: a, match: {{exceptionType: com.foo.BarException{more}}}, classification: UNCLEAR}}]\n"
        )
    };
    let desk = Desk::with(&[("wide.yaml", &rule("")), ("narrow.yaml", &rule(", bodyContains: [bar is shut]"))]);
    let warning = only_warning(&desk, "wide.yaml", "unknown-exception");
    let help = warning["help"].as_str().unwrap();
    assert!(help.contains("any error that came as an answer"), "{help}");
    assert_eq!(warnings(&desk, "narrow.yaml"), serde_json::json!([]));
}

#[test]
fn a_rule_that_takes_everything_before_others_is_reported() {
    let rule = |before: &str| format!("patterns: [{{id: own, {before}match: {{}}, classification: UNCLEAR}}]\n");
    let desk = Desk::with(&[("early.yaml", &rule("before: http-403, ")), ("late.yaml", &rule(""))]);
    let warning = only_warning(&desk, "early.yaml", "catch-all");
    let message = warning["message"].as_str().unwrap();
    assert!(message.starts_with("the rule `own` matches everything: none of the "), "{message}");
    assert_eq!(warnings(&desk, "late.yaml"), serde_json::json!([]));
}

#[test]
fn a_rule_that_asks_for_what_cannot_be_is_reported_with_what_excludes_what() {
    for (clauses, kind, words) in [
        (
            "kind: http, mcpError: true",
            "contradiction",
            "`mcpError` is about MCP answers, and `kind: http` leaves none",
        ),
        ("kind: http, rpcCode: -32001", "contradiction", "`rpcCode` is about MCP answers"),
        ("mcpError: true, rpcCode: -32001", "contradiction", "no answer is both"),
        ("httpStatus: 403, httpStatusRange: [500, 599]", "contradiction", "within `httpStatusRange: [500, 599]`"),
        ("exceptionType: dns, httpStatus: 503", "contradiction", "(dns), and `httpStatus` about an answer"),
        ("exceptionType: [reset, timeout], rpcCode: -32001", "contradiction", "(reset, timeout), and `rpcCode`"),
        ("bodyContains: green tea, not: {bodyContains: tea}", "contradiction", "excludes all that `bodyContains` asks"),
        ("httpStatus: 503, not: {httpStatusRange: [500, 599]}", "contradiction", "excludes all that `httpStatus` asks"),
        (
            "httpStatus: [618, 418], httpStatusRange: [600, 699]",
            "contradiction",
            "`httpStatus: 418` of the rule `own` can never match",
        ),
        ("bodyContains: []", "empty-list", "`bodyContains` of the rule `own` is an empty list, which nothing fits"),
        ("httpStatus: []", "empty-list", "`httpStatus` of the rule `own` is an empty list"),
        ("exceptionType: []", "empty-list", "`exceptionType` of the rule `own` is an empty list"),
        ("header: {retry-after: []}", "empty-list", "`header` of the rule `own` is an empty list"),
        ("httpStatus: 618, not: {bodyContains: []}", "empty-list", "an empty list, which excludes nothing"),
    ] {
        let layer = format!("patterns:\n  - {{id: own, match: {{{clauses}}}, classification: UNCLEAR}}\n");
        let desk = Desk::with(&[("own.yaml", &layer)]);
        let warning = only_warning(&desk, "own.yaml", kind);
        assert!(warning["message"].as_str().unwrap().contains(words), "{words} in {warning:#}");
        assert_eq!((&warning["line"], &warning["column"]), (&2.into(), &10.into()), "{clauses}");
        assert!(warning["help"].is_string(), "{clauses}");
        assert_eq!(desk.run(&["check", "--strict", "own.yaml"]).code, 1);
    }
}

#[test]
fn fields_that_may_hold_together_are_no_contradiction() {
    for clauses in [
        "kind: mcp, mcpError: true, httpStatus: 200",
        "kind: http, httpStatus: [617, 618], httpStatusRange: [600, 699]",
        "exceptionType: body-truncated, httpStatus: 618",
        "exceptionType: com.example.TeaException, rpcCode: -32618",
        "bodyContains: [tea, coffee], httpStatus: 618, not: {bodyContains: green tea}",
        "httpStatusRange: [600, 699], not: {httpStatus: 618}",
    ] {
        let layer = format!(
            "patterns: [{{id: own, before: mcp-session-lost, match: {{{clauses}}}, classification: UNCLEAR}}]\n"
        );
        assert_eq!(warnings(&Desk::with(&[("own.yaml", &layer)]), "own.yaml"), serde_json::json!([]), "{clauses}");
    }
}

#[test]
fn a_needle_of_one_or_two_characters_is_a_warning_unless_its_script_says_much_in_two() {
    let rule = |needle: &str| {
        format!(
            "patterns: [{{id: own, match: {{httpStatus: 618, bodyContains: [\"{needle}\"]}}, classification: UNCLEAR}}]\n"
        )
    };
    for needle in ["x", "no", " e ", "é"] {
        let warning = only_warning(&Desk::with(&[("own.yaml", &rule(needle))]), "own.yaml", "short-needle");
        assert!(warning["message"].as_str().unwrap().ends_with("is very short"), "{warning:#}");
    }
    for needle in ["off", "限流"] {
        assert_eq!(
            warnings(&Desk::with(&[("own.yaml", &rule(needle))]), "own.yaml"),
            serde_json::json!([]),
            "{needle}"
        );
    }
}

#[test]
fn a_rule_of_a_layer_that_leaves_nothing_to_several_bundled_rules_says_how_many_and_which() {
    let rule = |clauses: &str| {
        format!("patterns: [{{id: own, before: mcp-session-lost, match: {{{clauses}}}, classification: UNCLEAR}}]\n")
    };
    let wide = Desk::with(&[("own.yaml", &rule("httpStatusRange: [400, 599]"))]);
    let warning = only_warning(&wide, "own.yaml", "swallows");
    let message = warning["message"].as_str().unwrap();
    assert!(
        message.starts_with("the rule `own` matches all that ") && message.contains(" rules behind it"),
        "{message}"
    );
    assert!(message.contains("`mcp-session-lost`") && message.contains(" more"), "{message}");
    let narrow = Desk::with(&[("own.yaml", &rule("httpStatusRange: [400, 599], bodyContains: tea is out"))]);
    assert_eq!(warnings(&narrow, "own.yaml"), serde_json::json!([]));
}

/// What `check` warns of in a file.
fn warnings(desk: &Desk, file: &str) -> Value {
    desk.run(&["check", file, "-o", "json"]).json()["warnings"].take()
}

/// The one thing, of this kind, that `check` warns of in a file.
fn only_warning(desk: &Desk, file: &str, kind: &str) -> Value {
    let mut warnings = warnings(desk, file);
    assert_eq!((warnings.as_array().map(Vec::len), &warnings[0]["kind"]), (Some(1), &kind.into()), "{warnings:#}");
    warnings[0].take()
}
