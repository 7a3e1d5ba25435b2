//! Problem details (RFC 9457): the body of an error that toolvane itself answers to an HTTP caller.

use bytes::Bytes;
use http::header::{self, HeaderValue};
use http::{Response, StatusCode};
use serde_json::{Map, Value};

/// The media type of problem details.
pub const PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");

/// One problem. Members are written in the order they are added, after the standard ones.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    status: StatusCode,
    title: String,
    detail: Option<String>,
    members: Map<String, Value>,
}

impl Problem {
    /// A problem with a short title that is the same for every occurrence.
    pub fn new(status: StatusCode, title: impl Into<String>) -> Problem {
        Problem { status, title: title.into(), detail: None, members: Map::new() }
    }

    /// What happened this time, and what the caller can do about it.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Problem {
        self.detail = Some(detail.into());
        self
    }

    /// An extension member. The standard names (`type`, `title`, `status`, `detail`, `instance`) are kept for the standard.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<Value>) -> Problem {
        let name = name.into();
        if !["type", "title", "status", "detail", "instance"].contains(&name.as_str()) {
            self.members.insert(name, value.into());
        }
        self
    }

    /// The status code that goes with it.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The JSON text.
    pub fn to_bytes(&self) -> Bytes {
        let mut all = Map::new();
        all.insert("type".into(), "about:blank".into());
        all.insert("title".into(), self.title.clone().into());
        all.insert("status".into(), self.status.as_u16().into());
        if let Some(detail) = &self.detail {
            all.insert("detail".into(), detail.clone().into());
        }
        all.extend(self.members.clone());
        Bytes::from(Value::Object(all).to_string())
    }

    /// The whole answer, with `Content-Type` and `Cache-Control: no-store`.
    pub fn response<B: From<Bytes>>(&self) -> Response<B> {
        let mut response = Response::new(B::from(self.to_bytes()));
        *response.status_mut() = self.status;
        response.headers_mut().insert(header::CONTENT_TYPE, PROBLEM_JSON);
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_members_cannot_be_overwritten() {
        let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "tool unavailable")
            .detail("back at 14:30 UTC")
            .with("status", 200)
            .with("code", "BACKEND_UNREACHABLE");
        let json: Value = serde_json::from_slice(&problem.to_bytes()).unwrap();
        assert_eq!(
            json,
            serde_json::json!({
                "type": "about:blank", "title": "tool unavailable", "status": 503,
                "detail": "back at 14:30 UTC", "code": "BACKEND_UNREACHABLE"
            })
        );
        let response: Response<Bytes> = problem.response();
        assert_eq!(response.headers()[header::CONTENT_TYPE], "application/problem+json");
    }
}
