//! Reading along with the answers of an MCP backend (DESIGN 3 and 4): which calls are answered, how, and where.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};

use super::facts::{self, Effect, Facts, Reason};
use super::inflight::Waiting;
use super::net::{BodyObserver, End, Fault, Side};
use super::reading::Reading;
use super::shared::{Backend, Shared};
use super::streams::StreamHandle;
use super::ticket::Ticket;
use crate::mcp::answer::{Answer, Kind, Reader, ResultType, Seen, Task, TaskEnd, Trouble};
use crate::mcp::{Excerpt, Format, reply};
use crate::rules::TransportFault;

/// What is known of an exchange when its answer's head has arrived.
#[derive(Debug)]
pub(super) struct Head {
    /// The status of the answer.
    pub(super) status: StatusCode,
    /// Its header fields.
    pub(super) headers: HeaderMap,
    /// How its body is framed.
    pub(super) format: Format,
}

/// Where an exchange belongs.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) shared: Arc<Shared>,
    pub(super) backend: Arc<Backend>,
    /// The session, if there is one: answers and cancellations of other exchanges are matched by it.
    pub(super) session: Option<Arc<str>>,
}

/// The observer of one answer of an MCP backend.
#[derive(Debug)]
pub(super) struct Observer {
    place: Place,
    head: Head,
    /// Calls that were posted in this exchange and may be answered here.
    calls: Vec<Arc<Waiting>>,
    /// For an open stream that may be told things.
    stream: Option<StreamHandle>,
    reader: Option<Reader>,
    resumable: bool,
}

impl Observer {
    pub(super) fn new(place: Place, head: Head, calls: Vec<Arc<Waiting>>, stream: Option<StreamHandle>) -> Observer {
        let reader = Reader::new(head.format, place.shared.limits.failure_text);
        Observer { place, head, calls, stream, reader: Some(reader), resumable: false }
    }

    fn see(&mut self, seen: Seen) {
        match seen {
            Seen::Answer(answer) => self.answer(&answer),
            Seen::EventId(_) => self.resumable = true,
            Seen::Endpoint(url) => self.endpoint(&url),
            Seen::Notification(notification) => {
                if let Some(task) = notification.task.filter(|task| task.status.is_terminal()) {
                    self.task_over(&task, None);
                }
            }
            Seen::Trouble(trouble) => self.trouble(&trouble),
            Seen::Request(_) => {}
        }
    }

    fn answer(&mut self, answer: &Answer) {
        if let Kind::Result(outcome) = &answer.kind {
            if outcome.tools_list_changed {
                self.place.backend.announces_tools.store(true, Ordering::Relaxed);
            }
            if let Some(task) = outcome.task.as_ref().filter(|task| !task.created && task.status.is_terminal()) {
                self.task_over(task, Some(answer));
            }
        }
        let Some(ticket) = self.ticket_for(answer) else { return };
        match &answer.kind {
            Kind::Result(outcome) if outcome.task.as_ref().is_some_and(|task| task.created) => {
                if let Some(task) = &outcome.task {
                    self.place.shared.tasks.started(&self.place.backend.name, &task.id, ticket);
                }
            }
            Kind::Result(outcome) if outcome.result_type == ResultType::InputRequired => ticket.neutral(),
            _ => {
                ticket.judge(Reading::of_answer(&self.head, answer));
            }
        }
    }

    /// The call that an answer belongs to: one of this exchange, or one of the session whose own stream has ended.
    fn ticket_for(&mut self, answer: &Answer) -> Option<Ticket> {
        let own = match &answer.id {
            Some(id) => self.calls.iter().position(|call| *call.id == **id),
            None if self.calls.len() == 1 && matches!(answer.kind, Kind::Error(_)) => Some(0),
            None => None,
        };
        if let Some(at) = own {
            let call = self.calls.swap_remove(at);
            self.forget(&call);
            return call.take();
        }
        let session = self.place.session.as_ref()?;
        let shared = &self.place.shared;
        shared.inflight.remove(&self.place.backend.name, session, answer.id.as_deref()?)?.take()
    }

    fn forget(&self, call: &Waiting) {
        if let Some(session) = &self.place.session {
            self.place.shared.inflight.remove(&self.place.backend.name, session, &call.id);
        }
    }

    /// A task has come to its end: now its call is judged, once (DESIGN 4).
    fn task_over(&self, task: &Task, answer: Option<&Answer>) {
        let carried = match (&task.end, answer) {
            (Some(_), Some(_)) => true,
            (None, _) => task.status == crate::mcp::answer::TaskStatus::Cancelled,
            (Some(_), None) => true,
        };
        if !carried {
            return;
        }
        let Some(ticket) = self.place.shared.tasks.over(&self.place.backend.name, &task.id) else { return };
        match (&task.end, answer) {
            (Some(TaskEnd::Error(error)), _) => {
                ticket.judge(Reading::of_error(&self.head, error));
            }
            (Some(TaskEnd::Result { is_error }), answer) => {
                ticket.judge(Reading::of_task(&self.head, *is_error, answer));
            }
            (None, _) => ticket.neutral(),
        }
    }

    fn endpoint(&mut self, url: &str) {
        let Some(stream) = &mut self.stream else { return };
        let session: Arc<str> = self.place.backend.endpoint_of(url).into();
        stream.answers(&session);
        self.place.session = Some(session);
    }

    /// Something that is no MCP message: for a call that was posted here, that is the answer.
    fn trouble(&mut self, trouble: &Trouble) {
        // Neither an accepted message nor an event that means nothing is an answer.
        if self.head.format == Format::EventStream || self.head.status == StatusCode::ACCEPTED {
            return;
        }
        self.judge_rest(|head| Reading::of_body(head, &trouble.text));
    }

    fn judge_rest(&mut self, reading: impl Fn(&Head) -> Reading) -> Option<Ended> {
        let mut last = None;
        for call in std::mem::take(&mut self.calls) {
            self.forget(&call);
            if let Some(ticket) = call.take() {
                let tool = Arc::clone(ticket.tool());
                let facts = ticket.judge(reading(&self.head));
                last = Some(Ended { id: call.id.clone(), tool, facts });
            }
        }
        last
    }

    fn complete(&mut self) -> Option<Bytes> {
        self.finish_reader();
        if self.head.status == StatusCode::ACCEPTED {
            // The old transport: the answer comes on the session's stream.
            self.calls.clear();
            return None;
        }
        if self.head.format == Format::EventStream {
            return self.stream_over(&Fault::upstream(TransportFault::StreamEnded, true, "the stream ended without the answer"));
        }
        let fault = Fault::upstream(TransportFault::Protocol, true, "the answer has another id or none");
        self.judge_rest(|head| Reading::of_fault(Some(head), &fault));
        None
    }

    /// A stream ended before the answer. If it can be resumed the client will, and the answer comes elsewhere; else the
    /// client gets an answer from us, as the last event.
    fn stream_over(&mut self, fault: &Fault) -> Option<Bytes> {
        if self.resumable && self.place.session.is_some() {
            self.calls.clear();
            return None;
        }
        let before = self.reader.as_ref().map(Reader::abandon).unwrap_or_default();
        let ended = self.judge_rest(|head| Reading::of_fault(Some(head), fault))?;
        let words = ended.facts.unreachable_words(&ended.tool, Effect::Unknown);
        let policy = self.place.shared.tools.policy(&self.place.backend.name, &ended.tool);
        let words = facts::with_advice(words, policy.advice.as_deref(), None);
        let event = reply::event(&reply::tool_result(&ended.id, &words, &ended.facts.json()));
        self.place.shared.telemetry.answered(&self.place.backend.name, &ended.tool, Reason::Unreachable.as_str());
        Some(Bytes::from([before, &event].concat()))
    }

    fn broken(&mut self, fault: &Fault) -> Option<Bytes> {
        if fault.side == Side::Downstream {
            self.abandon();
            return None;
        }
        if self.head.format == Format::EventStream {
            let answer = self.stream_over(fault);
            let resumes = self.resumable && self.place.session.is_some();
            // Ending well tells the client to resume; an error would not.
            return answer.or_else(|| resumes.then(Bytes::new));
        }
        self.judge_rest(|head| Reading::of_fault(Some(head), fault));
        None
    }

    fn abandon(&mut self) {
        for call in std::mem::take(&mut self.calls) {
            if !(self.resumable && self.place.session.is_some()) {
                self.forget(&call);
                drop(call.take());
            }
        }
    }

    fn finish_reader(&mut self) {
        if let Some(reader) = self.reader.take() {
            let mut seen = Vec::new();
            let boundary = Reader::new(self.head.format, 0);
            reader.finish(|item| seen.push(item));
            self.reader = Some(boundary);
            seen.into_iter().for_each(|item| self.see(item));
        }
    }
}

struct Ended {
    id: Box<str>,
    tool: Arc<str>,
    facts: Facts,
}

impl BodyObserver for Observer {
    fn on_data(&mut self, data: &Bytes) {
        let Some(mut reader) = self.reader.take() else { return };
        let mut seen = Vec::new();
        reader.push(data, |item| seen.push(item));
        self.reader = Some(reader);
        seen.into_iter().for_each(|item| self.see(item));
    }

    fn on_end(&mut self, end: End) -> Option<Bytes> {
        match end {
            End::Complete => self.complete(),
            End::Broken(fault) => self.broken(&fault),
            End::Dropped => {
                self.abandon();
                None
            }
        }
    }

    fn adds(&self) -> bool {
        self.head.format == Format::EventStream
    }

    fn at_border(&self) -> bool {
        self.reader.as_ref().is_none_or(Reader::at_boundary)
    }
}

/// The observer of an HTTP tool's answer.
#[derive(Debug)]
pub(super) struct HttpObserver {
    ticket: Option<Ticket>,
    head: Head,
    text: Option<crate::rules::TextCollector>,
}

impl HttpObserver {
    /// Reads the body only if a rule may have to look at it.
    pub(super) fn new(ticket: Ticket, head: Head, reads_body: bool, bound: usize) -> HttpObserver {
        let text = reads_body.then(|| crate::rules::TextCollector::new(bound));
        HttpObserver { ticket: Some(ticket), head, text }
    }

    fn judge(&mut self, fault: Option<&Fault>) {
        let Some(ticket) = self.ticket.take() else { return };
        let text = self.text.take().map(crate::rules::TextCollector::finish).unwrap_or_default();
        ticket.judge(Reading::of_http(&self.head, text, fault));
    }
}

impl BodyObserver for HttpObserver {
    fn on_data(&mut self, data: &Bytes) {
        if let Some(text) = &mut self.text {
            text.push(data);
        }
    }

    fn on_trailers(&mut self, trailers: &HeaderMap) {
        self.head.headers.extend(trailers.clone());
    }

    fn on_end(&mut self, end: End) -> Option<Bytes> {
        match end {
            End::Complete => self.judge(None),
            End::Broken(fault) if fault.side == Side::Upstream => self.judge(Some(&fault)),
            End::Broken(_) | End::Dropped => drop(self.ticket.take()),
        }
        None
    }
}

/// Text of an excerpt, as the rules match it.
pub(super) fn text_of(excerpt: &Excerpt) -> String {
    excerpt.text().into_owned()
}
