//! Whatever is sent passes: random heads, bodies and chunkings over every pair of protocols.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "the lints know test functions, not their helpers; the bytes are noise"
)]

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use crate::support::{Proxy, Setup, within};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tokio::net::{TcpListener, TcpStream};
use toolvane::proxy::net::HttpVersion;

/// Fields that a connection may add or change.
const NOT_COMPARED: [&str; 7] = ["host", "date", "content-length", "transfer-encoding", "connection", "te", "trailer"];

/// One direction of an exchange.
#[derive(Clone, Debug, PartialEq)]
struct Message {
    headers: Vec<(String, Vec<u8>)>,
    chunks: Vec<Vec<u8>>,
    with_length: bool,
    trailer: Option<String>,
}

/// What arrived of one.
#[derive(Debug, PartialEq)]
struct Arrived {
    line: String,
    headers: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
    trailer: Option<String>,
}

#[derive(Clone, Debug)]
struct Exchange {
    method: Method,
    path: String,
    request: Message,
    status: StatusCode,
    response: Message,
}

fn message() -> impl Strategy<Value = Message> {
    let value = proptest::collection::vec(prop_oneof![0x21_u8..=0x7e, 0x80_u8..=0xff], 0..40);
    let headers = proptest::collection::vec(("x-[a-e]{1,2}", value), 0..12);
    let chunk = prop_oneof![
        4 => proptest::collection::vec(any::<u8>(), 0..100),
        1 => (any::<u8>(), 0..100_000_usize).prop_map(|(seed, len)| large(seed, len)),
    ];
    let chunks = proptest::collection::vec(chunk, 0..6);
    let trailer = proptest::option::weighted(0.2, "[a-z0-9]{1,8}");
    (headers, chunks, any::<bool>(), trailer).prop_map(|(headers, chunks, with_length, trailer)| Message {
        headers,
        chunks,
        with_length: with_length && trailer.is_none(),
        trailer,
    })
}

/// Bytes that repeat nowhere near, at no cost to the generator.
fn large(seed: u8, len: usize) -> Vec<u8> {
    (0..len).map(|i| (i.wrapping_mul(0x9e37_79b9) >> 16) as u8 ^ seed).collect()
}

fn exchange() -> impl Strategy<Value = Exchange> {
    let method = prop::sample::select(vec![Method::POST, Method::PUT, Method::PATCH, Method::DELETE]);
    let status = prop::sample::select(vec![200_u16, 201, 299, 302, 400, 401, 404, 405, 429, 500, 503]);
    (method, "/[a-zA-Z0-9%._~!$&'()*+,;=:@/-]{0,30}(\\?[a-z0-9=&%]{0,20})?", message(), status, message()).prop_map(
        |(method, path, request, status, response)| Exchange {
            method,
            path: path.replace('%', "%2f"),
            request,
            status: StatusCode::from_u16(status).unwrap(),
            response,
        },
    )
}

/// A body of given frames.
struct Chunks {
    frames: VecDeque<Frame<Bytes>>,
    length: Option<u64>,
}

impl HttpBody for Chunks {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let frame = self.frames.pop_front();
        if let (Some(length), Some(data)) = (&mut self.length, frame.as_ref().and_then(Frame::data_ref)) {
            *length -= data.len() as u64;
        }
        Poll::Ready(frame.map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.frames.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        self.length.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

impl Message {
    fn body(&self) -> Chunks {
        let mut frames: VecDeque<Frame<Bytes>> =
            self.chunks.iter().map(|c| Frame::data(Bytes::from(c.clone()))).collect();
        frames.extend(
            self.trailer.as_ref().map(|t| {
                Frame::trailers(HeaderMap::from_iter([(HeaderName::from_static("x-end"), t.parse().unwrap())]))
            }),
        );
        let length = self.with_length.then(|| self.chunks.iter().map(|c| c.len() as u64).sum());
        Chunks { frames, length }
    }

    fn fill(&self, headers: &mut HeaderMap) {
        for (name, value) in &self.headers {
            headers.append(HeaderName::try_from(name).unwrap(), HeaderValue::from_bytes(value).unwrap());
        }
        if self.trailer.is_some() {
            headers.insert("trailer", HeaderValue::from_static("x-end"));
        }
    }

    fn expected(&self, line: String) -> Arrived {
        let mut map = HeaderMap::new();
        self.fill(&mut map);
        Arrived { line, headers: compared(&map), body: self.chunks.concat(), trailer: self.trailer.clone() }
    }
}

/// The fields that must be the same: values of one name in their order.
fn compared(headers: &HeaderMap) -> Vec<(String, Vec<u8>)> {
    let mut list: Vec<_> = headers
        .iter()
        .filter(|(name, _)| !NOT_COMPARED.contains(&name.as_str()))
        .map(|(name, value)| (name.to_string(), value.as_bytes().to_vec()))
        .collect();
    list.sort_by(|a, b| a.0.cmp(&b.0));
    list
}

async fn arrived(line: String, headers: &HeaderMap, body: Incoming) -> Arrived {
    let collected = body.collect().await.unwrap();
    let trailer = collected.trailers().and_then(|t| t.get("x-end")).map(|v| v.to_str().unwrap().to_owned());
    Arrived { line, headers: compared(headers), body: collected.to_bytes().to_vec(), trailer }
}

type Slot = Arc<Mutex<(Option<Exchange>, Option<Arrived>)>>;

/// A backend that answers as the slot says, and leaves there what it saw.
async fn backend(slot: Slot, http: HttpVersion) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            stream.set_nodelay(true).unwrap();
            let slot = Arc::clone(&slot);
            let service = service_fn(move |request: Request<Incoming>| {
                let slot = Arc::clone(&slot);
                async move {
                    let line = format!("{} {}", request.method(), request.uri().path_and_query().unwrap());
                    let (parts, body) = request.into_parts();
                    let seen = arrived(line, &parts.headers, body).await;
                    let mut slot = slot.lock().unwrap();
                    slot.1 = Some(seen);
                    let exchange = slot.0.take().unwrap();
                    let mut response = Response::new(exchange.response.body());
                    *response.status_mut() = exchange.status;
                    exchange.response.fill(response.headers_mut());
                    Ok::<_, Infallible>(response)
                }
            });
            tokio::spawn(async move {
                let io = TokioIo::new(stream);
                let _ = match http {
                    HttpVersion::One => hyper::server::conn::http1::Builder::new().serve_connection(io, service).await,
                    HttpVersion::Two => {
                        let two = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                        two.serve_connection(io, service).await
                    }
                };
            });
        }
    });
    address
}

enum Client {
    One(hyper::client::conn::http1::SendRequest<Chunks>),
    Two(hyper::client::conn::http2::SendRequest<Chunks>),
}

impl Client {
    async fn connect(proxy: SocketAddr, http: HttpVersion) -> Client {
        let stream = TcpStream::connect(proxy).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let io = TokioIo::new(stream);
        match http {
            HttpVersion::One => {
                let (sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
                tokio::spawn(connection);
                Client::One(sender)
            }
            HttpVersion::Two => {
                let (sender, connection) =
                    hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await.unwrap();
                tokio::spawn(connection);
                Client::Two(sender)
            }
        }
    }

    /// Whether the proxy has not said that it closes the connection, as it does after a length and then chunks.
    async fn is_open(&mut self) -> bool {
        match self {
            Client::One(sender) => sender.ready().await.is_ok(),
            Client::Two(_) => true,
        }
    }

    async fn send(&mut self, exchange: &Exchange) -> Response<Incoming> {
        let mut request = Request::new(exchange.request.body());
        *request.method_mut() = exchange.method.clone();
        exchange.request.fill(request.headers_mut());
        request.headers_mut().insert("te", HeaderValue::from_static("trailers"));
        match self {
            Client::One(sender) => {
                *request.uri_mut() = exchange.path.parse().unwrap();
                request.headers_mut().insert("host", HeaderValue::from_static("tools.local"));
                sender.send_request(request).await.unwrap()
            }
            Client::Two(sender) => {
                *request.uri_mut() = format!("http://tools.local{}", exchange.path).parse().unwrap();
                sender.send_request(request).await.unwrap()
            }
        }
    }
}

fn everything_passes(downstream: HttpVersion, upstream: HttpVersion, cases: u32) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let slot = Slot::default();
    let (proxy, client) = runtime.block_on(async {
        let backend = backend(Arc::clone(&slot), upstream).await;
        let proxy = Proxy::start(backend, Setup { http: upstream, ..Setup::default() }).await;
        let client = Client::connect(proxy.address, downstream).await;
        (proxy, client)
    });
    let client = std::cell::Cell::new(Some(client));
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    runner
        .run(&exchange(), |exchange| {
            *slot.lock().unwrap() = (Some(exchange.clone()), None);
            let mut sender = client.take().unwrap();
            let got = runtime.block_on(within("the exchange", async {
                if !sender.is_open().await {
                    sender = Client::connect(proxy.address, downstream).await;
                }
                let response = sender.send(&exchange).await;
                let (parts, body) = response.into_parts();
                arrived(parts.status.as_str().to_owned(), &parts.headers, body).await
            }));
            client.set(Some(sender));
            let seen = slot.lock().unwrap().1.take().unwrap();
            let line = format!("{} {}", exchange.method, exchange.path);
            prop_assert_eq!(seen, exchange.request.expected(line));
            prop_assert_eq!(got, exchange.response.expected(exchange.status.as_str().to_owned()));
            Ok(())
        })
        .unwrap();
}

/// More with `--features verify`.
const CASES: u32 = if cfg!(feature = "verify") { 25_000 } else { 150 };

#[test]
fn everything_passes_from_http1_to_http1() {
    everything_passes(HttpVersion::One, HttpVersion::One, CASES);
}

#[test]
fn everything_passes_from_http1_to_http2() {
    everything_passes(HttpVersion::One, HttpVersion::Two, CASES);
}

#[test]
fn everything_passes_from_http2_to_http1() {
    everything_passes(HttpVersion::Two, HttpVersion::One, CASES);
}

#[test]
fn everything_passes_from_http2_to_http2() {
    everything_passes(HttpVersion::Two, HttpVersion::Two, CASES);
}
