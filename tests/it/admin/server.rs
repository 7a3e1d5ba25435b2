//! A server that answers as a test says: a tool backend, an engine, a receiver of notifications.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use aws_lc_rs::hmac;
use axum::Router;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde_json::Value;
use tokio::net::TcpListener;

type Answers = Arc<dyn Fn(&Seen) -> Response + Send + Sync>;

/// A request that a server got.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
    pub(crate) text: String,
}

/// A server that answers as a test says and remembers what it was asked.
#[derive(Clone)]
pub(crate) struct Server {
    answers: Answers,
    seen: Arc<Mutex<Vec<Seen>>>,
    pub(crate) address: SocketAddr,
}

impl Server {
    pub(crate) async fn start(answers: impl Fn(&Seen) -> Response + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = Server { answers: Arc::new(answers), seen: Arc::default(), address };
        let router = Router::new().fallback(serve).with_state(server.clone());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        server
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

async fn serve(State(server): State<Server>, headers: HeaderMap, text: String) -> Response {
    let seen = Seen { headers, body: serde_json::from_str(&text).unwrap_or_default(), text };
    server.seen.lock().unwrap().push(seen.clone());
    (server.answers)(&seen)
}

/// Whether a request carries a signature of its body with this secret.
pub(crate) fn is_signed(seen: &Seen, secret: &[u8]) -> bool {
    let header = seen.headers["x-toolvane-signature"].to_str().unwrap();
    let (time, tag) = header.strip_prefix("t=").unwrap().split_once(",v1=").unwrap();
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    let expected = hmac::sign(&key, format!("{time}.{}", seen.text).as_bytes());
    let expected: String = expected.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    tag == expected
}
