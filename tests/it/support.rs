//! A proxy over the real transport with a service that only forwards, and raw sockets on both sides of it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response, StatusCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use toolvane::clock::SystemClock;
use toolvane::proxy::net::{
    Body, Bound, ConnInfo, Drain, ForwardPolicy, HttpVersion, Limits, Passage, Upstream, UpstreamSettings, serve,
};

pub(crate) use crate::wire::within;

/// The least request, and the least answer.
pub(crate) const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
pub(crate) const DONE: &str = "HTTP/1.1 204 No Content\r\n\r\n";

/// What a test may choose about its proxy.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) limits: Limits,
    pub(crate) policy: ForwardPolicy,
    pub(crate) http: HttpVersion,
    pub(crate) head_timeout: Option<Duration>,
    pub(crate) upstream_idle: Duration,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup {
            limits: Limits::default(),
            policy: ForwardPolicy::default(),
            http: HttpVersion::One,
            head_timeout: Some(Duration::from_secs(10)),
            upstream_idle: Duration::from_secs(4),
        }
    }
}

/// A running proxy.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    pub(crate) drain: Drain,
    pub(crate) upstream: Upstream,
    pub(crate) served: JoinHandle<()>,
}

impl Proxy {
    /// A proxy in front of `backend`.
    pub(crate) async fn start(backend: SocketAddr, setup: Setup) -> Proxy {
        let bound = Bound::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let address = bound.address();
        let mut settings = UpstreamSettings::new(backend.ip().to_string(), backend.port());
        settings.http = setup.http;
        settings.idle_timeout = setup.upstream_idle;
        let upstream = Upstream::new(settings, Arc::new(SystemClock));
        let (drain, signal) = Drain::new();
        let service = {
            let upstream = upstream.clone();
            let (policy, head_timeout) = (Arc::new(setup.policy), setup.head_timeout);
            move |request: Request<Body>, conn: ConnInfo| {
                let (upstream, policy) = (upstream.clone(), Arc::clone(&policy));
                async move {
                    let passage = Passage { policy: &policy, conn: &conn, head_timeout };
                    match upstream.forward(request, passage).await {
                        Ok(response) => response,
                        Err(fault) => {
                            let status = if fault.kind.as_str() == "timeout" {
                                StatusCode::GATEWAY_TIMEOUT
                            } else {
                                StatusCode::BAD_GATEWAY
                            };
                            let text = format!("{:?} sent={} {fault}", fault.side, fault.sent);
                            let mut response = Response::new(Body::full(text));
                            *response.status_mut() = status;
                            response
                        }
                    }
                }
            }
        };
        let served = tokio::spawn(serve(vec![bound], service, setup.limits, signal));
        Proxy { address, drain, upstream, served }
    }

    /// A new raw connection to it.
    pub(crate) async fn connect(&self) -> Raw {
        Raw::connect(self.address).await
    }
}

/// A proxy before a fresh backend, a client connection, and nothing else.
pub(crate) async fn stage(setup: Setup) -> (Proxy, Backend, Raw) {
    let backend = Backend::start().await;
    let proxy = Proxy::start(backend.address, setup).await;
    let client = proxy.connect().await;
    (proxy, backend, client)
}

/// A backend that is a bare listener: the test itself speaks for it.
pub(crate) struct Backend {
    listener: TcpListener,
    pub(crate) address: SocketAddr,
}

impl Backend {
    pub(crate) async fn start() -> Backend {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        Backend { listener, address }
    }

    /// Whether a connection waits to be accepted.
    pub(crate) async fn has_pending(&self) -> bool {
        self.try_accept().await.is_some()
    }

    /// A connection that waits to be accepted.
    pub(crate) async fn try_accept(&self) -> Option<Raw> {
        tokio::select! {
            biased;
            accepted = self.listener.accept() => Some(Raw::new(accepted.unwrap().0)),
            () = tokio::task::yield_now() => None,
        }
    }

    /// The next connection.
    pub(crate) async fn accept(&self) -> Raw {
        let (stream, _) = within("a connection to the backend", self.listener.accept()).await.unwrap();
        Raw::new(stream)
    }
}

/// One end of a raw connection.
pub(crate) struct Raw {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Raw {
    /// A new connection to `address`.
    pub(crate) async fn connect(address: SocketAddr) -> Raw {
        Raw::new(TcpStream::connect(address).await.unwrap())
    }

    pub(crate) fn new(stream: TcpStream) -> Raw {
        stream.set_nodelay(true).unwrap();
        Raw { stream, buffer: Vec::new() }
    }

    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        within("bytes to be sent", self.stream.write_all(bytes.as_ref())).await.unwrap();
    }

    /// Like [`send`](Raw::send), for when the peer may have hung up.
    pub(crate) async fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        within("bytes to be sent", self.stream.write_all(bytes.as_ref())).await.is_ok()
    }

    /// Everything up to and including `end`.
    pub(crate) async fn read_until(&mut self, end: &str) -> String {
        let text = within(&format!("{end:?}"), async {
            loop {
                if let Some(at) = find(&self.buffer, end.as_bytes()) {
                    let text: Vec<u8> = self.buffer.drain(..at + end.len()).collect();
                    return Ok(String::from_utf8_lossy(&text).into_owned());
                }
                if !self.fill().await {
                    return Err(String::from_utf8_lossy(&self.buffer).into_owned());
                }
            }
        })
        .await;
        text.unwrap_or_else(|got| panic!("the connection ended before {end:?}; got {got:?}"))
    }

    /// A head, with its empty line.
    pub(crate) async fn read_head(&mut self) -> String {
        self.read_until("\r\n\r\n").await
    }

    /// A head, if one comes before the end of the connection.
    pub(crate) async fn try_read_head(&mut self) -> Option<String> {
        while find(&self.buffer, b"\r\n\r\n").is_none() {
            if !within("a head", self.fill()).await {
                return None;
            }
        }
        Some(self.read_head().await)
    }

    /// Exactly `n` bytes.
    pub(crate) async fn read_n(&mut self, n: usize) -> Vec<u8> {
        within(&format!("{n} bytes"), async {
            while self.buffer.len() < n {
                assert!(self.fill().await, "the connection ended after {} of {n} bytes", self.buffer.len());
            }
        })
        .await;
        self.buffer.drain(..n).collect()
    }

    /// All that comes until the peer closes or resets.
    pub(crate) async fn read_rest(&mut self) -> String {
        within("the end of the connection", async { while self.fill().await {} }).await;
        String::from_utf8_lossy(&std::mem::take(&mut self.buffer)).into_owned()
    }

    /// Closes the sending direction.
    pub(crate) async fn finish(&mut self) {
        let _ = self.stream.shutdown().await;
    }

    /// Ends the connection with a reset.
    pub(crate) fn reset(self) {
        self.stream.set_zero_linger().unwrap();
    }

    pub(crate) fn into_stream(self) -> TcpStream {
        assert!(self.buffer.is_empty());
        self.stream
    }

    async fn fill(&mut self) -> bool {
        self.buffer.reserve(64 * 1024);
        matches!(self.stream.read_buf(&mut self.buffer).await, Ok(n) if n > 0)
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|w| w == needle)
}
