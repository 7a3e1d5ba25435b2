//! Secrets get to where they belong and nowhere else: a process full of them, and everything that it wrote.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use crate::program::{Program, config, exchange};
use crate::receiver::receiver;
use crate::wire::PATIENCE;

/// What they all answer whom toolvane posts to.
const FAILS: &str = "500 Internal Server Error";

/// Every secret has this in it.
const MARK: &str = "planted-";

const OPERATOR: &str = "planted-admin-token-1";
const SECRETS: [(&str, &str); 6] = [
    ("admin.secret", OPERATOR),
    ("engine.secret", "planted-engine-signature-2"),
    ("notify.secret", "planted-notify-signature-3"),
    ("probe.secret", "Bearer planted-probe-4"),
    ("key.secret", "planted-integration-key-5"),
    ("keys.secret", r#"{"keys": []}"#),
];

/// A token that nobody signed, with `{"sub":"planted-subject"}` in it.
const JWT: &str = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJwbGFudGVkLXN1YmplY3QifQ.planted-signature-7";

fn lay_out(home: &Path) {
    for (name, text) in SECRETS {
        fs::write(home.join(name), text).unwrap();
    }
    let rule = "patterns:\n  - {id: http-503, match: {httpStatus: 503}, classification: UNCLEAR}\n";
    fs::write(home.join("own.yaml"), rule).unwrap();
}

/// All files of the process but those that hold the secrets.
fn files(home: &Path) -> String {
    let mut all = String::new();
    for entry in fs::read_dir(home).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "secret") {
            all += &String::from_utf8_lossy(&fs::read(&path).unwrap());
        }
    }
    all
}

/// What stands before and after the first secret in a text.
fn leak(text: &str) -> Option<(String, String)> {
    let (before, after) = text.split_once(MARK)?;
    let before: Vec<char> = before.chars().rev().take(80).collect();
    Some((before.into_iter().rev().collect(), after.chars().take(80).collect()))
}

#[test]
fn nothing_that_a_process_writes_holds_one_of_its_secrets_or_one_of_a_callers() {
    let ((engine, jobs), (notified, notes)) = (receiver(FAILS), receiver(FAILS));
    let text = config(&format!(
        "rules: {{layers: [own.yaml]}}\nlog: {{level: trace}}\nrecord: {{file: outcomes.jsonl}}\n\
         diagnosis: {{engine: webhook, webhook: {{url: 'http://{engine}/jobs', secret: {{file: engine.secret}}}}}}\n\
         notify: {{webhook: {{url: 'http://{notified}/hook', secret: {{file: notify.secret}}}}}}\n\
         probes: {{system: {{authorization: {{file: probe.secret}}}}}}\n\
         integrations: {{mail: {{credentials_required: [{{file: key.secret}}]}}}}\ntools: {{t: {{integration: mail}}}}\n\
         identity: {{jwt: {{jwks: {{file: keys.secret}}, issuer: i, audience: a}}, \
         user: [{{jwt: sub}}, {{credential: authorization}}]}}\n"
    ))
    .replace("store: {engine: memory}", "store: {path: state.redb}")
    .replace(
        "local_writes: loopback}",
        "tokens: [{name: ops, token: {file: admin.secret}, roles: [operator]}]}",
    );
    let program = Program::start(&text, lay_out);
    let call = "GET /t?api_key=planted-query-8 HTTP/1.1\r\nhost: localhost\r\ncookie: s=planted-cookie-9\r\n\
                x-api-key: planted-header-10\r\n";
    for bearer in ["authorization: Bearer planted-opaque-11\r\n", &format!("authorization: Bearer {JWT}\r\n")] {
        assert_eq!(exchange(program.listen, &format!("{call}{bearer}"), "").0, 503);
    }
    let job = jobs.recv_timeout(PATIENCE).expect("the engine is asked").text();
    let mut all = String::new();
    let ask = |head: &str, token: &str, body: &str| {
        let head = format!(
            "{head} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n"
        );
        exchange(program.admin, &head, body)
    };
    let down = r#"{"reason": "test", "expiresIn": "1h"}"#;
    let path = "POST /v1/health/PROJECT/default/t/unavailable?backend=b";
    for (token, expected) in [("planted-wrong-token-12", 401), (OPERATOR, 200)] {
        let (status, body) = ask(path, token, down);
        assert_eq!(status, expected, "{body}");
        all += &body;
    }
    let note = notes.recv_timeout(PATIENCE).expect("somebody is notified").text();
    for posted in [&job, &note] {
        assert!(posted.contains("x-toolvane-signature: t="), "{posted}");
    }
    all += &(job + &note);
    for path in
        ["config", "health", "tools", "manifest", "integrations", "diagnosis/jobs", "overrides", "openapi.json", "no"]
    {
        all += &ask(&format!("GET /v1/{path}"), OPERATOR, "").1;
    }
    all += &exchange(program.admin, "GET /metrics HTTP/1.1\r\nhost: localhost\r\n", "").1;
    let (written, files) = (program.end(), files(program.home()));
    for (kind, part, found) in [
        ("the log", "toolvane serves", &written),
        ("the audit log", "\"who\":\"ops\"", &written),
        ("the record of outcomes", "\"status\":503", &files),
        ("the configuration", "outcomes.jsonl", &all),
    ] {
        assert!(found.contains(part), "{kind} was looked at");
    }
    for (what, text) in [("answers and posts", all), ("logs", written), ("files", files)] {
        assert_eq!(leak(&text), None, "{what} hold a secret, between these words");
    }
}

#[test]
fn what_is_wrong_with_a_secret_is_told_without_it() {
    let home = tempfile::tempdir().unwrap();
    for (name, secret, access) in [
        ("short", "planted-short", "tokens: [{name: ops, token: {file: short}, roles: [operator]}]"),
        ("inline", "", "tokens: [{name: ops, token: planted-inline-token-1, roles: [operator]}]"),
    ] {
        fs::write(home.path().join(name), secret).unwrap();
        let text = format!(
            "listen: 127.0.0.1:0\nadmin: {{listen: '127.0.0.1:0', {access}}}\nstore: {{engine: memory}}\n\
             backends: [{{name: b, kind: mcp, url: 'http://127.0.0.1:1/mcp'}}]\n"
        );
        fs::write(home.path().join("toolvane.yaml"), text).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolvane"));
        // Somebody else's variable that is no text is none of our business.
        command.args(["run", "-c", "toolvane.yaml"]).env("ODD", OsStr::from_bytes(b"\xff")).current_dir(home.path());
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
        assert!(!output.status.success() && said.contains("token"), "{said}");
        assert!(!said.contains(MARK), "{said}");
    }
}
