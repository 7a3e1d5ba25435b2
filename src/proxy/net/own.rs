//! The few answers that the transport makes by itself, before any service has seen a request (DESIGN 9, Limits).

use bytes::Bytes;
use http::header::{self, HeaderValue};
use http::{Response, StatusCode};

use super::limits::Limits;
use crate::http::problem::Problem;

/// Marks an answer as ours (DESIGN 3).
pub(super) const MARK: &str = "x-toolvane";

/// Why the transport answers by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Not HTTP.
    Malformed,
    /// The head is too large.
    HeadTooLarge,
    /// The request line is too long for a URI.
    UriTooLong,
    /// The head did not come in time.
    HeadTimeout,
    /// Too many connections.
    Connections,
    /// No `Host`, or several.
    Host,
    /// A transfer coding besides `chunked`.
    TransferCoding,
    /// `CONNECT`: this is no forward proxy.
    Connect,
}

impl Refusal {
    /// The refusal behind an answer that hyper makes by itself.
    pub(super) fn of_status(status: &[u8]) -> Refusal {
        match status {
            b"431" => Refusal::HeadTooLarge,
            b"414" => Refusal::UriTooLong,
            _ => Refusal::Malformed,
        }
    }

    /// What [`MARK`] says.
    fn reason(self) -> &'static str {
        match self {
            Refusal::Malformed | Refusal::Host => "malformed",
            Refusal::Connect | Refusal::TransferCoding => "unsupported",
            Refusal::HeadTooLarge | Refusal::UriTooLong | Refusal::HeadTimeout | Refusal::Connections => "limit",
        }
    }

    fn problem(self, limits: &Limits) -> Problem {
        match self {
            Refusal::Malformed => Problem::new(StatusCode::BAD_REQUEST, "malformed request")
                .detail("what arrived is not a valid HTTP request head; it was not forwarded"),
            Refusal::HeadTooLarge => {
                Problem::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "request head too large").detail(format!(
                    "at most {} bytes (limits.head) in {} fields (limits.headers) are accepted",
                    limits.head_size, limits.headers
                ))
            }
            Refusal::UriTooLong => Problem::new(StatusCode::URI_TOO_LONG, "request target too long")
                .detail("at most 65534 bytes are accepted; this bound is fixed"),
            Refusal::HeadTimeout => Problem::new(StatusCode::REQUEST_TIMEOUT, "request head timed out")
                .detail(format!("the head was not complete within {:?} (limits.header_timeout)", limits.head_timeout)),
            Refusal::Connections => Problem::new(StatusCode::TOO_MANY_REQUESTS, "too many connections")
                .detail(format!("{} connections are open already (limits.connections)", limits.connections)),
            Refusal::Host => Problem::new(StatusCode::BAD_REQUEST, "malformed request")
                .detail("a request needs exactly one Host field; it was not forwarded"),
            Refusal::TransferCoding => Problem::new(StatusCode::NOT_IMPLEMENTED, "transfer coding not supported")
                .detail("chunked is the only transfer coding that is understood"),
            Refusal::Connect => Problem::new(StatusCode::METHOD_NOT_ALLOWED, "CONNECT is not supported")
                .detail("this is a reverse proxy in front of tools; it opens no tunnels"),
        }
    }

    /// The answer as a value, for connections that can still carry one.
    pub(super) fn response<B: From<Bytes>>(self, limits: &Limits) -> Response<B> {
        let mut response = self.problem(limits).response();
        response.headers_mut().insert(MARK, HeaderValue::from_static(self.reason()));
        if self == Refusal::Connect {
            response
                .headers_mut()
                .insert(header::ALLOW, HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"));
        }
        response
    }

    /// The answer as HTTP/1.1 bytes, for connections that hyper has given up.
    pub(super) fn wire(self, limits: &Limits) -> Bytes {
        let problem = self.problem(limits);
        let body = problem.to_bytes();
        let status = problem.status();
        let mark = self.reason();
        let head = format!(
            "HTTP/1.1 {} {}\r\ncontent-type: application/problem+json\r\ncontent-length: {}\r\ncache-control: no-store\r\n{MARK}: {mark}\r\nconnection: close\r\n\r\n",
            status.as_str(),
            status.canonical_reason().unwrap_or_default(),
            body.len()
        );
        let mut all = Vec::from(head);
        all.extend_from_slice(&body);
        all.into()
    }
}
