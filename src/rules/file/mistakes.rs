//! What is said about mistakes in rule files: messages are part of the product.

use std::sync::Arc;

use super::read;
use crate::yaml::Source;

fn said(text: &str) -> String {
    let source = Arc::new(Source::new("rules.yaml", text));
    match read(&source) {
        Ok(rules) => format!("no problem in {} rules", rules.len()),
        Err(report) => report.to_string(),
    }
}

/// One rule with these lines in place of, or beside, the usual ones.
fn rule(lines: &str) -> String {
    said(&format!("patterns:\n  - id: x\n    classification: USER_INPUT\n    {lines}\n"))
}

fn clause(line: &str) -> String {
    rule(&format!("match:\n      {line}"))
}

#[test]
fn an_unknown_key_is_named_with_what_is_allowed() {
    insta::assert_snapshot!(rule("match: {}\n    severity: high"), @r##"
    error: unknown key `severity`
     --> rules.yaml:5:5
      |
    5 |     severity: high
      |     ^^^^^^^^
      |
      = help: allowed here: id, before, match, signature, classification, cooldown, hintMax, healthAction, scope, dispatchCode, neutral, answer, note, locked, tests
    "##);
}

#[test]
fn a_misspelt_key_is_corrected() {
    insta::assert_snapshot!(rule("match: {}\n    healtAction: none"), @r##"
    error: unknown key `healtAction`
     --> rules.yaml:5:5
      |
    5 |     healtAction: none
      |     ^^^^^^^^^^^ did you mean `healthAction`?
      |
      = help: allowed here: id, before, match, signature, classification, cooldown, hintMax, healthAction, scope, dispatchCode, neutral, answer, note, locked, tests
    "##);
}

#[test]
fn a_misspelt_clause_is_corrected() {
    insta::assert_snapshot!(clause("httpstatus: 401"), @r##"
    error: unknown key `httpstatus`
     --> rules.yaml:5:7
      |
    5 |       httpstatus: 401
      |       ^^^^^^^^^^ did you mean `httpStatus`?
      |
      = help: allowed here: httpStatus, httpStatusRange, exceptionType, bodyContains, errorCode, tool, backend, kind, mcpError, rpcCode, target, header, contentType, json, bodyRegex, quotedStatus, quotedRpcCode, envelope, reasonWords, not
    "##);
}

#[test]
fn a_rule_needs_an_id() {
    insta::assert_snapshot!(said("patterns:\n  - match: {}\n    classification: UNCLEAR\n"), @r##"
    error: the key `id` is missing here
     --> rules.yaml:2:5
      |
    2 |   - match: {}
      |     ^^^^^
      |
      = help: `id`: unique name of the rule, for messages and layers
    "##);
}

#[test]
fn a_rule_needs_a_classification() {
    insta::assert_snapshot!(said("patterns:\n  - id: x\n    match: {}\n"), @r##"
    error: the key `classification` is missing here
     --> rules.yaml:2:5
      |
    2 |   - id: x
      |     ^^
      |
      = help: `classification`: what the failure says about the tool
    "##);
}

#[test]
fn a_rule_needs_a_match() {
    insta::assert_snapshot!(said("patterns:\n  - id: x\n    classification: UNCLEAR\n"), @r##"
    error: the key `match` is missing here
     --> rules.yaml:2:5
      |
    2 |   - id: x
      |     ^^
      |
      = help: `match`: what must hold: fields are ANDed, lists are ORed, `{}` matches everything
    "##);
}

#[test]
fn a_classification_is_one_of_seven() {
    insta::assert_snapshot!(said("patterns:\n  - {id: x, match: {}, classification: USER_INPUTS}\n"), @r##"
    error: `classification` must be one of `TECHNICALLY_BROKEN`, `USER_SPECIFIC_TECHNICAL`, `USER_PERMISSION`, `USER_INPUT`, `INTERMITTENT`, `WORKING`, `UNCLEAR`, not `USER_INPUTS`
     --> rules.yaml:2:40
      |
    2 |   - {id: x, match: {}, classification: USER_INPUTS}
      |                                        ^^^^^^^^^^^ did you mean `USER_INPUT`?
    "##);
}

#[test]
fn a_health_action_is_one_of_three() {
    insta::assert_snapshot!(rule("match: {}\n    healthAction: markDown"), @r##"
    error: `healthAction` must be one of `none`, `markUnavailable`, `markDegraded`, not `markDown`
     --> rules.yaml:5:19
      |
    5 |     healthAction: markDown
      |                   ^^^^^^^^
    "##);
}

#[test]
fn an_id_stands_once_in_a_file() {
    insta::assert_snapshot!(said("patterns:\n  - {id: x, match: {}, classification: UNCLEAR}\n  - {id: x, match: {}, classification: UNCLEAR}\n"), @r##"
    error: the id `x` is taken by the rule on line 2
     --> rules.yaml:3:10
      |
    3 |   - {id: x, match: {}, classification: UNCLEAR}
      |          ^
      |
      = help: ids are unique within a file; give this rule another one or remove one of the two
    "##);
}

#[test]
fn a_status_is_a_number() {
    insta::assert_snapshot!(clause("httpStatus: 5xx"), @r##"
    error: `httpStatus` must be a number such as 401, not `5xx`
     --> rules.yaml:5:19
      |
    5 |       httpStatus: 5xx
      |                   ^^^
      |
      = help: write `httpStatusRange: [500, 599]` for all of a kind
    "##);
}

#[test]
fn a_status_has_three_digits() {
    insta::assert_snapshot!(clause("httpStatus: [401, 4030]"), @r##"
    error: an item of `httpStatus` must be between 100 and 999, not 4030
     --> rules.yaml:5:25
      |
    5 |       httpStatus: [401, 4030]
      |                         ^^^^
    "##);
}

#[test]
fn a_range_starts_with_its_lower_end() {
    insta::assert_snapshot!(clause("httpStatusRange: [599, 500]"), @r##"
    error: `httpStatusRange` must start with the lower end, not with 599 above 500
     --> rules.yaml:5:24
      |
    5 |       httpStatusRange: [599, 500]
      |                        ^^^^^^^^^^
    "##);
}

#[test]
fn a_range_has_two_ends() {
    insta::assert_snapshot!(clause("httpStatusRange: [500]"), @r##"
    error: `httpStatusRange` must have two ends such as [500, 599], not 1
     --> rules.yaml:5:24
      |
    5 |       httpStatusRange: [500]
      |                        ^^^^^
    "##);
}

#[test]
fn a_kind_of_fault_is_suggested() {
    insta::assert_snapshot!(clause("exceptionType: [connection-refused]"), @r##"
    error: an item of `exceptionType` must be a kind of fault such as `connect-refused`, or the class name of an exception, not `connection-refused`: did you mean `connect-refused`?
     --> rules.yaml:5:23
      |
    5 |       exceptionType: [connection-refused]
      |                       ^^^^^^^^^^^^^^^^^^
    "##);
}

#[test]
fn an_unknown_kind_of_fault_gets_the_list() {
    insta::assert_snapshot!(clause("exceptionType: oops"), @r##"
    error: `exceptionType` must be a kind of fault such as `connect-refused`, or the class name of an exception, not `oops`: known are connect-refused, dns, tls, reset, timeout, body-truncated, stream-ended, child-exited, protocol
     --> rules.yaml:5:22
      |
    5 |       exceptionType: oops
      |                      ^^^^
    "##);
}

#[test]
fn a_needle_is_a_text() {
    insta::assert_snapshot!(clause("bodyContains: [403]"), @r##"
    error: an item of `bodyContains` must be a text, not `403`
     --> rules.yaml:5:22
      |
    5 |       bodyContains: [403]
      |                      ^^^
      |
      = help: put it in quotes
    "##);
}

#[test]
fn a_needle_is_not_blank() {
    insta::assert_snapshot!(clause("bodyContains: ' '"), @r##"
    error: `bodyContains` must have 1 to 1000 bytes that are not all spaces
     --> rules.yaml:5:21
      |
    5 |       bodyContains: ' '
      |                     ^^^
    "##);
}

#[test]
fn a_code_has_a_letter_or_digit() {
    insta::assert_snapshot!(clause("errorCode: '*'"), @r##"
    error: `errorCode` must be a code such as `rate_limited` or `*throttl*`, not `*`: it needs a letter or digit
     --> rules.yaml:5:18
      |
    5 |       errorCode: '*'
      |                  ^^^
    "##);
}

#[test]
fn a_regex_that_does_not_parse() {
    insta::assert_snapshot!(clause("bodyRegex: '(?i)rate(limit'"), @r##"
    error: `bodyRegex` must be a regex, not `(?i)rate(limit`: unclosed group
     --> rules.yaml:5:18
      |
    5 |       bodyRegex: '(?i)rate(limit'
      |                  ^^^^^^^^^^^^^^^^
    "##);
}

#[test]
fn look_around_is_not_linear() {
    insta::assert_snapshot!(clause("bodyRegex: '(?=x)y'"), @r##"
    error: `bodyRegex` must be a regex, not `(?=x)y`: look-around, including look-ahead and look-behind, is not supported
     --> rules.yaml:5:18
      |
    5 |       bodyRegex: '(?=x)y'
      |                  ^^^^^^^^
    "##);
}

#[test]
fn a_regex_that_matches_everything() {
    insta::assert_snapshot!(clause("bodyRegex: 'a*'"), @r##"
    error: `bodyRegex` must be a regex, not `a*`: it matches every text, also an empty one
     --> rules.yaml:5:18
      |
    5 |       bodyRegex: 'a*'
      |                  ^^^^
    "##);
}

#[test]
fn a_regex_that_grows_too_large() {
    insta::assert_snapshot!(clause("bodyRegex: '(\\\\w{500}){500}'"), @r##"
    error: `bodyRegex` must be a regex, not `(\\\\w{500}){500}`: it is too large once compiled; narrow its repetitions
     --> rules.yaml:5:18
      |
    5 |       bodyRegex: '(\\w{500}){500}'
      |                  ^^^^^^^^^^^^^^^^^
    "##);
}

#[test]
fn a_header_name_without_spaces() {
    insta::assert_snapshot!(clause("header: {'x header': 'y'}"), @r##"
    error: this is not the name of a header field
     --> rules.yaml:5:16
      |
    5 |       header: {'x header': 'y'}
      |                ^^^^^^^^^^
    "##);
}

#[test]
fn absence_is_said_by_not() {
    insta::assert_snapshot!(clause("header: {x-a: false}"), @r##"
    error: `false` says nothing here, a value is a text
     --> rules.yaml:5:21
      |
    5 |       header: {x-a: false}
      |                     ^^^^^
      |
      = help: write `"false"` for the value false; what must be absent goes under `not` with `true`
    "##);
}

#[test]
fn a_json_pointer_starts_with_a_slash() {
    insta::assert_snapshot!(clause("json: {error.code: x}"), @r##"
    error: a JSON pointer starts with `/`, such as `/error/code`
     --> rules.yaml:5:14
      |
    5 |       json: {error.code: x}
      |              ^^^^^^^^^^
    "##);
}

#[test]
fn an_empty_not_says_nothing() {
    insta::assert_snapshot!(clause("not: {}"), @r##"
    error: `not` must name at least one field
     --> rules.yaml:5:12
      |
    5 |       not: {}
      |            ^^
    "##);
}

#[test]
fn not_does_not_nest() {
    insta::assert_snapshot!(clause("not: {not: {httpStatus: 500}}"), @r##"
    error: unknown key `not`
     --> rules.yaml:5:13
      |
    5 |       not: {not: {httpStatus: 500}}
      |             ^^^
      |
      = help: allowed here: httpStatus, httpStatusRange, exceptionType, bodyContains, errorCode, tool, backend, kind, mcpError, rpcCode, target, header, contentType, json, bodyRegex, quotedStatus, quotedRpcCode, envelope, reasonWords
    "##);
}

#[test]
fn a_cooldown_is_a_duration_or_a_hint() {
    insta::assert_snapshot!(rule("match: {}\n    cooldown: soon"), @r##"
    error: `cooldown` must be a duration such as `30s` or `PT24H`, `hint`, or `header:<name>`, not `soon`
     --> rules.yaml:5:15
      |
    5 |     cooldown: soon
      |               ^^^^
    "##);
}

#[test]
fn a_cooldown_has_a_unit() {
    insta::assert_snapshot!(rule("match: {}\n    cooldown: 30"), @r##"
    error: `cooldown` must be a duration with its unit, not `30`
     --> rules.yaml:5:15
      |
    5 |     cooldown: 30
      |               ^^
      |
      = help: write `30s` for seconds
    "##);
}

#[test]
fn a_cooldown_has_bounds() {
    insta::assert_snapshot!(rule("match: {}\n    cooldown: 48h"), @r##"
    error: `cooldown` must be a duration such as `30s` or `PT24H`, `hint`, or `header:<name>`, not `48h`: 1s to 24h is allowed
     --> rules.yaml:5:15
      |
    5 |     cooldown: 48h
      |               ^^^
    "##);
}

#[test]
fn a_cooldown_header_has_a_name() {
    insta::assert_snapshot!(rule("match: {}\n    cooldown: 'header:'"), @r##"
    error: `cooldown` must be a duration such as `30s` or `PT24H`, `hint`, or `header:<name>`, not `header:`: the name of a header field follows `header:`
     --> rules.yaml:5:15
      |
    5 |     cooldown: 'header:'
      |               ^^^^^^^^^
    "##);
}

#[test]
fn a_hint_reaches_a_day_at_most() {
    insta::assert_snapshot!(rule("match: {}\n    hintMax: 2d"), @r##"
    error: `hintMax` must be between 1s and 24h, not `2d`
     --> rules.yaml:5:14
      |
    5 |     hintMax: 2d
      |              ^^
    "##);
}

#[test]
fn a_scope_is_in_capitals() {
    insta::assert_snapshot!(rule("match: {}\n    scope: user"), @r##"
    error: `scope` must be one of `SESSION`, `USER`, `PROJECT`, `TENANT`, `GLOBAL`, not `user`
     --> rules.yaml:5:12
      |
    5 |     scope: user
      |            ^^^^ did you mean `USER`?
    "##);
}

#[test]
fn a_signature_holds_no_spaces() {
    insta::assert_snapshot!(rule("match: {}\n    signature: 'status {status}'"), @r##"
    error: `signature` must be a name such as `http-403`, not `status {status}`: letters, digits, `.`, `_`, `:` and `-` are allowed
     --> rules.yaml:5:16
      |
    5 |     signature: 'status {status}'
      |                ^^^^^^^^^^^^^^^^^
    "##);
}

#[test]
fn the_callers_own_faults_mark_nothing() {
    insta::assert_snapshot!(rule("match: {}\n    healthAction: markUnavailable"), @r##"
    error: USER_INPUT never changes a status, so `healthAction` must be `none`
     --> rules.yaml:5:19
      |
    5 |     healthAction: markUnavailable
      |                   ^^^^^^^^^^^^^^^
      |
      = help: leave `healthAction` out, or choose the classification that the failure deserves
    "##);
}

#[test]
fn text_of_a_success_is_read_for_named_tools_only() {
    insta::assert_snapshot!(clause("{httpStatus: 200, bodyContains: error}"), @r##"
    error: text of a successful answer is read only for a named `tool` or `backend`
     --> rules.yaml:5:7
      |
    5 |       {httpStatus: 200, bodyContains: error}
      |       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: name the tool or backend, or look at `json`, `header` or `errorCode`: a result that talks about an error is a success
    "##);
}

#[test]
fn a_flag_is_true_or_false() {
    insta::assert_snapshot!(clause("mcpError: yes"), @r##"
    error: `mcpError` must be true or false, not `yes`
     --> rules.yaml:5:17
      |
    5 |       mcpError: yes
      |                 ^^^
      |
      = help: write `true`
    "##);
}

#[test]
fn the_rules_are_a_list() {
    insta::assert_snapshot!(said("patterns: {id: x}\n"), @r##"
    error: `patterns` must be a list, not a map
     --> rules.yaml:1:11
      |
    1 | patterns: {id: x}
      |           ^^^^^^^
    "##);
}

#[test]
fn all_problems_of_a_rule_come_at_once() {
    insta::assert_snapshot!(said("patterns:\n  - id: a b\n    match: {httpStatus: ok}\n    classification: WRONG\n    cooldown: 1y\n"), @r##"
    error: `id` must be a name such as `http-403`, not `a b`: letters, digits, `.`, `_`, `:` and `-` are allowed
     --> rules.yaml:2:9
      |
    2 |   - id: a b
      |         ^^^

    error: `httpStatus` must be a number such as 401, not `ok`
     --> rules.yaml:3:25
      |
    3 |     match: {httpStatus: ok}
      |                         ^^
      |
      = help: write `httpStatusRange: [500, 599]` for all of a kind

    error: `classification` must be one of `TECHNICALLY_BROKEN`, `USER_SPECIFIC_TECHNICAL`, `USER_PERMISSION`, `USER_INPUT`, `INTERMITTENT`, `WORKING`, `UNCLEAR`, not `WRONG`
     --> rules.yaml:4:21
      |
    4 |     classification: WRONG
      |                     ^^^^^

    error: `cooldown` must be a duration such as `30s` or `PT24H`, `hint`, or `header:<name>`, not `1y`
     --> rules.yaml:5:15
      |
    5 |     cooldown: 1y
      |               ^^
    "##);
}

#[test]
fn a_test_says_match_or_no_match() {
    insta::assert_snapshot!(rule("match: {}\n    tests: [{status: 401, expect: yes}]"), @r##"
    error: `expect` must be one of `match`, `no-match`, not `yes`
     --> rules.yaml:5:35
      |
    5 |     tests: [{status: 401, expect: yes}]
      |                                   ^^^
    "##);
}

#[test]
fn a_test_describes_an_outcome_that_there_is() {
    insta::assert_snapshot!(rule("match: {}\n    tests: [{kind: http, rpcCode: 7, expect: match}]"), @r##"
    error: there is no such outcome: a backend of kind http gives no MCP result and no JSON-RPC error
     --> rules.yaml:5:13
      |
    5 |     tests: [{kind: http, rpcCode: 7, expect: match}]
      |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    "##);
}
