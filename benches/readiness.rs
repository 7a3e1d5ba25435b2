//! `tools/list` of 50 tools through the whole process: without integrations, and with one behind every tool whose service
//! takes 15 s for each probe and is due all the time. No list waits for a probe, so the two are the same but for the work of
//! looking: the ratio of their 99th percentiles is what this prints. Bar: below 1.1 on a quiet machine.

#![expect(clippy::print_stdout, reason = "a benchmark whose output is its result")]
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a benchmark that cannot go on ends")]

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::response::IntoResponse;
use criterion::{Criterion, criterion_group, criterion_main};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use toolvane::app::{self, App};
use toolvane::clock::SystemClock;
use toolvane::config::Config;
use toolvane::yaml::Source;

const TOOLS: usize = 50;
const LISTS: usize = 5_000;

async fn listens(router: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    address
}

async fn backend() -> SocketAddr {
    let tools: Vec<Value> = (0..TOOLS)
        .map(
            |n| json!({"name": format!("tool_{n}"), "description": "x".repeat(200), "inputSchema": {"type": "object"}}),
        )
        .collect();
    let tools = Arc::new(tools);
    listens(Router::new().fallback(move |body: String| {
        let tools = Arc::clone(&tools);
        async move {
            let message: Value = serde_json::from_str(&body).unwrap_or_default();
            axum::Json(json!({"jsonrpc": "2.0", "id": message["id"], "result": {"tools": *tools}})).into_response()
        }
    }))
    .await
}

async fn hanging_service() -> SocketAddr {
    listens(Router::new().fallback(|| async { tokio::time::sleep(Duration::from_secs(15)).await })).await
}

async fn front(backend: SocketAddr, settings: &str) -> SocketAddr {
    let text = format!(
        "listen: 127.0.0.1:0\nadmin: {{listen: 127.0.0.1:0}}\nstore: {{engine: memory}}\n\
         backends: [{{name: b, kind: mcp, url: \"http://{backend}/mcp\"}}]\n{settings}"
    );
    let config = Config::read(&Arc::new(Source::new("bench.yaml", text)), Path::new("")).unwrap();
    let app = App {
        rules: app::compile(&config).unwrap(),
        config: Arc::new(config),
        clock: Arc::new(SystemClock),
        fresh_key: [1; 32],
        seed: 1,
        config_hash: "bench".to_owned(),
        config_file: None,
    };
    let running = app.start().await.unwrap();
    let address = running.listen[0];
    // The process ends with the benchmark.
    std::mem::forget(running);
    address
}

/// How long each of so many lists took, over one connection, shortest first.
#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
async fn lists(front: SocketAddr) -> Vec<Duration> {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: b\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let request = head + &body;
    let mut stream = TcpStream::connect(front).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let mut buffer = vec![0; 256 * 1024];
    let mut took = Vec::with_capacity(LISTS);
    for _ in 0..LISTS {
        let began = std::time::Instant::now();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut read = 0;
        while !buffer[..read].ends_with(b"]}}") {
            let more = stream.read(&mut buffer[read..]).await.unwrap();
            assert!(more > 0, "the connection ended");
            read += more;
        }
        took.push(began.elapsed());
    }
    took.sort();
    took
}

fn readiness(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let (plain, hanging) = runtime.block_on(async {
        let (backend, service) = (backend().await, hanging_service().await);
        let settings = format!(
            "integrations: {{slow: {{ttl: 1s, probe: {{request: 'GET http://{service}/', timeout: 60s}}}}}}\n\
             tools: {{'*': {{integration: slow}}}}\n"
        );
        (front(backend, "").await, front(backend, &settings).await)
    });
    let at = |took: &[Duration], share: usize| took[took.len() * share / 100];
    // Turn about, so that what else the machine does hits both.
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        without.extend(runtime.block_on(lists(plain)));
        with.extend(runtime.block_on(lists(hanging)));
    }
    without.sort();
    with.sort();
    println!("tools/list without integrations: p50 {:?}, p99 {:?}", at(&without, 50), at(&without, 99));
    println!("tools/list with a probe of 15 s: p50 {:?}, p99 {:?}", at(&with, 50), at(&with, 99));
    println!("ratio of p99: {:.2}", at(&with, 99).as_secs_f64() / at(&without, 99).as_secs_f64());
    criterion.bench_function("5,000 lists with a probe that hangs", |bencher| {
        bencher.iter(|| runtime.block_on(lists(hanging)));
    });
}

criterion_group! { name = benches; config = Criterion::default().sample_size(10); targets = readiness }
criterion_main!(benches);
