//! HTTP/2 by prior knowledge on either side, frame by frame.

use std::time::Duration;

use crate::support::{Backend, Proxy, Raw, Setup, within};
use bytes::Bytes;
use h2::{Reason, RecvStream};
use http::{HeaderMap, Request, Response, StatusCode};
use tokio::net::TcpStream;
use toolvane::proxy::net::{HttpVersion, Limits};

type Sender = h2::client::SendRequest<Bytes>;
type Server = h2::server::Connection<TcpStream, Bytes>;

fn two() -> Setup {
    Setup { http: HttpVersion::Two, ..Setup::default() }
}

/// An HTTP/2 connection to the proxy.
async fn dial(proxy: &Proxy) -> Sender {
    let stream = TcpStream::connect(proxy.address).await.unwrap();
    let (sender, connection) = within("the handshake", h2::client::handshake(stream)).await.unwrap();
    tokio::spawn(async move {
        let _ = connection.await;
    });
    within("room for a stream", sender.ready()).await.unwrap()
}

/// The next HTTP/2 connection at the backend.
async fn accept(backend: &Backend) -> Server {
    within("the handshake", h2::server::handshake(backend.accept().await.into_stream())).await.unwrap()
}

/// The next request at the backend.
async fn next(server: &mut Server) -> (Request<RecvStream>, h2::server::SendResponse<Bytes>) {
    within("a request", server.accept()).await.unwrap().unwrap()
}

/// Keeps a backend's connection moving while the test does other things.
fn drive(mut server: Server) {
    tokio::spawn(async move { while server.accept().await.is_some() {} });
}

fn get(path: &str) -> Request<()> {
    Request::get(format!("http://tools.local{path}")).body(()).unwrap()
}

async fn data(body: &mut RecvStream) -> Bytes {
    let bytes = within("data", body.data()).await.unwrap().unwrap();
    body.flow_control().release_capacity(bytes.len()).unwrap();
    bytes
}

#[tokio::test]
async fn a_request_over_http2_reaches_an_http1_backend_as_one_of_its_own() {
    let backend = Backend::start().await;
    let proxy = Proxy::start(backend.address, Setup::default()).await;
    let mut client = dial(&proxy).await;
    let request = Request::post("http://tools.local:81/mcp?x=1")
        .header("cookie", "a=1")
        .header("cookie", "b=2")
        .header("te", "trailers")
        .header("x-a", "1")
        .body(())
        .unwrap();
    let (answer, mut body) = client.send_request(request, false).unwrap();
    body.send_data("hello".into(), false).unwrap();
    let mut upstream = backend.accept().await;
    let head = upstream.read_head().await;
    assert!(head.starts_with("POST /mcp?x=1 HTTP/1.1\r\n"), "{head}");
    for line in [
        "cookie: a=1; b=2",
        "te: trailers",
        "connection: te",
        "x-a: 1",
        "host: tools.local:81",
        "transfer-encoding: chunked",
    ] {
        assert!(head.contains(&format!("\r\n{line}\r\n")), "{line} in {head}");
    }
    assert_eq!(upstream.read_n(10).await, b"5\r\nhello\r\n");
    body.send_data(Bytes::new(), true).unwrap();
    assert_eq!(upstream.read_n(5).await, b"0\r\n\r\n");
    upstream
        .send("HTTP/1.1 200 OK\r\nX-B: 2\r\nConnection: keep-alive, x-c\r\nX-C: 3\r\nTransfer-Encoding: chunked\r\nTrailer: X-End\r\n\r\n2\r\nok\r\n0\r\nX-End: 1\r\n\r\n")
        .await;
    let mut answer = within("the answer", answer).await.unwrap();
    assert_eq!(answer.headers()["x-b"], "2");
    for gone in ["connection", "x-c", "transfer-encoding"] {
        assert!(!answer.headers().contains_key(gone), "{gone}");
    }
    assert_eq!(data(answer.body_mut()).await, "ok");
    let trailers = within("trailers", answer.body_mut().trailers()).await.unwrap().unwrap();
    assert_eq!(trailers["x-end"], "1");
}

#[tokio::test]
async fn a_request_over_http1_reaches_an_http2_backend_as_one_of_its_own() {
    let backend = Backend::start().await;
    let proxy = Proxy::start(backend.address, two()).await;
    let mut client = proxy.connect().await;
    client
        .send("POST /mcp?x=1 HTTP/1.1\r\nHost: Tools.Local:81\r\nConnection: keep-alive, Upgrade, x-gone\r\nUpgrade: websocket\r\nX-Gone: 1\r\nX-A: 1\r\nTE: trailers\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n")
        .await;
    let mut server = accept(&backend).await;
    let (request, mut respond) = next(&mut server).await;
    drive(server);
    assert_eq!(client.read_head().await, "HTTP/1.1 100 Continue\r\n\r\n");
    assert_eq!(request.uri(), "http://Tools.Local:81/mcp?x=1");
    let names: Vec<&str> = request.headers().keys().map(http::HeaderName::as_str).collect();
    assert_eq!(names, ["te", "x-a"]);
    let mut body = request.into_body();
    client.send("5\r\nhello\r\n").await;
    assert_eq!(data(&mut body).await, "hello");
    client.send("0\r\nX-Sum: 7\r\n\r\n").await;
    assert_eq!(within("trailers", body.trailers()).await.unwrap().unwrap()["x-sum"], "7");
    let answer = Response::builder().status(StatusCode::IM_A_TEAPOT).header("x-b", "2").header("trailer", "x-end");
    let mut stream = respond.send_response(answer.body(()).unwrap(), false).unwrap();
    let head = client.read_head().await;
    assert!(head.starts_with("HTTP/1.1 418 ") && head.contains("x-b: 2\r\n"), "{head}");
    stream.send_data("ok".into(), false).unwrap();
    assert_eq!(client.read_n(7).await, b"2\r\nok\r\n");
    let trailers = HeaderMap::from_iter([(http::HeaderName::from_static("x-end"), "1".parse().unwrap())]);
    stream.send_trailers(trailers).unwrap();
    assert_eq!(client.read_until("\r\n\r\n").await, "0\r\nx-end: 1\r\n\r\n");
}

/// Told by a length that no body follows, an HTTP/1.1 backend would take the next request for the body.
#[tokio::test]
async fn a_length_without_a_body_is_not_carried_from_http2_to_http1() {
    let backend = Backend::start().await;
    let proxy = Proxy::start(backend.address, Setup::default()).await;
    for end in [true, false] {
        let mut client = dial(&proxy).await;
        let request = Request::post("http://a/").header("content-length", "5").body(()).unwrap();
        let (answer, mut body) = client.send_request(request, end).unwrap();
        if !end {
            let _ = body.send_data("hi".into(), true);
        }
        assert!(within("the answer", answer).await.is_err(), "end={end}");
        // What was begun at the backend is broken off, not left open for the next request.
        while let Some(mut upstream) = backend.try_accept().await {
            upstream.read_rest().await;
        }
    }
}

#[tokio::test]
async fn every_event_of_an_http2_stream_arrives_before_the_next_is_sent() {
    let backend = Backend::start().await;
    let proxy = Proxy::start(backend.address, two()).await;
    let mut client = dial(&proxy).await;
    let (answer, _) = client.send_request(get("/sse"), true).unwrap();
    let mut server = accept(&backend).await;
    let (_, mut respond) = next(&mut server).await;
    drive(server);
    let mut stream = respond.send_response(Response::new(()), false).unwrap();
    let mut answer = within("the answer", answer).await.unwrap();
    for n in 0..50 {
        let event = format!("data: {n}\n\n");
        stream.send_data(event.clone().into(), false).unwrap();
        assert_eq!(data(answer.body_mut()).await, event);
    }
}

#[tokio::test]
async fn a_stream_that_is_reset_downstream_is_reset_upstream_and_nothing_else_is() {
    for half_sent in [false, true] {
        let backend = Backend::start().await;
        let proxy = Proxy::start(backend.address, two()).await;
        let mut client = dial(&proxy).await;
        let (answer, mut body) = client.send_request(get("/1"), !half_sent).unwrap();
        let (other, _) = client.send_request(get("/2"), true).unwrap();
        let mut server = accept(&backend).await;
        let mut streams = [next(&mut server).await, next(&mut server).await];
        streams.sort_by_key(|(request, _)| request.uri().path().to_owned());
        let [(_, mut first), (_, mut second)] = streams;
        drive(server);
        if half_sent {
            body.send_reset(Reason::CANCEL);
        }
        drop((answer, body));
        let reason = within("the reset", std::future::poll_fn(|cx| first.poll_reset(cx))).await.unwrap();
        assert_eq!(reason, Reason::CANCEL);
        second.send_response(Response::new(()), true).unwrap();
        assert_eq!(within("the other answer", other).await.unwrap().status(), 200);
    }
}

#[tokio::test]
async fn a_stream_that_is_reset_downstream_closes_its_http1_connection() {
    let backend = Backend::start().await;
    let proxy = Proxy::start(backend.address, Setup::default()).await;
    let mut client = dial(&proxy).await;
    let (answer, body) = client.send_request(get("/1"), true).unwrap();
    let mut upstream = backend.accept().await;
    upstream.read_head().await;
    drop((answer, body));
    assert_eq!(upstream.read_rest().await, "");
}

#[tokio::test]
async fn a_refused_stream_was_certainly_not_processed() {
    let backend = Backend::start().await;
    let proxy = Proxy::start(backend.address, two()).await;
    for (reason, expected) in [
        (Reason::REFUSED_STREAM, "sent=false reset:"),
        (Reason::INTERNAL_ERROR, "sent=true reset:"),
        (Reason::CANCEL, "sent=true reset:"),
    ] {
        let mut client = proxy.connect().await;
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        let mut server = accept(&backend).await;
        let (_, mut respond) = next(&mut server).await;
        respond.send_reset(reason);
        drive_and_close(server);
        client.read_head().await;
        let text = client.read_until(":").await;
        assert!(text.ends_with(expected), "{reason:?}: {text}");
    }
}

/// Flushes what is queued and ends the connection, so that the next call needs a new one.
fn drive_and_close(mut server: Server) {
    server.graceful_shutdown();
    drive(server);
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_broken_off_downstream() {
    let backend = Backend::start().await;
    let proxy = Proxy::start(backend.address, two()).await;
    let mut client = proxy.connect().await;
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let mut server = accept(&backend).await;
    let (_, mut respond) = next(&mut server).await;
    drive(server);
    let mut stream = respond.send_response(Response::new(()), false).unwrap();
    stream.send_data("hello".into(), false).unwrap();
    client.read_until("hello").await;
    stream.send_reset(Reason::INTERNAL_ERROR);
    let rest = client.read_rest().await;
    assert!(!rest.contains("0\r\n"), "{rest}");
}

#[tokio::test]
async fn calls_past_the_backends_stream_limit_get_a_connection_of_their_own() {
    let backend = Backend::start().await;
    let proxy = Proxy::start(backend.address, two()).await;
    let mut builder = h2::server::Builder::new();
    builder.max_concurrent_streams(2);
    let mut first = open(&proxy).await;
    let stream = backend.accept().await.into_stream();
    let mut server: Server = within("the handshake", builder.handshake(stream)).await.unwrap();
    let (_, mut respond) = next(&mut server).await;
    drive(server);
    // The answer proves that the backend's settings have arrived before.
    respond.send_response(Response::new(()), false).unwrap();
    first.read_head().await;
    let _waiting = [open(&proxy).await, open(&proxy).await];
    let mut second = accept(&backend).await;
    next(&mut second).await;
    assert_eq!(proxy.upstream.pooled(), 2);
}

/// A client that has sent a request.
async fn open(proxy: &Proxy) -> Raw {
    let mut client = proxy.connect().await;
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    client
}

#[tokio::test]
async fn an_http2_head_beyond_the_limits_is_refused_with_words() {
    let limits = Limits { head_size: 8192, headers: 20, ..Limits::default() };
    let backend = Backend::start().await;
    let proxy = Proxy::start(backend.address, Setup { limits, ..Setup::default() }).await;
    let mut client = dial(&proxy).await;
    let mut large = get("/");
    large.headers_mut().insert("x-a", "a".repeat(8192).parse().unwrap());
    let mut many = get("/");
    for n in 0..21 {
        many.headers_mut()
            .insert(http::HeaderName::from_bytes(format!("x-{n}").as_bytes()).unwrap(), "1".parse().unwrap());
    }
    for request in [large, many] {
        let (answer, _) = client.send_request(request, true).unwrap();
        let mut answer = within("the answer", answer).await.unwrap();
        assert_eq!(answer.status(), 431);
        let text = data(answer.body_mut()).await;
        assert!(String::from_utf8_lossy(&text).contains("limits.head"), "{text:?}");
    }
    assert!(!backend.has_pending().await);
}

#[tokio::test]
async fn an_http2_connection_is_told_to_leave_and_what_is_in_flight_is_finished() {
    let backend = Backend::start().await;
    let proxy = Proxy::start(backend.address, Setup::default()).await;
    let mut client = dial(&proxy).await;
    let (answer, _) = client.send_request(get("/"), true).unwrap();
    let mut upstream = backend.accept().await;
    upstream.read_head().await;
    proxy.drain.announce();
    proxy.drain.stop(Duration::from_secs(30));
    upstream.send("HTTP/1.1 204 No Content\r\n\r\n").await;
    assert_eq!(within("the answer", answer).await.unwrap().status(), 204);
    within("the end of serving", proxy.served).await.unwrap();
}

/// The protocol library by itself allows a peer a hundred of them in the life of a connection.
#[tokio::test]
async fn empty_frames_end_no_connection_on_either_side() {
    let backend = Backend::start().await;
    let proxy = Proxy::start(backend.address, two()).await;
    let mut client = dial(&proxy).await;
    let (answer, mut sending) = client.send_request(get("/"), false).unwrap();
    let mut server = accept(&backend).await;
    let (request, mut respond) = next(&mut server).await;
    drive(server);
    let mut received = request.into_body();
    let mut answering = respond.send_response(Response::new(()), false).unwrap();
    let mut answer = within("the answer", answer).await.unwrap();
    for _ in 0..150 {
        sending.send_data(Bytes::new(), false).unwrap();
        answering.send_data(Bytes::new(), false).unwrap();
    }
    sending.send_data("hello".into(), true).unwrap();
    answering.send_data("ok".into(), true).unwrap();
    assert_eq!(data(&mut received).await, "hello");
    assert_eq!(data(answer.body_mut()).await, "ok");
    assert_eq!(proxy.upstream.pooled(), 1);
}

#[tokio::test]
async fn a_connection_that_begins_like_http2_and_is_not_is_http1() {
    let backend = Backend::start().await;
    let proxy = Proxy::start(backend.address, Setup::default()).await;
    let mut client = proxy.connect().await;
    client.send("P").await;
    client.send("RI /x HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(backend.accept().await.read_head().await.starts_with("PRI /x HTTP/1.1\r\n"));
}
