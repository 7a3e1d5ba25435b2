//! The life of single exchanges over raw sockets: interim answers, early answers, upgrades, broken ends, limits.

use std::time::Duration;

use crate::support::{DONE, GET, Raw, Setup, stage, within};
use toolvane::proxy::net::{ForwardPolicy, Limits};

/// One exchange with fixed bytes on both ends; gives the answer's head.
async fn exchange(client: &mut Raw, upstream: &mut Raw, request: &str, answer: &str) -> String {
    client.send(request).await;
    upstream.read_head().await;
    upstream.send(answer).await;
    client.read_head().await
}

#[tokio::test]
async fn answers_without_a_body_keep_the_length_that_they_state() {
    let cases = [
        ("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 42\r\n\r\n"),
        ("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 OK\r\nX-A: 1\r\n\r\n"),
        (GET, "HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n"),
        (GET, DONE),
        (GET, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
        (GET, "HTTP/1.1 405 Method Not Allowed\r\nAllow: POST\r\nContent-Length: 0\r\n\r\n"),
        (
            GET,
            "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer a=b\r\nWWW-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n",
        ),
    ];
    let (_proxy, backend, mut client) = stage(Setup::default()).await;
    client.send(GET).await;
    let mut upstream = backend.accept().await;
    upstream.read_head().await;
    upstream.send(DONE).await;
    client.read_head().await;
    for (request, answer) in cases {
        // On one connection each: a body where there is none would break the next exchange.
        assert_eq!(exchange(&mut client, &mut upstream, request, answer).await, answer);
    }
}

#[tokio::test]
async fn a_body_waits_for_the_backends_100_continue() {
    let (_proxy, backend, mut client) = stage(Setup::default()).await;
    client.send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n").await;
    let mut upstream = backend.accept().await;
    assert!(upstream.read_head().await.contains("Expect: 100-continue\r\n"));
    upstream.send("HTTP/1.1 100 Continue\r\n\r\n").await;
    assert_eq!(client.read_head().await, "HTTP/1.1 100 Continue\r\n\r\n");
    client.send("hello").await;
    assert_eq!(upstream.read_n(5).await, b"hello");
    upstream.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    assert_eq!(client.read_head().await, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
}

#[tokio::test]
async fn a_body_that_the_backend_refuses_is_never_asked_for() {
    let (_proxy, backend, mut client) = stage(Setup::default()).await;
    client.send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n").await;
    let mut upstream = backend.accept().await;
    upstream.read_head().await;
    upstream.send("HTTP/1.1 417 Expectation Failed\r\nContent-Length: 2\r\n\r\nno").await;
    let answer = client.read_rest().await;
    assert!(answer.starts_with("HTTP/1.1 417 ") && answer.ends_with("\r\n\r\nno"), "{answer}");
    assert_eq!(upstream.read_rest().await, "");
}

#[tokio::test]
async fn an_early_answer_passes_while_the_body_is_still_being_sent() {
    let (_proxy, backend, mut client) = stage(Setup::default()).await;
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello").await;
    let mut upstream = backend.accept().await;
    upstream.read_head().await;
    assert_eq!(upstream.read_n(5).await, b"hello");
    upstream.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
    assert_eq!(client.read_head().await, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n");
    assert_eq!(client.read_n(2).await, b"ok");
    client.send("world").await;
    assert_eq!(upstream.read_n(5).await, b"world");
    // Both connections go on.
    let next = exchange(&mut client, &mut upstream, GET, DONE).await;
    assert_eq!(next, DONE);
}

#[tokio::test]
async fn an_accepted_upgrade_carries_opaque_bytes_both_ways() {
    let (_proxy, backend, mut client) = stage(Setup::default()).await;
    client.send("GET /ws HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n\r\n").await;
    let mut upstream = backend.accept().await;
    let head = upstream.read_head().await;
    assert!(
        head.to_lowercase().contains("connection: upgrade\r\n") && head.contains("pgrade: websocket\r\n"),
        "{head}"
    );
    upstream.send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\n\x00first").await;
    let head = client.read_head().await;
    assert!(
        head.starts_with("HTTP/1.1 101 Switching Protocols\r\n") && head.contains("Sec-WebSocket-Accept: x\r\n"),
        "{head}"
    );
    assert_eq!(client.read_n(6).await, b"\x00first");
    client.send("HTTP/1.1 400 looks like HTTP\r\n\r\n").await;
    assert_eq!(upstream.read_head().await, "HTTP/1.1 400 looks like HTTP\r\n\r\n");
    upstream.send("HTTP/1.1 431 so does this\r\n\r\n").await;
    assert_eq!(client.read_head().await, "HTTP/1.1 431 so does this\r\n\r\n");
    // One direction ends, the other goes on.
    client.finish().await;
    assert_eq!(upstream.read_rest().await, "");
    upstream.send("last").await;
    drop(upstream);
    assert_eq!(client.read_rest().await, "last");
}

#[tokio::test]
async fn an_upgraded_connection_that_carries_nothing_is_closed() {
    let policy = ForwardPolicy { tunnel_idle: Duration::from_millis(20), ..ForwardPolicy::default() };
    let (_proxy, backend, mut client) = stage(Setup { policy, ..Setup::default() }).await;
    client.send("GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n").await;
    let mut upstream = backend.accept().await;
    upstream.read_head().await;
    upstream.send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n").await;
    client.read_head().await;
    assert_eq!(client.read_rest().await, "");
    assert_eq!(upstream.read_rest().await, "");
}

#[tokio::test]
async fn a_refused_upgrade_is_an_ordinary_answer() {
    let (_proxy, backend, mut client) = stage(Setup::default()).await;
    client.send("GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n").await;
    let mut upstream = backend.accept().await;
    upstream.read_head().await;
    upstream.send("HTTP/1.1 426 Upgrade Required\r\nContent-Length: 2\r\n\r\nno").await;
    assert_eq!(client.read_head().await, "HTTP/1.1 426 Upgrade Required\r\nContent-Length: 2\r\n\r\n");
    assert_eq!(client.read_n(2).await, b"no");
    let next = exchange(&mut client, &mut upstream, GET, DONE).await;
    assert_eq!(next, DONE);
}

#[tokio::test]
async fn a_backend_that_switches_protocols_unasked_is_at_fault() {
    let (_proxy, backend, mut client) = stage(Setup::default()).await;
    client.send(GET).await;
    let mut upstream = backend.accept().await;
    upstream.read_head().await;
    upstream.send("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n").await;
    let head = client.read_head().await;
    assert!(head.starts_with("HTTP/1.1 502 "), "{head}");
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_their_order() {
    let (_proxy, backend, mut client) = stage(Setup::default()).await;
    client.send("GET /1 HTTP/1.1\r\nHost: a\r\n\r\nPOST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhiGET /3 HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let mut upstream = backend.accept().await;
    for n in 1..=3 {
        let head = upstream.read_head().await;
        assert!(head.contains(&format!(" /{n} ")), "{head}");
        if n == 2 {
            assert_eq!(upstream.read_n(2).await, b"hi");
        }
        upstream.send(format!("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{n}")).await;
        client.read_head().await;
        assert_eq!(client.read_n(1).await, n.to_string().as_bytes());
    }
}

#[tokio::test]
async fn old_http_is_understood_on_both_sides() {
    let (_proxy, backend, mut client) = stage(Setup::default()).await;
    client.send("GET / HTTP/1.0\r\nHost: a\r\n\r\n").await;
    let mut upstream = backend.accept().await;
    upstream.read_head().await;
    upstream.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n").await;
    let answer = client.read_rest().await;
    assert!(answer.starts_with("HTTP/1.0 200 OK\r\n") && answer.ends_with("\r\n\r\nok"), "{answer:?}");
    assert!(!answer.to_lowercase().contains("transfer-encoding"), "{answer:?}");

    let (_proxy, backend, mut client) = stage(Setup::default()).await;
    client.send(GET).await;
    let mut upstream = backend.accept().await;
    upstream.read_head().await;
    upstream.send("HTTP/1.0 200 OK\r\nX-A: 1\r\n\r\nuntil the end").await;
    drop(upstream);
    let head = client.read_head().await;
    assert!(head.to_lowercase().contains("transfer-encoding: chunked\r\n"), "{head}");
    assert_eq!(client.read_until("0\r\n\r\n").await, "D\r\nuntil the end\r\n0\r\n\r\n");
}

#[tokio::test]
async fn a_pooled_connection_that_the_backend_has_closed_harms_no_call() {
    let (proxy, backend, mut client) = stage(Setup::default()).await;
    client.send(GET).await;
    let mut upstream = backend.accept().await;
    upstream.read_head().await;
    upstream.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    client.read_head().await;
    assert_eq!(proxy.upstream.pooled(), 1);
    drop(upstream);
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi").await;
    let mut upstream = backend.accept().await;
    upstream.read_head().await;
    assert_eq!(upstream.read_n(2).await, b"hi");
}

#[tokio::test]
async fn a_request_that_may_have_been_processed_is_never_sent_again() {
    let (_proxy, backend, mut client) = stage(Setup::default()).await;
    client.send(GET).await;
    let mut upstream = backend.accept().await;
    upstream.read_head().await;
    upstream.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    client.read_head().await;
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi").await;
    upstream.read_head().await;
    upstream.read_n(2).await;
    drop(upstream);
    let head = client.read_head().await;
    assert!(head.starts_with("HTTP/1.1 502 "), "{head}");
    let text = client.read_until("answer").await;
    assert!(text.starts_with("Upstream sent=true reset"), "{text}");
    assert!(!backend.has_pending().await);
}

#[tokio::test]
async fn faults_of_the_backend_are_told_apart() {
    let cases = [
        ("", "sent=true reset"),
        ("HTTP/1.1 200 OK\r\nX-A", "sent=true reset"),
        ("SSH-2.0-OpenSSH\r\n\r\n", "sent=true protocol"),
        ("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "sent=true protocol"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", "sent=true protocol"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "sent=true protocol"),
        ("HTTP/1.1 200 OK\r\nX-A: 1\r\n folded\r\n\r\n", "sent=true protocol"),
    ];
    for (answer, expected) in cases {
        let (_proxy, backend, mut client) = stage(Setup::default()).await;
        client.send(GET).await;
        let mut upstream = backend.accept().await;
        upstream.read_head().await;
        upstream.try_send(answer).await;
        drop(upstream);
        let head = client.read_head().await;
        assert!(head.starts_with("HTTP/1.1 502 "), "{answer:.40?}: {head}");
        let text = client.read_until(":").await;
        assert!(text.contains(expected), "{answer:.40?}: {text}");
    }
}

#[tokio::test]
async fn nobody_listening_is_connection_refused_and_nothing_was_sent() {
    let (proxy, backend, _client) = stage(Setup::default()).await;
    drop(backend);
    let mut client = proxy.connect().await;
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n").await;
    client.read_head().await;
    let text = client.read_until(":").await;
    assert_eq!(text, "Upstream sent=false connect-refused:");
    assert!(proxy.upstream.probe_connect().await.is_err());
}

#[tokio::test]
async fn a_silent_backend_is_a_timeout_and_its_connection_is_closed() {
    let setup = Setup { head_timeout: Some(Duration::from_millis(20)), ..Setup::default() };
    let (_proxy, backend, mut client) = stage(setup).await;
    client.send(GET).await;
    let mut upstream = backend.accept().await;
    upstream.read_head().await;
    let head = client.read_head().await;
    assert!(head.starts_with("HTTP/1.1 504 "), "{head}");
    assert_eq!(client.read_until(":").await, "Upstream sent=true timeout:");
    assert_eq!(upstream.read_rest().await, "");
}

#[tokio::test]
async fn a_dispatcher_that_stops_sending_its_body_is_no_fault_of_the_backend() {
    let setup = Setup { head_timeout: Some(Duration::from_millis(20)), ..Setup::default() };
    let (_proxy, backend, mut client) = stage(setup).await;
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello").await;
    let mut upstream = backend.accept().await;
    upstream.read_head().await;
    upstream.read_n(5).await;
    client.read_head().await;
    assert_eq!(client.read_until(":").await, "Downstream sent=true timeout:");
    assert_eq!(upstream.read_rest().await, "");
}

#[tokio::test]
async fn a_body_that_breaks_off_is_broken_off_downstream() {
    let cases = [
        ("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello", false),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", false),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", true),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n", false),
    ];
    for (answer, by_reset) in cases {
        let (_proxy, backend, mut client) = stage(Setup::default()).await;
        client.send(GET).await;
        let mut upstream = backend.accept().await;
        upstream.read_head().await;
        upstream.send(answer).await;
        client.read_until("hello").await;
        if by_reset {
            upstream.reset();
        } else {
            drop(upstream);
        }
        let rest = client.read_rest().await;
        assert!(!rest.contains("0\r\n"), "{answer:?} ended as {rest:?}");
    }
}

#[tokio::test]
async fn a_dispatcher_that_goes_away_takes_its_upstream_request_with_it() {
    for answer in ["", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"] {
        let (_proxy, backend, mut client) = stage(Setup::default()).await;
        client.send(GET).await;
        let mut upstream = backend.accept().await;
        upstream.read_head().await;
        if !answer.is_empty() {
            upstream.send(answer).await;
            client.read_until("hello").await;
        }
        drop(client);
        assert_eq!(upstream.read_rest().await, "");
    }
}

#[tokio::test]
async fn a_dispatcher_that_closes_its_sending_side_has_gone_away() {
    // Given up and half closed look the same, and what is given up must end at the backend at once.
    let (_proxy, backend, mut client) = stage(Setup::default()).await;
    client.send(GET).await;
    let mut upstream = backend.accept().await;
    upstream.read_head().await;
    client.finish().await;
    assert_eq!(upstream.read_rest().await, "");
    assert_eq!(client.read_rest().await, "");
}

#[tokio::test]
async fn a_dispatcher_that_breaks_off_its_body_takes_its_upstream_request_with_it() {
    let (_proxy, backend, mut client) = stage(Setup::default()).await;
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello").await;
    let mut upstream = backend.accept().await;
    upstream.read_head().await;
    upstream.read_n(5).await;
    drop(client);
    assert_eq!(upstream.read_rest().await, "");
}

#[tokio::test]
async fn every_event_of_a_stream_arrives_before_the_next_is_sent() {
    let (_proxy, backend, mut client) = stage(Setup { head_timeout: None, ..Setup::default() }).await;
    client.send(GET).await;
    let mut upstream = backend.accept().await;
    upstream.read_head().await;
    upstream.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n").await;
    let head = client.read_head().await;
    assert!(head.contains("Content-Type: text/event-stream\r\n"), "{head}");
    for n in 0..50 {
        let event = format!("data: {n}\n\n");
        upstream.send(format!("{:x}\r\n{event}\r\n", event.len())).await;
        assert!(client.read_until("\n\n").await.ends_with(&event));
    }
    upstream.send("0\r\n\r\n").await;
    client.read_until("0\r\n\r\n").await;
}

#[tokio::test]
async fn a_head_beyond_the_limits_is_refused_with_words() {
    let limits = Limits { head_size: 8192, headers: 20, ..Limits::default() };
    let cases = [
        format!("GET / HTTP/1.1\r\nHost: a\r\nX-A: {}\r\n\r\n", "a".repeat(8192)),
        format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X-A: 1\r\n".repeat(20)),
        format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(8192)),
        // Without an end.
        format!("GET / HTTP/1.1\r\nHost: a\r\nX-A: {}", "a".repeat(20_000)),
    ];
    for head in cases {
        let (_proxy, backend, mut client) = stage(Setup { limits: limits.clone(), ..Setup::default() }).await;
        client.send(&head).await;
        let answer = client.read_rest().await;
        assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
        assert!(answer.contains("8192 bytes (limits.head) in 20 fields (limits.headers)"), "{answer}");
        assert!(!backend.has_pending().await);
    }
}

#[tokio::test]
async fn the_head_of_an_answer_is_bounded_too_and_whoever_waits_for_it_is_told_how() {
    for (head, passes) in [
        (format!("X-A: {}\r\n", "a".repeat(64 * 1024 - 100)), true),
        (format!("X-A: {}\r\n", "a".repeat(64 * 1024)), false),
        (format!("X-A: {}\r\n", "a".repeat(1_000_000)), false),
        ("X-A: 1\r\n".repeat(100), true),
        ("X-A: 1\r\n".repeat(101), false),
    ] {
        let (_proxy, backend, mut client) = stage(Setup::default()).await;
        client.send(GET).await;
        let mut upstream = backend.accept().await;
        upstream.read_head().await;
        upstream.try_send(format!("HTTP/1.1 204 No Content\r\n{head}\r\n")).await;
        let answer = client.read_head().await;
        if passes {
            assert!(answer.starts_with("HTTP/1.1 204 ") && answer.contains(&head), "{} bytes", head.len());
        } else {
            assert!(answer.starts_with("HTTP/1.1 502 "), "{} bytes: {answer:.200}", head.len());
            let words = client.read_until("(limits.headers)").await;
            assert!(words.contains("Proxy(Limit) sent=true") && words.contains("65536 bytes (limits.head)"), "{words}");
        }
    }
}

#[tokio::test]
async fn a_head_at_the_limits_passes() {
    let limits = Limits { head_size: 8192, headers: 20, ..Limits::default() };
    let (_proxy, backend, mut client) = stage(Setup { limits, ..Setup::default() }).await;
    let fixed = "GET / HTTP/1.1\r\nHost: a\r\nX-A: \r\n\r\n".len();
    client.send(format!("GET / HTTP/1.1\r\nHost: a\r\nX-A: {}\r\n\r\n", "a".repeat(8192 - fixed))).await;
    assert!(backend.accept().await.read_head().await.len() > 8000);
}

#[tokio::test]
async fn a_head_that_does_not_end_in_time_is_told_so() {
    let limits = Limits { head_timeout: Duration::from_millis(20), ..Limits::default() };
    let (_proxy, _backend, mut client) = stage(Setup { limits, ..Setup::default() }).await;
    client.send("GET / HTTP/1.1\r\nHost").await;
    let answer = client.read_rest().await;
    assert!(answer.starts_with("HTTP/1.1 408 ") && answer.contains("(limits.header_timeout)"), "{answer}");
}

#[tokio::test]
async fn a_connection_without_requests_is_closed_without_words() {
    let limits = Limits { idle_timeout: Duration::from_millis(20), ..Limits::default() };
    let (_proxy, backend, mut client) = stage(Setup { limits: limits.clone(), ..Setup::default() }).await;
    assert_eq!(client.read_rest().await, "");
    // After an exchange likewise; while one is in progress the limit does not count.
    let (_proxy, backend2, mut client) = stage(Setup { limits, ..Setup::default() }).await;
    client.send(GET).await;
    let mut upstream = backend2.accept().await;
    upstream.read_head().await;
    tokio::time::timeout(Duration::from_millis(60), client.read_n(1)).await.unwrap_err();
    upstream.send(DONE).await;
    assert_eq!(client.read_rest().await, DONE);
    drop(backend);
}

#[tokio::test]
async fn a_connection_past_the_limit_is_told_so() {
    let limits = Limits { connections: 1, ..Limits::default() };
    let (proxy, backend, mut client) = stage(Setup { limits, ..Setup::default() }).await;
    client.send(GET).await;
    let mut upstream = backend.accept().await;
    upstream.read_head().await;
    let mut second = proxy.connect().await;
    second.send(GET).await;
    let answer = second.read_rest().await;
    assert!(answer.starts_with("HTTP/1.1 429 ") && answer.contains("(limits.connections)"), "{answer}");
    upstream.send(DONE).await;
    assert_eq!(client.read_head().await, DONE);
}

#[tokio::test]
async fn a_drain_finishes_what_is_in_flight_and_keeps_serving_until_it_is_told_to_stop() {
    let (proxy, backend, mut client) = stage(Setup::default()).await;
    client.send(GET).await;
    let mut upstream = backend.accept().await;
    upstream.read_head().await;
    proxy.drain.announce();
    let mut late = proxy.connect().await;
    late.send(GET).await;
    let mut upstream2 = backend.accept().await;
    upstream2.read_head().await;
    upstream2.send(DONE).await;
    let farewell = late.read_rest().await;
    assert_eq!(farewell.to_lowercase(), "http/1.1 204 no content\r\nconnection: close\r\n\r\n");
    drop(late);
    proxy.drain.stop(Duration::from_secs(30));
    upstream.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
    let farewell = client.read_rest().await;
    assert!(farewell.to_lowercase().contains("connection: close\r\n") && farewell.ends_with("ok"), "{farewell}");
    within("the end of serving", proxy.served).await.unwrap();
}

#[tokio::test]
async fn what_outlives_the_drain_timeout_is_cut_off() {
    let (proxy, backend, mut client) = stage(Setup::default()).await;
    client.send(GET).await;
    let mut upstream = backend.accept().await;
    upstream.read_head().await;
    let mut ws = proxy.connect().await;
    ws.send("GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n").await;
    let mut upstream_ws = backend.accept().await;
    upstream_ws.read_head().await;
    upstream_ws.send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n").await;
    ws.read_head().await;
    proxy.drain.stop(Duration::from_millis(20));
    within("the end of serving", proxy.served).await.unwrap();
    assert_eq!(client.read_rest().await, "");
    assert_eq!(upstream.read_rest().await, "");
    assert_eq!(ws.read_rest().await, "");
    assert_eq!(upstream_ws.read_rest().await, "");
}

#[tokio::test]
async fn a_drain_timeout_that_is_shortened_counts_from_then_on() {
    let (proxy, backend, mut client) = stage(Setup::default()).await;
    client.send(GET).await;
    let mut upstream = backend.accept().await;
    upstream.read_head().await;
    proxy.drain.stop(Duration::from_secs(3600));
    proxy.drain.stop(Duration::ZERO);
    proxy.drain.stop(Duration::from_secs(3600));
    within("the end of serving", proxy.served).await.unwrap();
    assert_eq!(client.read_rest().await, "");
}

#[tokio::test]
async fn idle_connections_end_at_once_when_serving_stops() {
    let (proxy, backend, mut client) = stage(Setup::default()).await;
    client.send(GET).await;
    let mut upstream = backend.accept().await;
    upstream.read_head().await;
    upstream.send(DONE).await;
    client.read_head().await;
    let mut silent = proxy.connect().await;
    proxy.drain.stop(Duration::from_secs(30));
    assert_eq!(client.read_rest().await, "");
    assert_eq!(silent.read_rest().await, "");
    drop((client, silent));
    within("the end of serving", proxy.served).await.unwrap();
}
