//! Between the network and the SDK: hands every message to the [`Backstage`] and plays the failures that it asks for.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body_util::{BodyExt, Limited};
use serde_json::{Value, json};

use crate::backstage::{Backstage, Mode};

/// Bodies above this never reach a tool: the limit of the SDK itself.
const MAX_BODY_BYTES: usize = 4 * 1024 * 1024;

/// The little of a JSON-RPC message that the backstage looks at.
#[derive(Debug)]
struct Message {
    method: String,
    tool: Option<String>,
    id: Value,
}

impl Message {
    fn read(body: &[u8]) -> Option<Message> {
        let value: Value = serde_json::from_slice(body).ok()?;
        let method = value.get("method")?.as_str()?.to_owned();
        let name = value.pointer("/params/name").and_then(Value::as_str).map(str::to_owned);
        let tool = if method == "tools/call" { name } else { None };
        Some(Message { method, tool, id: value.get("id").cloned().unwrap_or(Value::Null) })
    }
}

/// Stands in front of the MCP endpoint: counts each message, fails those it is told to, and sees how each answer ended.
pub(crate) async fn watch(State(backstage): State<Backstage>, request: Request, next: Next) -> Response {
    if request.method() != Method::POST {
        backstage.visit(request.method(), request.headers());
        return next.run(request).await;
    }
    let (head, body) = request.into_parts();
    let bytes = match Limited::new(body, MAX_BODY_BYTES).collect().await {
        Ok(collected) => collected.to_bytes(),
        Err(error) => return (StatusCode::BAD_REQUEST, format!("unreadable body: {error}\n")).into_response(),
    };
    let Some(message) = Message::read(&bytes) else {
        return next.run(Request::from_parts(head, Body::from(bytes))).await;
    };
    let mode = backstage.arrive(&message.method, message.tool.as_deref());
    let Some(tool) = message.tool.clone() else {
        return next.run(Request::from_parts(head, Body::from(bytes))).await;
    };
    // Made before the answer exists: a client that leaves before the head drops this very future.
    let watcher = Watcher { backstage, tool, finished: false };
    let response = match mode {
        Mode::Ok | Mode::Cut => next.run(Request::from_parts(head, Body::from(bytes))).await,
        Mode::Hang => std::future::pending().await,
        failing => failing.answer(&message.id),
    };
    let (head, body) = response.into_parts();
    let cut = mode == Mode::Cut && is_event_stream(&head.headers);
    Response::from_parts(head, Body::new(Watched { body, watcher, cut }))
}

fn is_event_stream(headers: &HeaderMap) -> bool {
    headers.get(header::CONTENT_TYPE).is_some_and(|value| value.as_bytes().starts_with(b"text/event-stream"))
}

impl Mode {
    fn answer(self, id: &Value) -> Response {
        match self {
            Mode::Error => Json(json!({"jsonrpc": "2.0", "id": id, "result": {
                "resultType": "complete", "isError": true,
                "content": [{"type": "text", "text": "the reporting service does not answer (connection timed out)"}],
            }}))
            .into_response(),
            Mode::Rpc => Json(json!({"jsonrpc": "2.0", "id": id, "error": {
                "code": -32603, "message": "internal error: assertion failed in the planner",
            }}))
            .into_response(),
            Mode::Http503 => (StatusCode::SERVICE_UNAVAILABLE, "upstream connect error\n").into_response(),
            Mode::Http429 => {
                (StatusCode::TOO_MANY_REQUESTS, [(header::RETRY_AFTER, "20")], "too many requests\n").into_response()
            }
            Mode::Truncate => {
                let head = [(header::CONTENT_TYPE, "application/json"), (header::CONTENT_LENGTH, "4096")];
                (head, Body::new(Broken(Some(Bytes::from_static(b"{\"jsonrpc\":\"2.0\","))))).into_response()
            }
            _ => (StatusCode::INTERNAL_SERVER_ERROR, "panic: index out of range\n").into_response(),
        }
    }
}

/// Sends what it holds, then breaks off.
struct Broken(Option<Bytes>);

impl http_body::Body for Broken {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, std::io::Error>>> {
        Poll::Ready(Some(match self.0.take() {
            Some(bytes) => Ok(http_body::Frame::data(bytes)),
            None => Err(std::io::Error::other("cut on purpose")),
        }))
    }
}

/// Tells the backstage once whether an answer ended, or its client left first.
struct Watcher {
    backstage: Backstage,
    tool: String,
    finished: bool,
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.backstage.ended(&self.tool, self.finished);
    }
}

/// A body that is watched to its end; a `cut` one ends after its first frame.
struct Watched {
    body: Body,
    watcher: Watcher,
    cut: bool,
}

impl http_body::Body for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, axum::Error>>> {
        if self.cut && self.watcher.finished {
            return Poll::Ready(None);
        }
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if matches!(polled, Poll::Ready(None)) || (polled.is_ready() && (self.cut || self.body.is_end_stream())) {
            self.watcher.finished = true;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.watcher.finished
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}
