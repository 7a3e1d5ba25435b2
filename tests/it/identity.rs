//! Bearer tokens through the whole process: an issuer with a real HTTP server for its keys, a backend that says what it saw,
//! and a clock that the test moves.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::Ed25519KeyPair;
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use toolvane::app::{self, App, Running};
use toolvane::clock::{ManualClock, Now, Tick, Wall};
use toolvane::config::Config;
use toolvane::telemetry::logs;
use toolvane::yaml::Source;

const START: Now = Now { tick: Tick(1_000_000), wall: Wall(1_772_460_120_000) };

/// A key of the issuer.
struct Signer {
    id: &'static str,
    key: EncodingKey,
}

impl Signer {
    fn new(id: &'static str) -> Signer {
        let pair = Ed25519KeyPair::generate_pkcs8v1(&SystemRandom::new()).unwrap();
        Signer { id, key: EncodingKey::from_ed_der(pair.as_ref()) }
    }

    fn token(&self, user: &str) -> String {
        let header = Header { kid: Some(self.id.to_owned()), ..Header::new(Algorithm::EdDSA) };
        let end = START.wall.0 / 1000 + 24 * 3600;
        let claims = json!({"iss": "issuer", "aud": "tools", "sub": user, "exp": end});
        encode(&header, &claims, &self.key).unwrap()
    }

    fn public(&self) -> Value {
        let mut jwk = serde_json::to_value(Jwk::from_encoding_key(&self.key, Algorithm::EdDSA).unwrap()).unwrap();
        jwk["kid"] = json!(self.id);
        jwk
    }
}

fn key_set(signers: &[&Signer]) -> String {
    json!({"keys": signers.iter().map(|signer| signer.public()).collect::<Vec<_>>()}).to_string()
}

/// The issuer's server of keys.
#[derive(Clone)]
struct Issuer {
    answer: Arc<Mutex<(StatusCode, String)>>,
    asked: Arc<AtomicUsize>,
}

impl Issuer {
    async fn start(keys: String) -> (SocketAddr, Issuer) {
        let issuer = Issuer { answer: Arc::new(Mutex::new((StatusCode::OK, keys))), asked: Arc::default() };
        let answer = |State(issuer): State<Issuer>| async move {
            issuer.asked.fetch_add(1, Ordering::SeqCst);
            issuer.answer.lock().unwrap().clone()
        };
        (serve(Router::new().fallback(answer).with_state(issuer.clone())).await, issuer)
    }

    fn says(&self, status: StatusCode, keys: String) {
        *self.answer.lock().unwrap() = (status, keys);
    }
}

async fn serve(router: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    address
}

/// toolvane in front of an API that allows nothing to anybody, so that every caller leaves a cooldown under his name.
struct Front {
    clock: ManualClock,
    running: Running,
    seen: Arc<Mutex<Vec<HeaderMap>>>,
}

impl Front {
    async fn start(identity: &str) -> Front {
        let seen: Arc<Mutex<Vec<HeaderMap>>> = Arc::default();
        let answer = |State(seen): State<Arc<Mutex<Vec<HeaderMap>>>>, headers: HeaderMap| async move {
            seen.lock().unwrap().push(headers);
            (StatusCode::FORBIDDEN, "you may not")
        };
        let backend = serve(Router::new().fallback(answer).with_state(Arc::clone(&seen))).await;
        let text = format!(
            "listen: 127.0.0.1:0\nadmin: {{listen: 127.0.0.1:0}}\nstore: {{engine: memory}}\n\
             backends: [{{name: api, kind: http, url: \"http://{backend}\", routes: [{{tool: read, method: GET, path: /read}}]}}]\n\
             identity: {{{identity}}}\n"
        );
        let config = Config::read(&Arc::new(Source::new("test.yaml", text)), Path::new("")).unwrap();
        let clock = ManualClock::new(START);
        let app = App {
            rules: app::compile(&config).unwrap(),
            config: Arc::new(config),
            clock: Arc::new(clock.clone()),
            fresh_key: [1; 32],
            seed: 1,
            config_hash: "test".to_owned(),
            config_file: None,
        };
        Front { clock, running: app.start().await.unwrap(), seen }
    }

    async fn with_keys_at(url: SocketAddr, more: &str) -> Front {
        let keys =
            format!("jwt: {{jwks: {{url: \"http://{url}/keys?secret=hunter2\"}}, issuer: issuer, audience: tools}}");
        Front::start(&format!("{keys}, user: [{{header: x-user-id}}, {{jwt: sub}}]{more}")).await
    }

    /// Calls the tool; the answer is the backend's.
    async fn call(&self, token: &str, headers: &[(&str, &str)]) {
        let bearer = format!("Bearer {token}");
        let mut all = vec![("authorization", bearer.as_str())];
        all.extend(headers);
        let answer = get(self.running.listen[0], "/read", &all).await;
        assert!(answer.starts_with("HTTP/1.1 403") && answer.ends_with("you may not"), "{answer}");
    }

    /// The users that left something, each once.
    async fn users(&self) -> Vec<String> {
        let answer = get(self.running.admin, "/v1/health?scope=USER", &[]).await;
        let body: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
        let documents = body["documents"].as_array().unwrap();
        documents.iter().map(|document| document["scopeId"].as_str().unwrap().to_owned()).collect()
    }

    async fn metric(&self, series: &str) -> u64 {
        let answer = get(self.running.admin, "/metrics", &[]).await;
        answer.lines().find_map(|line| line.strip_prefix(series)?.trim().parse().ok()).unwrap_or(0)
    }

    /// Waits, bounded, until the series has this value.
    async fn until(&self, series: &str, value: u64) {
        let counted = async { while self.metric(series).await != value {} };
        let waited = tokio::time::timeout(Duration::from_secs(30), counted).await;
        waited.unwrap_or_else(|_| panic!("{series} should come to {value}"));
    }
}

const CHANGED: &str = "toolvane_document_reads_total{what=\"jwks\",result=\"changed\"}";
const FAILED: &str = "toolvane_document_reads_total{what=\"jwks\",result=\"failed\"}";

async fn get(to: SocketAddr, path: &str, headers: &[(&str, &str)]) -> String {
    let mut stream = TcpStream::connect(to).await.unwrap();
    let lines: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{lines}\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn a_verified_token_names_its_user_and_a_spoofed_header_or_token_changes_nothing_for_him() {
    let (signer, forger) = (Signer::new("k1"), Signer::new("k1"));
    let (url, _) = Issuer::start(key_set(&[&signer])).await;
    let front = Front::with_keys_at(url, ", trusted_sources: [192.0.2.0/24]").await;
    front.until(CHANGED, 1).await;

    front.call(&forger.token("alice"), &[("x-user-id", "alice"), ("x-engine-roles", "admin")]).await;
    assert_eq!(front.users().await, Vec::<String>::new());
    assert_eq!(front.metric("toolvane_identity_tokens_refused_total{reason=\"signature\"}").await, 1);
    assert_eq!(front.metric("toolvane_identity_headers_dropped_total").await, 2);
    let seen = front.seen.lock().unwrap().pop().unwrap();
    assert!(!seen.contains_key("x-user-id") && !seen.contains_key("x-engine-roles"));
    assert_eq!(seen["authorization"], format!("Bearer {}", forger.token("alice")), "a credential always passes");

    front.call(&signer.token("alice"), &[("x-user-id", "bob"), ("mcp-session-id", "s")]).await;
    assert_eq!(front.users().await, ["alice"]);
    assert_eq!(front.seen.lock().unwrap().pop().unwrap()["mcp-session-id"], "s");
}

#[tokio::test]
async fn keys_rotate_without_a_restart_and_the_last_ones_stay_while_the_issuer_is_away() {
    let (old, new) = (Signer::new("old"), Signer::new("new"));
    let (url, issuer) = Issuer::start(key_set(&[&old])).await;
    let front = Front::with_keys_at(url, "").await;
    front.until(CHANGED, 1).await;
    issuer.says(StatusCode::OK, key_set(&[&new]));

    for _ in 0..5 {
        front.call(&new.token("early"), &[]).await;
    }
    assert_eq!(issuer.asked.load(Ordering::SeqCst), 1, "not more often than every ten seconds");
    front.clock.advance(Duration::from_secs(10));
    front.until(CHANGED, 2).await;
    assert_eq!(issuer.asked.load(Ordering::SeqCst), 2, "once for all who asked");
    front.call(&new.token("bob"), &[]).await;
    assert_eq!(front.users().await, ["bob"], "without the key there was no name");

    issuer.says(StatusCode::INTERNAL_SERVER_ERROR, String::new());
    front.clock.advance(Duration::from_secs(600));
    front.until(FAILED, 1).await;
    issuer.says(StatusCode::OK, "<html>".to_owned());
    front.clock.advance(Duration::from_secs(1));
    front.until(FAILED, 2).await;
    front.call(&new.token("carol"), &[]).await;
    let mut users = front.users().await;
    users.sort();
    assert_eq!(users, ["bob", "carol"]);
}

#[tokio::test]
async fn no_call_waits_for_an_issuer_that_does_not_answer() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let front = Front::with_keys_at(silent.local_addr().unwrap(), "").await;
    let held = silent.accept().await.unwrap();
    let calls = async {
        for _ in 0..3 {
            front.call(&Signer::new("k1").token("alice"), &[]).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), calls).await.unwrap();
    assert_eq!(front.users().await, Vec::<String>::new());
    drop(held);
}

#[tokio::test]
async fn keys_in_a_file_hold_from_the_first_call_and_are_read_again_when_they_change() {
    let (old, new) = (Signer::new("old"), Signer::new("new"));
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("keys.json");
    std::fs::write(&file, key_set(&[&old])).unwrap();
    let front = Front::start(&format!(
        "jwt: {{jwks: {{file: \"{}\"}}, issuer: issuer, audience: tools}}, user: [{{jwt: sub}}]",
        file.display()
    ))
    .await;
    front.call(&old.token("alice"), &[]).await;
    assert_eq!(front.users().await, ["alice"]);
    std::fs::write(&file, key_set(&[&new])).unwrap();
    front.clock.advance(Duration::from_secs(1));
    front.until(CHANGED, 2).await;
    front.call(&new.token("bob"), &[]).await;
    front.call(&old.token("carol"), &[]).await;
    let mut users = front.users().await;
    users.sort();
    assert_eq!(users, ["alice", "bob"]);
}

/// Where log lines of this thread go.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn neither_tokens_nor_claims_nor_the_query_of_a_url_get_into_the_log() {
    let lines = Lines::default();
    let writer = lines.clone();
    let clock = Arc::new(ManualClock::new(START));
    let subscriber = logs::subscriber(logs::Format::Json, "trace", clock, move || writer.clone()).unwrap();
    // For the whole process: calls are carried by threads of the proxy's own.
    tracing::subscriber::set_global_default(subscriber).unwrap();

    let (signer, forger) = (Signer::new("k1"), Signer::new("k1"));
    let (url, issuer) = Issuer::start(key_set(&[&signer])).await;
    let front = Front::with_keys_at(url, "").await;
    front.until(CHANGED, 1).await;
    let (good, bad) = (signer.token("alice"), forger.token("mallory"));
    front.call(&good, &[]).await;
    front.call(&bad, &[]).await;
    issuer.says(StatusCode::INTERNAL_SERVER_ERROR, String::new());
    front.clock.advance(Duration::from_secs(600));
    front.until(FAILED, 1).await;

    let log = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains("bearer token gives no identity") && log.contains("document not usable"), "{log}");
    for secret in good.split('.').chain(bad.split('.')).chain(["mallory", "hunter2"]) {
        assert!(!log.contains(secret), "{secret} in\n{log}");
    }
}
