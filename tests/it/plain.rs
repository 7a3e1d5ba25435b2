//! Plain exchanges over raw sockets: what is decided about a connection on which hyper does not stand, in both directions.

use crate::support::{Backend, DONE, GET, Proxy, Raw, Setup, stage};
use toolvane::proxy::net::Limits;

/// A stage on which one plain exchange has been.
async fn begun() -> (Proxy, Backend, Raw, Raw) {
    let (proxy, backend, mut client) = stage(Setup::default()).await;
    client.send("POST /first HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi").await;
    let mut upstream = backend.accept().await;
    assert!(upstream.read_head().await.starts_with("POST /first "));
    upstream.read_n(2).await;
    upstream.send(DONE).await;
    assert_eq!(client.read_head().await, DONE);
    (proxy, backend, client, upstream)
}

#[tokio::test]
async fn after_plain_requests_what_could_be_read_in_two_ways_is_still_refused() {
    let cases: &[(&str, &[u8], &str)] = &[
        ("two lengths", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", "400"),
        ("lengths in a list", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 5\r\n\r\nhello", "400"),
        ("a signed length", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\nhello", "400"),
        ("a negative length", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\nhello", "400"),
        ("a hexadecimal length", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x5\r\n\r\nhello", "400"),
        ("an empty length", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n", "400"),
        ("an overflowing length", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551616\r\n\r\n", "400"),
        ("a fraction", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5.0\r\n\r\nhello", "400"),
        ("a space before the colon", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length : 5\r\n\r\nhello", "400"),
        ("a tab before the colon", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length\t: 5\r\n\r\nhello", "400"),
        ("a folded line", b"GET / HTTP/1.1\r\nHost: a\r\nX-A: 1\r\n Content-Length: 5\r\n\r\nhello", "400"),
        ("a bare CR", b"GET / HTTP/1.1\r\nHost: a\r\nX-A: 1\rContent-Length: 5\r\n\r\nhello", "400"),
        ("a bare CR at the end", b"GET / HTTP/1.1\r\nHost: a\r\nX-A: 1\r\r\n\r\n", "400"),
        ("a NUL", b"GET / HTTP/1.1\r\nHost: a\r\nX-A: \0\r\n\r\n", "400"),
        ("a NUL in a name", b"GET / HTTP/1.1\r\nHost: a\r\nX\0A: 1\r\n\r\n", "400"),
        ("an unknown coding", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", "400"),
        ("a coding in HTTP/1.0", b"POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400"),
        ("two Hosts", b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "400"),
        ("no Host", b"GET / HTTP/1.1\r\nX-A: 1\r\n\r\n", "400"),
        ("a space in the target", b"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("a bad version", b"GET / HTTP/1.2\r\nHost: a\r\n\r\n", "400"),
        ("a tunnel", b"CONNECT b:443 HTTP/1.1\r\nHost: b:443\r\n\r\n", "405"),
    ];
    let mut wrong = Vec::new();
    for (name, bytes, status) in cases {
        let (_proxy, backend, mut client, mut upstream) = begun().await;
        client.send(bytes).await;
        let seen = tokio::select! {
            seen = client.read_head() => seen,
            seen = upstream.read_head() => format!("REACHED {seen:?}"),
            mut second = backend.accept() => format!("REACHED {:?}", second.read_head().await),
        };
        if !seen.starts_with(&format!("HTTP/1.1 {status} ")) || !seen.contains("\r\nx-toolvane: ") {
            wrong.push(format!("{name}: {seen:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn what_hides_in_a_body_is_a_body() {
    const INNER: &str = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
    let (_proxy, _backend, mut client, mut upstream) = begun().await;
    let length = INNER.len();
    client.send(format!("POST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{INNER}{GET}")).await;
    assert!(upstream.read_head().await.starts_with("POST /2 "));
    assert_eq!(upstream.read_n(length).await, INNER.as_bytes());
    upstream.send(DONE).await;
    assert_eq!(client.read_head().await, DONE);
    assert_eq!(upstream.read_head().await, GET);
}

#[tokio::test]
async fn after_plain_requests_unusual_ones_are_served_as_ever() {
    // A length beside chunks: the chunks count, and the connection ends with it.
    let (_proxy, backend, mut client, _first) = begun().await;
    client
        .send("POST /2 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n")
        .await;
    let mut upstream = backend.accept().await;
    assert!(upstream.read_until("0\r\n\r\n").await.starts_with("POST /2 "));
    upstream.send(DONE).await;
    let answers = client.read_rest().await.to_lowercase();
    assert_eq!(answers, "http/1.1 204 no content\r\nconnection: close\r\n\r\n", "a length was stated before");

    let (_proxy, backend, mut client, _first) = begun().await;
    client.send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n").await;
    let mut upstream = backend.accept().await;
    upstream.read_head().await;
    upstream.send("HTTP/1.1 100 Continue\r\n\r\n").await;
    assert_eq!(client.read_head().await, "HTTP/1.1 100 Continue\r\n\r\n");
    client.send("hello").await;
    assert_eq!(upstream.read_n(5).await, b"hello");
    upstream.send(DONE).await;
    assert_eq!(client.read_head().await, DONE);

    let (_proxy, backend, mut client, _first) = begun().await;
    client.send("GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n").await;
    let mut upstream = backend.accept().await;
    upstream.read_head().await;
    upstream.send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nraw").await;
    client.read_head().await;
    assert_eq!(client.read_n(3).await, b"raw");
}

#[tokio::test]
async fn a_second_head_that_does_not_end_or_is_too_large_is_told_so() {
    let limits = Limits {
        head_timeout: std::time::Duration::from_millis(20),
        head_size: 8192,
        headers: 20,
        ..Limits::default()
    };
    let cases = [
        ("GET / HTTP/1.1\r\nHost".to_owned(), "408"),
        (format!("GET / HTTP/1.1\r\nHost: a\r\nX-A: {}\r\n\r\n", "a".repeat(8192)), "431"),
        (format!("GET / HTTP/1.1\r\nHost: a\r\nX-A: {}", "a".repeat(20_000)), "431"),
        (format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X-A: 1\r\n".repeat(20)), "431"),
    ];
    for (head, status) in cases {
        let (_proxy, backend, mut client) = stage(Setup { limits: limits.clone(), ..Setup::default() }).await;
        client.send(GET).await;
        let mut upstream = backend.accept().await;
        upstream.read_head().await;
        upstream.send(DONE).await;
        assert_eq!(client.read_head().await, DONE);
        client.send(&head).await;
        let answer = client.read_rest().await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
    }
}

/// Sends `answer` to a first request, and tells what the dispatcher got and whether the connection takes a second one.
async fn answered(answer: &str) -> (String, bool) {
    let (proxy, backend, mut client) = stage(Setup::default()).await;
    client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
    let mut upstream = backend.accept().await;
    upstream.read_head().await;
    upstream.try_send(answer).await;
    if !answer.contains("Content-Length") && !answer.contains("chunked") {
        upstream.finish().await;
    }
    let seen = client.read_rest().await;
    let mut client = proxy.connect().await;
    client.send(GET).await;
    let reused = tokio::select! {
        biased;
        mut second = backend.accept() => {
            second.read_head().await;
            false
        }
        head = async {
            match upstream.try_read_head().await {
                Some(head) => head,
                None => std::future::pending().await,
            }
        } => head == GET,
    };
    (seen, reused)
}

#[tokio::test]
async fn a_connection_is_used_again_only_if_nothing_about_its_answer_was_doubtful() {
    let cases = [
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", true),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok", true),
        ("HTTP/1.1 200 OK\nContent-Length: 2\n\nok", true),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", true),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n02;a=\"b\"\r\nok\r\n00\r\nX-A: 1\r\n\r\n", true),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok", false),
        ("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", false),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok\r\n", false),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", false),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", false),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", false),
        ("HTTP/1.1 200 OK\r\nX-A: 1\r\n\r\nok", false),
    ];
    let mut wrong = Vec::new();
    for (answer, expected) in cases {
        let (seen, reused) = answered(answer).await;
        let whole = seen.starts_with("HTTP/1.1 200 OK\r\n")
            && (seen.contains("\r\n\r\nok") || seen.contains("\r\n2\r\nok\r\n"));
        if reused != expected || !whole || seen.contains("evil") || seen.matches("ontent-").count() > 1 {
            wrong.push(format!("{answer:?}: used again {reused}, {seen:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn an_answer_whose_head_leaves_room_for_doubt_is_a_fault() {
    let cases = [
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nContent-Length: 2, 3\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nContent-Length: 0x2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nX-A: 1\r\n Content-Length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nX-A: 1\rContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nX-A: \0\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nno colon\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        "HTTP/1.1 20 OK\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
        "ICY 200 OK\r\nContent-Length: 2\r\n\r\nok",
        "SSH-2.0-OpenSSH_9.9 Content-Length\r\n",
    ];
    let mut wrong = Vec::new();
    for answer in cases {
        let (seen, reused) = answered(answer).await;
        if !seen.starts_with("HTTP/1.1 502 ") || !seen.contains("sent=true protocol") || reused {
            wrong.push(format!("{answer:?}: used again {reused}, {seen:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn a_body_with_broken_chunks_is_never_completed_towards_the_dispatcher() {
    for broken in [
        "zz\r\n",
        "-1\r\nx\r\n0\r\n\r\n",
        "+1\r\nx\r\n0\r\n\r\n",
        "0x1\r\nx\r\n0\r\n\r\n",
        "1 1\r\nx\r\n0\r\n\r\n",
        "ffffffffffffffff0\r\nx\r\n0\r\n\r\n",
        "1\nx\r\n0\r\n\r\n",
        "1\r\nxx\r\n0\r\n\r\n",
        "1\r\nx\n0\r\n\r\n",
        "1;a\nb\r\nx\r\n0\r\n\r\n",
        "\r\n1\r\nx\r\n0\r\n\r\n",
        "0\r\nno colon\r\n\r\n",
        "0\r\nX-A: 1\n\r\n",
        "0\r\n X-A: 1\r\n\r\n",
    ] {
        let (_proxy, backend, mut client) = stage(Setup::default()).await;
        client.send(GET).await;
        let mut upstream = backend.accept().await;
        upstream.read_head().await;
        upstream.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n").await;
        client.read_until("2\r\nok\r\n").await;
        upstream.try_send(broken).await;
        let rest = client.read_rest().await;
        assert!(!rest.contains("0\r\n\r\n"), "{broken:?} ended as {rest:?}");
        assert_eq!(upstream.read_rest().await, "");
    }
}

#[tokio::test]
async fn trailers_that_nobody_asked_for_end_here() {
    let (_proxy, backend, mut client) = stage(Setup::default()).await;
    client.send(GET).await;
    let mut upstream = backend.accept().await;
    upstream.read_head().await;
    upstream
        .send(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-End\r\n\r\n3\r\nabc\r\n0\r\nX-End: 1\r\n\r\n",
        )
        .await;
    assert!(client.read_until("0\r\n\r\n").await.ends_with("\r\n\r\n3\r\nabc\r\n0\r\n\r\n"));
}

#[tokio::test]
async fn large_bodies_pass_in_both_directions_and_the_connections_go_on() {
    let (_proxy, backend, mut client) = stage(Setup::default()).await;
    let large: Vec<u8> = (0..3_000_000_u32).map(|n| n.to_le_bytes()[1]).collect();
    let length = large.len();
    let mut upstream = None;
    for chunked in [false, true] {
        client.send(format!("POST /large HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n")).await;
        if upstream.is_none() {
            upstream = Some(backend.accept().await);
        }
        let upstream = upstream.as_mut().unwrap();
        let (_, sent) = tokio::join!(client.send(&large), async {
            upstream.read_head().await;
            upstream.read_n(length).await
        });
        assert!(sent == large);
        let (_, got) = tokio::join!(
            async {
                if chunked {
                    upstream.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await;
                    for part in large.chunks(70_000) {
                        upstream.send(format!("{:x}\r\n", part.len())).await;
                        upstream.send(part).await;
                        upstream.send("\r\n").await;
                    }
                    upstream.send("0\r\n\r\n").await;
                } else {
                    upstream.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n")).await;
                    upstream.send(&large).await;
                }
            },
            async {
                client.read_head().await;
                if chunked { unchunked(&mut client).await } else { client.read_n(length).await }
            }
        );
        assert!(got == large, "{} bytes of {length}", got.len());
    }
}

async fn unchunked(client: &mut Raw) -> Vec<u8> {
    let mut all = Vec::new();
    loop {
        let line = client.read_until("\r\n").await;
        let Ok(size) = usize::from_str_radix(line.trim_end(), 16) else { return all };
        all.extend(client.read_n(size).await);
        assert_eq!(client.read_n(2).await, b"\r\n");
        if size == 0 {
            return all;
        }
    }
}
