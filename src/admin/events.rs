//! `GET /v1/events`: what happens, as server-sent events (DESIGN 14).
//!
//! A reader holds nothing but its place in the ring. One that does not read is cut off by its connection's own limit; one that
//! reads too slowly to keep up is told how many events it missed, and goes on.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http_body::Frame;
use tokio::sync::OwnedSemaphorePermit;

use super::query::{Parameters, Query, bad};
use super::routes::EVENTS;
use super::{Admin, refuse};
use crate::telemetry::bus::{Happening, Kind};

/// Readers at the same time.
pub(super) const READERS_MAX: usize = 1_024;
/// Events that are handed to the connection at once.
const BATCH: usize = 64;
/// How often a silent stream says that it lives.
const BEAT: Duration = Duration::from_secs(15);

/// What is told of an id that means nothing here.
const RESET: &str = "event: reset\ndata: {\"reset\":true,\"reason\":\"the id to resume after is none of this process; \
    what is still kept follows, and what came before may be missing\"}\n\n";

const LAST: HeaderName = HeaderName::from_static("last-event-id");

/// What a reader wants to hear of.
#[derive(Debug, Default)]
struct Wanted {
    kinds: Vec<Kind>,
    backend: Option<String>,
    tool: Option<String>,
}

impl Wanted {
    fn takes(&self, happening: &Happening) -> bool {
        let is = |wanted: &Option<String>, name: &str| {
            let found = happening.facts.get(name).and_then(|value| value.as_str());
            wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
        };
        (self.kinds.is_empty() || self.kinds.contains(&happening.kind))
            && is(&self.backend, "backend")
            && is(&self.tool, "toolName")
    }
}

/// The stream of events from a place on; without one, from now on.
pub(super) async fn events(
    State(admin): State<Arc<Admin>>,
    Query(given): Query<BTreeMap<String, String>>,
    headers: HeaderMap,
) -> Response {
    let read = Parameters::checked(given, EVENTS).and_then(|given| {
        let wanted = wanted(&given)?;
        let resumed = headers.get(LAST).and_then(|id| id.to_str().ok()).or_else(|| given.text("after"));
        Ok((wanted, resumed.map(|id| place(id, admin.life, admin.telemetry.bus().latest()))))
    });
    let (wanted, resumed) = match read {
        Ok(read) => read,
        Err(refusal) => return *refusal,
    };
    let Ok(seat) = Arc::clone(&admin.readers).try_acquire_owned() else {
        let detail = format!("{READERS_MAX} readers follow already, the most there may be");
        return refuse(StatusCode::SERVICE_UNAVAILABLE, "too many readers", detail);
    };
    let (at, is_lost) = match resumed {
        Some(place) => (place.unwrap_or(0), place.is_none()),
        None => (admin.telemetry.bus().latest(), false),
    };
    let feed = Feed::new(admin, wanted, (at, is_lost), seat);
    let headers = [(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-store")];
    (headers, Body::new(feed)).into_response()
}

fn wanted(given: &Parameters) -> Result<Wanted, Box<Response>> {
    let kind = |word: &str| Kind::ALL.into_iter().find(|kind| kind.as_str() == word.trim());
    let kinds = given.text("kind").into_iter().flat_map(|words| words.split(','));
    let kinds = kinds.map(|word| {
        let known = || Kind::ALL.map(Kind::as_str).join(", ");
        kind(word).ok_or_else(|| bad(format!("kind {word:?} is none of {}", known())))
    });
    Ok(Wanted {
        kinds: kinds.collect::<Result<_, _>>()?,
        backend: given.text("backend").map(str::to_owned),
        tool: given.text("tool").map(str::to_owned),
    })
}

/// The place that an id names: `0` is before everything, and an id that this process never gave out is none.
fn place(id: &str, life: i64, latest: u64) -> Option<u64> {
    if id == "0" {
        return Some(0);
    }
    let (of, number) = id.split_once('-')?;
    let number = number.parse().ok().filter(|number| *number <= latest)?;
    (of.parse() == Ok(life)).then_some(number)
}

/// The body of one reader's answer.
struct Feed {
    admin: Arc<Admin>,
    wanted: Wanted,
    at: u64,
    /// Whether the reader's place is not one of ours, which he has not been told yet.
    is_lost: bool,
    begun: bool,
    bell: Pin<Box<dyn Future<Output = ()> + Send>>,
    _seat: OwnedSemaphorePermit,
}

impl Feed {
    fn new(admin: Arc<Admin>, wanted: Wanted, (at, is_lost): (u64, bool), seat: OwnedSemaphorePermit) -> Feed {
        let bell = ring(&admin, at);
        Feed { admin, wanted, at, is_lost, begun: false, bell, _seat: seat }
    }

    /// What is to be said now, if anything.
    fn next(&mut self) -> Option<String> {
        let mut text = String::new();
        if !std::mem::replace(&mut self.begun, true) {
            text.push_str("retry: 2000\n\n");
        }
        if std::mem::take(&mut self.is_lost) {
            text.push_str(RESET);
        }
        let batch = self.admin.telemetry.bus().after(self.at, BATCH);
        let life = self.admin.life;
        if batch.missed > 0 {
            text.push_str(&format!("event: missed\ndata: {{\"missed\":{}}}\n\n", batch.missed));
        }
        for happening in &batch.happenings {
            self.at = happening.number;
            if self.wanted.takes(happening) {
                let (kind, number, data) = (happening.kind.as_str(), happening.number, &happening.text);
                text.push_str(&format!("id: {life}-{number}\nevent: {kind}\ndata: {data}\n\n"));
            }
        }
        (!text.is_empty()).then_some(text)
    }
}

/// Resolves when something has come after a place, or it is time for a sign of life.
fn ring(admin: &Arc<Admin>, at: u64) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    let mut bell = admin.telemetry.bus().bell();
    Box::pin(async move {
        let _ = tokio::time::timeout(BEAT, bell.wait_for(|latest| *latest > at)).await;
    })
}

impl http_body::Body for Feed {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = self.get_mut();
        let before = this.at;
        if let Some(text) = this.next() {
            return Poll::Ready(Some(Ok(Frame::data(Bytes::from(text)))));
        }
        if this.at != before {
            // All of it was for others; the bell has rung for what lies behind us.
            this.bell = ring(&this.admin, this.at);
        }
        ready!(this.bell.as_mut().poll(cx));
        this.bell = ring(&this.admin, this.at);
        let text = this.next().unwrap_or_else(|| ": alive\n\n".to_owned());
        Poll::Ready(Some(Ok(Frame::data(Bytes::from(text)))))
    }
}
