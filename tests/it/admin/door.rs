//! Who comes in: tokens and roles, hosts and origins, sockets.

use axum::http::StatusCode;
use serde_json::{Value, json};
use tokio::net::UnixStream;

use super::support::{OPERATOR, Process, WRITER, backend, exchange, home};

const DOWN: &str = "/v1/health/PROJECT/default/search/unavailable";

fn statement() -> Value {
    json!({"reason": "the index is being rebuilt", "expiresIn": "15m"})
}

type Headers = &'static [(&'static str, &'static str)];

const LOCAL: (&str, &str) = ("host", "localhost");
const AS_WRITER: (&str, &str) = ("authorization", "Bearer writer-token-0123456789");
const AS_READER: (&str, &str) = ("authorization", "Bearer reader-token-0123456789");
const AS_PROBER: (&str, &str) = ("authorization", "Bearer prober-token-0123456789");
const AS_NOBODY: (&str, &str) = ("authorization", "Bearer writer-token-012345678X");

/// Who is refused what with which status, and whom the audit log names.
fn refused() -> Vec<(Headers, &'static str, Value, u16, &'static str)> {
    let wide = "/v1/health/TENANT/acme/search/unavailable";
    let decision = json!({"tool": "search", "scope": "PROJECT", "scopeId": "default", "force": "DOWN", "reason": "x"});
    let elsewhere: Headers = &[("host", "evil.example"), AS_WRITER];
    let foreign: Headers = &[LOCAL, AS_WRITER, ("origin", "https://evil.example")];
    let across: Headers = &[LOCAL, AS_WRITER, ("sec-fetch-site", "cross-site")];
    let odd: Headers = &[LOCAL, AS_WRITER, ("origin", "http://localhost/\u{e9}")];
    let text: Headers = &[LOCAL, AS_WRITER, ("content-type", "text/plain")];
    vec![
        (&[LOCAL], DOWN, statement(), 401, "local"),
        (&[LOCAL, AS_READER], DOWN, statement(), 403, "viewer"),
        (&[LOCAL, AS_PROBER], DOWN, statement(), 403, "prober"),
        (&[LOCAL, AS_NOBODY], DOWN, statement(), 401, "nobody"),
        (elsewhere, DOWN, statement(), 421, "nobody"),
        (foreign, DOWN, statement(), 403, "nobody"),
        (across, DOWN, statement(), 403, "nobody"),
        (odd, DOWN, statement(), 403, "nobody"),
        (foreign, "/v1/explain", statement(), 403, "nobody"),
        (&[AS_WRITER], DOWN, statement(), 400, "nobody"),
        (&[LOCAL, AS_WRITER], DOWN, json!({"reason": "no end"}), 422, "engine"),
        (&[LOCAL, AS_WRITER], DOWN, json!({"expiresIn": "15m"}), 422, "engine"),
        (&[LOCAL, AS_WRITER], wide, statement(), 403, "engine"),
        (text, DOWN, statement(), 415, "engine"),
        (&[LOCAL, AS_WRITER], "/v1/override", decision, 403, "engine"),
    ]
}

#[tokio::test]
async fn a_write_without_the_right_to_it_is_refused_changes_nothing_and_is_audited() {
    let home = home();
    let process = Process::start(home.path(), backend().await, "", "").await;
    let refused = refused();
    for (headers, path, body, status, _) in &refused {
        let answer = process.raw("POST", path, headers, body).await;
        assert_eq!(answer.status, *status, "{headers:?} {body} {}", answer.detail());
        assert_eq!(answer.body["status"], *status, "a problem document");
    }
    assert_eq!(process.get("/v1/health").await["documents"], json!([]));
    let audited = process.audited().await;
    assert_eq!(audited.len(), refused.len());
    for (told, (_, path, _, status, who)) in audited.iter().zip(&refused) {
        assert_eq!((&told["done"], &told["who"]), (&json!(false), &json!(who)));
        assert_eq!(told["what"], format!("POST {path}"));
        assert_eq!(told["outcome"], format!("HTTP {status}"));
    }
}

#[tokio::test]
async fn an_override_without_an_end_or_a_reason_is_refused() {
    let home = home();
    let process = Process::start(home.path(), backend().await, "", "").await;
    let decision = |more: Value| {
        let mut body = json!({"tool": "search", "scope": "PROJECT", "scopeId": "default", "force": "DOWN"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    for more in [
        json!({"reason": "maintenance"}),
        json!({"expiresIn": "1h"}),
        json!({"reason": "maintenance", "expiresIn": "8d"}),
        json!({"reason": "maintenance", "until": "2020-01-01T00:00:00Z"}),
        json!({"reason": "maintenance", "expiresIn": "1h", "until": "2026-03-02T15:00:00Z"}),
    ] {
        let answer = process.ask("POST", "/v1/override", OPERATOR, &decision(more.clone())).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{more}: {}", answer.detail());
    }
    assert_eq!(process.get("/v1/overrides").await["overrides"], json!([]));
    assert_eq!(process.audited().await.len(), 5);
}

#[tokio::test]
async fn loopback_reads_without_a_token_and_writes_where_the_operator_says_so() {
    let home = home();
    let process = Process::start(home.path(), backend().await, "local_writes: loopback, ", "").await;
    let anybody = [("host", "127.0.0.1:9090")];
    assert_eq!(process.raw("GET", "/v1/health", &anybody, &Value::Null).await.status, StatusCode::OK);
    assert_eq!(process.raw("POST", DOWN, &anybody, &statement()).await.status, StatusCode::OK);
    let foreign = [("host", "127.0.0.1:9090"), ("origin", "http://evil.example")];
    assert_eq!(process.raw("POST", DOWN, &foreign, &statement()).await.status, StatusCode::FORBIDDEN);
    let own = [("host", "127.0.0.1:9090"), ("origin", "http://127.0.0.1:9090")];
    assert_eq!(process.raw("POST", DOWN, &own, &statement()).await.status, StatusCode::OK);
    let wrong = [("host", "localhost"), ("authorization", "Bearer nothing-that-is-known")];
    assert_eq!(process.raw("GET", "/v1/health", &wrong, &Value::Null).await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_unix_socket_answers_beside_the_listener_and_may_be_where_one_writes() {
    use std::os::unix::fs::PermissionsExt;

    let home = home();
    let socket = home.path().join("admin.sock");
    let admin = format!("socket: \"{}\", local_writes: socket, ", socket.display());
    let process = Process::start(home.path(), backend().await, &admin, "").await;
    assert_eq!(std::fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    let stream = UnixStream::connect(&socket).await.unwrap();
    let written = exchange(stream, "POST", DOWN, &[("host", "toolvane")], &statement()).await;
    assert_eq!(written.status, StatusCode::OK, "{}", written.detail());
    let over_tcp = process.raw("POST", DOWN, &[("host", "localhost")], &statement()).await;
    assert_eq!(over_tcp.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_body_past_the_bound_is_refused_and_so_is_a_key_that_nobody_knows() {
    let home = home();
    let process = Process::start(home.path(), backend().await, "body: 2KiB, ", "").await;
    let large = json!({"reason": "x".repeat(3_000), "expiresIn": "15m"});
    assert_eq!(process.ask("POST", DOWN, WRITER, &large).await.status, StatusCode::PAYLOAD_TOO_LARGE);
    let strange = json!({"reason": "x", "expiresIn": "15m", "expires": "15m"});
    let answer = process.ask("POST", DOWN, WRITER, &strange).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    assert!(answer.detail().contains("expires"), "{}", answer.detail());
}

#[tokio::test]
async fn every_described_path_is_served() {
    let home = home();
    let process = Process::start(home.path(), backend().await, "", "").await;
    let described = process.get("/v1/openapi.json").await;
    assert_eq!(described["openapi"], "3.1.0");
    let paths = described["paths"].as_object().unwrap();
    assert!(paths.len() > 10);
    for (path, item) in paths {
        for method in item.as_object().unwrap().keys().filter(|method| *method != "get") {
            let path = path.replace("{scope}", "PROJECT").replace("{scopeId}", "default").replace("{tool}", "x");
            if path == "/v1/drain" {
                continue;
            }
            let answer = process.ask(&method.to_uppercase(), &path, OPERATOR, &json!({"none": 1})).await;
            assert_ne!(answer.status, StatusCode::METHOD_NOT_ALLOWED, "{method} {path}");
            assert_ne!(answer.body["title"], "nothing here", "{method} {path}");
        }
    }
    let config = process.get("/v1/config").await;
    assert!(config["text"].as_str().unwrap().contains("backends"));
    assert!(!config["text"].as_str().unwrap().contains(OPERATOR));
}

#[tokio::test]
async fn a_path_or_query_that_cannot_be_read_is_told_in_a_problem_document() {
    let home = home();
    let process = Process::start(home.path(), backend().await, "", "").await;
    for path in ["/v1/health/USER/%FF/search", "/v1/integrations/%FF", "/v1/health?limit=%FF", "/v1/health?scope=all"] {
        let answer = process.raw("GET", path, &[LOCAL], &Value::Null).await;
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (StatusCode::BAD_REQUEST, "application/problem+json")
        );
        assert!(!answer.detail().is_empty(), "{path}");
    }
}
