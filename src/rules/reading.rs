//! Fills an [`Exchange`] from what was read of an answer: MCP messages, what stands in their place, bodies of HTTP tools.

use serde_json::Value;

use super::envelope::{self, ENVELOPE_BOUND};
use super::exchange::{Answer, BackendKind, Exchange, Fault, JSON_BOUND, LOG_BOUND, TEXT_BOUND};
use super::text::bounded;
use super::vocabulary::TransportFault;
use crate::mcp::Excerpt;
use crate::mcp::answer::{self, Kind, ResultType, TaskEnd, Trouble, TroubleKind};

impl Exchange {
    /// Takes the JSON-RPC response to the call. The text of a success is left out unless it is an error envelope or
    /// `keep_success` says that a rule may read it.
    pub fn take_answer(&mut self, answer: &answer::Answer, keep_success: bool) {
        match &answer.kind {
            Kind::Error(error) => {
                let mut message = whole(&answer.text);
                let data = message.as_mut().and_then(|message| taken(message, "/error/data"));
                let said = message.as_ref().and_then(|message| message.pointer("/error/message")?.as_str());
                self.answer = Answer::Error {
                    code: error.code.unwrap_or_default(),
                    message: said.unwrap_or(&error.message).to_owned(),
                    data,
                };
                self.text = if message.is_some() { String::new() } else { answer.text.text().into_owned() };
            }
            Kind::Result(outcome) => self.take_result(outcome, &answer.text, keep_success),
        }
    }

    /// Takes what arrived in place of an MCP message. A status that is no success speaks for itself; on any other the
    /// answer was broken.
    pub fn take_trouble(&mut self, trouble: &Trouble) {
        self.take_body(trouble.text.text().into_owned());
        let broken = self.status.is_none_or(|status| (200..300).contains(&status));
        if broken && self.fault.is_none() {
            let detail = match trouble.kind {
                TroubleKind::ContentType => "the answer is neither JSON nor an event stream",
                TroubleKind::Empty => "the answer is empty",
                TroubleKind::NotJson => "the answer is not JSON",
                TroubleKind::Truncated => "the answer breaks off",
                TroubleKind::NotJsonRpc => "the answer is no JSON-RPC message",
            };
            self.fault = Some(Fault { kind: TransportFault::Protocol, detail: detail.to_owned() });
        }
    }

    /// Takes the body of an HTTP answer, cut to [`TEXT_BOUND`]; as JSON too where it is JSON within [`JSON_BOUND`].
    pub fn take_body(&mut self, body: String) {
        let trimmed = body.trim_start();
        let may_be_json = trimmed.starts_with(['{', '[']) && body.len() <= JSON_BOUND;
        self.json = if may_be_json { serde_json::from_str(trimmed).ok() } else { None };
        let short = body.len() <= ENVELOPE_BOUND && self.kind == BackendKind::Http;
        let good = self.status.is_some_and(|status| (200..300).contains(&status));
        self.disguised =
            short && good && self.json.as_ref().map_or_else(|| envelope::is_error_xml(&body), envelope::is_error);
        self.text = if body.len() <= TEXT_BOUND { body } else { bounded(&body, TEXT_BOUND).into_owned() };
    }

    fn take_result(&mut self, outcome: &answer::Outcome, text: &Excerpt, keep_success: bool) {
        let ended = outcome.task.as_ref().and_then(|task| task.end.as_ref());
        if let Some(TaskEnd::Error(error)) = ended {
            let (code, message) = (error.code.unwrap_or_default(), error.message.clone());
            self.answer = Answer::Error { code, message, data: None };
            return;
        }
        let is_error = outcome.is_error || matches!(ended, Some(TaskEnd::Result { is_error: true }));
        let started = outcome.task.is_some() && ended.is_none();
        let may_disguise = !is_error && !started && may_be_envelope(text);
        let mut message = if is_error || keep_success || may_disguise { whole(text) } else { None };
        self.text = match (&message, is_error) {
            (Some(message), _) => content_text(message),
            (None, true) => text.text().into_owned(),
            (None, false) => String::new(),
        };
        let inner =
            if may_disguise { message.as_ref().and_then(|message| sole_object(message, &self.text)) } else { None };
        self.disguised = inner.as_ref().is_some_and(envelope::is_error);
        if self.disguised {
            self.json = inner;
        } else if !is_error && !keep_success {
            (self.text, message) = (String::new(), None);
        }
        self.answer = Answer::Result {
            is_error,
            result_type: name_of(outcome.result_type),
            task_started: started,
            structured: message.as_mut().and_then(|message| taken(message, "/result/structuredContent")),
        };
    }

    /// Takes what the server logged at level `error` or above, or an error event of its stream, as raw JSON or text.
    pub fn take_log(&mut self, line: &str) {
        if !line.is_empty() && self.log.len() + line.len() <= LOG_BOUND {
            self.log.push_str(line);
            self.log.push('\n');
        }
    }
}

/// Whether a message that is a success by its structure is one whatever it says: it is no error in disguise.
pub fn is_plain_success(message: &[u8], success: &answer::Success<'_>) -> bool {
    message.len() > ENVELOPE_BOUND || success.sole.is_none_or(envelope::is_plainly_data)
}

/// Whether a result without `isError` is worth looking into: short, and it speaks of an error or of no success.
fn may_be_envelope(text: &Excerpt) -> bool {
    let short = text.whole().filter(|bytes| bytes.len() <= ENVELOPE_BOUND);
    short.is_some_and(|bytes| {
        let said = |word: &[u8]| memchr::memmem::find(bytes, word).is_some();
        said(b"rror") || said(b"false") || said(b"tatus")
    })
}

/// The JSON object that is the whole of a result: its one text, or its `structuredContent`, with or without the wrapping
/// `result`.
fn sole_object(message: &Value, text: &str) -> Option<Value> {
    let blocks = message.pointer("/result/content").and_then(Value::as_array).map_or(0, Vec::len);
    match blocks {
        0 => message.pointer("/result/structuredContent").cloned(),
        1 if text.trim_start().starts_with('{') => serde_json::from_str(text.trim()).ok(),
        _ => None,
    }
}

fn name_of(result_type: ResultType) -> Option<String> {
    let name = match result_type {
        ResultType::Absent => return None,
        ResultType::Complete => "complete",
        ResultType::InputRequired => "input_required",
        ResultType::Task => "task",
        ResultType::Other => "other",
    };
    Some(name.to_owned())
}

fn whole(text: &Excerpt) -> Option<Value> {
    text.whole().filter(|bytes| bytes.len() <= JSON_BOUND).and_then(|bytes| serde_json::from_slice(bytes).ok())
}

fn taken(message: &mut Value, pointer: &str) -> Option<Value> {
    message.pointer_mut(pointer).map(Value::take).filter(|value| !value.is_null())
}

/// The text blocks of a result, one after the other; of a result without any, the message itself.
fn content_text(message: &Value) -> String {
    let blocks = ["/result/content", "/result/result/content", "/params/result/content"]
        .iter()
        .find_map(|pointer| message.pointer(pointer)?.as_array());
    let mut text = String::new();
    for block in blocks.into_iter().flatten() {
        let part = block.get("text").or_else(|| block.pointer("/resource/text")).and_then(Value::as_str);
        if let Some(part) = part {
            text.push_str(part);
            text.push('\n');
        }
    }
    match bounded(&text, TEXT_BOUND) {
        std::borrow::Cow::Borrowed(_) => text,
        std::borrow::Cow::Owned(cut) => cut,
    }
}
