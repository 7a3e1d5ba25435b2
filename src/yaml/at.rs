//! One value of a file: its place, its words in messages, and the readers of lists, maps and alternatives.

use std::sync::Arc;

use serde_json::json;

use super::fields::Fields;
use super::parse::shorten;
use super::problem::Problem;
use super::schema::Sketch;
use super::sheet::Sheet;
use super::source::{Place, Source};
use super::tree::{Entry, Kind, Node, Value};

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

    /// Notes what is taken where a reader looks at the node itself.
    pub fn any(&self, schema: impl FnOnce() -> serde_json::Value) {
        self.draw(schema);
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
