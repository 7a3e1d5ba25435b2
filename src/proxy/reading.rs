//! What was read of an answer, until the rules get to see it as part of their exchange.

use http::HeaderMap;

use super::net::{Fault, Whole};
use super::observe::Head;
use crate::mcp::answer::{Answer, Reader, Seen, TaskEnd, Trouble};
use crate::rules::{self, Exchange};

/// What one call came to, as far as it was read.
#[derive(Clone, Debug, Default)]
pub(super) struct Reading {
    status: Option<u16>,
    headers: HeaderMap,
    what: What,
    fault: Option<rules::Fault>,
    log: String,
    whole: Option<Whole>,
}

#[derive(Clone, Debug, Default)]
enum What {
    #[default]
    Nothing,
    Answer(Box<Answer>),
    TaskEnd(TaskEnd),
    Trouble(Trouble),
    Body(String),
}

impl Reading {
    /// A JSON-RPC response.
    pub(super) fn of_answer(head: &Head, answer: Answer) -> Reading {
        Reading::under(head, What::Answer(Box::new(answer)))
    }

    /// The end of a task, told by something else than a response.
    pub(super) fn of_task_end(head: &Head, end: TaskEnd) -> Reading {
        Reading::under(head, What::TaskEnd(end))
    }

    /// Something that is no MCP message, in place of one.
    pub(super) fn of_trouble(head: &Head, trouble: Trouble) -> Reading {
        Reading::under(head, What::Trouble(trouble))
    }

    /// The answer of an HTTP tool.
    pub(super) fn of_http(head: &Head, text: String, fault: Option<&Fault>) -> Reading {
        Reading { fault: fault.map(fault_of), ..Reading::under(head, What::Body(text)) }
    }

    /// A body that was held whole: a JSON-RPC response if it is one.
    pub(super) fn of_mcp_body(head: &Head, bytes: &[u8]) -> Reading {
        let mut reader = Reader::new(head.format, bytes.len());
        let mut seen = Vec::new();
        reader.push(bytes, |item| seen.push(item));
        reader.finish(|item| seen.push(item));
        let what = seen.into_iter().find_map(|item| match item {
            Seen::Answer(answer) => Some(What::Answer(answer)),
            Seen::Trouble(trouble) => Some(What::Trouble(trouble)),
            _ => None,
        });
        Reading::under(head, what.unwrap_or_default())
    }

    /// No complete answer; `head` if at least that arrived.
    pub(super) fn of_fault(head: Option<&Head>, fault: &Fault) -> Reading {
        let under = head.map(|head| Reading::under(head, What::Nothing)).unwrap_or_default();
        Reading { fault: Some(fault_of(fault)), ..under }
    }

    /// With what the server logged while it worked on the call.
    pub(super) fn with_log(self, log: &str) -> Reading {
        Reading { log: log.to_owned(), ..self }
    }

    /// The answer itself, where all of it came under a head that came before.
    pub(super) fn whole(&self) -> Option<Whole> {
        self.whole.clone()
    }

    /// Puts what was read into the exchange that the rules judge.
    ///
    /// `keep_success`: a rule may read the body of a success.
    pub(super) fn fill(self, exchange: &mut Exchange, keep_success: impl FnOnce(&Exchange) -> bool) {
        exchange.status = self.status;
        exchange.headers = self.headers;
        exchange.fault = self.fault;
        exchange.take_log(&self.log);
        match self.what {
            What::Nothing => {}
            What::Answer(answer) => {
                let keep = keep_success(exchange);
                exchange.take_answer(&answer, keep);
            }
            What::Trouble(trouble) => exchange.take_trouble(&trouble),
            What::Body(text) => exchange.take_body(text),
            What::TaskEnd(end) => exchange.answer = answer_of(end),
        }
    }

    fn under(head: &Head, what: What) -> Reading {
        Reading {
            status: Some(head.status.as_u16()),
            headers: head.headers.clone(),
            what,
            fault: None,
            log: String::new(),
            whole: head.whole.clone(),
        }
    }
}

fn answer_of(end: TaskEnd) -> rules::Answer {
    match end {
        TaskEnd::Result { is_error } => {
            rules::Answer::Result { is_error, result_type: None, task_started: false, structured: None }
        }
        TaskEnd::Error(error) => {
            rules::Answer::Error { code: error.code.unwrap_or_default(), message: error.message, data: None }
        }
    }
}

fn fault_of(fault: &Fault) -> rules::Fault {
    rules::Fault { kind: fault.kind, detail: fault.detail.clone() }
}
