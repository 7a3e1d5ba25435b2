//! Reading along with the answers of an MCP backend (DESIGN 3 and 4): which calls are answered, how, and where.

mod stream;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::{Bytes, BytesMut};
use http::header::CONTENT_ENCODING;
use http::{HeaderMap, HeaderName, StatusCode};

use super::asked::Page;
use super::decode::Decoder;
use super::desk::{Desk, NearBackend};
use super::inflight::Waiting;
use super::net::{BodyObserver, Cause, End, Fault, Side, Whole};
use super::reading::Reading;
use super::shared::Backend;
use super::streams::StreamHandle;
use super::ticket::Judged;
use super::visit::format_of;
use crate::mcp::answer::{Answer, Kind, Reader, ResultType, Seen, Task, TaskStatus, Trouble};
use crate::mcp::{Format, reply};
use crate::rules::{LOG_BOUND, TransportFault, is_plain_success};
use crate::telemetry::Unjudged;

/// A field whose value may make a failure of any answer.
pub(super) const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// What is known of an exchange when its answer's head has arrived.
#[derive(Debug)]
pub(super) struct Head {
    /// The status of the answer.
    pub(super) status: StatusCode,
    /// Its header fields.
    pub(super) headers: HeaderMap,
    /// How its body is framed.
    pub(super) format: Format,
    /// The answer itself, where all of it came under a head that came before.
    pub(super) whole: Option<Whole>,
}

impl Head {
    pub(super) fn of(status: StatusCode, headers: &HeaderMap, whole: Option<Whole>) -> Head {
        Head { status, headers: headers.clone(), format: format_of(headers), whole }
    }
}

/// Where an exchange belongs.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) shared: Arc<Desk>,
    pub(super) backend: Arc<NearBackend>,
    /// The session, if there is one: answers and cancellations of other exchanges are matched by it.
    pub(super) session: Option<Arc<str>>,
}

/// A call whose answer may come in this exchange.
#[derive(Debug)]
pub(super) struct Expected {
    /// The id under which the answer would come here, as a raw token, if it is not that of the call.
    pub(super) id: Option<Box<str>>,
    /// The call.
    pub(super) call: Arc<Waiting>,
    /// It is the result of a task that is asked for: without an answer the task still goes on.
    pub(super) is_task: bool,
}

impl Expected {
    /// The id under which the answer would come here, as a raw token.
    pub(super) fn id(&self) -> &str {
        self.id.as_deref().unwrap_or(&self.call.id)
    }
}

/// The observer of one answer of an MCP backend.
#[derive(Debug)]
pub(super) struct Observer {
    place: Arc<Place>,
    head: Head,
    expected: Vec<Expected>,
    /// For an open stream that may be told things.
    stream: Option<StreamHandle>,
    reader: Option<Reader>,
    decoder: Decoder,
    has_event_id: bool,
    /// What the server logged and its error events, while one call alone is answered here.
    log: String,
    /// An event of ours in place of one that was read last.
    instead: Option<Vec<u8>>,
    /// A page of the tool list that was read last, to be annotated.
    listed: Option<Page>,
    /// An event whose end is still to come, kept back because it may be such a page.
    held: BytesMut,
    /// What goes out in place of the chunk that was read last.
    replacement: Option<Bytes>,
    /// The path of the request, which a relative endpoint starts from.
    path: Box<str>,
}

impl Observer {
    pub(super) fn new(
        place: Arc<Place>,
        head: Head,
        expected: Vec<Expected>,
        stream: Option<StreamHandle>,
        path: &str,
    ) -> Observer {
        let mut reader = Reader::new(head.format, place.shared.config.limits.failure_text);
        let structure_is_enough = || expected.iter().all(|expected| expected.call.takes_structure());
        if stream.is_none() && !head.headers.contains_key(GRPC_STATUS) && structure_is_enough() {
            reader = reader.glancing(is_plain_success);
        }
        let reader = Some(reader);
        let decoder = Decoder::of(&head.headers);
        Observer {
            place,
            decoder,
            head,
            expected,
            stream,
            reader,
            has_event_id: false,
            log: String::new(),
            instead: None,
            listed: None,
            held: BytesMut::new(),
            replacement: None,
            path: path.into(),
        }
    }

    /// Reads an answer of which all is here.
    pub(super) fn read_whole(mut self, bytes: &Bytes) {
        self.on_data(bytes);
        self.on_end(End::Complete);
    }

    fn see(&mut self, seen: Seen) {
        match seen {
            Seen::Answer(answer) => self.answer(*answer),
            Seen::Success(id) => {
                if let Some(call) = self.call_for(Some(&id), false) {
                    call.succeeded();
                }
            }
            Seen::EventId(_) => self.has_event_id = true,
            Seen::Endpoint(url) => self.endpoint(&url),
            Seen::ErrorEvent(text) => self.log(&text.text()),
            Seen::Notification(notification) => {
                if let Some(line) = notification.logged_error() {
                    self.log(line);
                }
                if let Some(call) = notification.task.as_ref().and_then(|task| self.task_over(task))
                    && let Some(end) = notification.task.and_then(|task| task.end)
                {
                    call.judge(Reading::of_task_end(&self.head, end));
                }
            }
            Seen::Trouble(trouble) => self.trouble(&trouble),
            Seen::Request(_) => {}
        }
    }

    fn log(&mut self, line: &str) {
        if self.expected.len() == 1 && self.log.len() + line.len() < LOG_BOUND {
            self.log.push_str(line);
            self.log.push('\n');
        }
    }

    fn answer(&mut self, answer: Answer) {
        if let (Some(stream), Some(id)) = (&self.stream, &answer.id) {
            self.listed = stream.asked.take(id);
        }
        let own = self.call_for(answer.id.as_deref(), matches!(answer.kind, Kind::Error(_)));
        let Kind::Result(outcome) = &answer.kind else {
            if let Some(call) = own {
                self.judge(&call, answer);
            }
            return;
        };
        if outcome.tools_list_changed {
            self.place.backend.announces_tools.store(true, Ordering::Relaxed);
        }
        match (own, &outcome.task) {
            (Some(call), Some(task)) if task.created => {
                self.place.shared.tasks.started(&self.place.backend.name, &task.id, call);
            }
            (Some(call), _) if outcome.result_type == ResultType::InputRequired => call.neutral(),
            (Some(call), _) => self.judge(&call, answer),
            (None, Some(task)) => {
                if let Some(call) = self.task_over(task) {
                    call.judge(Reading::of_answer(&self.head, answer));
                }
            }
            (None, None) => {}
        }
    }

    fn judge(&mut self, call: &Waiting, answer: Answer) {
        let id = answer.id.clone().unwrap_or_else(|| call.id.to_string());
        let judged = call.judge(Reading::of_answer(&self.head, answer).with_log(&self.log));
        if let Some(judged) = judged.filter(|judged| self.head.format == Format::EventStream && judged.provider_left())
        {
            let message = reply::tool_result(&id, &judged.failed_words(), &judged.facts.json());
            self.instead = Some(reply::event(&message));
        }
    }

    /// The call that an answer belongs to: one of this exchange, or one of the session whose own stream has ended.
    fn call_for(&mut self, id: Option<&str>, is_error: bool) -> Option<Arc<Waiting>> {
        let own = match id {
            Some(id) => self.expected.iter().position(|expected| *expected.id() == *id),
            // An error without an id answers the one call there is: nothing else was asked here.
            None => (self.expected.len() == 1 && is_error).then_some(0),
        };
        if let Some(at) = own {
            let expected = self.expected.swap_remove(at);
            self.forget(&expected);
            return Some(expected.call);
        }
        let session = self.place.session.as_ref()?;
        self.place.shared.inflight.remove(&self.place.backend.name, session, id?)
    }

    fn forget(&self, expected: &Expected) {
        if !expected.is_task {
            self.place.shared.inflight.forget(&expected.call);
        }
    }

    /// The call behind a task that tells of its end. A task that was cancelled says nothing about its tool; any other stays
    /// where it is until its end is known.
    fn task_over(&self, task: &Task) -> Option<Arc<Waiting>> {
        let over = || self.place.shared.tasks.over(&self.place.backend.name, &task.id);
        if task.end.is_some() {
            return over();
        }
        if task.status == TaskStatus::Cancelled
            && let Some(call) = over()
        {
            call.neutral();
        }
        None
    }

    fn endpoint(&mut self, url: &str) {
        let Some(stream) = &mut self.stream else { return };
        let session: Arc<str> = Backend::endpoint_of(&self.path, url).into();
        stream.answers(&session);
        self.place = Arc::new(Place { session: Some(session), ..Place::clone(&self.place) });
    }

    /// Something that is no MCP message: for a call that was posted here, that is the answer. Neither an accepted message
    /// nor an event that means nothing is one.
    fn trouble(&mut self, trouble: &Trouble) {
        if self.head.format != Format::EventStream && self.head.status != StatusCode::ACCEPTED {
            self.judge_rest(|head| Reading::of_trouble(head, trouble.clone()));
        }
    }

    /// Judges what has not been answered; gives the last of it, for the words to its caller.
    fn judge_rest(&mut self, reading: impl Fn(&Head) -> Reading) -> Option<(Box<str>, Judged)> {
        let mut last = None;
        for expected in std::mem::take(&mut self.expected) {
            self.forget(&expected);
            if expected.is_task {
                continue;
            }
            if let Some(judged) = expected.call.judge(reading(&self.head).with_log(&self.log)) {
                last = Some((Box::from(expected.id()), judged));
            }
        }
        last
    }

    fn complete(&mut self) -> Option<Bytes> {
        if self.decoder.is_unreadable() && !self.expected.is_empty() {
            // Not judged: nobody knows what it says.
            self.place.backend.metrics.unjudged(Unjudged::Encoding);
            self.abandon();
            return None;
        }
        if self.head.format == Format::EventStream {
            let fault = Fault::upstream(TransportFault::StreamEnded, true, "the stream ended without the answer");
            return self.stream_over(&fault);
        }
        if let Some(mut reader) = self.reader.take() {
            let mut seen = Vec::new();
            reader.finish(|item| seen.push(item));
            seen.into_iter().for_each(|item| self.see(item));
        }
        if self.head.status == StatusCode::ACCEPTED {
            // The answer comes on a stream of the session; the table holds the call until then.
            self.expected.clear();
        } else {
            let fault = Fault::upstream(TransportFault::Protocol, true, "the answer has another id or none");
            self.judge_rest(|head| Reading::of_fault(Some(head), &fault));
        }
        None
    }

    fn read(&mut self, data: &[u8]) {
        let Some(mut reader) = self.reader.take() else { return };
        let mut seen = Vec::new();
        reader.push(data, |item| seen.push(item));
        self.reader = Some(reader);
        seen.into_iter().for_each(|item| self.see(item));
    }

    /// Whether the client will ask for the rest of the stream (`Last-Event-ID`).
    fn is_resumable(&self) -> bool {
        self.has_event_id && self.place.session.is_some()
    }

    fn broken(&mut self, fault: &Fault) -> Option<Bytes> {
        match (fault.side, self.head.format) {
            (Side::Downstream, _) => {
                self.abandon();
                None
            }
            // Ending well makes the client resume; an error would not.
            (Side::Upstream, Format::EventStream) => {
                let resumes = self.is_resumable();
                self.stream_over(fault).or_else(|| resumes.then(Bytes::new))
            }
            (Side::Proxy(Cause::Drain), Format::EventStream) => self.cut_short(fault),
            (Side::Proxy(_), _) => {
                self.abandon();
                None
            }
            (Side::Upstream, _) => {
                self.judge_rest(|head| Reading::of_fault(Some(head), fault));
                None
            }
        }
    }

    /// Downstream went away. What it can still ask for elsewhere goes on; the rest is nobody's any more.
    fn abandon(&mut self) {
        let resumable = self.is_resumable();
        for expected in std::mem::take(&mut self.expected) {
            if !resumable && !expected.is_task {
                self.forget(&expected);
                expected.call.abandon();
            }
        }
    }
}

impl BodyObserver for Observer {
    fn on_data(&mut self, data: &Bytes) {
        if self.may_replace() {
            self.read_lines(data);
            return;
        }
        let mut decoder = std::mem::replace(&mut self.decoder, Decoder::Unreadable);
        decoder.push(data, |decoded| self.read(decoded));
        self.decoder = decoder;
    }

    fn replacement(&mut self) -> Option<Bytes> {
        self.replacement.take()
    }

    fn on_end(&mut self, end: End) -> Option<Bytes> {
        let last = match end {
            End::Complete => {
                let last = self.complete();
                self.after_held(last)
            }
            End::Broken(fault) => {
                let fault = self.place.shared.blame(fault);
                self.broken(&fault).and_then(|last| self.after_held(Some(last)))
            }
            End::Dropped => {
                self.abandon();
                None
            }
        };
        last.filter(|_| self.adds())
    }

    fn adds(&self) -> bool {
        // Nothing can be put into a compressed stream.
        self.head.format == Format::EventStream && !self.head.headers.contains_key(CONTENT_ENCODING)
    }

    fn at_border(&self) -> bool {
        self.reader.as_ref().is_none_or(Reader::at_boundary)
    }
}
