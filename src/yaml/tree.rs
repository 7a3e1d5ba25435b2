//! A YAML document as a tree in which every key and value knows its place.

use std::fmt;
use std::sync::Arc;

use super::source::Place;

/// A value and where it stands. Aliases share the node of their anchor.
#[derive(Clone, Debug)]
pub struct Node {
    /// Where it stands.
    pub place: Place,
    /// What it is.
    pub value: Value,
    /// How many nodes it comes to with every alias followed.
    pub(super) weight: usize,
}

/// What a node holds, by the core schema of YAML 1.2 (`yes` and `off` are texts).
#[derive(Clone, Debug)]
pub enum Value {
    /// Nothing, `null` or `~`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number that fits.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// Everything else that is not a list or a map.
    Text(Arc<str>),
    /// A list.
    List(Vec<Arc<Node>>),
    /// A map in the order of the file; no key stands in it twice.
    Map(Vec<Entry>),
}

/// One key of a map with its value.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key.
    pub key: Arc<str>,
    /// Where the key stands.
    pub place: Place,
    /// Its value.
    pub value: Arc<Node>,
    /// Came by `<<` and gives way to a key of the map itself.
    pub(super) merged: bool,
}

/// The kind of a value, for messages and for formats that accept more than one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Nothing.
    Null,
    /// True or false.
    Bool,
    /// A number.
    Number,
    /// Text.
    Text,
    /// A list.
    List,
    /// A map.
    Map,
}

impl Value {
    /// Its kind.
    pub fn kind(&self) -> Kind {
        match self {
            Value::Null => Kind::Null,
            Value::Bool(_) => Kind::Bool,
            Value::Int(_) | Value::Float(_) => Kind::Number,
            Value::Text(_) => Kind::Text,
            Value::List(_) => Kind::List,
            Value::Map(_) => Kind::Map,
        }
    }

    /// A plain (unquoted) scalar by the core schema.
    pub(super) fn plain(text: &str) -> Value {
        match text {
            "" | "~" | "null" | "Null" | "NULL" => Value::Null,
            "true" | "True" | "TRUE" => Value::Bool(true),
            "false" | "False" | "FALSE" => Value::Bool(false),
            _ => number(text).unwrap_or_else(|| Value::Text(Arc::from(text))),
        }
    }
}

fn number(text: &str) -> Option<Value> {
    let digits = text.trim_start_matches(['-', '+']);
    if let Some(hex) = digits.strip_prefix("0x") {
        return i64::from_str_radix(hex, 16).ok().map(Value::Int);
    }
    if let Some(octal) = digits.strip_prefix("0o") {
        return i64::from_str_radix(octal, 8).ok().map(Value::Int);
    }
    if !digits.starts_with(|first: char| first.is_ascii_digit() || first == '.')
        || !digits.contains(|c: char| c.is_ascii_digit())
    {
        return None;
    }
    text.parse::<i64>().ok().map(Value::Int).or_else(|| text.parse::<f64>().ok().map(Value::Float))
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Null => "nothing",
            Kind::Bool => "true or false",
            Kind::Number => "a number",
            Kind::Text => "a text",
            Kind::List => "a list",
            Kind::Map => "a map",
        })
    }
}
