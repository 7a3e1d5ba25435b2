//! What writes do to what is believed.

use std::time::Duration;

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::support::{OPERATOR, Process, READER, WRITER, backend, home};

const SEARCH: &str = "/v1/health/PROJECT/default/search";

#[tokio::test]
async fn an_engine_sets_and_ends_an_outage_and_callers_see_it_at_once() {
    let home = home();
    let process = Process::start(home.path(), backend().await, "", "").await;
    let body = json!({
        "reason": "the index is being rebuilt", "expiresIn": "15m", "signature": "index-rebuild", "by": "agrajag",
        "userActionHint": "Search by name meanwhile.",
    });
    let written = process.ask("POST", &format!("{SEARCH}/unavailable"), WRITER, &body).await;
    assert_eq!(written.status, StatusCode::OK, "{}", written.detail());
    assert_eq!(written.body["status"], "DOWN");
    assert_eq!(written.body["origin"], "engine");
    assert_eq!(written.body["lastDiagnosis"]["by"], "engine/agrajag");
    assert_eq!(written.body["expectedRecoveryAt"], "2026-03-02T14:17:00.000Z");
    let refused = process.call("search", "alice").await;
    assert_eq!(refused.header("x-toolvane"), "down");
    let text = refused.body["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.ends_with("Search by name meanwhile."), "{text}");

    let ended = process.ask("POST", &format!("{SEARCH}/available"), WRITER, &json!({"reason": "rebuilt"})).await;
    assert_eq!((ended.status, &ended.body["status"]), (StatusCode::OK, &json!("OK")));
    assert_eq!(process.call("search", "alice").await.header("x-toolvane"), "");
    let audited = process.audited().await;
    assert_eq!(audited[0]["before"], Value::Null);
    assert_eq!(audited[0]["after"]["status"], "DOWN");
    assert_eq!(audited[1]["before"]["status"], "DOWN");
    assert_eq!(audited[1]["after"]["status"], "OK");
    assert_eq!(audited[1]["reason"], "rebuilt");
}

#[tokio::test]
async fn a_tool_that_is_down_is_known_after_a_restart_before_anybody_asks_for_a_list() {
    let home = home();
    let backend = backend().await;
    let mut process = Process::start(home.path(), backend, "", "").await;
    let body = json!({"reason": "the index is being rebuilt", "expiresIn": "15m"});
    process.ask("POST", &format!("{SEARCH}/unavailable"), WRITER, &body).await;
    process.running.stop();
    process.running.ended().await;
    let again = Process::start(home.path(), backend, "", "").await;
    let tools = again.get("/v1/tools?status=DOWN").await;
    assert_eq!((&tools["tools"][0]["tool"], &tools["tools"][0]["status"]), (&json!("search"), &json!("DOWN")));
}

#[tokio::test]
async fn a_lifecycle_event_needs_no_end_begins_when_it_says_and_never_overrides_what_is_newer() {
    let home = home();
    let process = Process::start(home.path(), backend().await, "", "").await;
    let path = "/v1/health/SESSION/s-1/client_read/unavailable";
    let body = json!({"code": "connection-closed", "since": "2026-03-02T14:01:00Z"});
    let written = process.ask("POST", path, WRITER, &body).await;
    assert_eq!(written.status, StatusCode::OK, "{}", written.detail());
    assert_eq!(written.body["origin"], "system");
    assert_eq!(written.body["signature"], "connection-closed");
    assert_eq!(written.body["since"], "2026-03-02T14:01:00.000Z");
    assert_eq!(written.body["expectedRecoveryAt"], Value::Null);
    assert_ne!(written.body["nextTrialAt"], Value::Null);

    let late = json!({"code": "started", "since": "2026-03-02T14:00:30Z"});
    let refused = process.ask("POST", "/v1/health/SESSION/s-1/client_read/available", WRITER, &late).await;
    assert_eq!(refused.status, StatusCode::CONFLICT, "{}", refused.detail());
    let back = json!({"code": "started"});
    let written = process.ask("POST", "/v1/health/SESSION/s-1/client_read/available", WRITER, &back).await;
    assert_eq!(written.body["status"], "OK");
    let overloaded = json!({"code": "overloaded"});
    let written = process.ask("POST", "/v1/health/SESSION/s-1/client_read/degraded", WRITER, &overloaded).await;
    assert_eq!(
        (&written.body["status"], &written.body["classification"]),
        (&json!("DEGRADED"), &json!("INTERMITTENT"))
    );
    let unknown = json!({"code": "my own words"});
    let refused = process.ask("POST", path, WRITER, &unknown).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_write_against_a_version_that_is_no_longer_there_changes_nothing() {
    let home = home();
    let process = Process::start(home.path(), backend().await, "", "").await;
    let down = json!({"reason": "x", "expiresIn": "15m"});
    let first = process.ask("POST", &format!("{SEARCH}/unavailable"), WRITER, &down).await;
    let tag = first.header("etag").to_owned();
    let token = format!("Bearer {WRITER}");
    let with = |tag: &str| {
        vec![
            ("host".to_owned(), "localhost".to_owned()),
            ("authorization".to_owned(), token.clone()),
            ("if-match".to_owned(), tag.to_owned()),
        ]
    };
    let ask = async |tag: &str, body: &Value, verb: &str| {
        let headers = with(tag);
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        process.raw("POST", &format!("{SEARCH}/{verb}"), &headers, body).await
    };
    let degraded = ask(&tag, &down, "degraded").await;
    assert_eq!(degraded.status, StatusCode::OK, "{}", degraded.detail());
    assert_ne!(degraded.header("etag"), tag);
    let stale = ask(&tag, &json!({"reason": "x"}), "available").await;
    assert_eq!(stale.status, StatusCode::PRECONDITION_FAILED);
    assert_eq!(ask("12", &json!({"reason": "x"}), "available").await.status, StatusCode::BAD_REQUEST);
    let read = process.ask("GET", SEARCH, READER, &Value::Null).await;
    assert_eq!((&read.body["status"], read.header("etag")), (&json!("DEGRADED"), degraded.header("etag")));
}

#[tokio::test]
async fn a_document_that_the_reader_knows_is_not_sent_again_unless_a_trial_has_become_due() {
    let home = home();
    let process = Process::start(home.path(), backend().await, "", "").await;
    let down = json!({"reason": "x", "expiresIn": "15m"});
    let tag = process.ask("POST", &format!("{SEARCH}/unavailable"), WRITER, &down).await.header("etag").to_owned();
    let token = format!("Bearer {READER}");
    let ask = async |known: &str| {
        let headers = [("host", "localhost"), ("authorization", &*token), ("if-none-match", known)];
        process.raw("GET", SEARCH, &headers, &Value::Null).await
    };
    for known in [tag.clone(), format!("W/{tag}"), format!("\"x\", {tag}"), "*".to_owned()] {
        let answer = ask(&known).await;
        assert_eq!((answer.status, answer.text.as_str()), (StatusCode::NOT_MODIFIED, ""), "{known}");
        assert_eq!(answer.header("etag"), tag);
    }
    assert_eq!(ask("\"x\"").await.status, StatusCode::OK);
    process.clock.advance(std::time::Duration::from_secs(16 * 60));
    let due = ask(&tag).await;
    assert_eq!((due.status, &due.body["retesting"]), (StatusCode::OK, &json!(true)));
}

#[tokio::test]
async fn cooldowns_are_set_and_cleared_one_by_one() {
    let home = home();
    let process = Process::start(home.path(), backend().await, "", "").await;
    let set = |signature: &str, user: Option<&str>| {
        json!({
            "errorSignature": signature, "userId": user, "classification": "USER_PERMISSION", "expiresIn": "2h",
            "reason": "seen before",
        })
    };
    let path = format!("{SEARCH}/cooldowns");
    for body in [set("http-403", Some("alice")), set("http-403", Some("bob")), set("http-400", None)] {
        assert_eq!(process.ask("POST", &path, WRITER, &body).await.status, StatusCode::OK);
    }
    let cleared = json!({"reason": "right given", "errorSignature": "http-403", "userId": "alice"});
    let left = process.ask("POST", &format!("{SEARCH}/clear"), WRITER, &cleared).await.body;
    let left: Vec<&Value> = left["cooldowns"].as_array().unwrap().iter().collect();
    assert_eq!(left.len(), 2);
    assert!(left.iter().all(|cooldown| cooldown["userId"] != "alice"), "{left:?}");
    assert_eq!(left[0]["nextSpawnAllowedAt"], "2026-03-02T16:02:00.000Z");
    assert_eq!(process.call("search", "bob").await.header("x-toolvane"), "", "a cooldown blocks nothing");
    let all = process.ask("POST", &format!("{SEARCH}/clear"), WRITER, &json!({"reason": "all of it"})).await.body;
    assert_eq!(all["cooldowns"], json!([]));
}

#[tokio::test]
async fn what_is_left_out_must_be_unique_and_a_deleted_document_is_gone_for_good() {
    let home = home();
    let process = Process::start(home.path(), backend().await, "", "").await;
    let down = json!({"reason": "x", "expiresIn": "15m"});
    for tenant in ["acme", "umbrella"] {
        let path = format!("/v1/health/USER/alice/search/unavailable?tenant={tenant}");
        assert_eq!(process.ask("POST", &path, WRITER, &down).await.status, StatusCode::OK);
    }
    let unclear = process.ask("POST", "/v1/health/USER/alice/search/unavailable", WRITER, &down).await;
    assert_eq!(unclear.status, StatusCode::CONFLICT);
    assert_eq!(unclear.body["documents"].as_array().unwrap().len(), 2);
    let page = process.get("/v1/health?limit=1").await;
    assert_eq!(page["documents"].as_array().unwrap().len(), 1);
    let next = process.get(&format!("/v1/health?limit=1&after={}", page["next"].as_str().unwrap())).await;
    assert_eq!(next["documents"][0]["tenantId"], "umbrella");
    assert_eq!(next["next"], Value::Null);

    let gone = "/v1/health/USER/alice/search?tenant=acme";
    assert_eq!(process.ask("DELETE", gone, WRITER, &Value::Null).await.status, StatusCode::FORBIDDEN);
    assert_eq!(process.ask("DELETE", gone, OPERATOR, &Value::Null).await.status, StatusCode::NO_CONTENT);
    assert_eq!(process.ask("DELETE", gone, OPERATOR, &Value::Null).await.status, StatusCode::NOT_FOUND);
    let left = process.get("/v1/health").await;
    assert_eq!(left["documents"].as_array().unwrap().len(), 1);
    process.clock.advance(Duration::from_secs(1));
    assert_eq!(process.ask("GET", gone, READER, &Value::Null).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn while_draining_nothing_is_written_any_more() {
    let home = home();
    let process = Process::start(home.path(), backend().await, "", "").await;
    let answer = process.ask("POST", "/v1/drain", WRITER, &Value::Null).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
    assert_eq!(process.ask("POST", "/v1/drain", OPERATOR, &Value::Null).await.status, StatusCode::ACCEPTED);
    let down = json!({"reason": "x", "expiresIn": "15m"});
    let refused = process.ask("POST", &format!("{SEARCH}/unavailable"), WRITER, &down).await;
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
    let mut running = process.running;
    running.stop();
    super::support::within("the end of the drain", running.ended()).await;
}
