//! A service that answers as a test says, an MCP server with a list, and toolvane between them.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use toolvane::app::{self, App, Running};
use toolvane::clock::{ManualClock, Now, Tick, Wall};
use toolvane::config::{Config, Environment};
use toolvane::yaml::Source;

pub(crate) use crate::wire::{Answer, exchange, within};

pub(crate) const START: Now = Now { tick: Tick(1_000_000), wall: Wall(1_772_460_120_000) };
/// The lifetime of an answer, and more than it can be spread to.
pub(crate) const TTL: Duration = Duration::from_secs(300);
pub(crate) const TTL_SPREAD: Duration = Duration::from_secs(331);

/// The service behind an integration.
#[derive(Clone)]
pub(crate) struct Service {
    pub(crate) address: SocketAddr,
    says: Arc<Mutex<Says>>,
    seen: Arc<Mutex<Vec<Seen>>>,
    released: Arc<Notify>,
}

#[derive(Clone)]
enum Says {
    Answer(StatusCode, Value),
    Nothing,
}

/// A request that came.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) line: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Service {
    pub(crate) async fn start() -> Service {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let service = Service {
            address: listener.local_addr().unwrap(),
            says: Arc::new(Mutex::new(Says::Answer(StatusCode::OK, json!({})))),
            seen: Arc::default(),
            released: Arc::default(),
        };
        let router = Router::new().fallback(served).with_state(service.clone());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        service
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/me", self.address)
    }

    /// A configuration with this service as the integration `gmail` behind `gmail_*`; `more` is laid into the probe.
    pub(crate) fn gmail(&self, more: &str) -> String {
        format!(
            "integrations: {{gmail: {{setup_hint: Sign in., probe: {{request: 'GET {}'{more}}}}}}}\n\
             tools: {{'gmail_*': {{integration: gmail}}}}\n",
            self.url()
        )
    }

    pub(crate) fn answers(&self, status: u16, body: Value) {
        *self.says.lock().unwrap() = Says::Answer(StatusCode::from_u16(status).unwrap(), body);
    }

    /// Takes requests and says nothing until it is released.
    pub(crate) fn hangs(&self) {
        *self.says.lock().unwrap() = Says::Nothing;
    }

    /// What hangs is answered.
    pub(crate) fn release(&self, status: u16) {
        self.answers(status, json!({}));
        self.released.notify_waiters();
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn asked(&self) -> usize {
        self.seen.lock().unwrap().len()
    }

    /// Waits until it has been asked so often.
    pub(crate) async fn is_asked(&self, times: usize) {
        within(&format!("{times} probes"), async {
            while self.asked() < times {
                tokio::task::yield_now().await;
            }
        })
        .await;
        assert_eq!(self.asked(), times);
    }
}

async fn served(State(service): State<Service>, request: Request) -> Response {
    let line = format!("{} {}", request.method(), request.uri());
    let headers = request.headers().clone();
    let body = http_body_util::BodyExt::collect(request.into_body()).await.unwrap().to_bytes();
    let body = String::from_utf8_lossy(&body).into_owned();
    let released = service.released.notified();
    let says = service.says.lock().unwrap().clone();
    service.seen.lock().unwrap().push(Seen { line, headers, body });
    if matches!(says, Says::Nothing) {
        released.await;
    }
    let says = service.says.lock().unwrap().clone();
    match says {
        Says::Answer(status, body) => (status, axum::Json(body)).into_response(),
        Says::Nothing => StatusCode::GATEWAY_TIMEOUT.into_response(),
    }
}

/// An MCP server that answers every call, and calls an unknown tool unknown in its own way.
#[derive(Clone)]
pub(crate) struct Backend {
    pub(crate) address: SocketAddr,
    tools: Arc<Mutex<Vec<Value>>>,
    seen: Arc<Mutex<Vec<Value>>>,
}

impl Backend {
    pub(crate) async fn start(tools: &[Value]) -> Backend {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let backend = Backend { address, tools: Arc::new(Mutex::new(tools.to_vec())), seen: Arc::default() };
        let router = Router::new().fallback(spoken).with_state(backend.clone());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        backend
    }

    /// One with tools of these names and nothing else to say of them.
    pub(crate) async fn with(names: &[&str]) -> Backend {
        let tools: Vec<Value> = names.iter().map(|name| json!({"name": name, "description": "A tool"})).collect();
        Backend::start(&tools).await
    }

    pub(crate) fn calls(&self) -> Vec<Value> {
        let seen = self.seen.lock().unwrap();
        seen.iter().filter(|message| message["method"] == "tools/call").cloned().collect()
    }
}

async fn spoken(State(backend): State<Backend>, headers: HeaderMap, body: String) -> Response {
    if body.is_empty() && headers.get(header::ACCEPT).is_some_and(|accept| accept == "text/event-stream") {
        let open = async_stream();
        return ([(header::CONTENT_TYPE, "text/event-stream")], axum::body::Body::new(open)).into_response();
    }
    let message: Value = serde_json::from_str(&body).unwrap_or_default();
    backend.seen.lock().unwrap().push(message.clone());
    let tools = backend.tools.lock().unwrap().clone();
    let result = match message["method"].as_str() {
        Some("initialize") => json!({"protocolVersion": "2025-11-25", "serverInfo": {"name": "t", "version": "1"},
            "capabilities": {"tools": {"listChanged": true}}}),
        Some("tools/list") => json!({"ttlMs": 600_000, "cacheScope": "public", "tools": tools}),
        _ if tools.iter().any(|tool| tool["name"] == message["params"]["name"]) => {
            json!({"content": [{"type": "text", "text": "done"}]})
        }
        _ => {
            let words = format!("Tool {} isn't here", message["params"]["name"].as_str().unwrap_or_default());
            json!({"content": [{"type": "text", "text": words}], "isError": true})
        }
    };
    axum::Json(json!({"jsonrpc": "2.0", "id": message["id"], "result": result})).into_response()
}

/// A body that stays open and says nothing but a comment.
fn async_stream() -> impl http_body::Body<Data = bytes::Bytes, Error = std::convert::Infallible> + Send {
    let (mut sender, body) = http_body_util::channel::Channel::new(1);
    tokio::spawn(async move {
        let _ = sender.send_data(bytes::Bytes::from_static(b": open\n\n")).await;
        std::future::pending::<()>().await;
    });
    body
}

/// A running toolvane.
pub(crate) struct Front {
    pub(crate) clock: ManualClock,
    pub(crate) running: Running,
}

impl Front {
    pub(crate) async fn before(backend: &Backend, settings: &str) -> Front {
        Front::with(backend, "", settings, &[]).await
    }

    /// `of_backend` is laid into the backend's entry.
    pub(crate) async fn with(
        backend: &Backend,
        of_backend: &str,
        settings: &str,
        environment: &[(&str, &str)],
    ) -> Front {
        let text = format!(
            "listen: 127.0.0.1:0\nadmin: {{listen: \"127.0.0.1:0\", local_writes: loopback}}\nstore: {{engine: memory}}\n\
             backends: [{{name: demo, kind: mcp, url: \"http://{}/mcp\"{of_backend}}}]\n{settings}",
            backend.address
        );
        let config = Config::read(&Arc::new(Source::new("test.yaml", text)), Path::new(""))
            .unwrap_or_else(|report| panic!("{report}"));
        let variables = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let config = Config { environment: Environment::new(variables), ..config };
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
        Front { clock, running: app.start().await.unwrap() }
    }

    pub(crate) async fn post(&self, body: &Value, headers: &[(&str, &str)]) -> Answer {
        exchange(self.running.listen[0], "POST", "/mcp", headers, &body.to_string()).await
    }

    pub(crate) async fn call(&self, tool: &str, headers: &[(&str, &str)]) -> Answer {
        self.post(&call(1, tool), headers).await
    }

    pub(crate) async fn list(&self, headers: &[(&str, &str)]) -> Value {
        self.post(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}), headers).await.json()["result"].clone()
    }

    /// The names in the list.
    pub(crate) async fn names(&self, headers: &[(&str, &str)]) -> Vec<String> {
        let list = self.list(headers).await;
        list["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    pub(crate) async fn admin(&self, path: &str) -> Value {
        exchange(self.running.admin, "GET", path, &[], "").await.json()
    }

    pub(crate) async fn admin_post(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        exchange(self.running.admin, "POST", path, headers, "").await
    }

    pub(crate) async fn metrics(&self) -> String {
        exchange(self.running.admin, "GET", "/metrics", &[], "").await.body
    }

    /// Waits until the list holds just these names.
    pub(crate) async fn lists(&self, names: &[&str]) {
        within(&format!("the list to be {names:?}"), async { while self.names(&[]).await != names {} }).await;
    }

    /// Waits until so many probes of the integration have been recorded with this result.
    pub(crate) async fn has_found(&self, result: &str, times: usize) {
        let line = format!("toolvane_integration_probes_total{{integration=\"gmail\",result=\"{result}\"}} {times}");
        within(&line, async { while !self.metrics().await.lines().any(|found| found == line) {} }).await;
    }

    /// Waits until the integration is in this state.
    pub(crate) async fn reaches(&self, id: &str, state: &str) {
        let path = format!("/v1/integrations/{id}");
        within(&format!("{id} to be {state}"), async { while self.admin(&path).await["state"] != state {} }).await;
    }

    /// What the admin surface says of a tool.
    pub(crate) async fn entry(&self, tool: &str, who: &str) -> Value {
        let manifest = self.admin(&format!("/v1/manifest?{who}")).await;
        let found = manifest["tools"].as_array().unwrap().iter().find(|entry| entry["tool"] == tool).cloned();
        found.unwrap_or_else(|| panic!("no {tool} in {manifest}"))
    }
}

pub(crate) fn call(id: i64, tool: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": {}}})
}

/// An open stream of a client, which is told things.
pub(crate) struct Listening {
    stream: TcpStream,
    heard: String,
}

impl Listening {
    pub(crate) async fn to(front: &Front) -> Listening {
        front.post(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}}), &[]).await;
        Listening::at(front.running.listen[0], "/mcp", ": open").await
    }

    /// Somebody who follows events of the admin surface.
    pub(crate) async fn events(front: &Front, kind: &str) -> Listening {
        Listening::at(front.running.admin, &format!("/v1/events?kind={kind}"), "retry: ").await
    }

    async fn at(address: SocketAddr, path: &str, begins: &str) -> Listening {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut listening = Listening { stream, heard: String::new() };
        listening.hears(begins).await;
        listening
    }

    /// Waits until this was heard.
    pub(crate) async fn hears(&mut self, what: &str) {
        within(what, async {
            while !self.heard.contains(what) {
                let mut chunk = [0; 4096];
                let read = self.stream.read(&mut chunk).await.unwrap();
                assert!(read > 0, "the stream ended after {:?}", self.heard);
                self.heard += &String::from_utf8_lossy(&chunk[..read]);
            }
        })
        .await;
    }

    /// How often the client was told of a changed list, of all that has arrived by now.
    pub(crate) fn told(&mut self) -> usize {
        let mut chunk = [0; 4096];
        while let Ok(read) = self.stream.try_read(&mut chunk) {
            self.heard += &String::from_utf8_lossy(&chunk[..read]);
        }
        self.heard.matches("tools/list_changed").count()
    }
}
