//! The commands that ask and steer a running process, in both forms: what they print, on which stream, with which exit code.

use std::fs;
use std::io::Write;
use std::process::Command;

use crate::program::{Program, config, rules};
use regex::Regex;
use serde_json::{Value, json};

/// What a command came to.
#[derive(Debug, PartialEq, Eq)]
struct Said {
    code: i32,
    data: String,
    words: String,
}

/// A running process with one tool and an integration without its credential.
fn process() -> Program {
    let more = "rules: {layers: [own.yaml]}\ntools: {t: {safety: SAFE_PROBE, sample: {}}, 'gmail_*': {integration: gmail}}\n\
        integrations: {gmail: {credentials_required: [{env: NEVER_SET}], setup_hint: Sign in.}}\n";
    Program::start(&config(more), |home| fs::write(home.join("own.yaml"), rules("sandboxed")).unwrap())
}

fn run_at(admin: &str, arguments: &[&str]) -> Said {
    let output = Command::new(env!("CARGO_BIN_EXE_toolvane"))
        .args(arguments)
        .env_clear()
        .env("TOOLVANE_ADMIN", admin)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Said { code: output.status.code().unwrap(), data: text(output.stdout), words: text(output.stderr) }
}

/// Runs a command that is fine and says nothing besides its data; times are masked, as long as they are.
fn table(process: &Program, arguments: &[&str]) -> String {
    let said = run_at(&process.admin.to_string(), arguments);
    assert_eq!((said.code, said.words.as_str()), (0, ""), "{arguments:?}");
    let time = Regex::new(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z").unwrap();
    time.replace_all(&said.data, "<------- a time ------->").into_owned()
}

fn json(process: &Program, arguments: &[&str]) -> Value {
    let said = run_at(&process.admin.to_string(), &[arguments, &["-o", "json"]].concat());
    assert_eq!((said.code, said.words.as_str()), (0, ""), "{arguments:?}");
    serde_json::from_str(&said.data).unwrap_or_else(|error| panic!("{error} in {}", said.data))
}

fn refused(process: &Program, arguments: &[&str]) -> String {
    let said = run_at(&process.admin.to_string(), arguments);
    assert_eq!((said.code, said.data.as_str()), (1, ""), "{arguments:?}: {said:?}");
    said.words
}

const DOWN: [&str; 7] = ["set", "t", "down", "--reason", "being rebuilt", "--for", "30m"];

#[test]
fn a_tool_that_nobody_knows_is_no_good_news() {
    let process = process();
    let unknown = refused(&process, &["status", "nosuch", "--fail-on", "down"]);
    assert!(unknown.contains("no tool is known by the name \"nosuch\""), "{unknown}");
}

#[test]
fn what_is_meant_for_everybody_takes_no_id_and_what_is_meant_for_somebody_needs_one() {
    let process = process();
    let with_id = refused(&process, &[&DOWN[..], &["--scope", "global", "--id", "alice"]].concat());
    assert!(with_id.contains("GLOBAL has no scope id"), "{with_id}");
    let without = refused(&process, &[&DOWN[..], &["--scope", "user"]].concat());
    assert!(without.contains("USER needs a `scopeId` (`--id` of the commands)"), "{without}");
    assert_eq!(table(&process, &[&DOWN[..], &["--scope", "global"]].concat()), "t GLOBAL -: DOWN\n");
}

#[test]
fn beside_a_configuration_file_the_environment_does_not_count_and_an_argument_is_refused() {
    let run = |address: &str, more: &[&str]| run_at(address, &[&["run", "-c", "no-such-file.yaml"], more].concat());
    let said = run("127.0.0.1:1", &[]);
    assert_eq!(said.code, 78, "{}", said.words);
    assert!(said.words.contains("no-such-file.yaml"), "{}", said.words);
    let said = run("127.0.0.1:1", &["--admin", "127.0.0.1:2"]);
    assert_eq!(said.code, 2);
    assert!(said.words.contains("`--admin` cannot be used with a configuration file"), "{}", said.words);
}

#[test]
fn status_shows_how_every_tool_stands_and_fails_if_one_is_as_bad_as_asked() {
    let process = process();
    let fine =
        "BACKEND  TOOL  STATUS  SINCE  BACK AT  SIGNATURE  NOTE\nb        t     OK      -      -        -          -\n";
    assert_eq!(table(&process, &["status", "--fail-on", "degraded"]), fine);
    table(&process, &DOWN);
    let (time, space) = ("<------- a time ------->", " ".repeat(17));
    assert_eq!(
        table(&process, &["status"]),
        format!(
            "BACKEND  TOOL  STATUS  SINCE{space}    BACK AT{space}  SIGNATURE  NOTE\n\
             b        t     DOWN    {time}  {time}  -          being rebuilt\n"
        )
    );
    let tools = json(&process, &["status", "t"])["tools"].clone();
    assert_eq!(
        (&tools[0]["status"], &tools[0]["scope"], tools[1].is_null()),
        (&json!("DOWN"), &json!("PROJECT"), true)
    );
    let down = run_at(&process.admin.to_string(), &["status", "--fail-on", "down"]);
    assert_eq!((down.code, down.words.as_str()), (1, ""));
}

#[test]
fn set_and_clear_say_what_the_document_says_now() {
    let process = process();
    assert_eq!(table(&process, &DOWN), "t PROJECT default: DOWN\n");
    let observed = ["set", "t", "observe", "--reason", "x", "--for", "1h"];
    let forced = "t PROJECT default: DOWN, override OBSERVE until <------- a time ------->\n";
    assert_eq!(table(&process, &observed), forced);
    assert_eq!(table(&process, &["status"]).lines().nth(1).unwrap().split_whitespace().nth(3), Some("(override)"));
    assert_eq!(table(&process, &["clear", "t", "--override", "--reason", "x"]), "t PROJECT default: DOWN\n");
    assert_eq!(table(&process, &["clear", "t", "--reason", "it is back"]), "t PROJECT default: OK\n");
    let degraded = ["set", "t", "degraded", "--scope", "user", "--id", "alice", "--reason", "x", "--for", "5m"];
    let document = json(&process, &degraded);
    assert_eq!((&document["status"], &document["scopeId"]), (&json!("DEGRADED"), &json!("alice")));
    let cleared = json(&process, &["clear", "t", "--scope", "user", "--id", "alice", "--reason", "x"]);
    assert_eq!(cleared["status"], "OK");
    let words = refused(&process, &["set", "t", "down", "--reason", "x"]);
    assert_eq!(words, "error: cannot be done so (422): say until when: `--for` (such as `15m`), a day ahead at most\n");
    let words = refused(&process, &["set", "t", "observe", "--reason", "x", "--for", "soon"]);
    assert!(words.contains("`--for` must be a duration such as `15m`, not \"soon\""), "{words}");
}

#[test]
fn who_may_not_write_is_told_how_he_may() {
    let locked = config("").replace(", local_writes: loopback", "");
    let words = refused(&Program::start(&locked, |_| ()), &DOWN);
    for way in ["(401)", "`--token`", "TOOLVANE_ADMIN_TOKEN", "`admin.local_writes`"] {
        assert!(words.contains(way), "{way} in {words}");
    }
}

#[test]
fn who_is_asked_to_leave_while_it_starts_leaves_in_order() {
    let home = tempfile::tempdir().unwrap();
    let pipe = home.path().join("toolvane.yaml");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut child = Command::new(env!("CARGO_BIN_EXE_toolvane"))
        .args(["run", "-c", "toolvane.yaml"])
        .current_dir(home.path())
        .env_clear()
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    // Opens once the other end reads.
    let mut settings = fs::OpenOptions::new().write(true).open(&pipe).unwrap();
    assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    settings.write_all(config("").as_bytes()).unwrap();
    drop(settings);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn who_finds_his_address_taken_leaves_no_state_file_behind() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let home = tempfile::tempdir().unwrap();
    let settings = config("")
        .replacen("127.0.0.1:0", &taken.local_addr().unwrap().to_string(), 1)
        .replace("store: {engine: memory}", "store: {path: state.redb}");
    fs::write(home.path().join("toolvane.yaml"), settings).unwrap();
    let run = Command::new(env!("CARGO_BIN_EXE_toolvane"))
        .args(["run", "-c", "toolvane.yaml"])
        .current_dir(home.path())
        .env_clear()
        .output()
        .unwrap();
    assert_eq!(run.status.code(), Some(1), "{run:?}");
    assert!(!home.path().join("state.redb").exists());
}

#[test]
fn events_are_a_line_each() {
    let process = process();
    table(&process, &DOWN);
    let lines = table(&process, &["events", "--all", "--count", "2"]);
    assert_eq!(
        lines,
        "<------- a time ------->  transition  b  t  PROJECT  default  OK  DOWN  being rebuilt\n\
         <------- a time ------->  audit  local  POST /v1/health/project/default/t/unavailable?  HTTP 200  being rebuilt\n"
    );
    let audit = json(&process, &["events", "--all", "--kind", "audit", "--count", "1"]);
    assert_eq!((&audit["who"], &audit["done"]), (&json!("local"), &json!(true)));
    let words = refused(&process, &["events", "--kind", "gossip"]);
    assert!(words.contains("kind \"gossip\" is none of transition, trial, cooldown"), "{words}");
}

#[test]
fn recheck_tells_what_trying_the_tool_showed() {
    let process = process();
    let said = run_at(&process.admin.to_string(), &["recheck", "t"]);
    assert_eq!((said.code, said.words.as_str()), (1, ""), "{said:?}");
    assert_eq!(said.data, "t fails: sandboxed (HTTP 503 sandbox)\n");
    let said = run_at(&process.admin.to_string(), &["recheck", "t", "-o", "json"]);
    let answer: Value = serde_json::from_str(&said.data).unwrap();
    assert_eq!((said.code, &answer["result"], &answer["signature"]), (1, &json!("fails"), &json!("sandboxed")));
    let words = refused(&process, &["recheck", "gmail_send"]);
    assert!(words.starts_with("error: cannot be tried (409): gmail_send is no SAFE_PROBE"), "{words}");
}

#[test]
fn manifest_and_integrations_show_what_callers_see_and_why() {
    let process = process();
    assert_eq!(
        table(&process, &["manifest"]),
        "BACKEND  TOOL  LISTED  STATUS  WHY  INTEGRATION  SETUP STEP\nb        t     yes     OK      -    -            -\n"
    );
    let tools = json(&process, &["manifest", "--user", "alice"])["tools"].clone();
    assert_eq!((&tools[0]["tool"], &tools[0]["listed"]), (&json!("t"), &json!(true)));
    assert_eq!(
        table(&process, &["integrations"]),
        "INTEGRATION  STATE                SINCE  NEXT PROBE  LAST PROBE  TOOLS\n\
         gmail        credentials_missing  -      no probe    -           gmail_*\n"
    );
    let shown = json(&process, &["integrations"])["integrations"].clone();
    assert_eq!((&shown[0]["id"], &shown[0]["setupHint"]), (&json!("gmail"), &json!("Sign in.")));
}

#[test]
fn config_shows_what_runs_and_what_could() {
    let process = process();
    let text = fs::read_to_string(process.path("toolvane.yaml")).unwrap();
    assert_eq!(table(&process, &["config", "show"]), text);
    let shown = json(&process, &["config", "show"]);
    assert_eq!((&shown["text"], shown["hash"].as_str().unwrap().len()), (&json!(text), 16));
    let schema: Value = serde_json::from_str(&table(&process, &["config", "schema"])).unwrap();
    assert!(schema["properties"]["backends"].is_object());
    assert_eq!(table(&process, &["config", "init"]), include_str!("../../config/toolvane.yaml"));
}

#[test]
fn reload_and_drain_are_done_or_say_why_not() {
    let process = process();
    assert_eq!(table(&process, &["reload"]), "reload: done\n");
    assert_eq!(json(&process, &["reload"])["changed"], false);
    process.swap("own.yaml", "patterns: [{id: tea, colour: red}]\n");
    let said = run_at(&process.admin.to_string(), &["reload"]);
    assert_eq!((said.code, said.data.as_str()), (78, ""), "the files are invalid: {said:?}");
    let words = said.words;
    assert!(words.starts_with("error: the old rules stay in force (422): "), "{words}");
    assert!(words.contains("own.yaml:1:") && words.contains("colour"), "{words}");
    assert_eq!(table(&process, &["drain"]), "drain: done\n");
    assert_eq!(json(&process, &["drain"]), json!({"draining": true, "inFlight": 0}));
    let late = refused(&process, &DOWN);
    assert!(late.starts_with("error: draining (503)"), "{late}");
}

#[test]
fn where_nobody_answers_every_command_says_so_and_exits_with_69() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    drop(taken);
    for arguments in [&["status"][..], &DOWN, &["events"], &["recheck", "t"], &["manifest"], &["integrations"]] {
        let said = run_at(&address, arguments);
        assert_eq!((said.code, said.data.as_str()), (69, ""), "{arguments:?}: {said:?}");
        assert!(said.words.starts_with(&format!("error: nobody answers on {address}: ")), "{said:?}");
    }
}

#[test]
fn what_is_no_address_is_wrong_usage_for_every_command() {
    for arguments in [&["status"][..], &DOWN, &["events"], &["reload"], &["healthcheck"]] {
        let said = run_at("nowhere", arguments);
        assert_eq!((said.code, said.data.as_str()), (2, ""), "{arguments:?}: {said:?}");
        assert!(said.words.starts_with("error: --admin \"nowhere\" is no address; write"), "{said:?}");
    }
}

#[test]
fn status_says_of_a_tool_that_is_not_set_up_that_it_is_hidden_and_why() {
    let more = "tools: {t: {credentials_required: [{env: NEVER_SET}]}}\n";
    let process = Program::start(&config(more), |_| ());
    let shown = table(&process, &["status"]);
    let row = shown.lines().nth(1).unwrap();
    assert!(row.contains(" t ") && row.ends_with("hidden: credentials missing"), "{shown}");
}

#[test]
fn where_several_backends_might_have_a_tool_the_refusal_names_those_that_were_looked_at() {
    let more = "  - {name: c, kind: http, url: \"http://127.0.0.1:9\", match: {path_prefix: /c}, routes: [{tool: u, method: GET, path: /u}]}\n";
    let process = Program::start(&config(more), |_| ());
    let words = refused(&process, &["recheck", "never"]);
    assert!(words.contains("none of the backends b, c is known to have a tool \"never\""), "{words}");
    assert!(words.contains("add `backend`"), "{words}");
}
