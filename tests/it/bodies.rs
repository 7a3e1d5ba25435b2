//! Bodies by themselves: reading along, adding, injecting, holding up to a limit.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::BodyExt;
use tokio::sync::mpsc;
use toolvane::proxy::net::{Body, BodyObserver, Collected, End, Fault, Observed, collect};
use toolvane::rules::TransportFault;

/// A body that yields what it was given, stepwise.
struct Script {
    steps: VecDeque<Result<Frame<Bytes>, Fault>>,
    /// An announced length that its frames count down.
    left: Option<u64>,
}

impl Script {
    fn chunks(chunks: &[&'static str]) -> Script {
        Script { steps: chunks.iter().map(|c| Ok(Frame::data(Bytes::from_static(c.as_bytes())))).collect(), left: None }
    }

    fn with_length(mut self) -> Script {
        let all: usize = self.steps.iter().flatten().filter_map(Frame::data_ref).map(Bytes::len).sum();
        self.left = Some(all as u64);
        self
    }

    fn then(mut self, step: Result<Frame<Bytes>, Fault>) -> Script {
        self.steps.push_back(step);
        self
    }
}

impl HttpBody for Script {
    type Data = Bytes;
    type Error = Fault;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Fault>>> {
        let step = self.steps.pop_front();
        if let (Some(left), Some(Ok(frame))) = (&mut self.left, &step) {
            *left -= frame.data_ref().map_or(0, |d| d.len() as u64);
        }
        Poll::Ready(step)
    }

    fn is_end_stream(&self) -> bool {
        self.left == Some(0)
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

#[derive(Clone, Default)]
struct Notes {
    log: Arc<Mutex<Vec<String>>>,
    last: Option<&'static str>,
    adds: bool,
    border: Arc<Mutex<bool>>,
}

impl Notes {
    fn adding(last: Option<&'static str>) -> Notes {
        Notes { last, adds: true, border: Arc::new(Mutex::new(true)), ..Notes::default() }
    }

    fn note(&self, text: String) {
        self.log.lock().unwrap().push(text);
    }

    fn taken(&self) -> String {
        self.log.lock().unwrap().join(" ")
    }
}

impl BodyObserver for Notes {
    fn on_data(&mut self, data: &Bytes) {
        self.note(String::from_utf8_lossy(data).into_owned());
    }

    fn on_trailers(&mut self, trailers: &HeaderMap) {
        self.note(format!("trailers:{}", trailers.len()));
    }

    fn on_end(&mut self, end: End) -> Option<Bytes> {
        self.note(match end {
            End::Complete => "complete".into(),
            End::Broken(fault) => format!("broken:{}", fault.kind),
            End::Dropped => "dropped".into(),
        });
        self.last.map(Bytes::from)
    }

    fn adds(&self) -> bool {
        self.adds
    }

    fn at_border(&self) -> bool {
        *self.border.lock().unwrap()
    }
}

fn trailers() -> Frame<Bytes> {
    Frame::trailers(HeaderMap::from_iter([(http::header::ETAG, "x".parse().unwrap())]))
}

fn broken() -> Fault {
    Fault::upstream(TransportFault::BodyTruncated, true, "the test says so")
}

/// All frames as text; an error ends them.
async fn read(mut body: impl HttpBody<Data = Bytes, Error = Fault> + Unpin) -> String {
    let mut seen = Vec::new();
    while let Some(frame) = body.frame().await {
        seen.push(match frame {
            Ok(frame) if frame.is_trailers() => "trailers".to_owned(),
            Ok(frame) => String::from_utf8_lossy(&frame.into_data().unwrap()).into_owned(),
            Err(fault) => format!("!{}", fault.kind),
        });
    }
    seen.join(" ")
}

#[tokio::test]
async fn an_observer_sees_what_passes_and_the_end_once() {
    let cases: Vec<(Script, &str, &str)> = vec![
        (Script::chunks(&["a", "b"]), "a b", "a b complete"),
        (Script::chunks(&["a", "b"]).with_length(), "a b", "a b complete"),
        (Script::chunks(&[]), "", "complete"),
        (Script::chunks(&["a"]).then(Ok(trailers())), "a trailers", "a trailers:1 complete"),
        (Script::chunks(&["a"]).then(Err(broken())), "a !body-truncated", "a broken:body-truncated"),
    ];
    for (script, passed, noted) in cases {
        let notes = Notes::default();
        assert_eq!(read(Observed::new(script, notes.clone())).await, passed);
        assert_eq!(notes.taken(), noted);
    }
}

#[tokio::test]
async fn a_body_that_is_let_go_tells_whether_it_was_complete() {
    // A receiver that counts the announced length stops before the end is said.
    let notes = Notes::default();
    let mut body = Observed::new(Script::chunks(&["a", "b"]).with_length(), notes.clone());
    body.frame().await.unwrap().unwrap();
    body.frame().await.unwrap().unwrap();
    drop(body);
    assert_eq!(notes.taken(), "a b complete");

    let notes = Notes::default();
    let mut body = Observed::new(Script::chunks(&["a", "b"]), notes.clone());
    body.frame().await.unwrap().unwrap();
    drop(body);
    assert_eq!(notes.taken(), "a dropped");

    // Never asked for, as with HEAD.
    let notes = Notes::default();
    drop(Observed::new(Body::empty(), notes.clone()));
    assert_eq!(notes.taken(), "complete");
}

#[tokio::test]
async fn an_observer_may_have_the_last_word() {
    let cases: Vec<(Script, Option<&'static str>, &str)> = vec![
        (Script::chunks(&["a"]), Some("z"), "a z"),
        (Script::chunks(&["a"]).with_length(), Some("z"), "a z"),
        (Script::chunks(&["a"]), None, "a"),
        // A broken stream ends well when there is an answer for it.
        (Script::chunks(&["a"]).then(Err(broken())), Some("z"), "a z"),
        (Script::chunks(&["a"]).then(Err(broken())), None, "a !body-truncated"),
        // Nothing comes after trailers.
        (Script::chunks(&["a"]).then(Ok(trailers())), Some("z"), "a z trailers"),
    ];
    for (script, last, expected) in cases {
        let body = Observed::new(script, Notes::adding(last));
        assert_eq!(body.size_hint().exact(), None);
        assert_eq!(read(body).await, expected);
    }
}

#[tokio::test]
async fn injected_bytes_go_out_between_frames_and_only_at_a_border() {
    let (send, receive) = mpsc::channel(4);
    let notes = Notes::adding(None);
    let border = Arc::clone(&notes.border);
    let mut body = Observed::new(Script::chunks(&["a", "b", "c"]), notes.clone()).injecting(receive);
    let mut next = async || body.frame().await.unwrap().unwrap().into_data().unwrap();
    assert_eq!(next().await, "a");
    *border.lock().unwrap() = false;
    send.send(Bytes::from_static(b"x")).await.unwrap();
    assert_eq!(next().await, "b");
    *border.lock().unwrap() = true;
    assert_eq!(next().await, "x");
    drop(send);
    assert_eq!(next().await, "c");
    assert!(body.frame().await.is_none());
    assert_eq!(notes.taken(), "a b c complete");
}

#[tokio::test]
async fn what_is_injected_while_nothing_moves_goes_out_at_once() {
    let (send, receive) = mpsc::channel(4);
    let body = Observed::new(Never, Notes::adding(None)).injecting(receive);
    let reader = tokio::spawn(async move {
        let mut body = Box::pin(body);
        body.frame().await.unwrap().unwrap().into_data().unwrap()
    });
    send.send(Bytes::from_static(b"x")).await.unwrap();
    assert_eq!(reader.await.unwrap(), "x");
}

/// A body that never yields.
struct Never;

impl HttpBody for Never {
    type Data = Bytes;
    type Error = Fault;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Fault>>> {
        Poll::Pending
    }
}

#[tokio::test]
async fn a_body_is_held_up_to_the_limit_and_streams_on_past_it() {
    for (chunks, limit, whole) in [
        (&["abc", "def"][..], 6, true),
        (&["abc", "def"], 5, false),
        (&["abcdef"], 6, true),
        (&["abcdef"], 5, false),
        (&[], 0, true),
        (&["a"], 0, false),
    ] {
        for with_length in [false, true] {
            let script = Script::chunks(chunks);
            let script = if with_length { script.with_length() } else { script };
            match collect(Body::stream(script), limit).await.unwrap() {
                Collected::Whole(bytes, trailers) => {
                    assert!(whole, "{chunks:?} {limit}");
                    assert_eq!((bytes, trailers), (Bytes::from(chunks.concat()), None));
                }
                Collected::TooLarge(body) => {
                    assert!(!whole, "{chunks:?} {limit}");
                    assert_eq!(body.size_hint().exact().is_some(), with_length);
                    assert_eq!(read(body).await.replace(' ', ""), chunks.concat());
                }
            }
        }
    }
}

#[tokio::test]
async fn holding_keeps_trailers_and_tells_faults() {
    let body = Body::stream(Script::chunks(&["a", "b"]).then(Ok(trailers())));
    let Collected::Whole(bytes, Some(found)) = collect(body, 10).await.unwrap() else { panic!("not whole") };
    assert_eq!((bytes, found.len()), (Bytes::from_static(b"ab"), 1));
    let fault = collect(Body::stream(Script::chunks(&["a"]).then(Err(broken()))), 10).await.unwrap_err();
    assert_eq!(fault, broken());
    let Collected::TooLarge(rest) =
        collect(Body::stream(Script::chunks(&["abc"]).then(Ok(trailers()))), 2).await.unwrap()
    else {
        panic!("not too large")
    };
    assert_eq!(read(rest).await, "abc trailers");
}
