//! One request on a connection of its own, and its answer.

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use http::{HeaderMap, HeaderName, StatusCode, header};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

/// The bound on everything that a test waits for: a hang fails with a name, not with a timeout of the runner.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for `what`, but not for ever.
pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(value) => value,
        Err(_) => panic!("gave up waiting for {what}"),
    }
}

pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {} {}", self.status, self.body))
    }

    /// The text of a tool's result.
    pub(crate) fn words(&self) -> String {
        let text = self.json().pointer("/result/content/0/text").and_then(Value::as_str).map(str::to_owned);
        text.unwrap_or_default()
    }

    /// What toolvane says of the tool in a result of its own.
    pub(crate) fn facts(&self) -> Value {
        self.json().pointer("/result/_meta/toolvane~1health").cloned().unwrap_or_default()
    }

    pub(crate) fn mark(&self) -> &str {
        self.headers.get("x-toolvane").map_or("", |mark| mark.to_str().unwrap())
    }
}

/// The answer is read to the end of the connection.
pub(crate) async fn exchange(to: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    parse(&String::from_utf8_lossy(&raw_exchange(to, method, path, headers, body).await))
}

/// [`exchange`], with the answer as it came.
pub(crate) async fn raw_exchange(
    to: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Vec<u8> {
    let stream = TcpStream::connect(to).await.unwrap();
    let headers = [&[("host", "localhost")], headers].concat();
    exchange_on(stream, method, path, &headers, body).await
}

/// The same on any new connection, without a `host` unless it is given. A body is JSON unless it is said to be something else.
pub(crate) async fn exchange_on(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Vec<u8> {
    let mut head = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
    if !body.is_empty() {
        head += &format!("content-length: {}\r\n", body.len());
        if !headers.iter().any(|(name, _)| *name == "content-type") {
            head += "content-type: application/json\r\n";
        }
    }
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    stream.write_all(format!("{head}\r\n{body}").as_bytes()).await.unwrap();
    let mut raw = Vec::new();
    within("an answer", stream.read_to_end(&mut raw)).await.unwrap();
    raw
}

/// An answer that came whole.
pub(crate) fn parse(raw: &str) -> Answer {
    let (head, mut rest) = raw.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head in {raw:?}"));
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers: HeaderMap = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.parse::<HeaderName>().unwrap(), value.parse().unwrap()))
        .collect();
    let mut body = String::new();
    if headers.contains_key(header::TRANSFER_ENCODING) {
        while let Some((size, after)) = rest.split_once("\r\n") {
            let size = usize::from_str_radix(size, 16).unwrap();
            if size == 0 {
                break;
            }
            let (chunk, after) = after.split_at(size);
            body += chunk;
            rest = after.strip_prefix("\r\n").unwrap();
        }
    } else {
        rest.clone_into(&mut body);
    }
    Answer { status, headers, body }
}
