//! From an unclear failure to what follows from its diagnosis, with each engine.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde_json::{Value, json};

use super::server::{Server, is_signed};
use super::support::{Follower, OPERATOR, PROBER, Process, READER, WRITER, home};

/// A tool server whose tools fail with a text that no rule knows, but work when toolvane tries them.
pub(crate) async fn unclear() -> Server {
    Server::start(|seen| {
        let probed = seen.headers.contains_key("x-toolvane-probe");
        let name = seen.body["params"]["name"].as_str().unwrap_or_default();
        let text = if probed { "fine" } else { "the flux capacitor of token=s3cr3t-s3cr3t is misaligned" };
        let result = json!({"content": [{"type": "text", "text": text}], "isError": !probed && !name.is_empty()});
        axum::Json(json!({"jsonrpc": "2.0", "id": seen.body["id"], "result": result})).into_response()
    })
    .await
}

async fn jobs(process: &Process) -> Vec<Value> {
    process.get("/v1/diagnosis/jobs").await["jobs"].as_array().unwrap().clone()
}

/// Follows what is said of diagnoses until one is done.
async fn done(follower: &mut Follower) -> Value {
    loop {
        let event = follower.next().await;
        if event.data["change"] == "done" {
            return event.data;
        }
    }
}

const SAFE: &str = "tools: {odd: {safety: SAFE_PROBE, sample: {q: 1}}}\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_failures_of_one_kind_at_once_start_one_job() {
    let home = home();
    let backend = unclear().await;
    let process = Process::start(home.path(), backend.address, "", "diagnosis: {engine: external}\n").await;
    let process = Arc::new(process);
    let calls: Vec<_> = (0..1_000)
        .map(|number| {
            let process = Arc::clone(&process);
            tokio::spawn(async move { process.call("odd", &format!("user-{number}")).await })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap().header("x-toolvane"), "", "the answer passes unchanged");
    }
    let jobs = jobs(&process).await;
    assert_eq!(jobs.len(), 1, "{jobs:?}");
    assert_eq!(jobs[0]["toolName"], "odd");
    assert_eq!(jobs[0]["trigger"], "tool_call_error");
    let details = jobs[0]["errorDetail"].as_array().unwrap();
    assert!(details[0].as_str().unwrap().contains("flux capacitor"), "{details:?}");
    assert!(!jobs[0].to_string().contains("s3cr3t"));
}

#[tokio::test]
async fn a_hundred_kinds_of_failures_start_no_more_jobs_than_the_bucket_holds() {
    let home = home();
    let backend = unclear().await;
    let process = Process::start(home.path(), backend.address, "", "diagnosis: {engine: external}\n").await;
    for number in 0..100 {
        process.call(&format!("odd-{number}"), "alice").await;
    }
    assert_eq!(jobs(&process).await.len(), 10);
    process.clock.advance(Duration::from_secs(60));
    for number in 50..100 {
        process.call(&format!("odd-{number}"), "alice").await;
    }
    assert_eq!(jobs(&process).await.len(), 11, "one more a minute");
}

#[tokio::test]
async fn a_webhook_engine_is_asked_once_signed_and_its_answer_is_applied() {
    let home = home();
    std::fs::write(home.path().join("secret"), "shared-secret").unwrap();
    let backend = unclear().await;
    let engine = Server::start(|_| {
        axum::Json(json!({
            "classification": "TECHNICALLY_BROKEN", "humanNote": "the flux capacitor is gone",
            "expectedRecoveryAt": "2026-03-02T15:00:00Z", "userActionHint": "Use the spare one.",
            "cooldownAdjustments": [],
        }))
        .into_response()
    })
    .await;
    let more = format!(
        "diagnosis: {{engine: webhook, webhook: {{url: \"http://{}/jobs\", secret: {{file: secret}}}}}}\n",
        engine.address
    );
    let process = Process::start(home.path(), backend.address, "", &more).await;
    let mut follower = Follower::of(&process, "/v1/events?kind=diagnosis&after=0", &[]).await;
    process.call("odd", "alice").await;
    assert_eq!(done(&mut follower).await["found"], "TECHNICALLY_BROKEN");

    let view = process.get("/v1/lookup?tool=odd&backend=demo").await;
    assert_eq!((&view["status"], &view["note"]), (&json!("DOWN"), &json!("the flux capacitor is gone")));
    assert_eq!(view["expectedRecoveryAt"], "2026-03-02T15:00:00.000Z");
    let text = process.call("odd", "bob").await.body["result"]["content"][0]["text"].as_str().unwrap().to_owned();
    assert!(text.ends_with("Use the spare one."), "{text}");

    let [asked] = engine.seen().try_into().unwrap_or_else(|all| panic!("asked more than once: {all:?}"));
    assert_eq!(asked.body["errorSignature"], jobs(&process).await[0]["errorSignature"]);
    assert!(is_signed(&asked, b"shared-secret"));
}

#[tokio::test]
async fn an_engine_may_answer_later_and_a_malformed_answer_is_no_reason_to_ask_again() {
    let home = home();
    let backend = unclear().await;
    let engine = Server::start(|_| StatusCode::ACCEPTED.into_response()).await;
    let more = format!("diagnosis: {{engine: webhook, webhook: {{url: \"http://{}/jobs\"}}}}\n", engine.address);
    let process = Process::start(home.path(), backend.address, "", &more).await;
    process.call("odd", "alice").await;
    let id = jobs(&process).await[0]["id"].as_str().unwrap().to_owned();
    let path = format!("/v1/diagnosis/jobs/{id}/complete");
    let answer = json!({"classification": "TECHNICALLY_BROKEN"});
    assert_eq!(process.ask("POST", &path, READER, &answer).await.status, StatusCode::FORBIDDEN);
    let told = process.ask("POST", &path, WRITER, &answer).await;
    assert_eq!(told.status, StatusCode::OK, "{}", told.detail());
    let view = process.get("/v1/lookup?tool=odd&backend=demo").await;
    assert_eq!(view["status"], "DEGRADED");
    assert!(view["note"].as_str().unwrap().contains("could not be read"), "{view}");
    assert_eq!(view["expectedRecoveryAt"], "2026-03-02T14:17:00.000Z");
    assert_eq!(process.ask("POST", &path, WRITER, &answer).await.status, StatusCode::CONFLICT, "once is enough");
}

#[tokio::test]
async fn a_model_tries_the_tool_sees_no_secret_and_its_answer_is_applied_by_code() {
    let home = home();
    std::fs::write(home.path().join("key"), "model-api-key-1").unwrap();
    let backend = unclear().await;
    let model = Server::start(|seen| {
        let turns = seen.body["messages"].as_array().map_or(0, Vec::len);
        let message = if turns == 2 {
            let call =
                json!({"id": "c1", "type": "function", "function": {"name": "probe_as_system", "arguments": "{}"}});
            json!({"role": "assistant", "content": null, "tool_calls": [call]})
        } else {
            let answer = json!({"classification": "INTERMITTENT", "humanNote": "it worked when it was tried"});
            json!({"role": "assistant", "content": answer.to_string()})
        };
        axum::Json(json!({"choices": [{"message": message}]})).into_response()
    })
    .await;
    let more = format!(
        "{SAFE}diagnosis: {{engine: llm, llm: {{url: \"http://{}/v1\", model: m, key: {{file: key}}}}}}\n",
        model.address
    );
    let process = Process::start(home.path(), backend.address, "", &more).await;
    let mut follower = Follower::of(&process, "/v1/events?kind=diagnosis&after=0", &[]).await;
    process.call("odd", "alice").await;
    assert_eq!(done(&mut follower).await["found"], "INTERMITTENT");
    assert_eq!(process.get("/v1/lookup?tool=odd&backend=demo").await["status"], "DEGRADED");
    let asked = model.seen();
    assert_eq!(asked.len(), 2);
    assert_eq!(asked[0].headers["authorization"], "Bearer model-api-key-1");
    assert!(asked.iter().all(|seen| !seen.text.contains("s3cr3t")));
    assert_eq!(asked[1].body["messages"][3]["content"], "it worked");
    let tried = backend.seen().iter().filter(|seen| seen.headers.contains_key("x-toolvane-probe")).count();
    assert!(tried >= 1);
}

#[tokio::test]
async fn without_any_engine_the_tool_itself_is_tried_and_only_if_it_is_safe() {
    let home = home();
    let backend = unclear().await;
    let process = Process::start(home.path(), backend.address, "", SAFE).await;
    let mut follower = Follower::of(&process, "/v1/events?kind=diagnosis&after=0", &[]).await;
    process.call("odd", "alice").await;
    assert_eq!(done(&mut follower).await["found"], "INTERMITTENT");

    let tried = process.ask("POST", "/v1/tools/odd/recheck?backend=demo", PROBER, &Value::Null).await;
    assert_eq!((tried.status, &tried.body["result"]), (StatusCode::OK, &json!("works")));
    let unsafe_one = process.ask("POST", "/v1/tools/delete_all/recheck?backend=demo", OPERATOR, &Value::Null).await;
    assert_eq!(unsafe_one.status, StatusCode::CONFLICT);
    assert!(unsafe_one.detail().contains("SAFE_PROBE"), "{}", unsafe_one.detail());
    let refused = process.ask("POST", "/v1/tools/odd/recheck?backend=demo", WRITER, &Value::Null).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    let called = |name: &str| backend.seen().iter().filter(|seen| seen.body["params"]["name"] == name).count();
    assert_eq!(called("delete_all"), 0);
}

#[tokio::test]
async fn what_is_down_and_safe_to_try_is_tried_until_it_works_and_then_let_through() {
    let home = home();
    let backend = unclear().await;
    let process = Process::start(home.path(), backend.address, "", SAFE).await;
    let down = json!({"reason": "x", "expiresIn": "12h"});
    process.ask("POST", "/v1/health/PROJECT/default/odd/unavailable?backend=demo", WRITER, &down).await;
    assert_eq!(process.call("odd", "alice").await.header("x-toolvane"), "down");
    process.clock.advance(Duration::from_secs(5));
    super::support::within("a probe that opens a retest", async {
        while process.get("/v1/lookup?tool=odd&backend=demo").await["retesting"] != true {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(process.call("odd", "alice").await.header("x-toolvane"), "", "the trial");
}

#[tokio::test]
async fn an_override_stands_however_often_a_probe_works_until_it_is_taken_back() {
    let home = home();
    let backend = unclear().await;
    let process = Process::start(home.path(), backend.address, "", SAFE).await;
    let down = json!({
        "tool": "odd", "scope": "PROJECT", "scopeId": "default", "backend": "demo", "force": "DOWN", "reason": "x",
        "expiresIn": "12h",
    });
    process.ask("POST", "/v1/override", OPERATOR, &down).await;
    for _ in 0..3 {
        let tried = process.ask("POST", "/v1/tools/odd/recheck?backend=demo", PROBER, &Value::Null).await;
        assert_eq!(tried.body["result"], "works");
        process.clock.advance(Duration::from_secs(3600));
        assert_eq!(process.call("odd", "alice").await.header("x-toolvane"), "down");
    }
    let back = "/v1/override?tool=odd&scope=PROJECT&scopeId=default&backend=demo";
    process.ask("DELETE", back, OPERATOR, &Value::Null).await;
    assert_eq!(process.call("odd", "alice").await.header("x-toolvane"), "");
}

#[tokio::test]
async fn a_job_that_is_leased_outlives_the_process() {
    let home = home();
    let backend = unclear().await;
    let more = "diagnosis: {engine: external}\n";
    let process = Process::start(home.path(), backend.address, "", more).await;
    process.call("odd", "alice").await;
    process.call("other", "alice").await;
    let leased = process.ask("POST", "/v1/diagnosis/jobs/claim", WRITER, &json!({"expiresIn": "10m"})).await;
    assert_eq!(leased.body["toolName"], "odd");
    let next = process.ask("POST", "/v1/diagnosis/jobs/claim", OPERATOR, &json!({})).await;
    assert_eq!(next.body["toolName"], "other");
    let none = process.ask("POST", "/v1/diagnosis/jobs/claim", OPERATOR, &json!({})).await;
    assert_eq!(none.status, StatusCode::NO_CONTENT);
    let mut running = process.running;
    running.stop();
    running.ended().await;

    let process = Process::start(home.path(), backend.address, "", more).await;
    let id = leased.body["id"].as_str().unwrap();
    let stolen = process.ask("POST", &format!("/v1/diagnosis/jobs/{id}/claim"), OPERATOR, &json!({})).await;
    assert_eq!(stolen.status, StatusCode::CONFLICT, "it is the engine's still");
    let answer = json!({"classification": "WORKING", "humanNote": "all is well"});
    let told = process.ask("POST", &format!("/v1/diagnosis/jobs/{id}/complete"), WRITER, &answer).await;
    assert_eq!(told.status, StatusCode::OK, "{}", told.detail());
    process.clock.advance(Duration::from_secs(301));
    let again = process.ask("POST", "/v1/diagnosis/jobs/claim", WRITER, &json!({})).await;
    assert_eq!(again.body["toolName"], "other", "its holder never came back");
}

#[tokio::test]
async fn a_tool_without_a_sample_is_tried_with_the_examples_of_its_schema() {
    let home = home();
    let backend = Server::start(|seen| {
        let schema = json!({"type": "object", "required": ["q"], "properties": {"q": {"examples": ["tea"]}, "n": {}}});
        let result = match seen.body["method"].as_str() {
            Some("tools/list") => json!({"tools": [{"name": "odd", "inputSchema": schema}, {"name": "other"}]}),
            _ => json!({"content": [{"type": "text", "text": "fine"}]}),
        };
        axum::Json(json!({"jsonrpc": "2.0", "id": seen.body["id"], "result": result})).into_response()
    })
    .await;
    let process = Process::start(home.path(), backend.address, "", "tools: {odd: {safety: SAFE_PROBE}}\n").await;
    let recheck = async || process.ask("POST", "/v1/tools/odd/recheck?backend=demo", PROBER, &Value::Null).await;
    let unseen = recheck().await;
    assert_eq!(unseen.status, StatusCode::CONFLICT);
    assert!(unseen.detail().contains("no list was seen yet"), "{}", unseen.detail());
    process.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}), "alice").await;
    let tried = recheck().await;
    assert_eq!((tried.status, &tried.body["result"]), (StatusCode::OK, &json!("works")), "{}", tried.detail());
    let seen = backend.seen();
    let called: Vec<&Value> =
        seen.iter().filter(|seen| seen.body["method"] == "tools/call").map(|seen| &seen.body).collect();
    assert_eq!(called.len(), 1);
    assert_eq!(called[0]["params"]["arguments"], json!({"q": "tea"}));
}

/// What engines sent instead of an answer.
fn malformed() -> Vec<Vec<u8>> {
    let answer = |members: &str| {
        format!(r#"{{"classification": "TECHNICALLY_BROKEN", "humanNote": "x", {members}}}"#).into_bytes()
    };
    let of = |text: &str| text.as_bytes().to_vec();
    let adjustment = r#"{"errorSignature": "a b", "nextSpawnAllowedAt": "2026-03-02T14:30:00Z"}"#;
    vec![
        of(""),
        of("I could not find anything wrong."),
        of("<html>Bad Gateway</html>"),
        of(r#"{"classification": "TECHNICALLY_BROKEN", "humanNote":"#),
        of("```json\n{\"classification\": \"WORKING\", \"humanNote\": \"fine\"}\n```"),
        vec![b'"', 0xff, 0xfe, b'"'],
        of(&"[".repeat(10_000)),
        vec![b' '; 300 * 1024],
        of("[]"),
        of("null"),
        of("{}"),
        of(r#"{"humanNote": "broken"}"#),
        of(r#"{"classification": "TECHNICALLY_BROKEN"}"#),
        of(r#"{"classification": "BROKEN", "humanNote": "x"}"#),
        of(r#"{"classification": "UNCLEAR", "humanNote": "x"}"#),
        of(r#"{"classification": "WORKING", "humanNote": " "}"#),
        of(r#"{"classification": "WORKING", "humanNote": "x", "expectedRecoveryAt": "2026-03-02T15:00:00Z"}"#),
        answer(r#""scope": "GLOBAL""#),
        answer(r#""expectedRecoveryAt": "soon""#),
        answer(r#""expectedRecoveryAt": "2026-03-02T14:00:00Z""#),
        answer(r#""expectedRecoveryAt": "2027-03-02T14:00:00Z""#),
        answer(&format!(r#""cooldownAdjustments": [{adjustment}]"#)),
    ]
}

#[tokio::test]
async fn every_malformed_answer_becomes_degraded_for_a_quarter_of_an_hour_with_a_note_and_is_asked_for_once() {
    let home = home();
    let backend = unclear().await;
    let answers = malformed();
    let engine = Server::start(|seen| {
        let tool = seen.body["toolName"].as_str().unwrap_or_default().to_owned();
        malformed()[tool.trim_start_matches("odd-").parse::<usize>().unwrap()].clone().into_response()
    })
    .await;
    let more = format!("diagnosis: {{engine: webhook, webhook: {{url: \"http://{}/jobs\"}}}}\n", engine.address);
    let process = Process::start(home.path(), backend.address, "", &more).await;
    let mut follower = Follower::of(&process, "/v1/events?kind=diagnosis&after=0", &[]).await;
    for (number, answer) in answers.iter().enumerate() {
        // The bucket gives one a minute, once it is empty.
        process.clock.advance(Duration::from_secs(60));
        let tool = format!("odd-{number}");
        process.call(&tool, "alice").await;
        let found = done(&mut follower).await;
        assert_eq!((&found["found"], &found["toolName"]), (&json!("malformed"), &json!(tool)));
        let view = process.get(&format!("/v1/lookup?tool={tool}&backend=demo")).await;
        let shown = String::from_utf8_lossy(answer).chars().take(60).collect::<String>();
        assert_eq!((&view["status"], &view["scope"]), (&json!("DEGRADED"), &json!("PROJECT")), "{shown}");
        assert!(view["note"].as_str().unwrap().contains("could not be read"), "{view}");
        let in_a_quarter = format!("2026-03-02T14:{}:00.000Z", 18 + number);
        assert_eq!(view["expectedRecoveryAt"], in_a_quarter, "{shown}");
    }
    assert_eq!(engine.seen().len(), answers.len());
}
