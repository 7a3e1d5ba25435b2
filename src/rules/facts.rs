//! What rules ask of one exchange, worked out once and only when a rule asks.

use std::cell::OnceCell;

use http::HeaderName;
use http::header::WWW_AUTHENTICATE;
use serde_json::Value;

use super::bits::Bits;
use super::codes;
use super::exchange::{Answer, Exchange, TEXT_BOUND};
use super::quoted;
use super::text::{bounded, fold};
use super::words::{PART_BOUND, Words};

/// What stands for the name of the called tool among the words of a reason, so that the words of a name are no reason.
const THIS_TOOL: &str = "thistool";
/// What gRPC says of a failure.
static GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
/// A name without any of these is a single word like any other.
const SEPARATORS: [char; 5] = ['_', '-', '.', '/', ':'];

/// One exchange and what has been found out about it so far.
pub(crate) struct Facts<'a> {
    pub(crate) exchange: &'a Exchange,
    text: OnceCell<String>,
    folded: OnceCell<String>,
    embedded: OnceCell<Vec<Value>>,
    codes_as_written: OnceCell<Vec<String>>,
    codes: OnceCell<Vec<String>>,
    reason: OnceCell<String>,
    statuses: OnceCell<Vec<u16>>,
    quoted_rpc_code: OnceCell<Option<i64>>,
    needles: OnceCell<Bits>,
    reason_needles: OnceCell<Bits>,
    target: OnceCell<bool>,
}

impl<'a> Facts<'a> {
    pub(crate) fn new(exchange: &'a Exchange) -> Facts<'a> {
        Facts {
            exchange,
            text: OnceCell::new(),
            folded: OnceCell::new(),
            embedded: OnceCell::new(),
            codes_as_written: OnceCell::new(),
            codes: OnceCell::new(),
            reason: OnceCell::new(),
            statuses: OnceCell::new(),
            quoted_rpc_code: OnceCell::new(),
            needles: OnceCell::new(),
            reason_needles: OnceCell::new(),
            target: OnceCell::new(),
        }
    }

    /// All text of the failure, within [`TEXT_BOUND`] a part.
    pub(crate) fn text(&self) -> &str {
        self.text.get_or_init(|| whole_text(self.exchange))
    }

    /// The text as needles see it.
    pub(crate) fn folded(&self) -> &str {
        self.folded.get_or_init(|| fold(self.text()))
    }

    /// JSON within the text of an answer that is not JSON itself.
    pub(crate) fn embedded(&self) -> &[Value] {
        self.embedded.get_or_init(|| match self.exchange.json {
            Some(_) => Vec::new(),
            None => codes::embedded_json(self.text()),
        })
    }

    /// The answer's machine codes in their normal form.
    pub(crate) fn codes(&self) -> &[String] {
        self.codes.get_or_init(|| codes::normalized(self.codes_as_written()))
    }

    /// The answer's machine codes as they are written.
    fn codes_as_written(&self) -> &[String] {
        self.codes_as_written.get_or_init(|| codes::of(self.exchange, self.text(), self.embedded()))
    }

    /// The words of the reason that the failure gives: its codes and its texts. Of an error envelope of MCP the codes
    /// alone, since nothing but its structure says that it is an error.
    pub(crate) fn reason(&self) -> &str {
        self.reason.get_or_init(|| {
            let mut words = Words::default();
            // A sentence in a member for codes is none.
            let codes = self.codes_as_written().iter().filter(|code| !code.contains(char::is_whitespace));
            codes.for_each(|code| words.add(code));
            if !self.exchange.is_mcp_envelope() {
                let tool = Some(&*self.exchange.tool).filter(|tool| tool.contains(SEPARATORS));
                parts(self.exchange, |part| {
                    let part = bounded(part, PART_BOUND);
                    let named = |tool: &&str| memchr::memmem::find(part.as_bytes(), tool.as_bytes()).is_some();
                    match tool.filter(named) {
                        Some(tool) => words.add(&part.replace(tool, THIS_TOOL)),
                        None => words.add(&part),
                    }
                });
            }
            words.finish()
        })
    }

    /// The HTTP statuses that the failure quotes: in a member for codes, or in its text where a status stands.
    pub(crate) fn quoted_statuses(&self) -> &[u16] {
        self.statuses.get_or_init(|| {
            let numbers = self.codes().iter().filter_map(|code| code.parse().ok());
            let mut found: Vec<u16> = numbers.filter(|number| (400..600).contains(number)).collect();
            if !self.exchange.is_mcp_envelope() {
                found.extend(quoted::statuses(self.text()));
            }
            found
        })
    }

    /// The JSON-RPC code at the heart of the failure: the innermost that its text quotes.
    pub(crate) fn quoted_rpc_code(&self) -> Option<i64> {
        *self.quoted_rpc_code.get_or_init(|| quoted::rpc_code(self.text()))
    }

    /// Which needles of the table occur in the view; `scan` finds them, in whatever case of ASCII.
    pub(crate) fn needles(&self, view: View, scan: impl FnOnce(&[u8]) -> Bits) -> &Bits {
        match view {
            // Capitals of ASCII are the scan's to fold.
            View::Text if self.text().is_ascii() => self.needles.get_or_init(|| scan(self.text().as_bytes())),
            View::Text => self.needles.get_or_init(|| scan(self.folded().as_bytes())),
            View::Reason => self.reason_needles.get_or_init(|| scan(self.reason().as_bytes())),
        }
    }

    /// The bytes over which regexes of the view run.
    pub(crate) fn bytes(&self, view: View) -> &[u8] {
        match view {
            View::Text => self.text().as_bytes(),
            View::Reason => self.reason().as_bytes(),
        }
    }

    /// Whether the failure names a host that the arguments name too and that is not the backend's own.
    pub(crate) fn target(&self) -> bool {
        *self.target.get_or_init(|| {
            let own = self.exchange.backend_host.as_deref();
            let mut others = self.exchange.targets.iter().filter(|host| Some(host.as_str()) != own);
            others.any(|host| names_host(self.folded(), host))
        })
    }

    /// The value behind a JSON pointer: in the body, else in `structuredContent`, else in the error's `data`.
    pub(crate) fn pointer(&self, pointer: &str) -> Option<&Value> {
        let in_answer = match &self.exchange.answer {
            Answer::Result { structured, .. } => structured.as_ref(),
            Answer::Error { data, .. } => data.as_ref(),
            Answer::None => None,
        };
        let body = self.exchange.json.as_ref().and_then(|body| body.pointer(pointer));
        body.or_else(|| in_answer.and_then(|value| value.pointer(pointer)))
    }
}

/// Two forms of a failure that are searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    /// Its text.
    Text,
    /// The words of its reason.
    Reason,
}

fn whole_text(exchange: &Exchange) -> String {
    let mut text = String::with_capacity(exchange.text.len().min(TEXT_BOUND) + 64);
    parts(exchange, |part| {
        text.push_str(&bounded(part, TEXT_BOUND));
        text.push('\n');
    });
    text
}

/// Each part of a failure that has text in it. What was logged speaks only where no answer does.
fn parts(exchange: &Exchange, mut take: impl FnMut(&str)) {
    let mut answered = false;
    let mut add = |part: &str| {
        if !part.is_empty() {
            answered |= exchange.fault.is_none() && !part.trim().is_empty();
            take(part);
        }
    };
    if let Some(fault) = &exchange.fault {
        add(&fault.detail);
    }
    if let Answer::Error { message, data, .. } = &exchange.answer {
        add(message);
        if let Some(data) = data {
            add(&strings_of(data));
        }
    }
    add(&exchange.text);
    if let Some(body) = exchange.json.as_ref().filter(|_| memchr::memchr(b'\\', exchange.text.as_bytes()).is_some()) {
        add(&strings_of(body));
    }
    if let Some(challenge) = exchange.header(WWW_AUTHENTICATE) {
        add(codes::quoted_parameter(challenge, "error_description").unwrap_or(""));
    }
    add(exchange.header(&GRPC_MESSAGE).unwrap_or(""));
    if !answered {
        take(&exchange.log);
    }
}

/// The texts within a JSON value, unescaped, one a line and within [`TEXT_BOUND`].
fn strings_of(value: &Value) -> String {
    let mut text = String::new();
    let mut pending = vec![value];
    while let Some(value) = pending.pop() {
        match value {
            Value::String(part) if text.len() + part.len() <= TEXT_BOUND => {
                text.push_str(part);
                text.push('\n');
            }
            Value::Array(items) => pending.extend(items.iter().rev()),
            Value::Object(members) => pending.extend(members.values().rev()),
            _ => {}
        }
    }
    text
}

/// Whether `host` occurs in the text as a host, not as a part of a longer name.
fn names_host(text: &str, host: &str) -> bool {
    let part_of_name = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    text.match_indices(host).any(|(at, _)| {
        let before = text.get(..at).and_then(|t| t.chars().next_back());
        let after = text.get(at + host.len()..).and_then(|t| t.chars().next());
        !before.is_some_and(|c| part_of_name(c) || c == '.') && !after.is_some_and(part_of_name)
    })
}
