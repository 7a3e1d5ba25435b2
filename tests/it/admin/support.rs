//! A whole process before a backend that answers as a test says, with tokens, a clock that a test moves, and raw requests to
//! its admin surface.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use toolvane::app::{self, App, Running};
use toolvane::clock::{ManualClock, Now, Tick, Wall};
use toolvane::config::Config;
use toolvane::yaml::Source;

use crate::wire;
pub(crate) use crate::wire::within;

pub(crate) const START: Now = Now { tick: Tick(1_000_000), wall: Wall(1_772_460_120_000) };

pub(crate) const OPERATOR: &str = "operator-token-0123456789";
pub(crate) const WRITER: &str = "writer-token-0123456789";
pub(crate) const PROBER: &str = "prober-token-0123456789";
pub(crate) const READER: &str = "reader-token-0123456789";

/// Where the state and the tokens of one process lie.
pub(crate) fn home() -> TempDir {
    let home = tempfile::tempdir().unwrap();
    for (name, token) in [("operator", OPERATOR), ("writer", WRITER), ("prober", PROBER), ("reader", READER)] {
        std::fs::write(home.path().join(name), format!("{token}\n")).unwrap();
    }
    home
}

/// The part of the file that names the tokens.
pub(crate) const TOKENS: &str = "tokens: [{name: ops, token: {file: operator}, roles: [operator]}, \
    {name: engine, token: {file: writer}, roles: [tool-health-writer]}, \
    {name: prober, token: {file: prober}, roles: [tool-prober]}, \
    {name: viewer, token: {file: reader}, roles: [reader]}]";

pub(crate) struct Process {
    pub(crate) clock: ManualClock,
    pub(crate) running: Running,
}

impl Process {
    /// A process with its state in `home`; `admin` are further keys of that section, `more` further sections.
    pub(crate) async fn start(home: &Path, backend: SocketAddr, admin: &str, more: &str) -> Process {
        Process::start_at(START, "127.0.0.1:0", home, backend, (admin, more)).await
    }

    /// The same at another time, or with the admin surface on another address.
    pub(crate) async fn start_at(
        now: Now,
        listen: &str,
        home: &Path,
        backend: SocketAddr,
        (admin, more): (&str, &str),
    ) -> Process {
        let store = home.join("state.redb");
        let text = format!(
            "listen: 127.0.0.1:0\nadmin: {{listen: \"{listen}\", {admin}{TOKENS}}}\n\
             store: {{path: \"{}\"}}\nbackends: [{{name: demo, kind: mcp, url: \"http://{backend}/mcp\", timeouts: {{connect: 60s}}}}]\n{more}",
            store.display()
        );
        let source = Arc::new(Source::new("test.yaml", text));
        let config = Config::read(&source, home).unwrap_or_else(|report| panic!("{report:?}"));
        let clock = ManualClock::new(now);
        let app = App {
            rules: app::compile(&config).unwrap(),
            config: Arc::new(config),
            clock: Arc::new(clock.clone()),
            fresh_key: [1; 32],
            seed: 1,
            config_hash: "test".to_owned(),
            config_file: None,
        };
        Process { clock, running: app.start().await.unwrap() }
    }

    /// One request to the admin surface with a token.
    pub(crate) async fn ask(&self, method: &str, path: &str, token: &str, body: &Value) -> Answer {
        let token = format!("Bearer {token}");
        self.raw(method, path, &[("host", "localhost"), ("authorization", &token)], body).await
    }

    pub(crate) async fn raw(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
        let stream = TcpStream::connect(self.running.admin).await.unwrap();
        exchange(stream, method, path, headers, body).await
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        self.ask("GET", path, READER, &Value::Null).await.body
    }

    /// A call of a tool, as a dispatcher sends it.
    pub(crate) async fn call(&self, tool: &str, user: &str) -> Answer {
        let body =
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": {}}});
        self.send(&body, user).await
    }

    /// A message of a dispatcher.
    pub(crate) async fn send(&self, message: &Value, user: &str) -> Answer {
        let stream = TcpStream::connect(self.running.listen[0]).await.unwrap();
        exchange(stream, "POST", "/mcp", &[("host", "localhost"), ("x-user-id", user)], message).await
    }

    /// What the audit log told, oldest first.
    pub(crate) async fn audited(&self) -> Vec<Value> {
        let reader = format!("Bearer {READER}");
        let mut stream = Follower::of(self, "/v1/events?kind=audit&after=0", &[("authorization", &reader)]).await;
        // A write that nobody knows marks the end of what there is.
        self.ask("POST", "/v1/the-end", OPERATOR, &json!({})).await;
        let mut told = Vec::new();
        loop {
            let event = stream.next().await;
            if event.data["what"] == "POST /v1/the-end" {
                return told;
            }
            told.push(event.data);
        }
    }
}

pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn detail(&self) -> &str {
        self.body["detail"].as_str().unwrap_or_default()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

/// One request on a connection of its own, read to the end of the connection.
pub(crate) async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &Value,
) -> Answer {
    // A text is a form, everything else JSON.
    let body = match body {
        Value::Null => String::new(),
        Value::String(form) => form.clone(),
        other => other.to_string(),
    };
    let raw = wire::exchange_on(stream, method, path, headers, &body).await;
    let wire::Answer { status, headers, body } = wire::parse(&String::from_utf8(raw).unwrap());
    Answer { status, headers, body: serde_json::from_str(&body).unwrap_or(Value::Null), text: body }
}

/// A backend of which every tool answers well, or with -32603 if its name starts with `broken`.
pub(crate) async fn backend() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().fallback(answer);
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    address
}

async fn answer(body: String) -> Response {
    axum::Json(backend_answer(&serde_json::from_str(&body).unwrap_or_default())).into_response()
}

/// What that backend says to a message.
pub(crate) fn backend_answer(message: &Value) -> Value {
    let name = message["params"]["name"].as_str().unwrap_or_default();
    if name.starts_with("broken") {
        json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32603, "message": "assertion failed"}})
    } else {
        let content = json!([{"type": "text", "text": "fine"}]);
        json!({"jsonrpc": "2.0", "id": message["id"], "result": {"content": content}})
    }
}

/// One event of the stream.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) data: Value,
}

/// Somebody who follows the events.
pub(crate) struct Follower {
    stream: TcpStream,
    text: String,
}

impl Follower {
    pub(crate) async fn of(process: &Process, path: &str, headers: &[(&str, &str)]) -> Follower {
        let mut stream = TcpStream::connect(process.running.admin).await.unwrap();
        let mut head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n");
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        stream.write_all(format!("{head}\r\n").as_bytes()).await.unwrap();
        let mut follower = Follower { stream, text: String::new() };
        let head = follower.block("\r\n\r\n").await;
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        follower.block("retry: 2000\n\n").await;
        follower
    }

    /// Text up to and with `end`. Chunk borders lie between blocks, never within one, as each is written whole.
    async fn block(&mut self, end: &str) -> String {
        within(end, async {
            loop {
                if let Some(at) = self.text.find(end) {
                    let rest = self.text.split_off(at + end.len());
                    return std::mem::replace(&mut self.text, rest);
                }
                let mut bytes = vec![0; 64 * 1024];
                let read = self.stream.read(&mut bytes).await.unwrap();
                assert!(read > 0, "the stream ended with {:?}", self.text);
                self.text += &String::from_utf8_lossy(&bytes[..read]);
            }
        })
        .await
    }

    /// The next event; comments and chunk sizes are skipped.
    pub(crate) async fn next(&mut self) -> Event {
        loop {
            let block = self.block("\n\n").await;
            let field = |name: &str| {
                let mut lines = block.lines().filter_map(|line| line.strip_prefix(name));
                lines.next_back().map(|value| value.trim().to_owned())
            };
            if let (Some(kind), Some(data)) = (field("event:"), field("data:")) {
                let data = serde_json::from_str(&data).unwrap();
                return Event { id: field("id:").unwrap_or_default(), kind, data };
            }
        }
    }
}
