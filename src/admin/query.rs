//! Reading what a query asks for, with errors that say what is allowed.

use std::collections::BTreeMap;

use axum::extract::{self, FromRequestParts};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use serde::de::DeserializeOwned;

use super::refuse;
use crate::health::Status;
use crate::rules::Scope;

/// Segments of the path. (What axum itself says of those that cannot be read is no problem document.)
#[derive(Debug)]
pub(super) struct Path<T>(pub(super) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Path<T>, Response> {
        let read = extract::Path::<T>::from_request_parts(parts, state).await;
        read.map(|extract::Path(found)| Path(found)).map_err(|why| *bad(why.body_text()))
    }
}

/// The query.
#[derive(Debug)]
pub(super) struct Query<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Query<T>, Response> {
        let read = extract::Query::<T>::from_request_parts(parts, state).await;
        read.map(|extract::Query(found)| Query(found)).map_err(|why| *bad(why.body_text()))
    }
}

/// The parameters of one request.
#[derive(Debug, Default)]
pub(super) struct Parameters {
    given: BTreeMap<String, String>,
}

impl Parameters {
    /// Takes the parameters if all of them are known.
    pub(super) fn checked(given: BTreeMap<String, String>, allowed: &[&str]) -> Result<Parameters, Box<Response>> {
        match given.keys().find(|name| !allowed.contains(&name.as_str())) {
            None => Ok(Parameters { given }),
            Some(unknown) => {
                let known = allowed.join(", ");
                Err(bad(format!("unknown parameter {unknown:?}; known are {known}")))
            }
        }
    }

    /// A parameter that may be absent. An empty one is.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.given.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// A parameter that must be there.
    pub(super) fn need(&self, name: &str) -> Result<&str, Box<Response>> {
        self.text(name).ok_or_else(|| bad(format!("parameter {name:?} is missing")))
    }

    pub(super) fn scope(&self) -> Result<Option<Scope>, Box<Response>> {
        self.text("scope").map(scope).transpose()
    }

    /// Which part of a list is wanted: `limit` (1 to 1,000, all of them by default 1,000) and `after`, the `next` of the part
    /// before.
    pub(super) fn page(&self) -> Result<Page, Box<Response>> {
        let limit = match self.text("limit") {
            None => PAGE_MAX,
            Some(text) => text
                .parse()
                .ok()
                .filter(|limit| (1..=PAGE_MAX).contains(limit))
                .ok_or_else(|| bad(format!("limit {text:?} is not between 1 and {PAGE_MAX}")))?,
        };
        Ok(Page { limit, after: self.text("after").map(str::to_owned) })
    }

    pub(super) fn status(&self) -> Result<Option<Status>, Box<Response>> {
        let status = |text: &str| match text.to_ascii_uppercase().as_str() {
            "OK" => Ok(Status::Ok),
            "DEGRADED" => Ok(Status::Degraded),
            "DOWN" => Ok(Status::Down),
            _ => Err(bad(format!("status {text:?} is none of OK, DEGRADED, DOWN"))),
        };
        self.text("status").map(status).transpose()
    }
}

/// Most items of one answer.
const PAGE_MAX: usize = 1_000;

/// Part of a list.
#[derive(Debug)]
pub(super) struct Page {
    limit: usize,
    after: Option<String>,
}

impl Page {
    /// That part of a list whose order does not change, and what to ask for next. `place` tells items apart.
    pub(super) fn cut<T>(&self, all: Vec<T>, place: impl Fn(&T) -> serde_json::Value) -> (Vec<T>, Option<String>) {
        let mark = |item: &T| blake3::hash(place(item).to_string().as_bytes()).to_hex().to_string();
        let start = match &self.after {
            None => 0,
            // What stood there may be gone: then the list begins anew rather than ends too early.
            Some(after) => all.iter().position(|item| mark(item) == *after).map_or(0, |at| at + 1),
        };
        let more = all.len() > start + self.limit;
        let part: Vec<T> = all.into_iter().skip(start).take(self.limit).collect();
        let next = part.last().filter(|_| more).map(&mark);
        (part, next)
    }
}

/// A scope by its name, in any letter case.
pub(super) fn scope(text: &str) -> Result<Scope, Box<Response>> {
    let found = Scope::ALL.into_iter().find(|scope| scope.as_str().eq_ignore_ascii_case(text));
    found.ok_or_else(|| bad(format!("scope {text:?} is none of SESSION, USER, PROJECT, TENANT, GLOBAL")))
}

/// What was asked cannot be understood.
pub(super) fn bad(detail: String) -> Box<Response> {
    Box::new(refuse(StatusCode::BAD_REQUEST, "bad request", detail))
}
