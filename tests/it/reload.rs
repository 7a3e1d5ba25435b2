//! Reload in a running process: real files are swapped, and the rule that decides next tells what is in force.

use std::fs;
use std::os::unix::fs::symlink;

use crate::program::{Program, config, exchange, rules};
use serde_json::Value;

const IN_FORCE: &str = "configuration in force";
const REFUSED: &str = "configuration refused, the old one stays in force";

#[test]
fn a_changed_rule_file_decides_the_next_call_and_what_was_learned_stays() {
    let down = rules("first").replace("USER_INPUT", "TECHNICALLY_BROKEN\n    healthAction: markUnavailable");
    let program = Program::start(&config("rules: {layers: [own.yaml]}\nmode: observe\n"), |home| {
        fs::write(home.join("own.yaml"), &down).unwrap();
    });
    assert_eq!(program.judged_by(), "first");
    program.swap("own.yaml", &rules("second"));
    let hash = program.logged(IN_FORCE)["hash"].clone();
    assert_eq!(program.judged_by(), "second");
    let (_, tool) = exchange(program.admin, "GET /v1/lookup?tool=t HTTP/1.1\r\nhost: localhost\r\n", "");
    let tool: Value = serde_json::from_str(&tool).unwrap();
    assert_eq!((&tool["status"], &tool["signature"]), (&"DOWN".into(), &"first".into()));
    // Written in place, as some editors do.
    fs::write(program.path("own.yaml"), rules("third")).unwrap();
    assert_ne!(program.logged(IN_FORCE)["hash"], hash);
    assert_eq!(program.judged_by(), "third");
    assert_eq!((program.reloads("success"), program.reloads("failure")), (3, 0), "the start and two changes");
}

#[test]
fn the_data_swap_of_a_mounted_config_map_is_noticed() {
    let program = Program::start(&config("rules: {layers: [mounted/own.yaml]}\n"), |home| {
        for (version, signature) in [("..2026_01", "first"), ("..2026_02", "second")] {
            fs::create_dir_all(home.join("mounted").join(version)).unwrap();
            fs::write(home.join("mounted").join(version).join("own.yaml"), rules(signature)).unwrap();
        }
        symlink("..2026_01", home.join("mounted/..data")).unwrap();
        symlink("..data/own.yaml", home.join("mounted/own.yaml")).unwrap();
    });
    assert_eq!(program.judged_by(), "first");
    symlink("..2026_02", program.path("mounted/..data_tmp")).unwrap();
    fs::rename(program.path("mounted/..data_tmp"), program.path("mounted/..data")).unwrap();
    program.logged(IN_FORCE);
    assert_eq!(program.judged_by(), "second");
}

#[test]
fn broken_rules_change_nothing_and_are_reported_with_their_place() {
    let program = Program::start(&config("rules: {layers: [own.yaml]}\n"), |home| {
        fs::write(home.join("own.yaml"), rules("first")).unwrap();
    });
    program.swap("own.yaml", &rules("second").replace("USER_INPUT", "USR_INPUT"));
    let why = program.logged(REFUSED)["why"].as_str().unwrap().to_owned();
    assert!(why.contains("own.yaml:5:21") && why.contains('^'), "{why}");
    assert_eq!(program.judged_by(), "first");
    assert_eq!(program.counts("toolvane_config_last_reload_successful"), ["toolvane_config_last_reload_successful 0"]);
    assert_eq!(program.reloads("failure"), 1, "one change is reported once");
    program.swap("own.yaml", &rules("second"));
    program.logged(IN_FORCE);
    assert_eq!(program.judged_by(), "second");
    assert_eq!(program.counts("toolvane_config_last_reload_successful"), ["toolvane_config_last_reload_successful 1"]);
}

#[test]
fn rules_that_are_put_back_after_a_mistake_end_the_failure() {
    let program = Program::start(&config("rules: {layers: [own.yaml]}\n"), |home| {
        fs::write(home.join("own.yaml"), rules("first")).unwrap();
    });
    program.swap("own.yaml", "patterns: [");
    program.logged(REFUSED);
    program.swap("own.yaml", &rules("first"));
    program.logged(IN_FORCE);
    assert_eq!(program.counts("toolvane_config_last_reload_successful"), ["toolvane_config_last_reload_successful 1"]);
}

#[test]
fn a_directory_of_a_tenant_that_appears_holds_for_that_tenant() {
    let program = Program::start(&config("rules: {dir: rules.d}\n"), |home| {
        fs::create_dir_all(home.join("rules.d")).unwrap();
    });
    let usual = program.judged_for("acme");
    // What starts with a dot is nobody's, so that a directory can appear all at once.
    fs::create_dir_all(program.path("rules.d/.acme")).unwrap();
    fs::write(program.path("rules.d/.acme/error-patterns.yaml"), rules("acmes-own")).unwrap();
    fs::rename(program.path("rules.d/.acme"), program.path("rules.d/acme")).unwrap();
    program.logged(IN_FORCE);
    assert_eq!(program.judged_for("acme"), "acmes-own");
    assert_eq!(program.judged_for("other"), usual);
    fs::rename(program.path("rules.d/acme"), program.path("rules.d/.acme")).unwrap();
    program.logged(IN_FORCE);
    assert_eq!(program.judged_for("acme"), usual);
}

#[test]
fn a_hangup_asks_for_a_reload() {
    let program = Program::start(&config(""), |_| {});
    let pid = rustix::process::Pid::from_child(&program.child);
    rustix::process::kill_process(pid, rustix::process::Signal::HUP).unwrap();
    program.logged(IN_FORCE);
    assert_eq!(program.reloads("success"), 2);
}

#[test]
fn a_post_reloads_and_says_which_keys_need_a_restart() {
    let text = config("rules: {layers: [own.yaml]}\n");
    let program = Program::start(&text, |home| {
        fs::write(home.join("own.yaml"), rules("first")).unwrap();
    });
    let local = "host: 127.0.0.1\r\n";
    let (status, same) = program.ask_for_reload(local);
    assert_eq!((status, &same["changed"]), (200, &Value::Bool(false)));
    program.swap("toolvane.yaml", &format!("{text}mode: observe\nlimits: {{calls: 7}}\nhint: {{max: 2h}}\n"));
    let (status, applied) = program.ask_for_reload(local);
    assert_eq!(status, 200);
    assert_ne!(applied["hash"], same["hash"]);
    assert_eq!(applied["needsRestart"], serde_json::json!(["mode", "limits.calls"]));
    program.swap("toolvane.yaml", "mode: of\n");
    let (status, refusal) = program.ask_for_reload(local);
    assert_eq!(status, 422);
    let detail = refusal["detail"].as_str().unwrap();
    assert!(detail.contains("toolvane.yaml:1:7") && detail.contains('^'), "{detail}");
    assert_eq!(program.judged_by(), "first");
    for (foreign, status) in
        [("host: evil.example\r\n", 421), ("host: 127.0.0.1\r\norigin: https://evil.example\r\n", 403)]
    {
        assert_eq!(program.ask_for_reload(foreign).0, status, "{foreign}");
    }
}
