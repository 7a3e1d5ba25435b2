//! Why an exchange is judged as it is, asked of a running process.

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::support::{OPERATOR, Process, READER, backend, home};

const RULE: &str = "patterns:\n  - {id: tea, match: {httpStatus: 618, tool: \"brew*\"}, classification: USER_INPUT}\n";

fn teapot() -> Value {
    json!({"service": "demo", "tool": "brew", "response": {"status": 618, "headers": {}, "body": "{}"}})
}

#[tokio::test]
async fn an_exchange_is_explained_by_the_rules_in_force_for_its_caller() {
    let home = home();
    std::fs::create_dir_all(home.path().join("rules/acme")).unwrap();
    std::fs::write(home.path().join("rules/acme/error-patterns.yaml"), RULE).unwrap();
    let process = Process::start(home.path(), backend().await, "", "rules: {dir: rules}\n").await;
    let ask = async |path: &str, body: &Value| process.ask("POST", path, READER, body).await;

    let told = ask("/v1/explain?tenant=acme", &teapot()).await;
    assert_eq!(told.status, StatusCode::OK, "{}", told.detail());
    assert_eq!(told.body["explanation"]["verdict"]["finding"]["rule"], "tea", "{}", told.body);
    assert!(told.body["place"].as_str().unwrap().ends_with("acme/error-patterns.yaml:2:10"), "{}", told.body["place"]);
    assert_eq!((&told.body["forecast"]["scope"], &told.body["forecast"]["status"]), (&json!("USER"), &json!("OK")));
    let earlier = told.body["explanation"]["earlier"].as_array().unwrap();
    assert!(earlier.iter().any(|unmet| unmet["clause"] == "httpStatus"), "{earlier:?}");

    let other = ask("/v1/explain", &teapot()).await;
    assert_ne!(other.body["explanation"]["verdict"]["finding"]["rule"], "tea", "another tenant has other rules");
    assert_eq!(process.audited().await, Vec::<Value>::new(), "nothing was written");
    assert_eq!(process.get("/v1/health").await["documents"], json!([]));
}

#[tokio::test]
async fn the_settings_of_the_tool_and_the_list_of_its_backend_count() {
    let home = home();
    let tools = "session_tools: [client_*]\ntools: {brittle: {down_on_first_failure: true}}\n";
    let process = Process::start(home.path(), backend().await, "", tools).await;
    let case = |tool: &str| json!({"service": "demo", "tool": tool, "response": {"status": 500, "body": "oops"}});
    let then = async |tool: &str, query: &str| {
        process.ask("POST", &format!("/v1/explain?{query}"), OPERATOR, &case(tool)).await.body["forecast"].clone()
    };
    assert_eq!(then("brittle", "").await["status"], "DOWN");
    assert_eq!(then("sturdy", "").await["status"], "OK");
    assert_eq!(then("client_read", "session=s-1").await["scope"], "SESSION");
}

#[tokio::test]
async fn what_is_no_exchange_is_refused_with_what_would_be_one() {
    let home = home();
    let process = Process::start(home.path(), backend().await, "body: 2KiB, ", "").await;
    let ask = async |body: &Value| process.ask("POST", "/v1/explain", READER, body).await;
    let empty = ask(&json!({"tool": "brew"})).await;
    assert_eq!(empty.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(empty.detail().contains("one of `response`, `exchange`, `transport` and `outcome`"), "{}", empty.detail());
    let gremlins = ask(&json!({"transport": {"kind": "gremlins"}})).await;
    assert!(gremlins.detail().contains("`gremlins` is not known"), "{}", gremlins.detail());
    assert_eq!(ask(&json!({"response": {"status": "x"}})).await.status, StatusCode::BAD_REQUEST);
    assert_eq!(ask(&json!({"id": "x".repeat(3_000)})).await.status, StatusCode::PAYLOAD_TOO_LARGE);
    let unknown = process.ask("POST", "/v1/explain?teneant=a", READER, &teapot()).await;
    assert_eq!(unknown.status, StatusCode::BAD_REQUEST);
    let nobody = process.raw("POST", "/v1/explain", &[("host", "evil.example")], &teapot()).await;
    assert_eq!(nobody.status, StatusCode::MISDIRECTED_REQUEST);
}

#[tokio::test]
async fn where_an_object_is_expected_an_array_is_none() {
    let home = home();
    let process = Process::start(home.path(), backend().await, "", "diagnosis: {engine: external}\n").await;
    for (path, body, place, allowed) in [
        ("/v1/explain", json!({"response": []}), "`response`: ", "an object of `status`, `headers`, `body`"),
        (
            "/v1/explain",
            json!({"response": [500, {}, "x"]}),
            "`response`: ",
            "an object of `status`, `headers`, `body`",
        ),
        ("/v1/explain", json!({"transport": ["timeout"]}), "`transport`: ", "an object of `kind`, `detail`"),
        ("/v1/explain", json!({"outcome": []}), "`outcome`: ", "an object of `backend`, `tool`"),
        ("/v1/explain", json!([]), "", "an object of `id`, `service`"),
        ("/v1/diagnosis/jobs/claim", json!(["5m"]), "", "an object of `expiresIn`"),
        ("/v1/health/PROJECT/default/brew/clear", json!(["x", false, null, null]), "", "an object of `reason`"),
    ] {
        let answer = process.ask("POST", path, OPERATOR, &body).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{path} {body}: {}", answer.text);
        let said = format!("{place}invalid type: sequence, expected {allowed}");
        assert!(answer.detail().starts_with(&said), "{path} {body}: {}", answer.detail());
    }
}
