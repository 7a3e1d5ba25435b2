//! Kills of the whole process during writes: what was acknowledged is there afterwards.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use axum::http::StatusCode;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::support::{TOKENS, WRITER, exchange, home};

const ROUNDS: usize = if cfg!(feature = "verify") { 50 } else { 5 };

/// Each round, several writers mark tools over HTTP and note what was acknowledged, while the process is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kill_9_during_writes_loses_nothing_that_was_acknowledged() {
    let home = home();
    let config = home.path().join("toolvane.yaml");
    let text = format!(
        "listen: 127.0.0.1:0\nadmin: {{listen: \"127.0.0.1:0\", {TOKENS}}}\nlog: {{level: error}}\n\
         store: {{path: \"{}\"}}\nbackends: [{{name: demo, kind: mcp, url: \"http://127.0.0.1:9/mcp\"}}]\n",
        home.path().join("state.redb").display()
    );
    std::fs::write(&config, text).unwrap();
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut acknowledged: HashMap<String, String> = HashMap::new();
    let mut writes = 0;
    for round in 0..ROUNDS {
        let (mut child, admin) = start(&config);
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

fn start(config: &Path) -> (Child, SocketAddr) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_toolvane"))
        .args(["run", "-c"])
        .arg(config)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let admin = lines.map_while(Result::ok).find_map(|line| line.strip_prefix("admin on http://").map(str::to_owned));
    (child, admin.expect("the address of the admin listener").parse().unwrap())
}
