//! One value of a file, and the readers that turn it into what a program can use, or into a problem.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use crate::glob::{Glob, MAX_PATTERN};

use super::fields::Fields;
use super::parse::{parse, shorten};
use super::problem::{Problem, Report};
use super::schema::{self, Sketch};
use super::source::{Place, Source};
use super::tree::{Entry, Kind, Node, Value};
use super::units::{duration_text, parse_duration, parse_size, size_text};

/// So many problems of one file are kept; a hostile file may hold one in every byte.
const PROBLEMS_MAX: usize = 1_000;

/// Where the problems of one file gather while it is read.
#[derive(Debug)]
pub(super) struct Sheet {
    source: Arc<Source>,
    problems: RefCell<Vec<Problem>>,
}

impl Sheet {
    pub(super) fn new(source: &Arc<Source>) -> Sheet {
        Sheet { source: source.clone(), problems: RefCell::default() }
    }

    pub(super) fn parse(&self) -> Option<Arc<Node>> {
        parse(&self.source, self)
    }

    pub(super) fn push(&self, problem: Problem) {
        let mut problems = self.problems.borrow_mut();
        if problems.len() < PROBLEMS_MAX {
            problems.push(problem);
        }
    }

    pub(super) fn into_report(self) -> Report {
        let mut report = Report::new();
        self.problems.into_inner().into_iter().for_each(|problem| report.push(problem));
        report.sort();
        report
    }
}

/// A value at its place in a file. Each reader gives the value, or reports a problem and gives `None`.
///
/// While a schema is drawn there is no value: readers note what they would take, call what they are given once, and
/// answer `None`. A reader must therefore take all its keys before it gives up on one of them, and not decide which it
/// takes by values it has read.
#[derive(Clone, Copy, Debug)]
pub struct At<'a> {
    pub(super) sheet: &'a Sheet,
    pub(super) node: Option<&'a Node>,
    pub(super) sketch: Option<&'a Sketch>,
    pub(super) key: Option<&'a Entry>,
    pub(super) item: bool,
}

impl<'a> At<'a> {
    pub(super) fn new(sheet: &'a Sheet, root: &'a Node) -> At<'a> {
        At { sheet, node: Some(root), sketch: None, key: None, item: false }
    }

    pub(super) fn drawing(sheet: &'a Sheet, sketch: &'a Sketch) -> At<'a> {
        At { sheet, node: None, sketch: Some(sketch), key: None, item: false }
    }

    /// Where the value stands.
    pub fn place(&self) -> Place {
        self.node.map_or(Place::START, |node| node.place)
    }

    /// The file.
    pub fn source(&self) -> &'a Arc<Source> {
        &self.sheet.source
    }

    /// The node as it was parsed; `None` while a schema is drawn.
    pub fn node(&self) -> Option<&'a Node> {
        self.node
    }

    /// The value as it was parsed, for formats that must look first; `None` while a schema is drawn.
    pub fn value(&self) -> Option<&'a Value> {
        self.node.map(|node| &node.value)
    }

    /// Reports that something is wrong with this value. Gives `None`, to end a reader with.
    pub fn fail<T>(&self, message: impl Into<String>) -> Option<T> {
        self.fail_with(message, |problem| problem)
    }

    /// [`At::fail`] with label or help added.
    pub fn fail_with<T>(&self, message: impl Into<String>, more: impl FnOnce(Problem) -> Problem) -> Option<T> {
        if self.node.is_some() {
            self.sheet.push(more(Problem::new(self.source(), self.place(), message)));
        }
        None
    }

    /// Reports that something is wrong at another place of the file.
    pub fn fail_at<T>(
        &self,
        place: Place,
        message: impl Into<String>,
        more: impl FnOnce(Problem) -> Problem,
    ) -> Option<T> {
        self.sheet.push(more(Problem::new(self.source(), place, message)));
        None
    }

    /// Reports that something is wrong with the key that this value stands under.
    pub fn fail_key<T>(&self, message: impl Into<String>, more: impl FnOnce(Problem) -> Problem) -> Option<T> {
        self.fail_at(self.key.map_or(self.place(), |key| key.place), message, more)
    }

    /// The value's name in messages: its key in backticks.
    pub fn name(&self) -> String {
        match (self.key, self.item) {
            (None, false) => "the file".to_owned(),
            (None, true) => "an item".to_owned(),
            (Some(key), false) => format!("`{}`", shorten(&key.key)),
            (Some(key), true) => format!("an item of `{}`", shorten(&key.key)),
        }
    }

    /// The value as messages may show it: bounded, on one line, and never a secret.
    pub fn found(&self) -> String {
        match self.value() {
            None | Some(Value::Null) => "nothing".to_owned(),
            Some(Value::List(_)) => "a list".to_owned(),
            Some(Value::Map(_)) => "a map".to_owned(),
            Some(_) if self.source().is_secret(self.place()) => "what stands there (not shown)".to_owned(),
            Some(Value::Text(text)) => format!("`{}`", shorten(text)),
            Some(Value::Bool(value)) => format!("`{value}`"),
            Some(Value::Int(value)) => format!("`{value}`"),
            Some(Value::Float(value)) => format!("`{value}`"),
        }
    }

    /// Reports a value of the wrong kind or form; `expected` as in "a duration such as `30s`".
    pub fn wrong<T>(&self, expected: &str) -> Option<T> {
        let message = format!("{} must be {expected}, not {}", self.name(), self.found());
        self.fail_with(message, |problem| match self.value() {
            Some(Value::Null) => problem.help("write a value, or remove the key"),
            _ => problem,
        })
    }

    /// A text. Numbers and `true` are none: they must be quoted, so that `1.10` does not become `1.1`.
    pub fn text(&self) -> Option<Arc<str>> {
        self.draw(|| json!({"type": "string"}));
        match self.value()? {
            Value::Text(text) => Some(text.clone()),
            Value::Bool(_) | Value::Int(_) | Value::Float(_) => self
                .fail_with(format!("{} must be a text, not {}", self.name(), self.found()), |problem| {
                    problem.help("put it in quotes")
                }),
            _ => self.wrong("a text"),
        }
    }

    /// A text of `1..=max` bytes without control characters.
    pub fn line(&self, max: usize) -> Option<Arc<str>> {
        self.draw(|| json!({"type": "string", "minLength": 1, "maxLength": max}));
        let text = self.text()?;
        if text.is_empty() || text.len() > max {
            return self.fail(format!("{} must have 1 to {max} bytes, not {}", self.name(), text.len()));
        }
        if text.chars().any(char::is_control) {
            return self.fail(format!("{} must be one line without control characters", self.name()));
        }
        Some(text)
    }

    /// A text that `parse` understands; `what` as in "a URL such as …", `pattern` says the same to a JSON Schema. An
    /// error of `parse` is appended to the message.
    pub fn parse<T>(&self, what: &str, pattern: &str, parse: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
        self.draw(|| json!({"type": "string", "pattern": pattern}));
        match self.value()? {
            Value::Text(text) => match parse(text) {
                Ok(value) => Some(value),
                Err(why) if why.is_empty() => self.wrong(what),
                Err(why) => self.fail(format!("{} must be {what}, not {}: {why}", self.name(), self.found())),
            },
            _ => self.wrong(what),
        }
    }

    /// `true` or `false`.
    pub fn bool(&self) -> Option<bool> {
        self.draw(|| json!({"type": "boolean"}));
        match self.value()? {
            Value::Bool(value) => Some(*value),
            Value::Text(text) if matches!(&**text, "yes" | "no" | "on" | "off") => self
                .fail_with(format!("{} must be true or false, not {}", self.name(), self.found()), |problem| {
                    problem.help(if matches!(&**text, "yes" | "on") { "write `true`" } else { "write `false`" })
                }),
            _ => self.wrong("true or false"),
        }
    }

    /// A whole number within bounds.
    pub fn int(&self, bounds: RangeInclusive<i64>) -> Option<i64> {
        let (min, max) = (*bounds.start(), *bounds.end());
        self.draw(|| json!({"type": "integer", "minimum": min, "maximum": max}));
        match self.value()? {
            Value::Int(value) if bounds.contains(value) => Some(*value),
            Value::Int(value) => self.fail(format!("{} must be between {min} and {max}, not {value}", self.name())),
            _ => self.wrong(&format!("a whole number between {min} and {max}")),
        }
    }

    /// A whole number within bounds, to count with.
    pub fn count(&self, bounds: RangeInclusive<usize>) -> Option<usize> {
        let bound = |value: usize| i64::try_from(value).unwrap_or(i64::MAX);
        let value = self.int(bound(*bounds.start())..=bound(*bounds.end()))?;
        usize::try_from(value).ok()
    }

    /// A duration within bounds: `30s`, `5m`, `24h`, `250ms`, `1h 30m`, or ISO 8601 such as `PT24H`.
    pub fn duration(&self, bounds: RangeInclusive<Duration>) -> Option<Duration> {
        self.draw(schema::duration);
        let Value::Text(text) = self.value()? else {
            return match self.value()? {
                Value::Int(number) => self.fail_with(
                    format!("{} must be a duration with its unit, not {}", self.name(), self.found()),
                    |problem| problem.help(format!("write `{number}s` for seconds")),
                ),
                _ => self.wrong("a duration such as `30s`, `5m` or `PT24H`"),
            };
        };
        let Some(duration) = parse_duration(text) else {
            return self.wrong("a duration such as `30s`, `5m` or `PT24H`");
        };
        if bounds.contains(&duration) {
            return Some(duration);
        }
        let (min, max) = (duration_text(*bounds.start()), duration_text(*bounds.end()));
        self.fail(format!("{} must be between {min} and {max}, not {}", self.name(), self.found()))
    }

    /// A duration within bounds, or `off`, which is `Some(None)`.
    pub fn duration_or_off(&self, bounds: RangeInclusive<Duration>) -> Option<Option<Duration>> {
        self.draw(|| json!({"anyOf": [{"const": "off"}, schema::duration()]}));
        match self.value()? {
            Value::Text(text) if &**text == "off" => Some(None),
            Value::Bool(false) => self
                .fail_with(format!("{} must be a duration or `off`, not {}", self.name(), self.found()), |problem| {
                    problem.help("write `off`")
                }),
            _ => At { sketch: None, ..*self }.duration(bounds).map(Some),
        }
    }

    /// A size in bytes within bounds: `1MiB`, `64KiB`, or a plain number.
    pub fn size(&self, bounds: RangeInclusive<usize>) -> Option<usize> {
        self.draw(schema::size);
        let size = match self.value()? {
            Value::Int(value) => usize::try_from(*value).ok(),
            Value::Text(text) => parse_size(text),
            _ => None,
        };
        let Some(size) = size else {
            return self.wrong("a size such as `64KiB`, `1MiB` or a number of bytes");
        };
        if bounds.contains(&size) {
            return Some(size);
        }
        let (min, max) = (size_text(*bounds.start()), size_text(*bounds.end()));
        self.fail(format!("{} must be between {min} and {max}, not {}", self.name(), self.found()))
    }

    /// One word of a closed set.
    pub fn word<T: Clone>(&self, words: &[(&'static str, T)]) -> Option<T> {
        let names: Vec<&str> = words.iter().map(|word| word.0).collect();
        self.draw(|| json!({"enum": names}));
        let allowed = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let Value::Text(text) = self.value()? else {
            return self.wrong(&format!("one of {allowed}"));
        };
        if let Some((_, value)) = words.iter().find(|word| word.0 == &**text) {
            return Some(value.clone());
        }
        let message = format!("{} must be one of {allowed}, not {}", self.name(), self.found());
        self.fail_with(message, |problem| match super::fields::nearest(text, names.iter().copied()) {
            Some(name) => problem.label(format!("did you mean `{name}`?")),
            None => problem,
        })
    }

    /// A socket address such as `127.0.0.1:8080` or `[::1]:8080`.
    pub fn socket(&self) -> Option<SocketAddr> {
        self.parse("an address with port such as `127.0.0.1:8080`", "^.+:[0-9]{1,5}$", |text| {
            text.parse()
                .map_err(|_| if text.starts_with(':') { "write `0.0.0.0` for all interfaces" } else { "" }.to_owned())
        })
    }

    /// A name pattern such as `jira_*`.
    pub fn glob(&self) -> Option<Glob> {
        self.draw(|| json!({"type": "string", "minLength": 1, "maxLength": MAX_PATTERN}));
        match self.value()? {
            Value::Text(text) => match Glob::new(text) {
                Ok(glob) => Some(glob),
                Err(why) => self.fail(format!("{} is no name pattern: {why}", self.name())),
            },
            _ => At { sketch: None, ..*self }.text().and(None),
        }
    }

    /// A list, each item read by `item`; `None` if one of them failed.
    pub fn list<T>(&self, item: impl Fn(At<'_>) -> Option<T>) -> Option<Vec<T>> {
        self.draw_within(|sub| {
            item(At::drawing(self.sheet, sub));
            json!({"type": "array", "items": sub.take()})
        });
        let Value::List(items) = self.value()? else {
            return self.wrong("a list");
        };
        let read: Vec<Option<T>> =
            items.iter().map(|node| item(At { node: Some(node), item: true, ..*self })).collect();
        read.into_iter().collect()
    }

    /// A list, or one item that stands for a list of one.
    pub fn one_or_list<T>(&self, item: impl Fn(At<'_>) -> Option<T>) -> Option<Vec<T>> {
        self.draw_within(|sub| {
            item(At::drawing(self.sheet, sub));
            let one = sub.take();
            json!({"anyOf": [one, {"type": "array", "items": one}]})
        });
        match self.value()? {
            Value::List(_) => At { sketch: None, ..*self }.list(item),
            _ => item(*self).map(|one| vec![one]),
        }
    }

    /// A map with keys that `reader` takes one by one; what it does not take is an unknown key.
    pub fn map<T>(&self, reader: impl FnOnce(&Fields<'_>) -> T) -> Option<T> {
        if let Some(sketch) = self.sketch {
            let fields = Fields::new(*self, &[]);
            reader(&fields);
            sketch.draw(fields.into_schema());
            return None;
        }
        let Value::Map(entries) = self.value()? else {
            return self.wrong("a map");
        };
        let fields = Fields::new(*self, entries);
        let value = reader(&fields);
        fields.refuse_unknown();
        Some(value)
    }

    /// A map whose keys are names: each value read by `reader`, in the order of the file. Keys `x-…` are skipped.
    pub fn entries<T>(&self, reader: impl Fn(&Arc<str>, At<'_>) -> Option<T>) -> Option<Vec<(Arc<str>, T)>> {
        self.named_entries(|key| !key.starts_with("x-"), reader)
    }

    /// As [`At::entries`], for names that may well start with `x-`, such as those of header fields.
    pub fn every_entry<T>(&self, reader: impl Fn(&Arc<str>, At<'_>) -> Option<T>) -> Option<Vec<(Arc<str>, T)>> {
        self.named_entries(|_| true, reader)
    }

    fn named_entries<T>(
        &self,
        counts: impl Fn(&str) -> bool,
        reader: impl Fn(&Arc<str>, At<'_>) -> Option<T>,
    ) -> Option<Vec<(Arc<str>, T)>> {
        self.draw_within(|sub| {
            reader(&Arc::from("name"), At::drawing(self.sheet, sub));
            let value = sub.take();
            if counts("x-") {
                json!({"type": "object", "additionalProperties": value})
            } else {
                json!({"type": "object", "patternProperties": {"^x-": {}}, "additionalProperties": value})
            }
        });
        let Value::Map(entries) = self.value()? else {
            return self.wrong("a map");
        };
        let read: Vec<Option<(Arc<str>, T)>> = entries
            .iter()
            .filter(|entry| counts(&entry.key))
            .map(|entry| {
                let at = At { node: Some(&entry.value), key: Some(entry), item: false, ..*self };
                reader(&entry.key, at).map(|value| (entry.key.clone(), value))
            })
            .collect();
        read.into_iter().collect()
    }

    /// A value of one `kind` read by `this`, of any other by `other`: `true` or a text, a number or a list.
    pub fn by_kind<T>(
        &self,
        kind: Kind,
        this: impl FnOnce(At<'_>) -> Option<T>,
        other: impl FnOnce(At<'_>) -> Option<T>,
    ) -> Option<T> {
        if let Some(sketch) = self.sketch {
            let (first, second) = (sketch.within(), sketch.within());
            this(At::drawing(self.sheet, &first));
            other(At::drawing(self.sheet, &second));
            sketch.draw(json!({"anyOf": [first.take(), second.take()]}));
            return None;
        }
        if self.value()?.kind() == kind { this(*self) } else { other(*self) }
    }

    pub(super) fn draw(&self, schema: impl FnOnce() -> serde_json::Value) {
        if let Some(sketch) = self.sketch {
            sketch.draw(schema());
        }
    }

    fn draw_within(&self, schema: impl FnOnce(&Sketch) -> serde_json::Value) {
        if let Some(sketch) = self.sketch {
            let drawn = schema(&sketch.within());
            sketch.draw(drawn);
        }
    }
}
