//! Secrets go to the service and nowhere else: not into logs, metrics, answers or messages.

use std::io::Write;
use std::sync::{Arc, Mutex};

use serde_json::json;
use toolvane::clock::SystemClock;
use toolvane::telemetry::logs;

use super::support::{Backend, Front, Service, exchange};

const PLANTED: [(&str, &str); 4] = [
    ("TOKEN", "planted-token-1"),
    ("QUERY", "planted-query-2"),
    ("REFRESH", "planted-refresh-3"),
    ("CLIENT", "planted-client-4"),
];

#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The only test of its process that looks at the log, since it puts a subscriber in force (cargo-nextest gives each test a
/// process; under `cargo test` others only add lines).
#[tokio::test]
async fn planted_secrets_reach_the_service_and_nothing_else() {
    let written = Written::default();
    let sink = written.clone();
    let subscriber =
        logs::subscriber(logs::Format::Json, "trace", Arc::new(SystemClock), move || sink.clone()).unwrap();
    let _ = tracing::subscriber::set_global_default(subscriber);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key");
    std::fs::write(&file, "planted-file-5\n").unwrap();
    let (service, token, backend) = (Service::start().await, Service::start().await, Backend::with(&["gmail_a"]).await);
    // The service says them back, which must not travel either.
    let echo = json!({"access_token": "planted-access-6", "error": "planted-token-1", "message": "planted-file-5"});
    token.answers(200, echo.clone());
    service.answers(401, echo.clone());
    let settings = format!(
        "integrations: {{gmail: {{credentials_required: [{{env: TOKEN}}, {{file: {file}}}], probe: {{\
         oauth: {{token_url: '{token}', client_id: '${{env:CLIENT}}', refresh_token: '${{env:REFRESH}}'}}, \
         request: 'POST {service}?key=${{env:QUERY}}', body: '${{file:{file}}}', \
         headers: {{authorization: 'Bearer ${{env:TOKEN}}', x-access: '${{oauth:access_token}}'}}, \
         auth_failed: [{{json: {{/error: '*'}}}}]}}}}}}\ntools: {{'gmail_*': {{integration: gmail}}}}\n",
        file = file.display(),
        token = token.url(),
        service = service.url()
    );
    let front = Front::with(&backend, "", &settings, &PLANTED).await;
    front.names(&[]).await;
    front.reaches("gmail", "auth_failed").await;
    let sent = format!("{:?} {:?}", service.seen(), token.seen());
    for secret in ["token-1", "query-2", "refresh-3", "client-4", "file-5", "access-6"] {
        assert!(sent.contains(&format!("planted-{secret}")), "{secret} was sent where it belongs");
    }
    let mut all = String::new();
    for status in [400, 500, 404, 200] {
        token.answers(status, echo.clone());
        front.admin_post("/v1/integrations/gmail/invalidate", &[]).await;
        all += &front.admin("/v1/integrations").await.to_string();
        all += &front.call("gmail_a", &[]).await.body;
        all += &front.list(&[]).await.to_string();
    }
    std::fs::remove_file(&file).unwrap();
    front.reaches("gmail", "credentials_missing").await;
    all += &front.call("gmail_a", &[]).await.body;
    for path in
        ["/v1/manifest", "/v1/tools", "/v1/health", "/v1/integrations/gmail", "/metrics", "/v1/config", "/v1/nothing"]
    {
        all += &exchange(front.running.admin, "GET", path, &[], "").await.body;
    }
    all += &format!("{:?}", front.running);
    front.running.stop();
    let log = String::from_utf8_lossy(&written.0.lock().unwrap()).into_owned();
    for line in ["integration probed", "integration changed", "tool is not set up"] {
        assert!(log.contains(line), "{line} is missing: {log}");
    }
    assert!(all.contains("credentials_missing"));
    assert!(!(all + &log).contains("planted-"), "a secret got out");
}
