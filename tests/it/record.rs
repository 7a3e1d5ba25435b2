//! What the proxy records, and what `toolvane replay` makes of it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::program::{Program, config, exchange, rules};
use serde_json::Value;

#[test]
fn what_calls_come_to_is_recorded_without_names_and_replayed_under_other_rules() {
    let text = config("rules: {layers: [own.yaml]}\nrecord: {file: outcomes.jsonl, max_bytes: 1MiB}\n");
    let program = Program::start(&text, |home| fs::write(home.join("own.yaml"), rules("first")).unwrap());
    for _ in 0..3 {
        let head =
            "GET /t HTTP/1.1\r\nhost: localhost\r\nx-user-id: alice\r\nauthorization: Bearer 0123456789abcdef\r\n";
        assert_eq!(exchange(program.listen, head, "").0, 503);
    }
    let path = program.path("outcomes.jsonl");
    let recording = loop {
        let text = fs::read_to_string(&path).unwrap();
        if text.matches('\n').count() == 3 {
            break text;
        }
        std::thread::yield_now();
    };
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    for secret in ["alice", "0123456789abcdef"] {
        assert!(!recording.contains(secret), "{secret} in {recording}");
    }
    let line: Value = serde_json::from_str(recording.lines().next().unwrap()).unwrap();
    assert_eq!(line["outcome"]["text"], "sandbox");
    assert_eq!(line["verdict"]["finding"]["signature"], "first");

    fs::write(program.path("other.yaml"), rules("second")).unwrap();
    let replay = |rules: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_toolvane"))
            .args(["replay", "outcomes.jsonl", "-o", "json", "--rules", rules])
            .current_dir(program.path(""))
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    assert_eq!(replay("own.yaml")["changes"], Value::Array(Vec::new()), "the same rules say the same");
    let changed = replay("other.yaml");
    assert_eq!(
        (&changed["changes"][0]["outcomes"], &changed["changes"][0]["after"]["signature"]),
        (&3.into(), &"second".into())
    );
}

#[test]
fn a_recording_that_cannot_be_written_is_told_at_the_start() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("toolvane.yaml"), config("record: {file: gone/outcomes.jsonl}\n")).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_toolvane"))
        .args(["run", "-c", "toolvane.yaml"])
        .current_dir(home.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let words = String::from_utf8(output.stderr).unwrap();
    assert!(words.contains("cannot write to gone/outcomes.jsonl") && words.contains("`record.file`"), "{words}");
}
