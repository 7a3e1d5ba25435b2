//! What clients hear on their open streams about the tool list.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::support::{Backend, Raw};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use toolvane::app::{self, App, Running};
use toolvane::clock::{ManualClock, Now, Tick, Wall};
use toolvane::config::Config;
use toolvane::yaml::Source;

const START: Now = Now { tick: Tick(1_000_000), wall: Wall(1_772_460_120_000) };

struct Proxy {
    clock: ManualClock,
    running: Running,
    backend: Backend,
}

impl Proxy {
    async fn start() -> Proxy {
        Proxy::with("").await
    }

    /// `of_backend` is laid into the backend's entry.
    async fn with(of_backend: &str) -> Proxy {
        Proxy::set(of_backend, "").await
    }

    /// The same with further sections.
    async fn set(of_backend: &str, more: &str) -> Proxy {
        let backend = Backend::start().await;
        let text = format!(
            "listen: 127.0.0.1:0\nadmin: {{listen: 127.0.0.1:0}}\nstore: {{engine: memory}}\n\
             backends: [{{name: demo, kind: mcp, url: \"http://{}/mcp\"{of_backend}}}]\n\
             tools: {{broken: {{down_on_first_failure: true}}, keyed: {{credentials_required: [{{env: KEY}}]}}, \
             staff: {{requiresEngineRoles: [clerk]}}}}\nmanifest: {{notify_interval: 1s}}\n\
             limits: {{list: 64KiB}}\n{more}",
            backend.address
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
        Proxy { clock, running: app.start().await.unwrap(), backend }
    }

    /// Opens a stream: its client's end and the backend's. HTTP/1.0, so that the client sees the bare events.
    async fn stream(&self) -> (Raw, Raw) {
        let mut client = Raw::new(TcpStream::connect(self.running.listen[0]).await.unwrap());
        client.send("GET /mcp HTTP/1.0\r\nhost: a\r\n\r\n").await;
        let mut upstream = self.backend.accept().await;
        upstream.read_head().await;
        upstream.send("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n").await;
        client.read_head().await;
        (client, upstream)
    }

    /// Posts a message on a connection of its own, and answers it for the backend.
    async fn post(&self, path: &str, message: &Value, status: &str, answer: &str) {
        let mut client = Raw::new(TcpStream::connect(self.running.listen[0]).await.unwrap());
        let (body, kind) = (message.to_string(), "content-type: application/json");
        let length = body.len();
        client
            .send(format!("POST {path} HTTP/1.1\r\nhost: a\r\n{kind}\r\ncontent-length: {length}\r\n\r\n{body}"))
            .await;
        let mut upstream = self.backend.accept().await;
        upstream.read_head().await;
        upstream.read_n(length).await;
        let length = answer.len();
        let head = format!("HTTP/1.1 {status}\r\n{kind}\r\nconnection: close\r\ncontent-length: {length}");
        upstream.send(format!("{head}\r\n\r\n{answer}")).await;
        client.read_head().await;
    }
}

fn call(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "broken", "arguments": {}}})
}

const FAILED: &str = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"assertion failed"}}"#;

#[tokio::test]
async fn clients_hear_when_a_tool_that_is_down_is_listed_as_usable_again_and_when_its_trial_fails() {
    let proxy = Proxy::start().await;
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}});
    let able = r#"{"jsonrpc":"2.0","id":1,"result":{"capabilities":{"tools":{"listChanged":true}}}}"#;
    proxy.post("/mcp", &hello, "200 OK", able).await;
    let (mut client, _upstream) = proxy.stream().await;
    proxy.post("/mcp", &call(1), "200 OK", FAILED).await;
    client.read_until("notifications/tools/list_changed\"}\n\n").await;
    // Nobody calls, and nothing changes but the time.
    proxy.clock.advance(Duration::from_secs(61));
    client.read_until("notifications/tools/list_changed\"}\n\n").await;
    proxy.clock.advance(Duration::from_secs(2));
    proxy.post("/mcp", &call(1), "200 OK", FAILED).await;
    client.read_until("notifications/tools/list_changed\"}\n\n").await;
}

#[tokio::test]
async fn clients_are_not_told_of_a_list_that_reads_as_before_because_the_tool_is_only_observed() {
    let proxy = Proxy::set("", "mode: observe\n").await;
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}});
    let able = r#"{"jsonrpc":"2.0","id":1,"result":{"capabilities":{"tools":{"listChanged":true}}}}"#;
    proxy.post("/mcp", &hello, "200 OK", able).await;
    let (mut client, mut upstream) = proxy.stream().await;
    proxy.post("/mcp", &call(1), "200 OK", FAILED).await;
    upstream.send("data: its own\n\n").await;
    assert_eq!(client.read_until("\n\n").await, "data: its own\n\n");
}

/// A session of the old transport in which `broken` is DOWN.
async fn old_session(proxy: &Proxy) -> (Raw, Raw) {
    let (mut client, mut upstream) = proxy.stream().await;
    upstream.send("event: endpoint\ndata: /messages?s=1\n\n").await;
    client.read_until("s=1\n\n").await;
    proxy.post("/messages?s=1", &call(1), "202 Accepted", "").await;
    upstream.send(format!("data: {FAILED}\n\n")).await;
    client.read_until("\n\n").await;
    (client, upstream)
}

fn list() -> Value {
    json!({"jsonrpc": "2.0", "id": 7, "method": "tools/list"})
}

#[tokio::test]
async fn a_tool_list_on_the_stream_of_the_old_transport_is_annotated_and_all_else_keeps_its_bytes() {
    for (end, pieces) in [("\n", 1), ("\r\n", 3), ("\n", 1000)] {
        let proxy = Proxy::start().await;
        let (mut client, mut upstream) = old_session(&proxy).await;
        proxy.post("/messages?s=1", &list(), "202 Accepted", "").await;
        let listed = |words: &str| {
            format!(
                ": a comment{end}event: other{end}data: {{\"id\" : 7.0}}{end}{end}event: message{end}\
                 data: {{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{{\"tools\":[{{\"name\":\"fine\",\"n\":1.00}},{end}\
                 data:  {{\"name\":\"broken\",\"description\":\"B{words}\"}}]}} }}{end}{end}\
                 data: {{\"jsonrpc\":\"2.0\",\"method\":\"x\"}}{end}{end}data: last{end}{end}"
            )
        };
        let sent = listed("");
        for piece in sent.as_bytes().chunks(sent.len().div_ceil(pieces)) {
            upstream.send(piece).await;
        }
        let seen = client.read_until(&format!("data: last{end}{end}")).await;
        assert_eq!(seen, listed(" [unavailable since 14:02 UTC]"), "in {pieces} pieces");
    }
}

#[tokio::test]
async fn on_the_stream_of_the_old_transport_hidden_tools_are_cut_out_and_every_other_byte_stays() {
    let proxy = Proxy::with(", deny: [shut]").await;
    let (mut client, mut upstream) = proxy.stream().await;
    upstream.send("event: endpoint\ndata: /messages?s=1\n\n").await;
    client.read_until("s=1\n\n").await;
    proxy.post("/messages?s=1", &list(), "202 Accepted", "").await;
    let listed = |hidden: [&str; 3]| {
        let [first, second, last] = hidden;
        format!(
            "event: message\ndata: {{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{{\"tools\":[{first}{{\"name\":\"fine\",\n\
             data:  \"n\":1.00}}{second},{{\"name\":\"\\u0061lso\"}}{last}]}}, \"more\":1e2}}\n\ndata: last\n\n"
        )
    };
    let all = [r#"{"name":"shut"},"#, r#",{"name":"keyed","x":[]}"#, r#",{"name":"staff"}"#];
    upstream.send(listed(all)).await;
    assert_eq!(client.read_until("data: last\n\n").await, listed(["", "", ""]));
}

#[tokio::test]
async fn a_tool_list_on_a_stream_that_is_too_large_to_be_held_passes_as_it_is() {
    let proxy = Proxy::start().await;
    let (mut client, mut upstream) = old_session(&proxy).await;
    proxy.post("/messages?s=1", &list(), "202 Accepted", "").await;
    let long = "x".repeat(200_000);
    let sent = format!(
        "data: {{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{{\"tools\":[{{\"name\":\"broken\",\"description\":\"{long}\"}}]}}}}\n\n\
         data: last\n\n"
    );
    upstream.send(&sent).await;
    assert_eq!(client.read_until("data: last\n\n").await, sent);
}

#[tokio::test]
async fn what_was_held_back_goes_out_when_its_stream_ends() {
    let proxy = Proxy::start().await;
    let (mut client, mut upstream) = old_session(&proxy).await;
    proxy.post("/messages?s=1", &list(), "202 Accepted", "").await;
    upstream.send("data: {\"jsonrpc\":\"2.0\",\"id\":7").await;
    drop(upstream);
    assert_eq!(client.read_rest().await, "data: {\"jsonrpc\":\"2.0\",\"id\":7");
}
