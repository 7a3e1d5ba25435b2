//! The whole process, in this process: real sockets on both sides, a backend that answers as a test says, and a clock that a
//! test moves.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use toolvane::app::{self, App, Running};
use toolvane::clock::{ManualClock, Now, Tick, Wall};
use toolvane::config::Config;
use toolvane::yaml::Source;

use crate::wire::{Answer, exchange, raw_exchange};

const START: Now = Now { tick: Tick(1_000_000), wall: Wall(1_772_460_120_000) };

type Answers = Arc<dyn Fn(&Value) -> Response + Send + Sync>;

#[derive(Clone)]
struct Backend {
    answers: Answers,
    seen: Arc<Mutex<Vec<Value>>>,
}

impl Backend {
    async fn start(answers: impl Fn(&Value) -> Response + Send + Sync + 'static) -> (SocketAddr, Backend) {
        let backend = Backend { answers: Arc::new(answers), seen: Arc::default() };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().fallback(answer).with_state(backend.clone());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        (address, backend)
    }

    fn calls(&self) -> usize {
        self.seen.lock().unwrap().iter().filter(|message| message["method"] == "tools/call").count()
    }
}

async fn answer(State(backend): State<Backend>, body: String) -> Response {
    let message: Value = serde_json::from_str(&body).unwrap_or_default();
    backend.seen.lock().unwrap().push(message.clone());
    (backend.answers)(&message)
}

fn result(message: &Value, result: &Value) -> Response {
    axum::Json(json!({"jsonrpc": "2.0", "id": message["id"], "result": result})).into_response()
}

fn text(message: &Value, text: &str, is_error: bool) -> Response {
    result(message, &json!({"content": [{"type": "text", "text": text}], "isError": is_error}))
}

fn internal_error(message: &Value) -> Response {
    let error = json!({"code": -32603, "message": "assertion failed"});
    axum::Json(json!({"jsonrpc": "2.0", "id": message["id"], "error": error})).into_response()
}

fn events(body: String) -> Response {
    ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
}

fn list(message: &Value, names: &[&str]) -> Response {
    let tools: Vec<Value> = names.iter().map(|name| json!({"name": name, "description": "A tool"})).collect();
    result(message, &json!({"tools": tools}))
}

pub(crate) struct Proxy {
    clock: ManualClock,
    pub(crate) running: Running,
}

impl Proxy {
    pub(crate) async fn before(backend: SocketAddr, settings: &str) -> Proxy {
        Proxy::forwarding(backend, "{}", settings).await
    }

    /// One that says this about itself.
    pub(crate) async fn forwarding(backend: SocketAddr, forwarded: &str, settings: &str) -> Proxy {
        let text = format!(
            "listen: 127.0.0.1:0\nadmin: {{listen: 127.0.0.1:0}}\nstore: {{engine: memory}}\n\
             backends: [{{name: demo, kind: mcp, url: \"http://{backend}/mcp\", forwarded: {forwarded}}}]\n{settings}"
        );
        let source = Arc::new(Source::new("test.yaml", text));
        let config = Config::read(&source, Path::new("")).unwrap();
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
        Proxy { clock, running: app.start().await.unwrap() }
    }

    async fn post(&self, body: &Value, headers: &[(&str, &str)]) -> Answer {
        exchange(self.running.listen[0], "POST", "/mcp", headers, &body.to_string()).await
    }

    async fn call(&self, tool: &str, headers: &[(&str, &str)]) -> Answer {
        self.post(&call(1, tool), headers).await
    }

    async fn list(&self, headers: &[(&str, &str)]) -> Value {
        self.post(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}), headers).await.json()
    }

    pub(crate) async fn admin(&self, path: &str) -> String {
        exchange(self.running.admin, "GET", path, &[], "").await.body
    }

    async fn status(&self, tool: &str, who: &str) -> String {
        let view: Value =
            serde_json::from_str(&self.admin(&format!("/v1/lookup?tool={tool}&backend=demo&{who}")).await).unwrap();
        view["status"].as_str().unwrap().to_owned()
    }

    /// Failures in five different seconds.
    async fn fail_until_down(&self, tool: &str) {
        for _ in 0..5 {
            self.call(tool, &[]).await;
            self.clock.advance(Duration::from_secs(1));
        }
        assert_eq!(self.status(tool, "").await, "DOWN");
    }
}

fn call(id: i64, tool: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": {}}})
}

#[tokio::test]
async fn a_tool_that_fails_in_five_seconds_is_down_for_everybody_and_no_longer_called() {
    let (address, backend) = Backend::start(|message| match message["method"].as_str() {
        Some("tools/list") => list(message, &["broken", "fine"]),
        _ if message["params"]["name"] == "broken" => internal_error(message),
        _ => text(message, "hello", false),
    })
    .await;
    let proxy = Proxy::before(address, "tools: {broken: {advice: Use fine.}}\n").await;
    proxy.fail_until_down("broken").await;

    let refused = proxy.post(&call(77, "broken"), &[("x-user-id", "bob")]).await;
    assert_eq!((refused.status, refused.mark()), (StatusCode::OK, "down"));
    assert_eq!(refused.json()["id"], 77);
    assert_eq!(refused.json()["result"]["isError"], true);
    assert!(refused.words().contains("was not called"), "{}", refused.words());
    assert!(refused.words().ends_with("Use fine."), "{}", refused.words());
    assert_eq!(backend.calls(), 5);

    assert_eq!(proxy.call("fine", &[]).await.words(), "hello");
    let tools = proxy.list(&[]).await["result"]["tools"].clone();
    assert_eq!(tools[0]["description"], "A tool [unavailable since 14:02 UTC]");
    assert_eq!(tools[1]["description"], "A tool");
}

#[tokio::test]
async fn what_is_observed_only_is_judged_and_shown_but_passes() {
    let (address, backend) = Backend::start(internal_error).await;
    let proxy = Proxy::before(address, "mode: observe\n").await;
    proxy.fail_until_down("broken").await;
    assert_eq!(proxy.call("broken", &[]).await.mark(), "");
    assert_eq!(backend.calls(), 6);
    let would = "toolvane_would_short_circuit_total{backend=\"demo\",tool=\"other\",reason=\"down\"} 1";
    let metrics = proxy.admin("/metrics").await;
    assert!(metrics.contains(would) && !metrics.contains("toolvane_short_circuits_total{"), "{metrics}");
}

#[tokio::test]
async fn the_list_of_what_is_only_observed_keeps_every_byte_until_an_operator_decides() {
    let (address, _backend) = Backend::start(|message| match message["method"].as_str() {
        Some("tools/list") => list(message, &["broken", "strict"]),
        _ => internal_error(message),
    })
    .await;
    let settings = "mode: observe\ntools: {strict: {mode: enforce}}\nmanifest: {annotate: both}\n";
    let proxy = Proxy::before(address, settings).await;
    let before = proxy.list(&[]).await["result"]["tools"].clone();
    for tool in ["broken", "strict"] {
        proxy.fail_until_down(tool).await;
    }
    let tools = proxy.list(&[]).await["result"]["tools"].clone();
    assert_eq!(tools[0], before[0]);
    assert_eq!(tools[1]["description"], "A tool [unavailable since 14:02 UTC]");
    let catalogue: Value = serde_json::from_str(&proxy.admin("/v1/manifest").await).unwrap();
    assert_eq!(catalogue["tools"][0]["annotation"], Value::Null, "{catalogue}");
}

#[tokio::test]
async fn what_must_never_be_refused_passes_while_the_tool_is_down() {
    let (address, backend) = Backend::start(internal_error).await;
    let proxy = Proxy::before(address, "").await;
    proxy.fail_until_down("broken").await;
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
    let modern =
        json!({"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": {"name": "broken", "_meta": meta}});
    proxy.post(&modern, &[("mcp-name", "other")]).await;
    assert_eq!(proxy.post(&modern, &[("mcp-name", "broken")]).await.mark(), "down");
    let params = json!({"name": "broken", "inputResponses": {}});
    let continuation = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params});
    proxy.post(&continuation, &[]).await;
    proxy.post(&json!([call(3, "broken")]), &[]).await;
    assert_eq!(backend.seen.lock().unwrap().len(), 8);
}

#[tokio::test]
async fn a_call_that_asked_for_a_task_is_refused_in_the_shape_that_such_a_client_reads() {
    let (address, _) = Backend::start(internal_error).await;
    let proxy = Proxy::before(address, "").await;
    proxy.fail_until_down("broken").await;
    let params = json!({"name": "broken", "task": {"ttl": 1}});
    let refused =
        proxy.post(&json!({"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": params}), &[]).await;
    assert_eq!(refused.json()["error"]["code"], -32603);
    assert_eq!(refused.json()["error"]["data"]["status"], "DOWN");
    assert_eq!(refused.json()["id"], "a");
}

#[tokio::test]
async fn arguments_that_do_not_fit_change_nothing_however_often() {
    let (address, backend) =
        Backend::start(|message| text(message, "Input validation error: 'x' is a required property", true)).await;
    let proxy = Proxy::before(address, "").await;
    for _ in 0..10 {
        proxy.call("strict", &[("x-user-id", "alice")]).await;
        proxy.clock.advance(Duration::from_secs(1));
    }
    assert_eq!(proxy.status("strict", "user=alice").await, "OK");
    assert_eq!(backend.calls(), 10);
}

#[tokio::test]
async fn a_session_tool_whose_provider_left_is_unreachable_from_its_first_call_on_and_only_there() {
    for framed in [false, true] {
        let (address, backend) = Backend::start(move |message| match message["method"].as_str() {
            Some("tools/list") => list(message, &["client_file_read"]),
            _ if framed => {
                let error = json!({"code": -32602, "message": "Unknown tool: client_file_read"});
                let answer = json!({"jsonrpc": "2.0", "id": message["id"], "error": error});
                events(format!(": hello\n\nevent: message\ndata: {answer}\n\n"))
            }
            _ => text(message, "MCP error -32602: Tool client_file_read not found", true),
        })
        .await;
        let proxy = Proxy::before(address, "").await;
        let (mine, other) = ([("mcp-session-id", "s1")], [("mcp-session-id", "s2")]);
        proxy.list(&mine).await;
        let first = proxy.call("client_file_read", &mine).await;
        assert!(first.body.contains("temporarily unavailable"), "{}", first.body);
        assert!(!first.body.contains("nknown tool") && !first.body.contains("not found"), "{}", first.body);
        assert!(!framed || first.body.starts_with(": hello\n\n"), "{}", first.body);
        assert_eq!(proxy.call("client_file_read", &mine).await.mark(), "down");
        assert_eq!(backend.calls(), 1);
        assert_eq!(proxy.status("client_file_read", "session=s1").await, "DOWN");
        assert_eq!(proxy.status("client_file_read", "session=s2").await, "OK");
        proxy.list(&other).await;
        assert!(proxy.list(&mine).await.to_string().contains("[unavailable since"));
    }
}

#[tokio::test]
async fn a_stream_that_ends_without_the_answer_gets_one_from_us_as_its_last_event() {
    let (address, _) =
        Backend::start(|_| events("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\n".to_owned()))
            .await;
    let proxy = Proxy::before(address, "").await;
    let answer = proxy.call("slow", &[]).await;
    assert_eq!(answer.status, StatusCode::OK);
    let last = answer.body.rsplit("data: ").next().unwrap();
    let last: Value = serde_json::from_str(last.trim()).unwrap();
    assert_eq!((&last["id"], &last["result"]["isError"]), (&json!(1), &json!(true)));
    assert!(last.to_string().contains("its effect is unknown"), "{last}");
}

#[tokio::test]
async fn a_backend_that_takes_too_long_did_not_answer_in_time() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let settings = "tools: {slow: {timeout: 10ms}}\n";
    let proxy = Proxy::before(silent.local_addr().unwrap(), settings).await;
    let answer = proxy.call("slow", &[]).await;
    assert_eq!(answer.mark(), "unreachable");
    assert!(
        answer.words().starts_with("slow did not answer in time (BACKEND_UNREACHABLE: timeout)."),
        "{}",
        answer.words()
    );
}

#[tokio::test]
async fn a_request_that_breaks_off_is_the_dispatchers_own() {
    let (address, backend) = Backend::start(internal_error).await;
    let proxy = Proxy::before(address, "").await;
    let mut stream = TcpStream::connect(proxy.running.listen[0]).await.unwrap();
    let head = "POST /mcp HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(format!("{head}5\r\nhello\r\nnonsense\r\n").as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("x-toolvane: request\r\n"), "{answer}");
    assert_eq!(backend.calls(), 0);
}

#[tokio::test]
async fn a_backend_that_nobody_listens_for_is_answered_for_in_every_method() {
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let proxy = Proxy::before(nobody, "").await;
    let of = |method: &str| json!({"jsonrpc": "2.0", "id": 5, "method": method});
    let called = proxy.call("echo", &[]).await;
    assert_eq!((called.status, called.mark()), (StatusCode::OK, "unreachable"));
    assert!(called.words().contains("It was not called."), "{}", called.words());
    for (method, status) in [("initialize", 503), ("server/discover", 503), ("tools/list", 200), ("prompts/list", 200)]
    {
        let answer = proxy.post(&of(method), &[]).await;
        assert_eq!(answer.status.as_u16(), status, "{method}");
        assert_eq!(
            (answer.json()["id"].clone(), answer.json()["error"]["code"].clone()),
            (json!(5), json!(-32603)),
            "{method}"
        );
    }
    let told = proxy.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}), &[]).await;
    assert_eq!((told.status.as_u16(), told.body.as_str()), (503, ""));
    let batch = proxy.post(&json!([call(1, "a"), of("ping")]), &[]).await;
    assert_eq!(batch.json().as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_compressed_answer_passes_as_it_is_and_is_judged_all_the_same() {
    let (address, backend) = Backend::start(|message| {
        let error = json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32603, "message": "no"}});
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        std::io::Write::write_all(&mut gzip, error.to_string().as_bytes()).unwrap();
        ([(header::CONTENT_TYPE, "application/json"), (header::CONTENT_ENCODING, "gzip")], gzip.finish().unwrap())
            .into_response()
    })
    .await;
    let proxy = Proxy::before(address, "").await;
    for _ in 0..5 {
        let body = call(1, "broken").to_string();
        let raw =
            raw_exchange(proxy.running.listen[0], "POST", "/mcp", &[("accept-encoding", "gzip, br")], &body).await;
        assert!(raw.windows(2).any(|pair| pair == [0x1f, 0x8b]), "still compressed");
        proxy.clock.advance(Duration::from_secs(1));
    }
    assert_eq!(proxy.status("broken", "").await, "DOWN");
    assert_eq!(backend.calls(), 5);
}

#[tokio::test]
async fn a_tool_list_that_breaks_off_is_answered_without_ending_the_session() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = stream.read(&mut [0; 65_536]).await.unwrap();
        let half = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{\"jsonrpc\"";
        stream.write_all(half.as_bytes()).await.unwrap();
    });
    let proxy = Proxy::before(address, "").await;
    let answer = proxy.post(&json!({"jsonrpc": "2.0", "id": 9, "method": "tools/list"}), &[]).await;
    assert_eq!((answer.status, answer.json()["id"].clone()), (StatusCode::OK, json!(9)));
    assert_eq!(answer.json()["error"]["code"], -32603);
}

#[tokio::test]
async fn broken_framing_of_an_answer_is_never_put_down_to_the_callers_arguments() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = stream.read(&mut [0; 65_536]).await.unwrap();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        stream.write_all(format!("{head}5\r\n: one\nzz\r\n").as_bytes()).await.unwrap();
    });
    let proxy = Proxy::before(address, "").await;
    let answer = proxy.call("a", &[]).await;
    assert!(answer.body.contains("a gave no valid answer"), "{}", answer.body);
    assert!(!answer.body.contains("USER_INPUT"), "{}", answer.body);
}

#[tokio::test]
async fn an_answer_with_a_length_beside_its_chunks_passes_whole() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = stream.read(&mut [0; 65_536]).await.unwrap();
        let answer =
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n9\r\nall of it\r\n0\r\n\r\n";
        stream.write_all(answer.as_bytes()).await.unwrap();
    });
    let proxy = Proxy::before(address, "").await;
    let answer = exchange(proxy.running.listen[0], "GET", "/elsewhere", &[], "").await;
    assert_eq!(answer.body, "all of it");
}

#[tokio::test]
async fn a_cancelled_call_is_nobodys_fault() {
    let (address, _) = Backend::start(|message| match message["method"].as_str() {
        Some("notifications/cancelled") => StatusCode::ACCEPTED.into_response(),
        _ => events("id: 1\ndata:\n\n".to_owned()),
    })
    .await;
    let proxy = Proxy::before(address, "tools: {slow: {down_on_first_failure: true}}\n").await;
    let session = [("mcp-session-id", "s1")];
    proxy.call("slow", &session).await;
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    proxy.post(&cancel, &session).await;
    assert_eq!(proxy.status("slow", "session=s1").await, "OK");
    let metrics = proxy.admin("/metrics").await;
    assert!(metrics.contains("outcome=\"neutral\""), "{metrics}");
}

#[tokio::test]
async fn a_hostile_client_makes_neither_documents_nor_series_without_end() {
    let (address, _) = Backend::start(|message| text(message, "Unknown tool", true)).await;
    let proxy = Proxy::before(address, "metrics: {tools_max: 10}\n").await;
    for n in 0..300 {
        proxy.call(&format!("tool-{n}"), &[("x-user-id", &format!("user-{n}"))]).await;
    }
    let series = proxy.admin("/metrics").await;
    assert!(!series.contains("tool-1\""), "no name that nobody vouches for becomes a label");
    assert!(!series.contains("user-1"), "users are never labels");
}

#[tokio::test]
async fn when_the_upgraded_connection_of_a_session_closes_its_own_tools_go_with_it() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        // First the list, then an upgrade that says goodbye at once.
        for upgrade in [false, true] {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 65_536];
            let _ = stream.read(&mut request).await.unwrap();
            let list = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"client_file_read"},{"name":"echo"}]}}"#;
            let answer = match upgrade {
                true => "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\nbye"
                    .to_owned(),
                false => format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{list}",
                    list.len()
                ),
            };
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    let proxy = Proxy::before(address, "").await;
    proxy.list(&[("mcp-session-id", "s1")]).await;

    let mut stream = TcpStream::connect(proxy.running.listen[0]).await.unwrap();
    let head = "GET /ws HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\nmcp-session-id: s1\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut heard = String::new();
    stream.read_to_string(&mut heard).await.unwrap();
    assert!(heard.starts_with("HTTP/1.1 101") && heard.ends_with("bye"), "{heard}");
    drop(stream);

    let mut events = 0;
    while proxy.status("client_file_read", "session=s1").await != "DOWN" {
        events += 1;
        assert!(events < 10_000, "the tools of the session should be gone");
        tokio::task::yield_now().await;
    }
    assert_eq!(proxy.status("client_file_read", "session=s2").await, "OK");
    assert_eq!(proxy.status("echo", "session=s1").await, "OK");
}
