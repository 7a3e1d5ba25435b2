//! The backend behind every proxy: as fast as can be, so that it hides nothing. What it answers is named by the header
//! `x-case`; without one it speaks as much MCP as a proxy of MCP sessions needs.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::http::{content_length, field};

/// The answers, ready to be written.
#[derive(Debug)]
struct Answers {
    json: Vec<(&'static str, Vec<u8>)>,
}

fn with_length(status: &str, content_type: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nserver: backend\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// A tool result of about `size` bytes; one that is an error complains about the arguments, which takes no tool away.
fn result(size: usize, is_error: bool) -> String {
    let line = if is_error {
        "Invalid arguments: `limit` must be a number between 1 and 100; "
    } else {
        "the quick brown fox jumps over the lazy dog and says so; "
    };
    let text: String = line.chars().cycle().take(size.saturating_sub(110)).collect();
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":[{{"type":"text","text":"{text}"}}],"isError":{is_error}}}}}"#
    )
}

/// A failure that the benchmark's own rule takes for an outage of an hour.
fn outage() -> String {
    r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"bench-outage"}],"structuredContent":{"retry_after":3500},"isError":true}}"#.to_owned()
}

/// A tool list of `count` tools, about half a kilobyte each.
fn list(count: usize, id: &str) -> String {
    let words = "Searches the index of the project and gives the documents that fit best, newest first. ".repeat(3);
    let tools: Vec<String> = (0..count)
        .map(|n| {
            format!(
                r#"{{"name":"tool_{n}","description":"{words}","inputSchema":{{"type":"object","properties":{{"query":{{"type":"string"}},"limit":{{"type":"integer","minimum":1}}}},"required":["query"]}}}}"#
            )
        })
        .collect();
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"tools":[{}]}}}}"#, tools.join(","))
}

const SSE_HEAD: &str =
    "HTTP/1.1 200 OK\r\nserver: backend\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

fn event(data: &str) -> String {
    let event = format!("event: message\ndata: {data}\n\n");
    format!("{:x}\r\n{event}\r\n", event.len())
}

fn progress(n: usize) -> String {
    event(&format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":1,"progress":{n},"total":20,"message":"step {n} of a long piece of work that goes on and on"}}}}"#
    ))
}

impl Answers {
    fn new() -> Answers {
        let json = "application/json";
        let answers = [
            ("json1k", with_length("200 OK", json, &result(1024, false))),
            ("json64k", with_length("200 OK", json, &result(64 * 1024, false))),
            ("json1m", with_length("200 OK", json, &result(1024 * 1024, false))),
            ("iserror", with_length("200 OK", json, &result(1024, true))),
            ("outage", with_length("200 OK", json, &outage())),
            ("403", with_length("403 Forbidden", json, r#"{"error":"forbidden"}"#)),
            ("500", with_length("500 Internal Server Error", "text/plain", "it broke")),
            ("503", with_length("503 Service Unavailable", "text/plain", "no")),
            ("list10", with_length("200 OK", json, &list(10, "1"))),
            ("list50", with_length("200 OK", json, &list(50, "1"))),
            ("list200", with_length("200 OK", json, &list(200, "1"))),
            ("list1000", with_length("200 OK", json, &list(1000, "1"))),
        ];
        Answers { json: answers.into_iter().collect() }
    }

    fn named(&self, case: &[u8]) -> Option<&[u8]> {
        self.json.iter().find(|(name, _)| name.as_bytes() == case).map(|(_, bytes)| bytes.as_slice())
    }
}

/// Starts the backend on two threads; they end with the process.
pub fn start() -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let answers = Arc::new(Answers::new());
    for _ in 0..2 {
        let (listener, answers) = (listener.try_clone()?, Arc::clone(&answers));
        std::thread::spawn(move || -> Result<()> {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener)?;
                loop {
                    if let Ok((socket, _)) = listener.accept().await {
                        tokio::spawn(serve(socket, Arc::clone(&answers)));
                    }
                }
            })
        });
    }
    Ok(address)
}

async fn serve(mut socket: TcpStream, answers: Arc<Answers>) -> Result<()> {
    socket.set_nodelay(true)?;
    let mut buffer = Vec::with_capacity(16 * 1024);
    loop {
        let head_end = loop {
            if let Some(end) = memmem::find(&buffer, b"\r\n\r\n") {
                break end + 4;
            }
            if socket.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
        };
        let end = match content_length(&buffer[..head_end]) {
            Some(length) => head_end + length,
            None if field(&buffer[..head_end], "transfer-encoding").is_some() => {
                while memmem::find(&buffer[head_end..], b"0\r\n\r\n").is_none() {
                    socket.read_buf(&mut buffer).await?;
                }
                buffer.len()
            }
            None => head_end,
        };
        while buffer.len() < end {
            if socket.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
        }
        let case = field(&buffer[..head_end], "x-case").unwrap_or_default();
        match (answers.named(case), case) {
            (Some(bytes), _) => socket.write_all(bytes).await?,
            (None, b"sse20") => sse(&mut socket).await?,
            (None, b"slow") => slow(&mut socket).await?,
            (None, b"open") => {
                socket.write_all([SSE_HEAD, &progress(0)].concat().as_bytes()).await?;
                while socket.read_buf(&mut buffer).await? > 0 {}
                return Ok(());
            }
            _ => socket.write_all(&mcp(&buffer[..head_end], &buffer[head_end..end])).await?,
        }
        buffer.drain(..end);
    }
}

/// Twenty events, the last of them the answer, in four writes.
async fn sse(socket: &mut TcpStream) -> Result<()> {
    let events: Vec<String> = (1..20).map(progress).chain([event(&result(300, false))]).collect();
    socket.write_all(SSE_HEAD.as_bytes()).await?;
    for part in events.chunks(5) {
        socket.write_all(part.concat().as_bytes()).await?;
    }
    Ok(socket.write_all(b"0\r\n\r\n").await?)
}

/// Head and first event at once, the rest later.
async fn slow(socket: &mut TcpStream) -> Result<()> {
    socket.write_all([SSE_HEAD, &progress(1)].concat().as_bytes()).await?;
    tokio::time::sleep(Duration::from_millis(4)).await;
    Ok(socket.write_all([event(&result(300, false)).as_str(), "0\r\n\r\n"].concat().as_bytes()).await?)
}

/// The server's side of an MCP session, for proxies that hold sessions of their own.
fn mcp(head: &[u8], body: &[u8]) -> Vec<u8> {
    if !head.starts_with(b"POST") {
        return with_length("405 Method Not Allowed", "text/plain", "no");
    }
    let Ok(message) = serde_json::from_slice::<serde_json::Value>(body) else {
        return with_length("400 Bad Request", "text/plain", "no");
    };
    let Some(id) = message.get("id").map(ToString::to_string) else {
        return b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n".to_vec();
    };
    let text = match message.get("method").and_then(|method| method.as_str()).unwrap_or_default() {
        "initialize" => format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"protocolVersion":"2025-06-18","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"backend","version":"1"}}}}}}"#
        ),
        "tools/list" => list(10, &id),
        "tools/call" => result(1024, false).replacen("\"id\":1", &format!("\"id\":{id}"), 1),
        "ping" => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#),
        _ => format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"no such method"}}}}"#),
    };
    let length = text.len();
    format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nmcp-session-id: bench\r\ncontent-length: {length}\r\n\r\n{text}")
        .into_bytes()
}
