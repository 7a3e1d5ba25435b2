//! HTTP correctness over raw sockets: what goes in on one side is what comes out on the other, and nothing can be
//! smuggled through.

mod support;

use support::{Backend, Proxy, Raw, Setup, within};

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
