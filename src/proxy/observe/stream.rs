//! What the observer may change in a stream of events: an event of ours in place of one of the backend's, a page of the tool
//! list with our words in it, and last words where the stream ends before an answer.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use super::Observer;
use crate::mcp::answer::Reader;
use crate::mcp::{Format, reply};
use crate::proxy::access::Looker;
use crate::proxy::facts::{Effect, Facts, given_up_words};
use crate::proxy::net::{BodyObserver, Cause, Fault};
use crate::proxy::reading::Reading;
use crate::proxy::splice::Splice;
use crate::proxy::streams::StreamHandle;
use crate::telemetry::ListResult;

impl Observer {
    /// Whether the answer to a call of a session tool may come by here.
    pub(super) fn may_replace(&self) -> bool {
        self.adds() && (self.stream.is_some() || self.expected.iter().any(|expected| expected.call.is_session_tool))
    }

    /// Whether a page of the tool list may come by here: then an event goes out only when it is whole.
    fn awaits_pages(&self) -> bool {
        self.stream.as_ref().is_some_and(|stream| !stream.asked.is_empty())
    }

    /// Reads line by line, so that the event that held an answer can be told from those around it and be replaced.
    pub(super) fn read_lines(&mut self, data: &Bytes) {
        let mut held = std::mem::take(&mut self.held);
        let read = held.len();
        let keeps = read > 0 || self.awaits_pages();
        // The beginning of the event went out, unless it was kept back.
        let begun =
            if read > 0 { b"".as_slice() } else { self.reader.as_ref().map(Reader::abandon).unwrap_or_default() };
        let mut is_torn = !begun.is_empty();
        if keeps {
            held.extend_from_slice(data);
        }
        let mut splice = Splice::new(if keeps { held.as_ref() } else { data.as_ref() }, begun, read);
        for line in data.split_inclusive(|byte| matches!(byte, b'\r' | b'\n')) {
            if self.at_border() {
                splice.border();
                is_torn = false;
            }
            self.read(line);
            splice.line(line.len());
            if let Some(event) = self.instead.take().or_else(|| self.annotated(splice.event(), is_torn)) {
                splice.replace(&event);
            }
        }
        let within = !self.at_border() && splice.event().len() <= self.place.shared.config.limits.list;
        if within && !is_torn && self.awaits_pages() {
            let (out, start) = splice.keeping_back();
            self.held = held.split_off(start);
            self.replacement = Some(out);
        } else {
            let out = splice.finish();
            self.replacement = if keeps { Some(out.unwrap_or_else(|| held.freeze())) } else { out };
        }
    }

    /// The event that was read last with our words in it, if it is a page of the tool list. One that is larger than the limit
    /// passes as it is; of such a one a part has gone out already, unless it came all at once.
    fn annotated(&mut self, event: &[u8], is_torn: bool) -> Option<Vec<u8>> {
        let page = self.listed.take()?;
        let asker = Looker {
            shared: &self.place.shared,
            backend: &self.place.backend,
            caller: &page.caller,
            profile: page.profile.as_deref(),
            now: self.place.shared.clock.now(),
        };
        if is_torn || event.len() > self.place.shared.config.limits.list {
            asker.handled(ListResult::TooLarge);
            return None;
        }
        asker.page(page.cursor.as_deref(), event, Format::EventStream).map(Vec::from)
    }

    /// What was kept back, and then these bytes.
    pub(super) fn after_held(&mut self, last: Option<Bytes>) -> Option<Bytes> {
        let mut all: BytesMut = std::mem::take(&mut self.held);
        if all.is_empty() {
            return last;
        }
        all.extend_from_slice(&last.unwrap_or_default());
        Some(all.freeze())
    }

    /// A stream ended before the answer. If it can be resumed the answer comes elsewhere; else the client gets one from us,
    /// as the last event.
    pub(super) fn stream_over(&mut self, fault: &Fault) -> Option<Bytes> {
        if self.is_resumable() {
            self.expected.clear();
            return None;
        }
        let before = self.reader.as_ref().map(Reader::abandon).unwrap_or_default();
        let (id, judged) = self.judge_rest(|head| Reading::of_fault(Some(head), fault))?;
        let words = judged.unreachable_words(fault.kind, Effect::Unknown);
        let event = reply::event(&reply::tool_result(&id, &words, &judged.facts.json()));
        Some(Bytes::from([before, &event].concat()))
    }

    /// The process ends before the stream does. Whoever can resume it does so elsewhere; the others are told what became of
    /// their calls, as the last events.
    pub(super) fn cut_short(&mut self, fault: &Fault) -> Option<Bytes> {
        let mut given_up: Vec<(Box<str>, Arc<str>)> = Vec::new();
        let resumes = self.is_resumable();
        for expected in std::mem::take(&mut self.expected).into_iter().filter(|expected| !resumes && !expected.is_task)
        {
            self.forget(&expected);
            given_up.extend(expected.call.given_up(Cause::Drain).map(|tool| (Box::from(expected.id()), tool)));
        }
        if let Some(session) = self.place.session.as_ref()
            && self.stream.as_ref().is_some_and(StreamHandle::is_of_old_transport)
        {
            for call in self.place.shared.inflight.take_session(&self.place.backend.name, session) {
                given_up.extend(call.given_up(Cause::Drain).map(|tool| (call.id.clone(), tool)));
            }
        }
        let mut last = Vec::new();
        for (id, tool) in given_up {
            if last.is_empty() {
                last.extend_from_slice(self.reader.as_ref().map(Reader::abandon).unwrap_or_default());
            }
            let words = given_up_words(&tool, &fault.detail, Effect::Unknown);
            last.extend(reply::event(&reply::tool_result(&id, &words, &Facts::of_ours().json())));
        }
        Some(Bytes::from(last))
    }
}
