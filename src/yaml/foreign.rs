//! Documents of other people's formats: the whole tree, from YAML or from JSON, without a reader that names every key.

use std::sync::Arc;

use serde_json::Value as Json;

use super::problem::{Problem, Report};
use super::source::{Place, Source};
use super::tree::{Entry, Node, Value};

/// Most values of a JSON document.
const NODES_MAX: usize = 400_000;

/// Parses a document as YAML, which JSON nearly is; what is JSON but not YAML (tabs, pairs of `\u` escapes) comes without
/// places.
///
/// # Errors
/// Where the document cannot be understood.
pub fn tree(source: &Arc<Source>) -> Result<Node, Report> {
    let read = super::read(source, |at| at.node().cloned());
    if read.is_ok() || !source.text().trim_start().starts_with('{') {
        return read;
    }
    let json: Json = serde_json::from_str(source.text()).map_err(|error| {
        let place = at_line(source.text(), error.line(), error.column());
        Problem::new(source, place, format!("not valid JSON: {error}"))
    })?;
    let mut left = NODES_MAX;
    node(json, &mut left).ok_or_else(|| {
        Problem::new(source, Place::START, format!("too large, at most {NODES_MAX} values are read")).into()
    })
}

fn at_line(text: &str, line: usize, column: usize) -> Place {
    let before: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let start = (before + column.saturating_sub(1)).min(text.len());
    Place { start, end: start + 1 }
}

fn node(json: Json, left: &mut usize) -> Option<Node> {
    *left = left.checked_sub(1)?;
    let value = match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(value),
        Json::Number(number) => match number.as_i64() {
            Some(value) => Value::Int(value),
            None => Value::Float(number.as_f64()?),
        },
        Json::String(text) => Value::Text(text.into()),
        Json::Array(items) => {
            Value::List(items.into_iter().map(|item| node(item, left).map(Arc::new)).collect::<Option<_>>()?)
        }
        Json::Object(members) => {
            let entry = |(key, value): (String, Json)| {
                let value = Arc::new(node(value, left)?);
                Some(Entry { key: key.into(), place: Place::START, value, merged: false })
            };
            Value::Map(members.into_iter().map(entry).collect::<Option<_>>()?)
        }
    };
    Some(Node { place: Place::START, value, weight: 1 })
}

impl Node {
    /// The entry of a key, if this is a map that has it.
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries().iter().find(|entry| &*entry.key == key)
    }

    /// The value of a key, if this is a map that has it.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|entry| &*entry.value)
    }

    /// All entries; none if this is no map.
    pub fn entries(&self) -> &[Entry] {
        match &self.value {
            Value::Map(entries) => entries,
            _ => &[],
        }
    }

    /// All items; none if this is no list.
    pub fn items(&self) -> &[Arc<Node>] {
        match &self.value {
            Value::List(items) => items,
            _ => &[],
        }
    }

    /// The text, if this is one.
    pub fn text(&self) -> Option<&Arc<str>> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Node, Report> {
        tree(&Arc::new(Source::new("doc", text)))
    }

    #[test]
    fn json_that_is_no_yaml_is_read_too() {
        for text in ["{\"a\": \"\\ud83d\\ude00\"}", "{\n\t\"a\":\n\t\t\"\u{1f600}\"\n}", "a: \"\u{1f600}\""] {
            assert_eq!(
                read(text).unwrap().get("a").and_then(Node::text).map(|text| &**text),
                Some("\u{1f600}"),
                "{text}"
            );
        }
    }

    #[test]
    fn a_broken_document_is_refused_with_the_place() {
        for (text, place) in [("{\n\t\"a\": 1,\n\t\"b\": ]\n}", "doc:3:7"), ("a: [1\nb: 2\n", "doc:2:")] {
            let report = read(text).unwrap_err();
            let position = report.problems()[0].position();
            assert!(position.starts_with(place), "{position}");
        }
    }
}
