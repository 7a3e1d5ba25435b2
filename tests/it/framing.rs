//! HTTP correctness over raw sockets: what goes in on one side is what comes out on the other, and nothing can be
//! smuggled through.

use crate::support::{DONE, GET, Setup, stage};
use toolvane::proxy::net::{ForwardPolicy, HostPolicy};

#[tokio::test]
async fn a_request_and_its_answer_pass_as_they_are() {
    let (_proxy, backend, mut client) = stage(Setup::default()).await;
    client.send("POST /mcp?x=1 HTTP/1.1\r\nHost: Tools.Local\r\nX-MiXed: a\r\nx-Two: 1\r\nContent-Length: 5\r\nX-Two: 2\r\n\r\nhello").await;
    let mut upstream = backend.accept().await;
    assert_eq!(
        upstream.read_head().await,
        "POST /mcp?x=1 HTTP/1.1\r\nHost: Tools.Local\r\nX-MiXed: a\r\nx-Two: 1\r\nX-Two: 2\r\nContent-Length: 5\r\n\r\n"
    );
    assert_eq!(upstream.read_n(5).await, b"hello");
    upstream.send("HTTP/1.1 299 Very Well\r\nX-Odd-CASE: 1\r\nContent-Length: 2\r\n\r\nok").await;
    assert_eq!(client.read_head().await, "HTTP/1.1 299 Very Well\r\nX-Odd-CASE: 1\r\nContent-Length: 2\r\n\r\n");
    assert_eq!(client.read_n(2).await, b"ok");
    // Both connections serve the next request.
    client.send(GET).await;
    assert_eq!(upstream.read_head().await, GET);
    upstream.send(DONE).await;
    assert_eq!(client.read_head().await, DONE);
}

#[tokio::test]
async fn a_request_that_could_be_read_in_two_ways_reaches_no_backend() {
    let cases: &[(&str, &[u8], &str)] = &[
        ("two lengths", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", "400"),
        ("two lengths in one field", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 6\r\n\r\nhello!", "400"),
        ("a signed length", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\nhello", "400"),
        ("a negative length", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", "400"),
        ("a hexadecimal length", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x5\r\n\r\nhello", "400"),
        ("an overflowing length", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n", "400"),
        ("an empty length", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: \r\n\r\n", "400"),
        ("an unknown coding", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", "400"),
        ("chunked not last", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n", "400"),
        (
            "chunked after another",
            b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
            "501",
        ),
        (
            "chunked with a tab inside",
            b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\x0b\r\n\r\n0\r\n\r\n",
            "400",
        ),
        ("chunked in HTTP/1.0", b"POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400"),
        ("a space before the colon", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length : 5\r\n\r\nhello", "400"),
        ("a folded line", b"GET / HTTP/1.1\r\nHost: a\r\nX-A: 1\r\n folded\r\n\r\n", "400"),
        ("a folded first line", b"GET / HTTP/1.1\r\n Host: a\r\n\r\n", "400"),
        ("a NUL in a value", b"GET / HTTP/1.1\r\nHost: a\r\nX-A: 1\x002\r\n\r\n", "400"),
        ("a bare CR in a value", b"GET / HTTP/1.1\r\nHost: a\r\nX-A: 1\rX-B: 2\r\n\r\n", "400"),
        ("no colon", b"GET / HTTP/1.1\r\nHost: a\r\nX-A\r\n\r\n", "400"),
        ("an empty name", b"GET / HTTP/1.1\r\nHost: a\r\n: 1\r\n\r\n", "400"),
        ("no Host", b"GET / HTTP/1.1\r\nX-A: 1\r\n\r\n", "400"),
        ("two Hosts", b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "400"),
        ("a space in the target", b"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("a control in the target", b"GET /a\x01b HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("a bad method", b"GE{T / HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("a bad version", b"GET / HTTP/1.2\r\nHost: a\r\n\r\n", "400"),
        ("no version", b"GET /\r\n\r\n", "400"),
        ("a tunnel", b"CONNECT b:443 HTTP/1.1\r\nHost: b:443\r\n\r\n", "405"),
    ];
    let mut wrong = Vec::new();
    for (name, bytes, status) in cases {
        let (_proxy, backend, mut client) = stage(Setup::default()).await;
        client.send(bytes).await;
        let seen = tokio::select! {
            seen = client.read_head() => seen,
            mut upstream = backend.accept() => { let h = upstream.read_head().await; format!("REACHED {h:?}") }
        };
        let marked = seen.starts_with(&format!("HTTP/1.1 {status} ")) && seen.contains("\r\nx-toolvane: ");
        if !marked || backend.has_pending().await {
            wrong.push(format!("{name}: {seen:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What is sent, and what a backend sees of it.
const HEADS: &[(&str, &str, &str)] = &[
    (
        "named by Connection",
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: close, x-foo\r\nX-Foo: 1\r\nX-Bar: 2\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX-Bar: 2\r\n\r\n",
    ),
    (
        "Connection names what is not its own",
        "POST / HTTP/1.1\r\nHost: a\r\nConnection: content-length, host\r\nContent-Length: 0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
    ),
    ("hop-by-hop fields", "GET / HTTP/1.1\r\nHost: a\r\nKeep-Alive: 5\r\nProxy-Connection: x\r\nTE: gzip\r\n\r\n", GET),
    (
        "TE: trailers",
        "GET / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nConnection: TE\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nConnection: te\r\n\r\n",
    ),
    (
        "an absolute target",
        "GET http://b.example:8080/x?y HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /x?y HTTP/1.1\r\nHost: b.example:8080\r\n\r\n",
    ),
    (
        "an absolute target with credentials",
        "GET http://u:p@b.example HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: b.example\r\n\r\n",
    ),
    ("an asterisk", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("bare line feeds", "GET / HTTP/1.1\nHost: a\nX-A: 1\n\n", "GET / HTTP/1.1\r\nHost: a\r\nX-A: 1\r\n\r\n"),
    ("an empty line first", "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", GET),
    ("HTTP/1.0", "GET / HTTP/1.0\r\nHost: a\r\nX-A: 1\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nX-A: 1\r\n\r\n"),
    ("a method of its own", "BREW /pot HTTP/1.1\r\nHost: a\r\n\r\n", "BREW /pot HTTP/1.1\r\nHost: a\r\n\r\n"),
    (
        "odd but valid bytes",
        "GET /%2e%2E//a%20b?%00 HTTP/1.1\r\nHost: a\r\nX-A: \u{e4}\u{1f600}\tx\r\n\r\n",
        "GET /%2e%2E//a%20b?%00 HTTP/1.1\r\nHost: a\r\nX-A: \u{e4}\u{1f600}\tx\r\n\r\n",
    ),
    (
        "the same length twice",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
    ),
    (
        "h2c is no upgrade",
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n",
        GET,
    ),
    // RFC 9112, 6.3: the coding counts, the length must not be passed on.
    (
        "CL and TE",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
    ),
    (
        "TE and CL",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
    ),
];

#[tokio::test]
async fn heads_reach_the_backend_without_what_belongs_to_the_connection() {
    let mut wrong = Vec::new();
    for (name, sent, expected) in HEADS {
        let (_proxy, backend, mut client) = stage(Setup::default()).await;
        client.send(sent).await;
        let seen = tokio::select! {
            seen = async { backend.accept().await.read_head().await } => seen,
            refused = client.read_head() => refused,
        };
        if seen != *expected {
            wrong.push(format!("{name}: {seen:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn this_hop_is_named_only_where_the_configuration_says_so() {
    let policy = ForwardPolicy {
        host: HostPolicy::Rewrite,
        via: true,
        x_forwarded: true,
        forwarded: true,
        ..ForwardPolicy::default()
    };
    let (_proxy, backend, mut client) = stage(Setup { policy, ..Setup::default() }).await;
    client.send("GET / HTTP/1.1\r\nHost: tools.local\r\nX-Forwarded-For: 10.0.0.1\r\n\r\n").await;
    let mut upstream = backend.accept().await;
    let head = upstream.read_head().await.to_lowercase();
    for line in [
        &format!("host: {}", backend.address),
        "via: 1.1 toolvane",
        "x-forwarded-for: 10.0.0.1, 127.0.0.1",
        "x-forwarded-host: tools.local",
        "x-forwarded-proto: http",
        "forwarded: for=127.0.0.1;host=\"tools.local\";proto=http",
    ] {
        assert!(head.contains(&format!("\r\n{line}\r\n")), "{line} in {head}");
    }
    upstream.send("HTTP/1.1 204 No Content\r\nVia: 1.1 inner\r\n\r\n").await;
    assert!(client.read_head().await.contains("Via: 1.1 inner, 1.1 toolvane\r\n"));
}

#[tokio::test]
async fn a_chunked_body_passes_with_its_trailers_and_without_its_extensions() {
    let (_proxy, backend, mut client) = stage(Setup::default()).await;
    client
        .send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\nTE: trailers\r\n\r\n")
        .await;
    let mut upstream = backend.accept().await;
    let head = upstream.read_head().await;
    assert!(head.to_lowercase().contains("transfer-encoding: chunked\r\n"), "{head}");
    client.send("5;name=value;other\r\nhello\r\n").await;
    assert_eq!(upstream.read_n(10).await, b"5\r\nhello\r\n");
    client.send("0\r\nX-Sum: 7\r\n\r\n").await;
    assert_eq!(upstream.read_until("\r\n\r\n").await.to_lowercase(), "0\r\nx-sum: 7\r\n\r\n");
    upstream.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-End\r\n\r\n3;x\r\nabc\r\n").await;
    let head = client.read_head().await;
    assert!(head.to_lowercase().contains("transfer-encoding: chunked\r\n"), "{head}");
    assert_eq!(client.read_n(8).await, b"3\r\nabc\r\n");
    upstream.send("0\r\nX-End: 1\r\n\r\n").await;
    assert_eq!(client.read_until("\r\n\r\n").await.to_lowercase(), "0\r\nx-end: 1\r\n\r\n");
}

#[tokio::test]
async fn a_body_with_broken_framing_is_never_completed_towards_the_backend() {
    for broken in ["zz\r\nhello", "5\r\nhelloXX", "fffffffffffffffff\r\n", "-1\r\nx", "5 \u{b}\r\nhello\r\n0\r\n\r\n"] {
        let (_proxy, backend, mut client) = stage(Setup::default()).await;
        client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n").await;
        let mut upstream = backend.accept().await;
        upstream.read_head().await;
        client.send(broken).await;
        let passed = upstream.read_rest().await;
        assert!(!passed.contains("0\r\n\r\n"), "{broken:?} reached the backend as {passed:?}");
    }
}

#[tokio::test]
async fn a_connection_that_sent_a_length_beside_chunks_is_closed_after_the_answer() {
    const CHUNKED: &str = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    for both in [
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n",
    ] {
        for is_first in [true, false] {
            let (_proxy, backend, mut client) = stage(Setup::default()).await;
            if !is_first {
                client.send(CHUNKED).await;
            }
            let mut upstream = if is_first { None } else { Some(backend.accept().await) };
            if let Some(upstream) = &mut upstream {
                upstream.read_until("0\r\n\r\n").await;
                upstream.send(DONE).await;
                assert_eq!(client.read_head().await, DONE);
            }
            // What follows would be the smuggled request: it is never read.
            client.send(format!("{both}GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n")).await;
            let mut upstream = match upstream {
                Some(upstream) => upstream,
                None => backend.accept().await,
            };
            let head = upstream.read_until("0\r\n\r\n").await.to_lowercase();
            assert!(head.starts_with("post / ") && !head.contains("content-length"), "{head}");
            upstream.send(DONE).await;
            let answers = client.read_rest().await.to_lowercase();
            assert_eq!(answers, "http/1.1 204 no content\r\nconnection: close\r\n\r\n");
        }
    }
    // Chunks alone are no reason.
    let (_proxy, backend, mut client) = stage(Setup::default()).await;
    client.send(CHUNKED).await;
    let mut upstream = backend.accept().await;
    for _ in 0..2 {
        upstream.read_until("0\r\n\r\n").await;
        upstream.send(DONE).await;
        assert_eq!(client.read_head().await, DONE);
        client.send(CHUNKED).await;
    }
}

const HINT: &str = "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\nKeep-Alive: 5\r\nConnection: x-own\r\nX-Own: 1\r\n\r\n";
const HINT_PASSED: &str = "HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n";
const PROCESSING: &str = "HTTP/1.1 102 Processing\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[tokio::test]
async fn interim_answers_pass_at_once_and_before_the_final_one() {
    let (_proxy, backend, mut client) = stage(Setup::default()).await;
    client.send(GET).await;
    let mut upstream = backend.accept().await;
    upstream.read_head().await;
    upstream.send(HINT).await;
    assert_eq!(client.read_head().await, HINT_PASSED);
    for _ in 0..5 {
        upstream.send(PROCESSING).await;
        assert_eq!(client.read_head().await, PROCESSING);
    }
    // All at once, they keep their order.
    upstream.send([PROCESSING, HINT, PROCESSING, OK].concat()).await;
    for head in [PROCESSING, HINT_PASSED, PROCESSING, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"] {
        assert_eq!(client.read_head().await, head);
    }
    assert_eq!(client.read_n(2).await, b"ok");
}

#[tokio::test]
async fn interim_answers_of_pipelined_requests_stand_before_their_own_final_answers() {
    let (_proxy, backend, mut client) = stage(Setup::default()).await;
    client
        .send("GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\nGET /3 HTTP/1.1\r\nHost: a\r\n\r\n")
        .await;
    let mut upstream = backend.accept().await;
    let large = "x".repeat(3_000_000);
    for _ in 0..3 {
        upstream.read_head().await;
        let length = large.len();
        upstream.send(format!("{HINT}{PROCESSING}HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n")).await;
        // The client reads nothing of it before all is sent, but for what the sockets' buffers do not hold.
        let (_, ()) = tokio::join!(upstream.send(&large), async {
            assert_eq!(client.read_head().await, HINT_PASSED);
            assert_eq!(client.read_head().await, PROCESSING);
            assert!(client.read_head().await.starts_with("HTTP/1.1 200 OK\r\n"));
            assert_eq!(client.read_n(length).await, large.as_bytes());
        });
    }
}

#[tokio::test]
async fn an_interim_answer_passes_while_the_requests_body_is_still_being_sent() {
    let (_proxy, backend, mut client) = stage(Setup::default()).await;
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello").await;
    let mut upstream = backend.accept().await;
    upstream.read_head().await;
    assert_eq!(upstream.read_n(5).await, b"hello");
    upstream.send(HINT).await;
    assert_eq!(client.read_head().await, HINT_PASSED);
    client.send("world").await;
    assert_eq!(upstream.read_n(5).await, b"world");
    upstream.send(OK).await;
    assert_eq!(client.read_head().await, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n");
}

#[tokio::test]
async fn a_continue_is_given_once_to_whoever_expects_it_and_a_switch_of_protocols_follows_hints() {
    let (_proxy, backend, mut client) = stage(Setup::default()).await;
    client.send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n").await;
    let mut upstream = backend.accept().await;
    upstream.read_head().await;
    upstream.send([HINT, "HTTP/1.1 100 Continue\r\n\r\n"].concat()).await;
    let first = [client.read_head().await, client.read_head().await];
    assert!(first.iter().any(|head| head == HINT_PASSED), "{first:?}");
    assert!(first.iter().any(|head| head == "HTTP/1.1 100 Continue\r\n\r\n"), "{first:?}");
    client.send("hello").await;
    upstream.read_n(5).await;
    upstream.send(DONE).await;
    assert_eq!(client.read_head().await, DONE);

    client.send("GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n").await;
    upstream.read_head().await;
    upstream
        .send(
            [HINT, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nraw"].concat(),
        )
        .await;
    assert_eq!(client.read_head().await, HINT_PASSED);
    assert!(client.read_head().await.starts_with("HTTP/1.1 101 "));
    assert_eq!(client.read_n(3).await, b"raw");
}

#[tokio::test]
async fn an_http_1_0_dispatcher_gets_no_interim_answers() {
    let (_proxy, backend, mut client) = stage(Setup::default()).await;
    client.send("GET / HTTP/1.0\r\nHost: a\r\n\r\n").await;
    let mut upstream = backend.accept().await;
    upstream.read_head().await;
    upstream.send([HINT, OK].concat()).await;
    let answer = client.read_rest().await;
    assert!(answer.starts_with("HTTP/1.0 200 OK\r\n") && answer.ends_with("ok"), "{answer}");
}

#[tokio::test]
async fn a_flood_of_interim_answers_that_nobody_reads_is_bounded_and_the_final_one_still_comes() {
    let (_proxy, backend, mut client) = stage(Setup::default()).await;
    client.send(GET).await;
    let mut upstream = backend.accept().await;
    upstream.read_head().await;
    upstream.send(PROCESSING.repeat(40_000)).await;
    upstream.send(OK).await;
    let seen = client.read_until("\r\n\r\nok").await;
    let seen = seen.replace(PROCESSING, "");
    assert_eq!(seen, OK);
}
