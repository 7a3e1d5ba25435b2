//! How a process leaves (DESIGN 18): announced first, with what is in flight finished, and what takes too long answered.

use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::support::{Backend, Raw, within};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use toolvane::app::{self, App, Running};
use toolvane::clock::SystemClock;
use toolvane::config::Config;
use toolvane::telemetry::logs;
use toolvane::yaml::Source;

/// What the process logs, on this thread.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn begin() -> (Log, tracing::subscriber::DefaultGuard) {
        let log = Log::default();
        let writer = log.clone();
        let subscriber =
            logs::subscriber(logs::Format::Json, "info", Arc::new(SystemClock), move || writer.clone()).unwrap();
        (log, tracing::subscriber::set_default(subscriber))
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

async fn start(backend: &Backend, settings: &str) -> Running {
    let at = backend.address;
    let text = format!(
        "listen: 127.0.0.1:0\nadmin: {{listen: 127.0.0.1:0}}\nstore: {{engine: memory}}\nbackends:\n\
         - {{name: demo, kind: mcp, url: \"http://{at}/mcp\"}}\n\
         - {{name: items, kind: http, url: \"http://{at}\", match: {{path_prefix: /v1}}, \
         routes: [{{tool: get_item, method: GET, path: \"/v1/items/{{id}}\"}}]}}\n{settings}"
    );
    let config = Config::read(&Arc::new(Source::new("test.yaml", text)), Path::new("")).unwrap();
    let app = App {
        rules: app::compile(&config).unwrap(),
        config: Arc::new(config),
        clock: Arc::new(SystemClock),
        fresh_key: [1; 32],
        seed: 1,
        config_hash: "test".to_owned(),
        config_file: None,
    };
    app.start().await.unwrap()
}

async fn connect(running: &Running) -> Raw {
    Raw::new(TcpStream::connect(running.listen[0]).await.unwrap())
}

fn post(path: &str, message: &Value) -> String {
    let body = message.to_string();
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

fn call(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "slow", "arguments": {}}})
}

/// A request that has reached the backend, and both ends of its way.
async fn in_flight(running: &Running, backend: &Backend, request: &str) -> (Raw, Raw) {
    let mut client = connect(running).await;
    client.send(request).await;
    let mut upstream = backend.accept().await;
    upstream.read_head().await;
    (client, upstream)
}

const STREAM: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

fn body_of(answer: &str) -> Value {
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}

#[tokio::test]
async fn what_outlives_the_drain_timeout_is_answered_in_the_shape_that_its_caller_understands() {
    let (log, _guard) = Log::begin();
    let backend = Backend::start().await;
    let mut running = start(&backend, "").await;
    let (mut plain, _up) = in_flight(&running, &backend, &post("/mcp", &call(1))).await;
    let (mut streamed, mut up) = in_flight(&running, &backend, &post("/mcp", &call(2))).await;
    up.send(format!("{STREAM}10\r\ndata: {{\"jsonrpc\"\r\n")).await;
    streamed.read_until("\"jsonrpc\"").await;
    let (mut begun, mut up2) = in_flight(&running, &backend, &post("/mcp", &call(3))).await;
    up2.send("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{\"jsonrpc\"").await;
    begun.read_until("\"jsonrpc\"").await;
    let (mut batch, _up3) = in_flight(&running, &backend, &post("/mcp", &json!([call(4), call(5)]))).await;
    let (mut item, _up4) = in_flight(&running, &backend, "GET /v1/items/1 HTTP/1.1\r\nhost: a\r\n\r\n").await;
    let (mut listening, mut up5) = in_flight(&running, &backend, "GET /mcp HTTP/1.1\r\nhost: a\r\n\r\n").await;
    up5.send(STREAM).await;
    listening.read_head().await;
    let (mut other, _up6) = in_flight(&running, &backend, "GET /v1/elsewhere HTTP/1.1\r\nhost: a\r\n\r\n").await;

    running.stop();
    let answer = plain.read_rest().await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("x-toolvane: drain\r\n"), "{answer}");
    assert!(answer.contains("connection: close\r\n"), "{answer}");
    let body = body_of(&answer);
    assert_eq!((&body["id"], &body["result"]["isError"]), (&json!(1), &json!(true)));
    let words = body["result"]["content"][0]["text"].as_str().unwrap();
    assert!(words.starts_with("slow gave no answer") && words.contains("toolvane is stopping"), "{words}");
    assert!(words.contains("It may or may not have run"), "{words}");

    let rest = streamed.read_rest().await;
    assert!(rest.contains("event: discarded\n\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":2,"), "{rest}");
    assert!(rest.contains("toolvane is stopping") && rest.ends_with("0\r\n\r\n"), "{rest}");
    assert_eq!(begun.read_rest().await, "", "nothing can be said inside of a body");
    let batch = body_of(&batch.read_rest().await);
    assert_eq!((&batch[0]["id"], &batch[1]["id"]), (&json!(4), &json!(5)));
    assert_eq!(batch[1]["result"]["isError"], true);
    let item = item.read_rest().await;
    assert!(item.starts_with("HTTP/1.1 503 ") && item.contains("retry-after: "), "{item}");
    assert!(item.contains("x-toolvane: drain\r\n") && item.contains("toolvane is stopping"), "{item}");
    assert!(listening.read_rest().await.ends_with("0\r\n\r\n"), "a stream ends well, and its client comes back");
    let other = other.read_rest().await;
    assert!(other.starts_with("HTTP/1.1 503 ") && other.contains("x-toolvane: drain\r\n"), "{other}");

    within("the end of the process", running.ended()).await;
    assert!(log.text().contains("\"cut_off\":6"), "{}", log.text());
}

#[tokio::test]
async fn a_call_of_the_old_transport_that_outlives_the_drain_timeout_is_answered_on_its_stream() {
    let backend = Backend::start().await;
    let mut running = start(&backend, "").await;
    let (mut stream, mut up) = in_flight(&running, &backend, "GET /mcp HTTP/1.1\r\nhost: a\r\n\r\n").await;
    let endpoint = "event: endpoint\ndata: /messages?s=1\n\n";
    up.send(format!("{STREAM}{:x}\r\n{endpoint}\r\n", endpoint.len())).await;
    stream.read_until("s=1\n\n").await;
    let (mut poster, mut up2) = in_flight(&running, &backend, &post("/messages?s=1", &call(8))).await;
    up2.send("HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n").await;
    poster.read_head().await;
    running.stop();
    let rest = stream.read_rest().await;
    assert!(rest.contains("\"id\":8,\"result\"") && rest.contains("toolvane is stopping"), "{rest}");
    within("the end of the process", running.ended()).await;
}

#[tokio::test]
async fn calls_of_http_2_are_answered_and_counted_too() {
    let (log, _guard) = Log::begin();
    let backend = Backend::start().await;
    let mut running = start(&backend, "").await;
    let io = TcpStream::connect(running.listen[0]).await.unwrap();
    let (mut sender, driver) =
        hyper::client::conn::http2::handshake(hyper_util::rt::TokioExecutor::new(), hyper_util::rt::TokioIo::new(io))
            .await
            .unwrap();
    let driver = tokio::spawn(driver);
    let request = http::Request::get("http://a/v1/items/1").body(String::new()).unwrap();
    let answer = tokio::spawn(sender.send_request(request));
    let mut upstream = backend.accept().await;
    upstream.read_head().await;
    running.stop();
    let answer = within("the answer", answer).await.unwrap().unwrap();
    assert_eq!((answer.status().as_u16(), answer.headers()["x-toolvane"].to_str().unwrap()), (503, "drain"));
    drop((answer, sender));
    within("the end of the process", running.ended()).await;
    let _ = driver.await;
    assert!(log.text().contains("\"cut_off\":1"), "{}", log.text());
}

#[tokio::test]
async fn what_is_in_flight_is_finished_and_nothing_counts_as_cut_off() {
    let (log, _guard) = Log::begin();
    let backend = Backend::start().await;
    let mut running = start(&backend, "drain_announce: 0s\ndrain_timeout: 10m\n").await;
    let (mut client, mut up) = in_flight(&running, &backend, &post("/mcp", &call(1))).await;
    running.drain();
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#;
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}", answer.len());
    up.send(format!("{head}\r\n\r\n{answer}")).await;
    let got = client.read_rest().await;
    assert!(got.contains("connection: close\r\n") && got.ends_with(answer), "{got}");
    within("the end of the process", running.ended()).await;
    assert!(log.text().contains("\"cut_off\":0"), "{}", log.text());
}

#[tokio::test]
async fn while_a_drain_is_announced_new_calls_are_served_and_told_to_go_elsewhere() {
    let backend = Backend::start().await;
    let mut running = start(&backend, "drain_announce: 5m\ndrain_timeout: 10m\n").await;
    running.drain();
    let mut admin = Raw::new(TcpStream::connect(running.admin).await.unwrap());
    admin.send("GET /readyz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await;
    assert!(admin.read_rest().await.starts_with("HTTP/1.1 503 "));
    let (mut client, mut up) = in_flight(&running, &backend, "GET /v1/items/1 HTTP/1.1\r\nhost: a\r\n\r\n").await;
    up.send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
    let got = client.read_rest().await;
    assert!(got.starts_with("HTTP/1.1 200 OK\r\n") && got.contains("connection: close\r\n"), "{got}");
    // Whoever is in a hurry says so again.
    running.stop();
    within("the end of the process", running.ended()).await;
}
