//! The stream of events.

use serde_json::json;

use super::support::{Follower, OPERATOR, Process, WRITER, backend, home};

const READERS: usize = 1_000;
/// How many there may be.
const SEATS: usize = 1_024;
/// Events of 60 kB each, which are more than a connection takes that nobody reads from.
const FLOOD: usize = 120;

async fn mark(process: &Process, tool: &str) {
    let body = json!({"reason": "x", "expiresIn": "15m"});
    process.ask("POST", &format!("/v1/health/PROJECT/default/{tool}/unavailable"), WRITER, &body).await;
}

#[tokio::test]
async fn a_reader_hears_of_transitions_overrides_and_writes_and_resumes_where_it_was() {
    let home = home();
    let process = Process::start(home.path(), backend().await, "", "").await;
    let mut reader = Follower::of(&process, "/v1/events", &[]).await;
    mark(&process, "a").await;
    let first = reader.next().await;
    assert_eq!((first.kind.as_str(), &first.data["to"]), ("transition", &json!("DOWN")));
    assert_eq!(first.data["toolName"], "a");
    assert_eq!(first.data["by"], "engine");
    assert_eq!(reader.next().await.kind, "audit");
    let decision = json!({
        "tool": "a", "scope": "PROJECT", "scopeId": "default", "force": "OK", "reason": "x", "expiresIn": "1h",
    });
    process.ask("POST", "/v1/override", OPERATOR, &decision).await;
    let told = reader.next().await;
    assert_eq!((told.kind.as_str(), &told.data["override"]["force"]), ("override", &json!("OK")));
    drop(reader);

    mark(&process, "b").await;
    let mut again = Follower::of(&process, "/v1/events?kind=transition", &[("last-event-id", &told.id)]).await;
    assert_eq!(again.next().await.data["toolName"], "b");
    let mut other_life = Follower::of(&process, "/v1/events?kind=transition", &[("last-event-id", "1-1")]).await;
    assert_eq!(other_life.next().await.data["reset"], true, "an id of another life");
    assert_eq!(other_life.next().await.data["toolName"], "a", "everything is new");
    let (life, _) = told.id.split_once('-').unwrap();
    for id in [format!("{life}-999999"), format!("{life}-x"), "garbage".to_owned()] {
        let mut lost = Follower::of(&process, "/v1/events?kind=transition", &[("last-event-id", &id)]).await;
        let first = lost.next().await;
        assert_eq!((first.kind.as_str(), &first.data["reset"]), ("reset", &json!(true)), "{id}");
        assert_eq!(lost.next().await.data["toolName"], "a", "{id}");
    }
    let mut narrow = Follower::of(&process, "/v1/events?after=0&tool=b&kind=transition,override", &[]).await;
    assert_eq!(narrow.next().await.data["toolName"], "b");
}

#[tokio::test]
async fn a_reload_is_told_with_what_is_in_force_or_with_the_mistakes_and_no_line_of_a_file() {
    let home = home();
    let layer = home.path().join("layer.yaml");
    let rule = |id: &str| format!("patterns: [{{id: {id}, match: {{httpStatus: 618}}, classification: USER_INPUT}}]\n");
    std::fs::write(&layer, rule("tea")).unwrap();
    let process = Process::start(home.path(), backend().await, "", "rules: {layers: [layer.yaml]}\n").await;
    let mut reader = Follower::of(&process, "/v1/events?kind=reload", &[]).await;
    let reload = async || process.ask("POST", "/v1/reload", OPERATOR, &json!(null)).await;
    std::fs::write(&layer, rule("milk")).unwrap();
    let applied = reload().await.body;
    let told = reader.next().await.data;
    assert_eq!((&told["result"], &told["hash"]), (&json!("success"), &applied["hash"]));
    assert_eq!((&told["changed"], &told["needsRestart"]), (&json!(true), &json!([])));
    std::fs::write(
        &layer,
        "patterns: [{id: tea, match: {httpStatus: 618}, classification: USER_INPUT, colour: s3cr3t}]\n",
    )
    .unwrap();
    assert_eq!(reload().await.status.as_u16(), 422);
    let refused = loop {
        let told = reader.next().await.data;
        if told["result"] == "failure" {
            break told;
        }
    };
    let problem = refused["problems"][0].as_str().unwrap();
    assert!(problem.contains("layer.yaml:1:") && problem.contains("colour"), "{problem}");
    assert!(!refused.to_string().contains("s3cr3t"));
}

#[tokio::test]
async fn a_reader_who_stayed_away_for_too_long_is_told_how_much_he_missed() {
    let home = home();
    let process = Process::start(home.path(), backend().await, "", "").await;
    mark(&process, "a").await;
    for _ in 0..FLOOD {
        process.ask("POST", &format!("/v1/{}", "x".repeat(60_000)), OPERATOR, &json!({})).await;
    }
    mark(&process, "b").await;
    let mut reader = Follower::of(&process, "/v1/events?after=0&kind=transition", &[]).await;
    let missed = reader.next().await;
    assert_eq!(missed.kind, "missed");
    assert!(missed.data["missed"].as_u64().unwrap() >= 2, "{missed:?}");
    assert_eq!(reader.next().await.data["toolName"], "b");
}

/// A thousand readers of which one takes nothing, and more than its connection can hold. Nobody is waited for: everybody else
/// hears of every event, in order, and what is kept for the one is no more than the ring.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_readers_hear_of_everything_and_one_that_is_stuck_holds_nobody_up() {
    let home = home();
    let process = Process::start(home.path(), backend().await, "", "").await;
    let stuck = takes_nothing(&process).await;
    let mut readers = Vec::new();
    for _ in 1..READERS {
        readers.push(Follower::of(&process, "/v1/events?kind=transition", &[]).await);
    }
    let mut beyond = Vec::new();
    for _ in READERS..SEATS {
        beyond.push(Follower::of(&process, "/v1/events", &[]).await);
    }
    let refused = process.ask("GET", "/v1/events", OPERATOR, &json!(null)).await;
    assert_eq!(refused.status.as_u16(), 503, "as many follow as there may be");
    drop(beyond);
    let before = resident();
    let tools: Vec<String> = (0..20).map(|number| format!("t{number}")).collect();
    let (early, late) = tools.split_at(10);
    for tool in early {
        mark(&process, tool).await;
    }
    for _ in 0..FLOOD {
        process.ask("POST", &format!("/v1/{}", "x".repeat(60_000)), OPERATOR, &json!({})).await;
    }
    for tool in late {
        mark(&process, tool).await;
    }
    for reader in &mut readers {
        for tool in &tools {
            assert_eq!(reader.next().await.data["toolName"], tool.as_str());
        }
    }
    let grown = resident().saturating_sub(before);
    assert!(grown < 64 << 20, "{grown} bytes more for 160 events to 1,000 readers");
    drop(stuck);
}

/// A reader with the smallest of buffers that never reads.
async fn takes_nothing(process: &Process) -> tokio::net::TcpStream {
    use tokio::io::AsyncWriteExt;

    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(2_048).unwrap();
    let mut stream = socket.connect(process.running.admin).await.unwrap();
    stream.write_all(b"GET /v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    stream
}

/// Bytes of memory that this process holds.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse::<usize>().unwrap() * 1024
}
