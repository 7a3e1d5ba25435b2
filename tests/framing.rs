//! HTTP correctness over raw sockets: what goes in on one side is what comes out on the other, and nothing can be
//! smuggled through.

mod support;

use support::{Backend, Proxy, Raw, Setup};
use toolvane::proxy::net::{ForwardPolicy, HostPolicy};

/// A proxy before a fresh backend, a client connection, and nothing else.
async fn stage(setup: Setup) -> (Proxy, Backend, Raw) {
    let backend = Backend::start().await;
    let proxy = Proxy::start(backend.address, setup).await;
    let client = proxy.connect().await;
    (proxy, backend, client)
}

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
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(upstream.read_head().await, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    upstream.send("HTTP/1.1 204 No Content\r\n\r\n").await;
    assert_eq!(client.read_head().await, "HTTP/1.1 204 No Content\r\n\r\n");
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
    (
        "hop-by-hop fields",
        "GET / HTTP/1.1\r\nHost: a\r\nKeep-Alive: 5\r\nProxy-Connection: x\r\nTE: gzip\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    ),
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
    ("an empty line first", "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
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
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
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
