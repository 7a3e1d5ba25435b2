//! What was read of an answer, in the form in which the rules judge it.

use http::HeaderMap;
use serde_json::Value;

use super::net::Fault;
use super::observe::Head;
use crate::mcp::Excerpt;
use crate::mcp::answer::{self, Outcome, RpcError};
use crate::rules::{self, JSON_BOUND};

/// What one call came to, as far as it was read.
#[derive(Clone, Debug, Default)]
pub(super) struct Reading {
    pub(super) status: Option<u16>,
    pub(super) headers: HeaderMap,
    pub(super) answer: rules::Answer,
    pub(super) text: String,
    pub(super) json: Option<Value>,
    pub(super) fault: Option<rules::Fault>,
}

impl Reading {
    /// A JSON-RPC response.
    pub(super) fn of_answer(head: &Head, answer: &answer::Answer) -> Reading {
        match &answer.kind {
            answer::Kind::Result(outcome) => Reading::of_result(head, outcome.is_error, Some(outcome), &answer.text),
            answer::Kind::Error(error) => Reading { answer: error_of(error, &answer.text), ..Reading::under(head) },
        }
    }

    /// The end of a task, as the answer that tells of it carries it.
    pub(super) fn of_task_result(head: &Head, is_error: bool, text: &Excerpt) -> Reading {
        Reading::of_result(head, is_error, None, text)
    }

    /// The end of a task with an error.
    pub(super) fn of_error(head: &Head, error: &RpcError) -> Reading {
        Reading { answer: error_of(error, &Excerpt::default()), ..Reading::under(head) }
    }

    /// A body that is no MCP message.
    pub(super) fn of_body(head: &Head, text: &Excerpt) -> Reading {
        Reading::of_http(head, text.text().into_owned(), None)
    }

    /// The answer of an HTTP tool.
    pub(super) fn of_http(head: &Head, text: String, fault: Option<&Fault>) -> Reading {
        let json = if text.len() <= JSON_BOUND { serde_json::from_str(&text).ok() } else { None };
        Reading { text, json, fault: fault.map(fault_of), ..Reading::under(head) }
    }

    /// A body under a status of failure that was held whole: a JSON-RPC response if it is one.
    pub(super) fn of_mcp_body(head: &Head, bytes: &[u8], text: String) -> Reading {
        let mut reader = answer::Reader::new(head.format, bytes.len());
        let mut found = None;
        let mut see = |seen| {
            if let answer::Seen::Answer(answer) = seen {
                found = Some(answer);
            }
        };
        reader.push(bytes, &mut see);
        reader.finish(&mut see);
        match found {
            Some(answer) => Reading::of_answer(head, &answer),
            None => Reading::of_http(head, text, None),
        }
    }

    /// No complete answer; `head` if at least that arrived.
    pub(super) fn of_fault(head: Option<&Head>, fault: &Fault) -> Reading {
        Reading { fault: Some(fault_of(fault)), ..head.map(Reading::under).unwrap_or_default() }
    }

    fn of_result(head: &Head, is_error: bool, outcome: Option<&Outcome>, text: &Excerpt) -> Reading {
        let result_type = outcome.and_then(|outcome| name_of(outcome.result_type));
        // The text of a success is not looked at, so it is not even taken apart.
        let message = if is_error { whole(text) } else { None };
        let result = message.as_ref().and_then(|message| message.get("result"));
        let structured = result.and_then(|result| result.get("structuredContent")).cloned();
        let answer = rules::Answer::Result { is_error, result_type, task_started: false, structured };
        let text = match (is_error, result) {
            (false, _) => String::new(),
            (true, Some(result)) => content_text(result),
            (true, None) => text.text().into_owned(),
        };
        Reading { answer, text, ..Reading::under(head) }
    }

    fn under(head: &Head) -> Reading {
        Reading { status: Some(head.status.as_u16()), headers: head.headers.clone(), ..Reading::default() }
    }
}

fn fault_of(fault: &Fault) -> rules::Fault {
    rules::Fault { kind: fault.kind, detail: fault.detail.clone() }
}

fn error_of(error: &RpcError, text: &Excerpt) -> rules::Answer {
    let data = whole(text).and_then(|message| message.pointer("/error/data").cloned());
    rules::Answer::Error { code: error.code.unwrap_or_default(), message: error.message.clone(), data }
}

fn whole(text: &Excerpt) -> Option<Value> {
    text.whole().filter(|bytes| bytes.len() <= JSON_BOUND).and_then(|bytes| serde_json::from_slice(bytes).ok())
}

/// The texts of a result's content, one after the other.
fn content_text(result: &Value) -> String {
    let blocks = result.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let texts = blocks.iter().filter_map(|block| {
        let own = block.get("text").and_then(Value::as_str);
        own.or_else(|| block.pointer("/resource/text").and_then(Value::as_str))
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn name_of(kind: answer::ResultType) -> Option<String> {
    let name = match kind {
        answer::ResultType::Absent => return None,
        answer::ResultType::Complete => "complete",
        answer::ResultType::InputRequired => "input_required",
        answer::ResultType::Task => "task",
        answer::ResultType::Other => "other",
    };
    Some(name.to_owned())
}
