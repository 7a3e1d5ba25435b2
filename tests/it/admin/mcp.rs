//! The admin surface as an MCP server, message by message. The official clients are tried in `tests/e2e`.

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::support::{Answer, OPERATOR, PROBER, Process, READER, WRITER, backend, home};

const READS: [&str; 2] = ["tool_health_read", "tool_health_lookup"];
const WRITES: [&str; 5] = [
    "tool_health_set_unavailable",
    "tool_health_set_available",
    "tool_health_set_cooldown",
    "tool_health_clear_cooldown",
    "tool_health_clear",
];
const PROBES: [&str; 2] = ["tool_probe_as_user", "tool_probe_as_system"];

async fn ask(process: &Process, token: &str, method: &str, params: Value) -> Answer {
    let message = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
    let token = format!("Bearer {token}");
    let headers = [
        ("host", "localhost"),
        ("authorization", &*token),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2025-11-25"),
    ];
    process.raw("POST", "/mcp", &headers, &message).await
}

/// Whether a call failed, and what it said.
async fn call(process: &Process, token: &str, tool: &str, arguments: Value) -> (bool, String) {
    let answer = ask(process, token, "tools/call", json!({"name": tool, "arguments": arguments})).await;
    let result = &answer.body["result"];
    let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{}", answer.body));
    (result["isError"] == true, text.to_owned())
}

/// The same for a call that succeeds.
async fn done(process: &Process, token: &str, tool: &str, arguments: Value) -> Value {
    let (failed, text) = call(process, token, tool, arguments).await;
    assert!(!failed, "{text}");
    serde_json::from_str(&text).unwrap()
}

fn search(more: Value) -> Value {
    let Value::Object(mut all) = more else { panic!("{more}") };
    all.extend(
        [("tool", "search"), ("scope", "PROJECT"), ("scopeId", "default")].map(|(k, v)| (k.to_owned(), json!(v))),
    );
    Value::Object(all)
}

#[tokio::test]
async fn each_role_sees_its_own_tools_and_every_argument_is_described() {
    let home = home();
    let process = Process::start(home.path(), backend().await, "", "").await;
    for (token, own) in [
        (READER, READS.to_vec()),
        (WRITER, [&READS[..], &WRITES].concat()),
        (PROBER, [&READS[..], &PROBES].concat()),
        (OPERATOR, [&READS[..], &WRITES, &PROBES].concat()),
    ] {
        let answer = ask(&process, token, "tools/list", json!({})).await;
        let tools = answer.body["result"]["tools"].as_array().unwrap();
        let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names, own);
        for tool in tools {
            assert!(tool["description"].as_str().unwrap().len() > 60, "{tool}");
            assert_eq!(tool["inputSchema"]["additionalProperties"], false);
            let arguments = tool["inputSchema"]["properties"].as_object().unwrap();
            for (name, schema) in arguments {
                assert!(schema["description"].is_string(), "{name} of {tool}");
            }
            assert!(!tool["inputSchema"].to_string().contains("$ref"), "{tool}");
        }
    }
}

#[tokio::test]
async fn a_write_is_durable_audited_and_the_same_as_over_rest() {
    let home = home();
    let backend = backend().await;
    let process = Process::start(home.path(), backend, "", "").await;
    let down = search(json!({"reason": "the index is being rebuilt", "expiresIn": "15m", "by": "agrajag"}));
    let written = done(&process, WRITER, "tool_health_set_unavailable", down).await;
    assert_eq!((&written["status"], &written["origin"]), (&json!("DOWN"), &json!("engine")));
    assert_eq!(written["lastDiagnosis"]["by"], "engine/agrajag");
    assert_eq!(process.call("search", "alice").await.header("x-toolvane"), "down");
    assert_eq!(done(&process, READER, "tool_health_read", search(json!({}))).await["version"], written["version"]);
    let view = done(&process, READER, "tool_health_lookup", json!({"tool": "search", "user": "alice"})).await;
    assert_eq!((&view["status"], &view["scope"]), (&json!("DOWN"), &json!("PROJECT")));
    let told = process.audited().await;
    assert_eq!((&told[0]["who"], &told[0]["done"]), (&json!("engine"), &json!(true)));
    assert!(told[0]["what"].as_str().unwrap().starts_with("MCP tool_health_set_unavailable {"), "{}", told[0]);
    assert_eq!((&told[0]["before"], &told[0]["after"]["status"]), (&Value::Null, &json!("DOWN")));
    let mut running = process.running;
    running.stop();
    running.ended().await;

    let process = Process::start(home.path(), backend, "", "").await;
    assert_eq!(process.get("/v1/lookup?tool=search").await["note"], "the index is being rebuilt");
    let stale = search(json!({"reason": "x", "version": 99}));
    let (failed, why) = call(&process, WRITER, "tool_health_set_available", stale).await;
    assert!(failed && why.starts_with("changed meanwhile: "), "{why}");
    let ended = done(&process, WRITER, "tool_health_set_available", search(json!({"reason": "rebuilt"}))).await;
    assert_eq!(ended["status"], "OK");
}

#[tokio::test]
async fn cooldowns_are_set_removed_and_everything_is_cleared() {
    let home = home();
    let process = Process::start(home.path(), backend().await, "", "").await;
    let cooldown = |signature: &str| {
        let what =
            json!({"errorSignature": signature, "classification": "INTERMITTENT", "expiresIn": "1h", "reason": "x"});
        done_with(&process, "tool_health_set_cooldown", search(what))
    };
    cooldown("http-502").await;
    assert_eq!(cooldown("http-503").await["cooldowns"].as_array().unwrap().len(), 2);
    let one = search(json!({"reason": "x", "errorSignature": "http-502"}));
    let left = done(&process, WRITER, "tool_health_clear_cooldown", one).await;
    assert_eq!(left["cooldowns"][0]["errorSignature"], "http-503");
    let down = search(json!({"code": "process-exited"}));
    assert_eq!(done(&process, WRITER, "tool_health_set_unavailable", down).await["status"], "DOWN");
    let cleared = done(&process, WRITER, "tool_health_clear", search(json!({"reason": "all of it"}))).await;
    assert_eq!((&cleared["status"], &cleared["cooldowns"]), (&json!("OK"), &json!([])));
}

async fn done_with(process: &Process, tool: &'static str, arguments: Value) -> Value {
    done(process, WRITER, tool, arguments).await
}

#[tokio::test]
async fn what_cannot_be_done_is_an_error_that_says_what_to_do_and_changes_nothing() {
    let home = home();
    let process = Process::start(home.path(), backend().await, "", "").await;
    let fine = json!({"reason": "x", "expiresIn": "15m"});
    let wide = json!({"tool": "search", "scope": "GLOBAL", "reason": "x", "expiresIn": "15m"});
    let unknown = search(json!({"reason": "x", "expiresIn": "15m", "colour": "red"}));
    for (token, tool, arguments, says) in [
        (READER, WRITES[0], search(fine.clone()), "`viewer` does not have the role `tool-health-writer`"),
        (WRITER, PROBES[1], json!({"tool": "search"}), "`engine` does not have the role `tool-prober`"),
        (WRITER, WRITES[0], search(json!({"reason": "x"})), "say until when: `expiresIn`"),
        (WRITER, WRITES[0], wide, "GLOBAL takes the role `operator`"),
        (WRITER, WRITES[0], fine, "missing field `tool`"),
        (WRITER, WRITES[0], unknown, "unknown field `colour`"),
        (WRITER, WRITES[2], search(json!({"errorSignature": "a b"})), "missing field `classification`"),
        (READER, READS[0], search(json!({})), "nothing is held about this tool"),
        (
            READER,
            READS[1],
            json!({"tool": "search", "backend": "other"}),
            "no backend is named \"other\"; there are demo",
        ),
        (PROBER, PROBES[1], json!({"tool": "search"}), "search is no SAFE_PROBE"),
    ] {
        let (failed, why) = call(&process, token, tool, arguments).await;
        assert!(failed && why.contains(says), "{tool}: {why}");
    }
    let nobody = ask(&process, OPERATOR, "tools/call", json!({"name": "tool_health_ponder"})).await;
    assert!(
        nobody.body["error"]["message"].as_str().unwrap().contains("there are tool_health_read"),
        "{}",
        nobody.body
    );
    assert_eq!(process.get("/v1/health").await["documents"], json!([]));
    let refused = process.audited().await;
    assert_eq!(refused.len(), 8, "writes and probes, not reads: {refused:?}");
    assert!(refused.iter().all(|told| told["done"] == false));
}

#[tokio::test]
async fn the_door_is_that_of_every_request_and_nothing_is_kept_between_two() {
    let home = home();
    let process = Process::start(home.path(), backend().await, "", "").await;
    let hello =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let greeted = ask(&process, READER, "initialize", hello.clone()).await;
    assert_eq!((greeted.status, &greeted.body["result"]["serverInfo"]["name"]), (StatusCode::OK, &json!("toolvane")));
    assert_eq!(greeted.header("mcp-session-id"), "");
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let accept = ("accept", "application/json, text/event-stream");
    let right = ("authorization", "Bearer writer-token-0123456789");
    let wrong = ("authorization", "Bearer writer-token-012345678X");
    for (headers, status) in [
        (vec![("host", "localhost"), accept, wrong], 401),
        (vec![("host", "evil.example"), accept, right], 421),
        (vec![("host", "localhost"), accept, right, ("origin", "https://evil.example")], 403),
    ] {
        assert_eq!(process.raw("POST", "/mcp", &headers, &message).await.status.as_u16(), status);
    }
    let local = process.raw("POST", "/mcp", &[("host", "localhost"), accept], &message).await;
    assert_eq!(local.body["result"]["tools"].as_array().unwrap().len(), READS.len(), "loopback reads without a token");
    assert_eq!(process.raw("GET", "/mcp", &[("host", "localhost"), accept], &Value::Null).await.status.as_u16(), 405);
    let told = process.audited().await;
    assert_eq!(told.iter().map(|told| &told["outcome"]).collect::<Vec<_>>(), ["HTTP 401", "HTTP 421", "HTTP 403"]);
}

#[tokio::test]
async fn a_body_that_is_no_message_is_answered_as_json_rpc_says() {
    let home = home();
    let process = Process::start(home.path(), backend().await, "", "").await;
    let token = format!("Bearer {WRITER}");
    let headers = [("authorization", &*token), ("accept", "application/json, text/event-stream")];
    for (body, code) in [("{", -32700), ("", -32700), ("[1]", -32600), ("{\"a\":1}", -32600)] {
        let answer = crate::wire::exchange(process.running.admin, "POST", "/mcp", &headers, body).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{body:?}: {}", answer.body);
        let said = answer.json();
        assert_eq!((&said["error"]["code"], &said["id"]), (&json!(code), &Value::Null), "{body:?}");
    }
}
