//! The stream of events.

use serde_json::json;

use super::support::{Follower, OPERATOR, Process, WRITER, backend, home};

const READERS: usize = 1_000;

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
    let mut other_life = Follower::of(&process, "/v1/events?kind=transition", &[("last-event-id", "1-9")]).await;
    assert_eq!(other_life.next().await.data["toolName"], "a", "an id of another life: everything is new");
    let mut narrow = Follower::of(&process, "/v1/events?after=0&tool=b&kind=transition,override", &[]).await;
    assert_eq!(narrow.next().await.data["toolName"], "b");
}

/// A thousand readers of which one takes nothing. Nobody is waited for: everybody else hears of the last event, and what is
/// kept for the one is no more than what its connection holds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_readers_hear_of_everything_and_one_that_is_stuck_holds_nobody_up() {
    let home = home();
    let process = Process::start(home.path(), backend().await, "", "").await;
    let stuck = takes_nothing(&process).await;
    let mut readers = Vec::new();
    for _ in 1..READERS {
        readers.push(Follower::of(&process, "/v1/events?kind=transition&tool=last", &[]).await);
    }
    let before = resident();
    for number in 0..400 {
        mark(&process, &format!("t{}", number % 50)).await;
    }
    mark(&process, "last").await;
    for reader in &mut readers {
        assert_eq!(reader.next().await.data["toolName"], "last");
    }
    let grown = resident().saturating_sub(before);
    assert!(grown < 64 << 20, "{grown} bytes more for 800 events to 1,000 readers");
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
