//! Kills of the whole process: what was acknowledged is there afterwards, and no job is lost.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};

use super::diagnosis::unclear;
use super::server::Server;
use super::support::{TOKENS, WRITER, exchange, home, within};

const ROUNDS: usize = if cfg!(feature = "verify") { 50 } else { 5 };

/// Each round, several writers mark tools over HTTP and note what was acknowledged, while the process is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kill_9_during_writes_loses_nothing_that_was_acknowledged() {
    let home = home();
    let config = configured(home.path(), "127.0.0.1:9", "");
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut acknowledged: HashMap<String, String> = HashMap::new();
    let mut writes = 0;
    for round in 0..ROUNDS {
        let (mut child, _, admin) = start(&config);
        let held = documents(admin).await;
        for (tool, note) in &acknowledged {
            assert!(held.get(tool).is_some_and(|held| held >= note), "round {round}: {tool} lost {note}");
        }
        let most = random.usize(0..60);
        let bounded: Vec<_> = (0..2).map(|writer| tokio::spawn(write(admin, (round, writer), most))).collect();
        let endless: Vec<_> = (2..4).map(|writer| tokio::spawn(write(admin, (round, writer), usize::MAX))).collect();
        let mut done = Vec::new();
        for writer in bounded {
            done.extend(writer.await.unwrap());
        }
        // The others are in the midst of it, and end by themselves when nobody answers any more.
        child.kill().unwrap();
        child.wait().unwrap();
        for writer in endless {
            done.extend(writer.await.unwrap());
        }
        writes += done.len();
        acknowledged.extend(done);
    }
    println!("{ROUNDS} kills, {writes} writes acknowledged, none lost");
    assert!(writes > ROUNDS, "too few acknowledgements to say anything: {writes}");
}

/// At most so many writes; what was acknowledged of them, newest last.
async fn write(admin: SocketAddr, (round, writer): (usize, usize), most: usize) -> Vec<(String, String)> {
    let mut acknowledged = Vec::new();
    for number in 0..most {
        let tool = format!("t{writer}-{}", number % 10);
        let note = format!("{round:06}-{number:06}");
        let body = json!({"reason": note, "expiresIn": "20h"});
        let path = format!("/v1/health/PROJECT/default/{tool}/unavailable");
        match ask(admin, "POST", &path, &body).await {
            Some((StatusCode::OK, _)) => acknowledged.push((tool, note)),
            _ => break,
        }
    }
    acknowledged
}

async fn ask(admin: SocketAddr, method: &str, path: &str, body: &Value) -> Option<(StatusCode, Value)> {
    let (path, method, body) = (path.to_owned(), method.to_owned(), body.clone());
    let asked = tokio::spawn(async move {
        let stream = TcpStream::connect(admin).await.unwrap();
        let token = format!("Bearer {WRITER}");
        let answer = exchange(stream, &method, &path, &[("host", "localhost"), ("authorization", &token)], &body).await;
        (answer.status, answer.body)
    });
    // A process that is killed in mid-answer makes the exchange panic: that is no acknowledgement.
    asked.await.ok()
}

async fn documents(admin: SocketAddr) -> HashMap<String, String> {
    let (_, body) = ask(admin, "GET", "/v1/health", &Value::Null).await.expect("a fresh process answers");
    let documents = body["documents"].as_array().unwrap();
    let note = |document: &Value| {
        let last = document["lastDiagnosis"]["note"].as_str().unwrap_or_default();
        (document["toolName"].as_str().unwrap().to_owned(), last.to_owned())
    };
    documents.iter().map(note).collect()
}

/// The process, where dispatchers connect, and its admin listener.
fn start(config: &Path) -> (Child, SocketAddr, SocketAddr) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_toolvane"))
        .args(["run", "-c"])
        .arg(config)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let mut address = |what: &str| {
        let start = format!("{what} on http://");
        let found = lines.find_map(|line| line.strip_prefix(&start).map(str::to_owned));
        found.unwrap_or_else(|| panic!("no address after {start:?}")).parse().unwrap()
    };
    let (listen, admin) = (address("listening"), address("admin"));
    (child, listen, admin)
}

/// A configuration for a process before this backend.
fn configured(home: &Path, backend: &str, more: &str) -> PathBuf {
    let config = home.join("toolvane.yaml");
    let text = format!(
        "listen: 127.0.0.1:0\nadmin: {{listen: \"127.0.0.1:0\", {TOKENS}}}\nlog: {{level: error}}\n\
         store: {{path: \"{}\"}}\nbackends: [{{name: demo, kind: mcp, url: \"http://{backend}/mcp\"}}]\n{more}",
        home.join("state.redb").display()
    );
    std::fs::write(&config, text).unwrap();
    config
}

/// Fails a call in a way that no rule knows.
async fn fail(listen: SocketAddr) {
    let stream = TcpStream::connect(listen).await.unwrap();
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "odd", "arguments": {}}});
    exchange(stream, "POST", "/mcp", &[("host", "localhost"), ("x-user-id", "alice")], &call).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_whose_worker_is_gone_comes_back_also_after_a_kill_9() {
    let home = home();
    let backend = unclear().await;
    let config = configured(home.path(), &backend.address.to_string(), "diagnosis: {engine: external}\n");
    let (mut child, listen, admin) = start(&config);
    fail(listen).await;
    let claim =
        async |admin| ask(admin, "POST", "/v1/diagnosis/jobs/claim", &json!({"expiresIn": "2s"})).await.unwrap();
    let (_, leased) = claim(admin).await;
    assert_eq!(leased["toolName"], "odd");
    child.kill().unwrap();
    child.wait().unwrap();

    let (mut child, _, admin) = start(&config);
    let again = within("the lease to run out", async {
        loop {
            if let (StatusCode::OK, job) = claim(admin).await {
                return job;
            }
        }
    })
    .await;
    assert_eq!((&again["id"], &again["errorDetail"]), (&leased["id"], &leased["errorDetail"]));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_the_killed_process_itself_worked_on_is_taken_up_by_the_next() {
    let home = home();
    let backend = unclear().await;
    let engine = Server::start(|_| StatusCode::ACCEPTED.into_response()).await;
    let hung = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let webhook = |address| format!("diagnosis: {{engine: webhook, webhook: {{url: \"http://{address}/jobs\"}}}}\n");
    let config = configured(home.path(), &backend.address.to_string(), &webhook(hung.local_addr().unwrap()));
    let (mut child, listen, admin) = start(&config);
    fail(listen).await;
    // The engine is being asked, and does not answer.
    let asking = within("the engine to be asked", hung.accept()).await.unwrap();
    let (_, jobs) = ask(admin, "GET", "/v1/diagnosis/jobs?state=leased", &Value::Null).await.unwrap();
    // A write that is acknowledged puts everything before it on disk.
    let marked = write(admin, (0, 0), 1).await;
    assert_eq!(marked.len(), 1);
    child.kill().unwrap();
    child.wait().unwrap();
    drop(asking);

    let config = configured(home.path(), &backend.address.to_string(), &webhook(engine.address));
    let (mut child, ..) = start(&config);
    within("the job to be handed out again", async {
        while engine.seen().is_empty() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(engine.seen()[0].body["id"], jobs["jobs"][0]["id"]);
    child.kill().unwrap();
    child.wait().unwrap();
}
