//! The commands for people who write rules, as a shell sees them: what goes in, what comes out on which stream, and the exit
//! code.

mod lints;

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// What a command came to.
#[derive(Debug)]
struct Said {
    code: i32,
    data: String,
    words: String,
}

impl Said {
    fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }
}

/// A directory with files to work on.
struct Desk(TempDir);

impl Desk {
    fn with(files: &[(&str, &str)]) -> Desk {
        let desk = Desk(tempfile::tempdir().unwrap());
        for (name, text) in files {
            let path = desk.path(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        desk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Runs toolvane here, with a text on its standard input.
    fn run_with(&self, arguments: &[&str], input: &str) -> Said {
        let mut child = Command::new(env!("CARGO_BIN_EXE_toolvane"))
            .args(arguments)
            .current_dir(self.0.path())
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Whoever does not read its input may be gone already.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let output = child.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Said { code: output.status.code().unwrap(), data: text(output.stdout), words: text(output.stderr) }
    }

    fn run(&self, arguments: &[&str]) -> Said {
        self.run_with(arguments, "")
    }
}

const LAYER: &str = r#"patterns:
  - id: quota
    match: {httpStatus: 618, bodyContains: ["used up"]}
    signature: quota
    classification: INTERMITTENT
    cooldown: 10m
    tests:
      - {status: 618, body: "all used up", expect: match}
      - {status: 618, body: "tea", expect: no-match}
"#;

#[test]
fn tests_that_hold_are_fine_and_each_one_that_does_not_is_named_with_its_place_and_reason() {
    let broken = LAYER.replace("\"all used up\"", "\"all is well\"");
    let desk = Desk::with(&[("good.yaml", LAYER), ("bad.yaml", &broken)]);
    let good = desk.run(&["test", "good.yaml"]);
    assert_eq!((good.code, good.data.as_str(), good.words.as_str()), (0, "", "2 tests, 0 failed\n"));
    let bad = desk.run(&["test", "bad.yaml"]);
    assert_eq!(bad.code, 1);
    assert!(bad.data.starts_with("bad.yaml:8:9: quota test 1: its own `bodyContains` does not hold; "), "{bad:?}");
    assert!(bad.words.contains("untested: no test hits the rule `quota`"), "{bad:?}");
    assert!(bad.words.ends_with("2 tests, 1 failed\n"), "{bad:?}");
}

#[test]
fn the_bundled_table_passes_its_own_tests() {
    let said = Desk::with(&[]).run(&["test", "-o", "json"]);
    let answer = said.json();
    assert_eq!((said.code, &answer["failed"]), (0, &Value::from(0)), "{}", said.words);
    assert!(answer["passed"].as_u64().unwrap() > 100);
}

#[test]
fn a_rule_behind_one_that_takes_all_of_it_is_reported_as_unreachable() {
    let layer = "patterns:\n  - {id: late, match: {httpStatus: 403, kind: http, bodyContains: quota}, classification: INTERMITTENT}\n";
    let desk = Desk::with(&[("late.yaml", layer)]);
    let said = desk.run(&["test", "late.yaml", "-o", "json"]);
    let answer = said.json();
    assert_eq!(answer["unreachable"][0]["rule"], "late");
    assert_eq!(answer["untested"][0], "late");
    assert_eq!(said.code, 0, "a gap is no failure");
    let check = desk.run(&["check", "late.yaml"]);
    assert_eq!(check.code, 0);
    assert!(check.words.contains("warning: the rule `late` can never decide"), "{check:?}");
    let advice = check.words.split_once("goes right before `fallback`").expect("advice").1;
    let by = advice.split_once("add `before: ").and_then(|(_, rest)| rest.split_once('`')).expect("a rule").0;
    assert_eq!(desk.run(&["check", "--strict", "late.yaml"]).code, 1);
    let taken = Desk::with(&[("late.yaml", &layer.replace("id: late,", &format!("id: late, before: {by},")))]);
    assert_eq!(taken.run(&["check", "--strict", "late.yaml"]).code, 0, "what is advised helps");
    assert_eq!(taken.run(&["test", "late.yaml", "-o", "json"]).json()["unreachable"], serde_json::json!([]));
}

#[test]
fn a_rule_before_one_that_is_not_there_is_refused_by_every_command_that_reads_rules() {
    let layer = "patterns:\n  - {id: own, before: http-4O3, match: {httpStatus: 403}, classification: INTERMITTENT}\n";
    let config = "backends: [{name: a, kind: mcp, url: 'http://127.0.0.1:1/mcp'}]\nrules: {layers: [own.yaml]}\n";
    let desk = Desk::with(&[("own.yaml", layer), ("toolvane.yaml", config)]);
    for arguments in [
        &["check", "own.yaml"][..],
        &["check", "toolvane.yaml"],
        &["test", "own.yaml"],
        &["explain", "--rules", "own.yaml", "--status", "403"],
    ] {
        let said = desk.run(arguments);
        assert_eq!(said.code, 78, "{arguments:?}: {said:?}");
        assert!(said.words.contains("own.yaml:2:23") && said.words.contains("did you mean `http-403`?"), "{said:?}");
    }
}

#[test]
fn cases_say_what_must_come_of_an_outcome_field_by_field() {
    let cases = r#"cases:
  - name: our quota
    status: 618
    body: used up
    expect: {rule: quota, signature: quota, classification: INTERMITTENT, scope: PROJECT, dispatchCode: BACKEND_FAILED}
  - status: 204
    expect: {classification: WORKING}
  - name: wrong
    status: 403
    expect: {rule: quota, classification: USER_PERMISSION}
"#;
    let desk = Desk::with(&[("layer.yaml", LAYER), ("cases.yaml", cases)]);
    let said = desk.run(&["test", "layer.yaml", "cases.yaml"]);
    assert_eq!(said.code, 1);
    assert!(said.data.starts_with("cases.yaml:8:5: cases.yaml wrong: rule is "), "{said:?}");
    assert!(said.data.trim_end().ends_with("not quota"), "{said:?}");
    assert_eq!(said.data.lines().count(), 1, "{said:?}");
    assert!(said.words.ends_with("5 tests, 1 failed\n"), "{said:?}");
}

#[test]
fn the_example_on_the_page_of_cases_holds() {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/reference/cases.md")).unwrap();
    let example = page.split_once("```yaml\n").and_then(|(_, rest)| rest.split_once("```")).expect("an example").0;
    let said = Desk::with(&[("cases.yaml", example)]).run(&["test", "cases.yaml"]);
    assert_eq!((said.code, said.words.as_str()), (0, "3 tests, 0 failed\n"), "{said:?}");
}

#[test]
fn junit_names_every_test_and_the_failures() {
    let broken = LAYER.replace("\"all used up\"", "\"a < b & c\"");
    let said = Desk::with(&[("bad.yaml", &broken)]).run(&["test", "bad.yaml", "-o", "junit"]);
    assert_eq!(said.code, 1);
    for expected in [
        "<testsuites name=\"toolvane test\" tests=\"2\" failures=\"1\">",
        "<testsuite name=\"quota\" tests=\"2\" failures=\"1\">",
        "<testcase classname=\"quota\" name=\"test 1\" file=\"bad.yaml\" line=\"8\"><failure message=\"its own",
        "<testcase classname=\"quota\" name=\"test 2\" file=\"bad.yaml\" line=\"9\"/>",
    ] {
        assert!(said.data.contains(expected), "{expected} in {}", said.data);
    }
}

#[test]
fn files_that_cannot_be_read_as_rules_exit_with_78_and_a_caret() {
    let desk = Desk::with(&[("bad.yaml", "patterns:\n  - {id: x, match: {}, classification: NONE}\n")]);
    for arguments in [
        ["test", "bad.yaml"].as_slice(),
        &["test", "gone.yaml"],
        &["explain", "--rules", "bad.yaml", "--status", "403"],
        &["replay", "--rules", "bad.yaml", "-"],
        &["classify", "--rules", "bad.yaml"],
        &["check", "bad.yaml"],
    ] {
        let said = desk.run(arguments);
        assert_eq!((said.code, said.data.as_str()), (78, ""), "{arguments:?} {said:?}");
        assert!(said.words.contains("--> bad.yaml:2:") || said.words.contains("cannot read the file"), "{said:?}");
    }
}

#[test]
fn an_outcome_in_flags_is_explained_with_the_first_clause_that_failed_in_each_earlier_rule() {
    let desk = Desk::with(&[("layer.yaml", LAYER)]);
    let arguments = ["explain", "--rules", "layer.yaml", "--status", "618", "--body", "All USED up", "--tool", "brew"];
    let table = desk.run(&arguments);
    assert_eq!((table.code, table.words.as_str()), (0, ""));
    for expected in ["decided by", "quota (layer.yaml:2:9)", "INTERMITTENT", "written to", "PROJECT", "10m"] {
        assert!(table.data.contains(expected), "{expected} in {}", table.data);
    }
    let json = desk.run(&[&arguments[..], &["-o", "json"]].concat()).json();
    assert_eq!(json["explanation"]["basis"], "rule");
    assert_eq!(json["explanation"]["verdict"]["finding"]["rule"], "quota");
    assert_eq!(json["place"], "layer.yaml:2:9");
    assert_eq!(json["forecast"]["cooldownSeconds"], 600);
    let earlier = json["explanation"]["earlier"].as_array().unwrap();
    assert!(earlier.len() > 50);
    let clause = |rule: &str| earlier.iter().find(|unmet| unmet["rule"] == rule).unwrap()["clause"].clone();
    assert_eq!(clause("mcp-session-lost"), "httpStatus");
    assert!(earlier.iter().all(|unmet| unmet["rule"] != "fallback"));
}

#[test]
fn what_follows_is_what_the_state_machine_does() {
    let desk = Desk::with(&[]);
    let forecast = |arguments: &[&str]| {
        let said = desk.run(&[&["explain", "-o", "json"][..], arguments].concat());
        said.json()["forecast"].clone()
    };
    let broken = forecast(&["--status", "500"]);
    assert_eq!((&broken["status"], &broken["then"]["status"]), (&Value::from("OK"), &Value::from("DOWN")));
    assert_eq!(broken["then"]["outcomes"], 5);
    let denied = forecast(&["--status", "403"]);
    assert_eq!((&denied["status"], &denied["then"]), (&Value::from("OK"), &Value::Null));
    assert_eq!((&denied["scope"], &denied["cooldownSeconds"]), (&Value::from("USER"), &Value::from(86_400)));
    assert_eq!(forecast(&["--exception", "connect-refused"])["confirmsBackend"], true);
    assert_eq!(forecast(&["--exception", "java.net.ConnectException"])["confirmsBackend"], true);
}

#[test]
fn a_saved_case_and_a_log_line_are_explained_too() {
    let case = "{\n \"id\": 1,\n \"response\": {\"status\": 403, \"headers\": {}, \"body\": \"\"}\n}\n";
    let desk = Desk::with(&[("case.json", case)]);
    let by_case = desk.run(&["explain", "--case", "case.json", "-o", "json"]).json();
    let rule = by_case["explanation"]["verdict"]["finding"]["rule"].as_str().unwrap().to_owned();
    assert_eq!(desk.run_with(&["explain", "--case", "-", "-o", "json"], case).json(), by_case);
    for line in [
        format!(
            "{{\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"level\":\"DEBUG\",\"message\":\"call ended\",\"tool\":\"t\",\"rule\":\"{rule}\"}}"
        ),
        format!("2026-01-01T00:00:00.000Z DEBUG toolvane::call: call ended tool=t rule=\"{rule}\" duration_ms=3"),
    ] {
        let said = desk.run(&["explain", "-o", "json", "--log", &line]);
        assert_eq!((said.code, said.json()["rule"].as_str().unwrap()), (0, rule.as_str()));
    }
    let changed = format!("call ended classification=UNCLEAR rule={rule}");
    assert_eq!(desk.run_with(&["explain", "--log", "-", "-o", "json"], &changed).json()["unchanged"], false);
    let gone = desk.run(&["explain", "--log", "call ended rule=long-gone"]);
    assert_eq!(gone.code, 1);
    assert!(gone.words.contains("no rule has the id `long-gone`"), "{gone:?}");
}

#[test]
fn wrong_usage_exits_with_2_and_says_what_to_write() {
    let desk = Desk::with(&[("two.json", "{\"id\":1}\n{\"id\":2}\n")]);
    for (arguments, expected) in [
        (["explain"].as_slice(), "one of --status, --mcp-error, --rpc-code and --exception"),
        (&["explain", "--exception", "connect-refussed"], "did you mean `connect-refused`?"),
        (&["explain", "--status", "403", "--header", "nonsense"], "is no field such as `retry-after: 30`"),
        (&["explain", "--status", "12"], "12 is not in 100..=999"),
        (&["explain", "--kind", "http", "--rpc-code", "-32001"], "kind http gives no MCP result and no JSON-RPC error"),
        (&["explain", "--kind", "http", "--mcp-error"], "kind http gives no MCP result"),
        (&["explain", "--mcp-error", "--rpc-code", "-32001"], "an MCP result or a JSON-RPC error, not both"),
        (&["explain", "--exception", "dns", "--status", "503"], "a status comes with an answer"),
        (&["explain", "--exception", "timeout", "--mcp-error"], "with the fault timeout none does"),
        (&["explain", "--case", "gone.json"], "cannot read gone.json"),
        (&["explain", "--case", "two.json", "--status", "403"], "cannot be used with"),
        (&["replay"], "<FILE>"),
        (&["replay", "gone.jsonl"], "cannot read gone.jsonl"),
        (&["run"], "--config"),
        (&["run"], "--backend http://127.0.0.1:9000/mcp"),
    ] {
        let said = desk.run(arguments);
        assert_eq!((said.code, said.data.as_str()), (2, ""), "{arguments:?} {said:?}");
        assert!(said.words.contains(expected), "{expected} in {said:?}");
    }
    let two = desk.run(&["explain", "--case", "two.json"]);
    assert_eq!(two.code, 1, "{two:?}");
    assert!(two.words.contains("must hold one case"), "{two:?}");
}

#[test]
fn a_bad_line_of_cases_is_named_by_its_own_number_and_column() {
    let said = Desk::with(&[]).run_with(&["classify"], "\n{\"id\": 1, \"response\": 7}\n{\"id\"\n");
    assert_eq!(said.code, 1);
    let words: Vec<&str> = said.words.lines().collect();
    assert!(
        words[0].starts_with("line 2: not a case: `response`: invalid type: integer `7`, expected an object of"),
        "{said:?}"
    );
    assert!(words[0].ends_with("at column 23"), "{said:?}");
    assert!(words[1] == "line 3: not a case: EOF while parsing an object, at column 5", "{said:?}");
    assert!(!said.words.contains("line 1"), "{said:?}");
}

#[test]
fn a_member_that_cases_do_not_have_is_refused_by_name_with_those_that_they_have() {
    let desk = Desk::with(&[]);
    for (case, words) in [
        (
            r#"{"response": {"status": 500, "bdy": "x"}}"#,
            "`response.bdy`: unknown field `bdy`, expected one of `status`, `headers`, `body`",
        ),
        (r#"{"exchange": {"stats": 500}}"#, "unknown field `stats`, expected one of `status`, `headers`, `body`"),
        (
            r#"{"transport": {"kind": "timeout", "detial": "x"}}"#,
            "unknown field `detial`, expected one of `kind`, `detail`",
        ),
        (r#"{"outcome": {"status": 500, "txt": "x"}}"#, "unknown field `txt`, expected one of `backend`, `tool`"),
        (
            r#"{"response": {"status": 500}, "argumnets": {}}"#,
            "unknown member `argumnets`, did you mean `arguments`? Read are `id`",
        ),
    ] {
        for arguments in [&["explain", "--case", "-"][..], &["classify"], &["replay", "-"]] {
            let said = desk.run_with(arguments, case);
            assert_eq!(said.code, 1, "{arguments:?} {said:?}");
            assert!(said.words.contains(words), "{words} in {said:?}");
        }
    }
    let labelled =
        r#"{"id": 1, "response": {"status": 500}, "expect": {}, "origin": "x", "wire": "stdio", "tags": []}"#;
    assert_eq!(desk.run_with(&["classify"], labelled).code, 0, "what is no misspelt member is its writer's own");
}

#[test]
fn an_mcp_answer_without_a_content_type_is_read_as_what_it_looks_like() {
    let body =
        r#"{"jsonrpc":"2.0","id":1,"result":{"isError":true,"content":[{"type":"text","text":"permission denied"}]}}"#;
    let desk = Desk::with(&[]);
    let said = |status: u16, headers: Value, body: &str| {
        let exchange = serde_json::json!({"status": status, "headers": headers, "body": body});
        let case = serde_json::json!({"id": 1, "server": "s", "tool": "t", "exchange": exchange}).to_string();
        desk.run_with(&["classify"], &case).json()["signature"].clone()
    };
    let none = serde_json::json!({});
    let json = said(200, serde_json::json!({"content-type": "application/json"}), body);
    assert_eq!(said(200, none.clone(), body), json);
    assert_eq!(said(200, none.clone(), &format!("event: message\ndata: {body}\n\n")), json);
    assert_eq!(said(200, none, "<p>Sign in</p>"), "bad-answer");
    assert_eq!(said(200, serde_json::json!({"content-type": "text/plain"}), body), "bad-answer");
}

#[test]
fn a_program_that_reads_is_told_of_broken_files_in_its_own_form() {
    let desk =
        Desk::with(&[("layer.yaml", "patterns:\n  - {id: a, mach: {httpStatus: 500}, classification: UNCLEAR}\n")]);
    for arguments in [
        &["test", "layer.yaml", "-o", "json"][..],
        &["explain", "--rules", "layer.yaml", "--status", "500", "-o", "json"],
        &["replay", "layer.yaml", "--rules", "layer.yaml", "-o", "json"],
    ] {
        let said = desk.run(arguments);
        let answer = said.json();
        assert_eq!((said.code, &answer["valid"]), (78, &Value::Bool(false)), "{arguments:?}");
        let problem = &answer["problems"][0];
        assert_eq!((&problem["file"], &problem["line"]), (&"layer.yaml".into(), &2.into()), "{arguments:?}");
        assert!(said.words.contains("did you mean `match`?"), "{said:?}");
    }
    let junit = desk.run(&["test", "layer.yaml", "-o", "junit"]);
    assert_eq!(junit.code, 78);
    assert!(junit.data.contains("<testcase classname=\"files\" name=\"layer.yaml:2:13\""), "{}", junit.data);
    assert!(junit.data.contains("<error message=\"unknown key"), "{}", junit.data);
}

/// A line of a recording: an answer with status 500, and what was judged of it.
fn recorded(second: u32) -> String {
    format!(
        "{{\"at\":\"2026-01-01T00:00:{second:02}.000Z\",\"tookMs\":5,\"caller\":{{\"user\":\"u\",\"project\":\"p\",\"tenant\":\"t\"}},\
         \"outcome\":{{\"backend\":\"b\",\"tool\":\"brew\",\"kind\":\"http\",\"status\":500,\"answer\":\"none\",\"text\":\"used up\"}},\
         \"verdict\":{{\"kind\":\"failure\",\"finding\":{{\"rule\":\"old\",\"signature\":\"http-500\",\"classification\":\"TECHNICALLY_BROKEN\",\
         \"dispatchCode\":\"BACKEND_FAILED\",\"healthAction\":\"none\",\"scope\":null,\"cooldown\":null,\"hint\":null,\"evidence\":\"down\",\
         \"disproves\":\"transport\",\"credentialFault\":false,\"answerAsResult\":false,\"note\":null}}}}}}"
    )
}

#[test]
fn a_replay_names_each_decision_and_each_change_of_status_that_these_rules_change() {
    let recording: String = (0..8).map(|second| recorded(second) + "\n").collect();
    let layer =
        "patterns:\n  - {id: http-500, match: {httpStatus: 500, bodyContains: used up}, classification: USER_INPUT}\n";
    let first = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/config/error-patterns.yaml")).unwrap();
    // Takes the place of the first bundled rule, so that it comes before whatever else knows these words.
    let id = first.lines().find_map(|line| line.trim().strip_prefix("- id: ")).unwrap();
    let desk =
        Desk::with(&[("recording.jsonl", &recording), ("layer.yaml", &layer.replace("http-500,", &format!("{id},")))]);
    let said = desk.run(&["replay", "recording.jsonl", "--rules", "layer.yaml", "-o", "json"]);
    let answer = said.json();
    assert_eq!((said.code, said.words.as_str()), (0, "8 outcomes, 8 judged otherwise\n"));
    let change = &answer["changes"][0];
    assert_eq!((&change["outcomes"], &change["firstLine"], &change["tool"]), (&8.into(), &1.into(), &"brew".into()));
    assert_eq!((&change["before"]["rule"], &change["after"]["classification"]), (&"old".into(), &"USER_INPUT".into()));
    let gone = &answer["transitions"]["gone"];
    assert_eq!((&gone[0]["to"], &gone[0]["at"]), (&"DOWN".into(), &"2026-01-01T00:00:04.000Z".into()));
    assert_eq!(answer["transitions"]["new"], Value::Array(Vec::new()));
    let table = desk.run(&["replay", "recording.jsonl", "--rules", "layer.yaml"]);
    assert!(table.data.contains("no longer") && table.data.contains("OK → DOWN"), "{table:?}");
    assert!(table.data.contains("kind failure → neutral"), "{table:?}");
    let bad = desk.run_with(&["replay", "-"], "nonsense\n");
    assert_eq!(bad.code, 1);
    assert!(bad.words.starts_with("line 1: not a case"), "{bad:?}");
}

#[test]
fn a_replay_says_what_differs_where_rule_and_classification_stay() {
    let layer = "patterns: [{id: old, before: mcp-session-lost, match: {httpStatus: 500}, signature: http-500, \
                 classification: TECHNICALLY_BROKEN, cooldown: 5m, scope: GLOBAL}]\n";
    let desk = Desk::with(&[("recording.jsonl", &recorded(0)), ("layer.yaml", layer)]);
    let said = desk.run(&["replay", "recording.jsonl", "--rules", "layer.yaml", "-o", "json"]);
    let expected = serde_json::json!({"cooldown": ["-", "5m"], "scope": ["-", "GLOBAL"]});
    assert_eq!(said.json()["changes"][0]["differs"], expected, "{said:?}");
}

#[test]
fn a_key_that_stands_twice_in_a_rule_file_is_told_as_that_alone() {
    let layer = "patterns:\n  - id: own\n    match: {httpStatus: 618}\n    match: {httpStatus: 619}\n    classification: UNCLEAR\n";
    let cases = "cases:\n  - {status: 618, status: 619, expect: {rule: own}}\n";
    let desk = Desk::with(&[("own.yaml", layer), ("cases.yaml", cases)]);
    for (command, file, place) in [
        ("check", "own.yaml", "own.yaml:4:5"),
        ("test", "own.yaml", "own.yaml:4:5"),
        ("check", "cases.yaml", "cases.yaml:2:19"),
    ] {
        let said = desk.run(&[command, file]);
        assert_eq!(said.code, 78, "{said:?}");
        assert!(said.words.contains(place) && said.words.contains("stands here twice"), "{said:?}");
        assert_eq!(said.words.matches("error: ").count(), 1, "{said:?}");
    }
}

#[test]
fn rule_files_that_are_checked_together_are_laid_over_each_other_as_when_they_are_tested() {
    let base = "patterns: [{id: base, before: http-403, match: {httpStatus: 403}, classification: UNCLEAR}]\n";
    let over =
        "patterns: [{id: over, before: base, match: {httpStatus: 403, bodyContains: tea}, classification: UNCLEAR}]\n";
    let desk = Desk::with(&[("base.yaml", base), ("over.yaml", over)]);
    let said = desk.run(&["check", "base.yaml", "over.yaml"]);
    assert_eq!((said.code, said.words.as_str()), (0, ""));
    assert_eq!(said.data, "base.yaml: fine, 1 rule\nover.yaml: fine, 1 rule, laid over base.yaml\n");
    assert_eq!(desk.run(&["test", "base.yaml", "over.yaml"]).code, 0);
    for command in ["check", "test"] {
        let said = desk.run(&[command, "over.yaml", "base.yaml"]);
        assert_eq!(said.code, 78);
        assert!(said.words.contains("over.yaml:1:31") && said.words.contains("no rule `base`"), "{said:?}");
    }
    let shut = base.replace("id: base", "id: shut");
    let late = "patterns: [{id: late, match: {httpStatus: 403, bodyContains: tea}, classification: UNCLEAR}]\n";
    let said = Desk::with(&[("shut.yaml", &shut), ("late.yaml", late)]).run(&["check", "shut.yaml", "late.yaml"]);
    assert!(said.words.contains("the rule `late` can never decide: `shut`"), "{said:?}");
}

#[test]
fn settings_that_do_other_than_they_seem_to_are_warned_of() {
    let config = "backends: [{name: a, kind: mcp, url: 'http://h/mcp'}]\ndrain_announce: 30s\ndrain_timeout: 20s\n\
        admin: {tokens: [{name: ops, token: {env: NEVER_SET}, roles: [operator]}]}\n";
    let desk = Desk::with(&[("toolvane.yaml", config)]);
    let said = desk.run(&["check", "toolvane.yaml"]);
    assert_eq!(said.code, 0, "{said:?}");
    for words in [
        "toolvane.yaml:2:1",
        "`drain_announce` (30s) uses up `drain_timeout` (20s)",
        "toolvane.yaml:4:37",
        "the environment variable `NEVER_SET`, which is not set here",
        "2 warnings",
    ] {
        assert!(said.words.contains(words), "{words} in\n{}", said.words);
    }
    assert_eq!(desk.run(&["check", "--strict", "toolvane.yaml"]).code, 1);
}

#[test]
fn a_name_of_before_that_nobody_has_is_told_beside_all_other_mistakes() {
    let layer = "patterns:\n  - {id: a, match: {httpStatus: 900000}, classification: UNCLEAR}\n  \
        - {id: b, before: http-404x, match: {}, classification: UNCLEAR}\n  \
        - {id: c, before: a, match: {httpStatus: 404}, classification: UNCLEAR}\n";
    let config = "backends: [{name: a, kind: mcp, url: 'http://h/mcp'}]\nrules: {layers: [layer.yaml]}\n";
    let desk = Desk::with(&[("layer.yaml", layer), ("toolvane.yaml", config)]);
    for file in ["layer.yaml", "toolvane.yaml"] {
        let said = desk.run(&["check", file]);
        for words in ["layer.yaml:2:", "layer.yaml:3:21", "there is no rule `http-404x`", "2 problems"] {
            assert!(said.words.contains(words), "{words} in\n{}", said.words);
        }
    }
}

#[test]
fn a_rule_file_that_is_not_there_is_told_where_it_is_named() {
    let config = "backends: [{name: a, kind: mcp, url: 'http://h/mcp'}]\nrules:\n  layers:\n    - gone.yaml\n\
        tenants: {t: {rules: {layers: [lost.yaml]}}}\n";
    let desk = Desk::with(&[("toolvane.yaml", config)]);
    for arguments in [&["check", "toolvane.yaml"][..], &["run", "-c", "toolvane.yaml"]] {
        let said = desk.run(arguments);
        assert_eq!(said.code, 78);
        for words in
            ["toolvane.yaml:4:7", "the rule file `gone.yaml`: cannot read the file: No such file", "toolvane.yaml:5:32"]
        {
            assert!(said.words.contains(words), "{words} in\n{}", said.words);
        }
    }
}

#[test]
fn top_without_a_terminal_says_what_to_use_instead() {
    let said = Desk::with(&[]).run(&["top"]);
    assert_eq!((said.code, said.data.as_str()), (2, ""));
    assert!(said.words.contains("needs a terminal; `toolvane status` prints the same once"), "{said:?}");
}
