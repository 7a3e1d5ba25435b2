//! Bodies of 1 GiB pass in constant memory, in both directions and over both protocols; a receiver that does not read
//! stops the sender. Long: `cargo test --features verify`.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "the lints know test functions, not their helpers; no piece is larger than its buffer"
)]

use std::time::Duration;

use crate::support::{Backend, GET, Proxy, Setup, stage, within};
use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use toolvane::proxy::net::HttpVersion;

const GIB: u64 = 1 << 30;
const PIECE: usize = 256 * 1024;

/// How far the memory of the whole process, both peers included, may grow while a body passes.
const GROWTH: u64 = 48 << 20;

/// Resident memory in bytes.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

/// Writes `total` bytes, watching the memory.
async fn pour(stream: &mut TcpStream, total: u64, start: u64) {
    let piece = vec![7_u8; PIECE];
    let mut left = total;
    while left > 0 {
        let n = left.min(PIECE as u64);
        stream.write_all(&piece[..n as usize]).await.unwrap();
        left -= n;
        assert!(resident() < start + GROWTH, "memory grew by {} MiB", (resident() - start) >> 20);
    }
}

async fn drink(stream: &mut TcpStream, total: u64) {
    let mut piece = vec![0_u8; PIECE];
    let mut left = total;
    while left > 0 {
        let n = stream.read(&mut piece).await.unwrap() as u64;
        assert!(n > 0, "ended {left} bytes early");
        left -= n;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gibibyte_passes_up_and_down_in_constant_memory() {
    let (_proxy, backend, mut client) = stage(Setup::default()).await;
    client.send(format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {GIB}\r\n\r\n")).await;
    let mut upstream = backend.accept().await;
    upstream.read_head().await;
    let start = resident();
    let (mut client, mut upstream) = (client.into_stream(), upstream.into_stream());
    let up = tokio::spawn(async move {
        pour(&mut client, GIB, start).await;
        client
    });
    drink(&mut upstream, GIB).await;
    let mut client = up.await.unwrap();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {GIB}\r\n\r\n");
    upstream.write_all(head.as_bytes()).await.unwrap();
    let down = tokio::spawn(async move { pour(&mut upstream, GIB, start).await });
    // The head passes as it is.
    drink(&mut client, head.len() as u64 + GIB).await;
    down.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gibibyte_passes_over_http2_in_constant_memory() {
    let backend = Backend::start().await;
    let proxy = Proxy::start(backend.address, Setup { http: HttpVersion::Two, ..Setup::default() }).await;
    let stream = TcpStream::connect(proxy.address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let mut builder = h2::client::Builder::new();
    builder.initial_window_size(1 << 20).initial_connection_window_size(1 << 20);
    let (sender, connection) = builder.handshake::<_, Bytes>(stream).await.unwrap();
    tokio::spawn(connection);
    let mut sender = sender.ready().await.unwrap();
    let (answer, _) = sender.send_request(http::Request::get("http://a/").body(()).unwrap(), true).unwrap();
    let mut server = h2::server::handshake(backend.accept().await.into_stream()).await.unwrap();
    let (_, mut respond) = server.accept().await.unwrap().unwrap();
    tokio::spawn(async move { while server.accept().await.is_some() {} });
    let start = resident();
    let mut send = respond.send_response(http::Response::new(()), false).unwrap();
    tokio::spawn(async move {
        let mut left = GIB as usize;
        while left > 0 {
            send.reserve_capacity(PIECE.min(left));
            let granted = std::future::poll_fn(|cx| send.poll_capacity(cx)).await.unwrap().unwrap();
            let n = granted.min(left).min(PIECE);
            left -= n;
            send.send_data(Bytes::from(vec![7_u8; n]), left == 0).unwrap();
        }
    });
    let mut body = answer.await.unwrap().into_body();
    let mut read = 0;
    while let Some(data) = body.data().await {
        let n = data.unwrap().len();
        read += n as u64;
        body.flow_control().release_capacity(n).unwrap();
        assert!(resident() < start + GROWTH, "memory grew by {} MiB", (resident() - start) >> 20);
    }
    assert_eq!(read, GIB);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_that_does_not_read_stops_the_sender() {
    let (_proxy, backend, mut client) = stage(Setup::default()).await;
    client.send(GET).await;
    let mut upstream = backend.accept().await;
    upstream.read_head().await;
    upstream.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {GIB}\r\n\r\n")).await;
    client.read_head().await;
    let mut upstream = upstream.into_stream();
    let piece = vec![7_u8; PIECE];
    let mut written = 0;
    // A write that makes no progress for a second is one that waits for the reader.
    while let Ok(n) = tokio::time::timeout(Duration::from_secs(1), upstream.write(&piece)).await {
        written += n.unwrap() as u64;
        assert!(written < 64 << 20, "{written} bytes were taken in for nobody");
    }
    drop(client);
    within("the end of the backend's connection", async { while upstream.write_all(&piece).await.is_ok() {} }).await;
}
