//! Notifications, to a real receiver over HTTP.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde_json::{Value, json};
use toolvane::clock::Clock;

use super::server::{Seen, Server, is_signed};
use super::support::{OPERATOR, Process, WRITER, backend, home, within};

const HALF_AN_HOUR: Duration = Duration::from_secs(30 * 60);

/// The notifications, once there are so many.
async fn told(receiver: &Server, count: usize) -> Vec<Seen> {
    within(&format!("{count} notifications"), async {
        while receiver.seen().len() < count {
            tokio::task::yield_now().await;
        }
    })
    .await;
    receiver.seen()
}

async fn write(process: &Process, path: &str, body: &Value) {
    let written = process.ask("POST", path, WRITER, body).await;
    assert_eq!(written.status, StatusCode::OK, "{}", written.detail());
}

#[tokio::test]
async fn people_hear_of_the_first_failure_of_its_lasting_of_its_end_and_of_each_user_concerned() {
    let home = home();
    std::fs::write(home.path().join("secret"), "shared-secret").unwrap();
    let receiver = Server::start(|_| StatusCode::NO_CONTENT.into_response()).await;
    let more =
        format!("notify: {{webhook: {{url: \"http://{}/hook\", secret: {{file: secret}}}}}}\n", receiver.address);
    let process = Process::start(home.path(), backend().await, "", &more).await;
    let project = "/v1/health/PROJECT/default/search";
    let down = json!({"reason": "the index is gone", "expiresIn": "5h", "signature": "index-gone"});
    write(&process, &format!("{project}/unavailable"), &down).await;
    let first = told(&receiver, 1).await.remove(0);
    assert!(is_signed(&first, b"shared-secret"));
    assert_eq!(first.body["notification"], "first_failure");
    let facts = ["tool", "backend", "project", "status", "signature", "note"].map(|name| first.body[name].clone());
    assert_eq!(facts, ["search", "demo", "default", "DOWN", "index-gone", "the index is gone"].map(|text| json!(text)));

    // Whatever happens makes it look at the clock.
    let nudge = async || process.ask("POST", "/v1/never-heard-of", OPERATOR, &json!({})).await;
    for so_far in [1, 2] {
        process.clock.advance(HALF_AN_HOUR);
        nudge().await;
        nudge().await;
        let reminder = told(&receiver, so_far + 1).await.remove(so_far);
        assert_eq!(
            (&reminder.body["notification"], &reminder.body["tool"]),
            (&json!("still_failing"), &json!("search"))
        );
    }
    write(&process, &format!("{project}/available"), &json!({"reason": "it is back"})).await;
    let end = told(&receiver, 4).await.remove(3);
    assert_eq!((&end.body["notification"], &end.body["status"]), (&json!("recovered"), &json!("OK")));

    process.clock.advance(HALF_AN_HOUR);
    let expired = json!({
        "reason": "his token has expired", "classification": "USER_SPECIFIC_TECHNICAL", "expiresIn": "5h",
        "userActionHint": "Sign in to the tracker again.",
    });
    for (number, user) in ["alice", "bob"].into_iter().enumerate() {
        write(&process, &format!("/v1/health/USER/{user}/search/unavailable"), &expired).await;
        let concerned = told(&receiver, 5 + number).await.remove(4 + number);
        let facts = ["notification", "user", "tool", "userActionHint"].map(|name| concerned.body[name].clone());
        let expected = ["user_concerned", user, "search", "Sign in to the tracker again."].map(|text| json!(text));
        assert_eq!(facts, expected, "and nothing of what has ended");
    }
    write(&process, "/v1/health/USER/bob/search/unavailable", &expired).await;
    let gone = process.ask("DELETE", "/v1/health/USER/alice/search", OPERATOR, &Value::Null).await;
    assert_eq!(gone.status, StatusCode::NO_CONTENT);
    process.clock.advance(HALF_AN_HOUR);
    nudge().await;
    let reminder = told(&receiver, 7).await.remove(6);
    assert_eq!((&reminder.body["notification"], &reminder.body["user"]), (&json!("still_failing"), &json!("bob")));
    nudge().await;
    write(&process, "/v1/health/USER/bob/search/available", &json!({"reason": "x"})).await;
    let last = told(&receiver, 8).await.remove(7);
    assert_eq!((&last.body["notification"], &last.body["user"]), (&json!("recovered"), &json!("bob")));
}

#[tokio::test]
async fn a_receiver_that_fails_is_asked_again() {
    let home = home();
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let receiver = Server::start(move |_| {
        let first = asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0;
        (if first { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK }).into_response()
    })
    .await;
    let more = format!("notify: {{webhook: {{url: \"http://{}/hook\"}}}}\n", receiver.address);
    let process = Process::start(home.path(), backend().await, "", &more).await;
    let down = json!({"reason": "x", "expiresIn": "1h"});
    write(&process, "/v1/health/PROJECT/default/search/unavailable", &down).await;
    let both = told(&receiver, 2).await;
    assert_eq!(both[0].body, both[1].body);
}

/// The same process after a restart.
async fn restarted(mut process: Process, (home, backend): (&Path, SocketAddr), more: &str) -> Process {
    let now = process.clock.now();
    process.running.stop();
    process.running.ended().await;
    Process::start_at(now, "127.0.0.1:0", home, backend, ("", more)).await
}

fn facts_of(told: &Seen) -> [&str; 3] {
    ["notification", "tool", "note"].map(|name| told.body[name].as_str().unwrap())
}

#[tokio::test]
async fn a_restart_repeats_no_first_failure_and_forgets_no_recovery() {
    let home = home();
    let (receiver, backend) = (Server::start(|_| StatusCode::OK.into_response()).await, backend().await);
    let more = format!("notify: {{webhook: {{url: \"http://{}/hook\"}}}}\n", receiver.address);
    let place = (home.path(), backend);
    let (down, up) = (json!({"reason": "the disk is full", "expiresIn": "5h"}), json!({"reason": "it is back"}));
    let process = Process::start(home.path(), backend, "", &more).await;
    for tool in ["search", "fetch", "print"] {
        write(&process, &format!("/v1/health/PROJECT/default/{tool}/unavailable"), &down).await;
    }
    assert_eq!(facts_of(&told(&receiver, 3).await[2]), ["first_failure", "print", "the disk is full"]);
    process.clock.advance(HALF_AN_HOUR / 2);

    let process = restarted(process, place, &more).await;
    write(&process, "/v1/health/PROJECT/default/fetch/unavailable", &down).await;
    write(&process, "/v1/health/PROJECT/default/search/available", &up).await;
    let end = told(&receiver, 4).await.remove(3);
    assert_eq!(facts_of(&end), ["recovered", "search", "it is back"], "and no failure is told again");

    // Meanwhile one that notifies nobody.
    let process = restarted(process, place, "").await;
    write(&process, "/v1/health/PROJECT/default/fetch/available", &up).await;
    let process = restarted(process, place, &more).await;
    let end = told(&receiver, 5).await.remove(4);
    assert_eq!(facts_of(&end), ["recovered", "fetch", "it is back"]);

    process.clock.advance(HALF_AN_HOUR / 2);
    process.ask("POST", "/v1/never-heard-of", OPERATOR, &json!({})).await;
    let reminder = told(&receiver, 6).await.remove(5);
    assert_eq!(facts_of(&reminder), ["still_failing", "print", "the disk is full"], "half an hour after it was said");
}
