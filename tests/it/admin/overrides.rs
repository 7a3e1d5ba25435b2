//! Overrides beat the cascade, end by themselves, and survive a restart.

use std::time::Duration;

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::support::{OPERATOR, Process, WRITER, backend, home};

fn decision(tool: &str, force: &str) -> Value {
    json!({
        "tool": tool, "scope": "PROJECT", "scopeId": "default", "force": force, "reason": "migration of the index",
        "expiresIn": "2h",
    })
}

async fn decide(process: &Process, tool: &str, force: &str) {
    let answer = process.ask("POST", "/v1/override", OPERATOR, &decision(tool, force)).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.detail());
    assert_eq!(answer.body["override"]["force"], force);
}

#[tokio::test]
async fn an_override_beats_what_is_believed_until_its_end() {
    let home = home();
    let process = Process::start(home.path(), backend().await, "", "").await;
    decide(&process, "search", "DOWN").await;
    let refused = process.call("search", "alice").await;
    assert_eq!(refused.header("x-toolvane"), "down");
    let text = refused.body["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("Expected back at 16:02 UTC"), "{text}");
    let view = process.get("/v1/lookup?tool=search&user=alice").await;
    assert_eq!(view["override"]["reason"], "migration of the index");
    assert_eq!(view["override"]["by"], "ops");

    process.clock.advance(Duration::from_secs(2 * 3600));
    assert_eq!(process.call("search", "alice").await.header("x-toolvane"), "");
    assert_eq!(process.get("/v1/lookup?tool=search&user=alice").await["override"], Value::Null);
}

#[tokio::test]
async fn ok_and_observe_let_calls_pass_that_health_would_refuse() {
    let home = home();
    let process = Process::start(home.path(), backend().await, "", "").await;
    let down = json!({"reason": "x", "expiresIn": "15m"});
    for tool in ["broken_a", "broken_b"] {
        let path = format!("/v1/health/USER/alice/{tool}/unavailable");
        process.ask("POST", &path, WRITER, &down).await;
        assert_eq!(process.call(tool, "alice").await.header("x-toolvane"), "down");
    }
    decide(&process, "broken_a", "OK").await;
    decide(&process, "broken_b", "OBSERVE").await;
    for (tool, status) in [("broken_a", "OK"), ("broken_b", "DOWN")] {
        assert_eq!(process.call(tool, "alice").await.header("x-toolvane"), "", "{tool}");
        let view = process.get(&format!("/v1/lookup?tool={tool}&backend=demo&user=alice")).await;
        assert_eq!(view["status"], status, "{tool}");
    }
    let back = "/v1/override?tool=broken_a&scope=PROJECT&scopeId=default";
    assert_eq!(process.ask("DELETE", back, OPERATOR, &Value::Null).await.status, StatusCode::OK);
    assert_eq!(process.call("broken_a", "alice").await.header("x-toolvane"), "down");
    assert_eq!(process.ask("DELETE", back, OPERATOR, &Value::Null).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn what_an_operator_set_down_stays_down_until_its_end_however_calls_of_an_observed_tool_go() {
    let home = home();
    let process = Process::start(home.path(), backend().await, "", "mode: observe\n").await;
    let path = "/v1/health/PROJECT/default/search/unavailable";
    let down = json!({"reason": "migration", "expiresIn": "15m"});
    let status = async || process.get("/v1/lookup?tool=search&backend=demo&user=alice").await["status"].clone();
    for (token, stays) in [(OPERATOR, true), (WRITER, false)] {
        assert_eq!(process.ask("POST", path, token, &down).await.status, StatusCode::OK);
        process.clock.advance(Duration::from_secs(60));
        assert_eq!(process.call("search", "alice").await.header("x-toolvane"), "");
        assert_eq!(status().await, if stays { "DOWN" } else { "OK" });
        process.clock.advance(Duration::from_secs(14 * 60));
        process.call("search", "alice").await;
        assert_eq!(status().await, "OK", "its time is over");
    }
}

#[tokio::test]
async fn an_override_of_a_narrower_scope_decides_and_all_of_them_survive_a_restart() {
    let home = home();
    let backend = backend().await;
    let process = Process::start(home.path(), backend, "", "").await;
    decide(&process, "search", "DOWN").await;
    let own = json!({
        "tool": "search", "scope": "USER", "scopeId": "alice", "force": "OK", "reason": "she tests it", "expiresIn": "1h",
    });
    assert_eq!(process.ask("POST", "/v1/override", OPERATOR, &own).await.status, StatusCode::OK);
    let mut running = process.running;
    running.stop();
    running.ended().await;

    let process = Process::start(home.path(), backend, "", "").await;
    assert_eq!(process.get("/v1/overrides").await["overrides"].as_array().unwrap().len(), 2);
    assert_eq!(process.call("search", "alice").await.header("x-toolvane"), "");
    assert_eq!(process.call("search", "bob").await.header("x-toolvane"), "down");
}
