//! What rules ask of one exchange, worked out once and only when a rule asks.

use std::cell::OnceCell;

use serde_json::Value;

use super::bits::Bits;
use super::codes;
use super::exchange::{Answer, Exchange, TEXT_BOUND};
use super::text::{bounded, fold};

/// One exchange and what has been found out about it so far.
pub(crate) struct Facts<'a> {
    pub(crate) exchange: &'a Exchange,
    text: OnceCell<String>,
    folded: OnceCell<String>,
    codes: OnceCell<Vec<String>>,
    needles: OnceCell<Bits>,
    target: OnceCell<bool>,
}

impl<'a> Facts<'a> {
    pub(crate) fn new(exchange: &'a Exchange) -> Facts<'a> {
        Facts {
            exchange,
            text: OnceCell::new(),
            folded: OnceCell::new(),
            codes: OnceCell::new(),
            needles: OnceCell::new(),
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

    /// The answer's machine codes in their normal form.
    pub(crate) fn codes(&self) -> &[String] {
        self.codes.get_or_init(|| codes::of(self.exchange, self.text()))
    }

    /// Which needles of the table occur; `scan` finds them.
    pub(crate) fn needles(&self, scan: impl FnOnce(&str) -> Bits) -> &Bits {
        self.needles.get_or_init(|| scan(self.folded()))
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

fn whole_text(exchange: &Exchange) -> String {
    let mut text = String::new();
    let mut add = |part: &str| {
        if !part.is_empty() {
            text.push_str(&bounded(part, TEXT_BOUND));
            text.push('\n');
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
    if let Some(body) = exchange.json.as_ref().filter(|_| exchange.text.contains('\\')) {
        add(&strings_of(body));
    }
    for name in ["www-authenticate", "grpc-message"] {
        add(exchange.header(name).unwrap_or(""));
    }
    text
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
