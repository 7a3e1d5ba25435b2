//! Hyper as the oracle: whatever is sent, the calls and answers that come of it are those that hyper alone reads.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use proptest::prelude::*;
use proptest::sample::select;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::{Call, Handover};
use crate::clock::SystemClock;
use crate::proxy::net::conn::{self, ConnInfo, Link, Shared};
use crate::proxy::net::upgrade::Tunnels;
use crate::proxy::net::{Body, Drain, Fault, Limits, Upstream, UpstreamSettings};

/// What a service saw of a request.
#[derive(Clone, Debug, PartialEq)]
struct Seen {
    method: Method,
    target: String,
    headers: HeaderMap,
    body: Result<Bytes, ()>,
}

/// What came of some bytes.
struct Served {
    calls: Vec<Seen>,
    answers: String,
    /// Which of the calls were taken for plain ones.
    plain: Vec<bool>,
}

impl Served {
    /// A request was answered by us, and perhaps its body was not read.
    fn refused_unread(&self) -> bool {
        self.answers.contains("x-toolvane: ")
    }
}

/// Which of the two reads.
#[derive(Clone, Copy, Debug, PartialEq)]
enum By {
    Us,
    Hyper,
}

/// Lines of requests, the odd ones among them often.
fn request_line() -> impl Strategy<Value = &'static str> {
    select(vec![
        "GET / HTTP/1.1\r\n",
        "POST /mcp?x=%00 HTTP/1.1\r\n",
        "POST /mcp HTTP/1.1\r\n",
        "HEAD / HTTP/1.1\r\n",
        "OPTIONS * HTTP/1.1\r\n",
        "GET http://b/ HTTP/1.1\r\n",
        "GET / HTTP/1.0\r\n",
        "POST / HTTP/1.1\n",
        "\r\nGET / HTTP/1.1\r\n",
        "BREW / HTTP/1.1\r\n",
        "GET  / HTTP/1.1\r\n",
        "GET /\" HTTP/1.1\r\n",
        "GET /#a HTTP/1.1\r\n",
        "GET /a b HTTP/1.1\r\n",
    ])
}

fn field() -> impl Strategy<Value = &'static str> {
    select(vec![
        "Host: a\r\n",
        "Host: a\r\n",
        "host:a\r\n",
        "Content-Length: 5\r\n",
        "Content-Length: 5\r\n",
        "content-length: 05\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: 5, 5\r\n",
        "Content-Length : 5\r\n",
        "Content-Length: 5 \r\n",
        "Content-Length: 18446744073709551620\r\n",
        "Content-Length: 40\r\n",
        "Content-Length: 0\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding:\u{b}chunked\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Connection: close\r\n",
        "Connection: x-a, Close\r\n",
        "Connection: keep-alive\r\n",
        "X-A: 1\r\n",
        "x-a: \u{e4}\t2 \r\n",
        "X-Empty:\r\n",
        "X-A: 1\n",
        "X-A: 1\r X-B: 2\r\n",
        " folded\r\n",
        "X-A: \0\r\n",
        "X\0A: 1\r\n",
        ": 1\r\n",
        "no colon\r\n",
        "TE: trailers\r\n",
        "Upgrade: h2c\r\n",
        "Expect: 100-continue\r\n",
    ])
}

fn body() -> impl Strategy<Value = &'static str> {
    select(vec![
        "",
        "",
        "hello",
        "hello",
        "0\r\n\r\n",
        "5\r\nhello\r\n0\r\n\r\n",
        "5;a=b\r\nhello\r\n0\r\nX-T: 1\r\n\r\n",
        "5\nhello\r\n0\r\n\r\n",
        "fffffffffffffffff\r\nhello",
        "-5\r\nhello",
        "hello, this is longer than was announced",
    ])
}

fn request() -> impl Strategy<Value = String> {
    let fields = proptest::collection::vec(field(), 0..4);
    (request_line(), any::<bool>(), fields, body()).prop_map(|(line, has_host, fields, body)| {
        let host = if has_host { "Host: a\r\n" } else { "" };
        format!("{line}{host}{}\r\n{body}", fields.concat())
    })
}

/// Some requests, with bytes of them changed now and then.
fn requests() -> impl Strategy<Value = Vec<u8>> {
    let changes = proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..2);
    (proptest::collection::vec(request(), 1..4), changes, any::<bool>()).prop_map(|(requests, changes, changed)| {
        altered(requests.concat().into_bytes(), if changed { &changes } else { &[] })
    })
}

fn altered(mut bytes: Vec<u8>, changes: &[(prop::sample::Index, u8)]) -> Vec<u8> {
    for (at, byte) in changes {
        let at = at.index(bytes.len());
        bytes[at] = *byte;
    }
    bytes
}

/// The same bytes in pieces of these sizes, the last of which repeats.
async fn write_in_pieces(socket: &mut TcpStream, mut bytes: &[u8], sizes: &[usize]) {
    let mut sizes = sizes.iter().copied().chain(std::iter::repeat(1 << 20));
    while !bytes.is_empty() {
        let (piece, rest) = bytes.split_at(sizes.next().unwrap().min(bytes.len()));
        if socket.write_all(piece).await.is_err() {
            return;
        }
        tokio::task::yield_now().await;
        bytes = rest;
    }
}

/// A runtime whose clock runs only while nothing else does: who waits in vain is told so at once.
fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap().block_on(work)
}

/// Each time another loopback address: thousands of connections in a minute leave no free port on one.
fn somewhere() -> SocketAddr {
    static COUNT: AtomicU16 = AtomicU16::new(0);
    let [high, low] = COUNT.fetch_add(1, Ordering::Relaxed).to_be_bytes();
    SocketAddr::from(([127, 77, high, low], 0))
}

/// What a service sees of `bytes`, and what is answered.
async fn served(by: By, bytes: &[u8], sizes: &[usize]) -> Served {
    let listener = TcpListener::bind(somewhere()).await.unwrap();
    let address = listener.local_addr().unwrap();
    let seen: Arc<Mutex<Vec<(Seen, bool)>>> = Arc::default();
    let (_hand, drain) = Drain::new();
    let tunnels = Arc::new(Tunnels::until(drain.over_token()));
    let service = {
        let seen = Arc::clone(&seen);
        move |request: Request<Body>, conn: ConnInfo| {
            let seen = Arc::clone(&seen);
            async move {
                let (parts, body) = request.into_parts();
                let body = body.idle_after(Duration::from_secs(2)).collect().await;
                let target = parts.uri.to_string();
                let body = body.map(|whole| whole.to_bytes()).map_err(drop);
                let call = Seen { method: parts.method, target, headers: parts.headers, body };
                seen.lock().unwrap().push((call, conn.link.plain));
                Response::new(Body::full("seen"))
            }
        }
    };
    let limits = Limits { head_timeout: Duration::from_secs(2), ..Limits::default() };
    let shared = Arc::new(Shared { service, limits: Arc::new(limits), drain, tunnels: Arc::clone(&tunnels) });
    let server = async {
        let (stream, peer) = listener.accept().await.unwrap();
        let link = Arc::new(Link { tunnels, turn: None, plain: false });
        let info = ConnInfo { peer, local: address, listener: 0, link };
        match by {
            By::Us => conn::run(stream, info, shared).await,
            By::Hyper => {
                let all = Handover { stream, read: Bytes::new(), overdue: false, has_lengths: false };
                conn::run_hyper(all, info, shared).await;
            }
        }
    };
    let client = async {
        let mut socket = TcpStream::connect(address).await.unwrap();
        socket.set_nodelay(true).unwrap();
        write_in_pieces(&mut socket, bytes, sizes).await;
        let mut answers = Vec::new();
        let _ = socket.read_to_end(&mut answers).await;
        answers
    };
    let ((), answers) = tokio::join!(server, client);
    let (calls, plain) = seen.lock().unwrap().drain(..).unzip();
    Served { calls, answers: String::from_utf8_lossy(&answers).into_owned(), plain }
}

proptest! {
    #[test]
    fn requests_are_what_hyper_alone_takes_them_for(
        bytes in requests(), sizes in proptest::collection::vec(1_usize..60, 0..12),
    ) {
        let (ours, hypers) = run(async {
            tokio::join!(served(By::Us, &bytes, &sizes), served(By::Hyper, &bytes, &[]))
        });
        let text = String::from_utf8_lossy(&bytes);
        let (mut ours, mut hypers) = (ours, hypers);
        let chunked = text.to_ascii_lowercase().contains("transfer-encoding");
        if chunked || ours.refused_unread() || hypers.refused_unread() {
            // Whether hyper goes on after a body that nobody reads, or after chunks that never end, depends on how much of it
            // has arrived.
            for served in [&mut ours, &mut hypers] {
                served.answers = served.answers.replace("connection: close\r\n", "");
            }
            let (calls, answers) =
                (ours.calls.len().min(hypers.calls.len()), ours.answers.len().min(hypers.answers.len()));
            for served in [&mut ours, &mut hypers] {
                served.calls.truncate(calls);
                served.answers.truncate(answers);
            }
        }
        // What is wrong with a head that never ends is seen at the first look, if it has arrived by then.
        if let Some(told) = [&ours, &hypers].iter().filter_map(|served| served.answers.find("HTTP/1.1 408")).min() {
            ours.answers.truncate(told);
            hypers.answers.truncate(told);
        }
        prop_assert_eq!(ours.calls, hypers.calls, "the calls of {:?}", text);
        prop_assert_eq!(ours.answers, hypers.answers, "the answers to {:?}", text);
    }
}

fn answer() -> impl Strategy<Value = String> {
    let line = select(vec![
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 500 Broken Indeed\r\n",
        "HTTP/1.1 204 No Content\r\n",
        "HTTP/1.1 304 Not Modified\r\n",
        "HTTP/1.0 200 OK\r\n",
        "HTTP/1.1 200\r\n",
        "HTTP/1.1 200 OK\n",
        "\r\nHTTP/1.1 200 OK\r\n",
        "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\n",
        "HTTP/1.1 20 OK\r\n",
        "HTTP/1.2 200 OK\r\n",
    ]);
    let fields = proptest::collection::vec(field(), 0..4);
    (line, fields, body()).prop_map(|(line, fields, body)| format!("{line}{}\r\n{body}", fields.concat()))
}

fn answers() -> impl Strategy<Value = Vec<u8>> {
    let changes = proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..2);
    (answer(), changes, any::<bool>())
        .prop_map(|(answer, changes, changed)| altered(answer.into_bytes(), if changed { &changes } else { &[] }))
}

/// A backend that answers one request with these bytes and closes.
async fn backend(bytes: Vec<u8>, sizes: Vec<usize>) -> SocketAddr {
    let listener = TcpListener::bind(somewhere()).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        socket.set_nodelay(true).unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            socket.read_buf(&mut head).await.unwrap();
        }
        write_in_pieces(&mut socket, &bytes, &sizes).await;
        let _ = socket.shutdown().await;
        let _ = socket.read_to_end(&mut Vec::new()).await;
    });
    address
}

type Whole = (StatusCode, HeaderMap, Bytes, Option<HeaderMap>);

/// The answer, if it is whole.
async fn fetched(by: By, method: &Method, bytes: &[u8], sizes: &[usize]) -> Result<Whole, Fault> {
    let address = backend(bytes.to_vec(), sizes.to_vec()).await;
    let upstream =
        Upstream::new(UpstreamSettings::new(address.ip().to_string(), address.port()), Arc::new(SystemClock));
    let mut request = Request::new(Body::empty());
    *request.method_mut() = method.clone();
    let limit = Some(Duration::from_secs(2));
    let response = match by {
        By::Us => upstream.send_plain(Call::new(request, 0, limit, None), None).await?.into_response(),
        By::Hyper => upstream.send(request, limit, None).await?,
    };
    let (parts, body) = response.into_parts();
    let whole = body.collect().await?;
    let trailers = whole.trailers().cloned();
    Ok((parts.status, parts.headers, whole.to_bytes(), trailers))
}

proptest! {
    #[test]
    fn an_answer_that_is_taken_is_what_hyper_takes_it_for(
        method in select(vec![Method::GET, Method::GET, Method::HEAD]),
        bytes in answers(),
        sizes in proptest::collection::vec(1_usize..60, 0..12),
    ) {
        let (ours, hypers) = run(async {
            tokio::join!(fetched(By::Us, &method, &bytes, &sizes), fetched(By::Hyper, &method, &bytes, &[]))
        });
        if let Ok(ours) = ours {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            match hypers {
                Ok(hypers) => prop_assert_eq!(ours, hypers, "{:?}", text),
                Err(fault) => prop_assert!(false, "{text:?} is taken, and by hyper not: {fault}"),
            }
        }
    }

    #[test]
    fn an_answer_reads_the_same_however_it_is_cut(
        parts in proptest::collection::vec("[a-z]{1,300}", 0..20),
        chunked in any::<bool>(),
        sizes in proptest::collection::vec(1_usize..500, 0..60),
    ) {
        let body = parts.concat();
        let framed: String = if chunked {
            let chunks = parts.iter().map(|part| format!("{:x}\r\n{part}\r\n", part.len()));
            format!("transfer-encoding: chunked\r\n\r\n{}0\r\n\r\n", chunks.collect::<String>())
        } else {
            format!("content-length: {}\r\n\r\n{body}", body.len())
        };
        let bytes = format!("HTTP/1.1 200 OK\r\n{framed}").into_bytes();
        let (_, _, read, _) = run(fetched(By::Us, &Method::GET, &bytes, &sizes)).unwrap();
        prop_assert_eq!(read, body.as_bytes());
    }
}

#[test]
fn the_oracle_tells_a_difference() {
    let (ours, hypers) = run(async {
        let one = b"GET /1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        let two = b"GET /2 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        tokio::join!(served(By::Us, one, &[]), served(By::Hyper, two, &[]))
    });
    assert_eq!((ours.calls.len(), hypers.calls.len()), (1, 1));
    assert_ne!(ours.calls, hypers.calls);
    assert_eq!(ours.answers, hypers.answers);
}

#[test]
fn plain_calls_are_carried_as_such_until_something_else_comes() {
    let bytes = "GET /1 HTTP/1.1\r\nHost: a\r\n\r\n\
                 POST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello\
                 OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n\
                 GET /4 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    for sizes in [vec![], vec![1; 1000], vec![40; 40]] {
        let served = run(served(By::Us, bytes.as_bytes(), &sizes));
        assert_eq!(served.plain, [true, true, false, false], "in pieces of {sizes:?}");
        assert_eq!(served.answers.matches("HTTP/1.1 200 OK\r\n").count(), 4);
    }
}
