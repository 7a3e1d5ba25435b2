//! Where in a response the parts of a tool list stand.

use std::borrow::Cow;

use super::super::json::{Cursor, Fault, Raw};
use super::super::reply::quoted;
use super::Tool;
use super::patch::Patch;

/// The member of `_meta` that is ours.
const HEALTH: &str = "toolvane/health";

/// A tool list; of members that occur twice the last one counts.
#[derive(Debug, Default)]
pub(super) struct List<'a> {
    pub(super) elements: Vec<Element<'a>>,
    pub(super) ttl: Option<Raw<'a>>,
    pub(super) cache_scope: Option<Raw<'a>>,
    next_cursor: Option<Raw<'a>>,
}

/// An element of the `tools` array.
#[derive(Debug)]
pub(super) struct Element<'a> {
    pub(super) raw: Raw<'a>,
    name: Option<Cow<'a, str>>,
    description: Option<Raw<'a>>,
    annotations: Option<Raw<'a>>,
    meta: Option<Raw<'a>>,
    input_schema: Option<Raw<'a>>,
}

/// The tool lists in a text: one in a response, several in a batch. `None` if the text cannot be read or holds none.
pub(super) fn lists(text: &[u8]) -> Option<Vec<List<'_>>> {
    let mut cursor = Cursor::new(text);
    let mut lists = Vec::new();
    let read = match cursor.peek() {
        b'[' => cursor.array(|cursor| message(cursor, &mut lists)),
        _ => message(&mut cursor, &mut lists),
    };
    read.and_then(|()| cursor.end()).ok()?;
    Some(lists).filter(|lists| !lists.is_empty())
}

fn message<'a>(cursor: &mut Cursor<'a>, lists: &mut Vec<List<'a>>) -> Result<(), Fault> {
    let mut list = None;
    members(cursor, |cursor, key| {
        if key == "result" {
            list = result(cursor)?;
            return Ok(());
        }
        cursor.value().map(drop)
    })?;
    lists.extend(list);
    Ok(())
}

fn result<'a>(cursor: &mut Cursor<'a>) -> Result<Option<List<'a>>, Fault> {
    let (mut list, mut has_tools) = (List::default(), false);
    members(cursor, |cursor, key| {
        match key {
            "tools" => {
                list.elements.clear();
                has_tools = cursor.peek() == b'[';
                if !has_tools {
                    return cursor.value().map(drop);
                }
                return cursor.array(|cursor| {
                    list.elements.push(Element::read(cursor)?);
                    Ok(())
                });
            }
            "nextCursor" => list.next_cursor = Some(cursor.value()?),
            "ttlMs" => list.ttl = Some(cursor.value()?),
            "cacheScope" => list.cache_scope = Some(cursor.value()?),
            _ => drop(cursor.value()?),
        }
        Ok(())
    })?;
    Ok(has_tools.then_some(list))
}

/// Walks an object by its keys; any other value is read past.
fn members<'a>(
    cursor: &mut Cursor<'a>,
    mut member: impl FnMut(&mut Cursor<'a>, &str) -> Result<(), Fault>,
) -> Result<(), Fault> {
    if cursor.peek() != b'{' {
        return cursor.value().map(drop);
    }
    cursor.object(|cursor, key| member(cursor, &key.text))
}

impl<'a> List<'a> {
    pub(super) fn tools(&self) -> impl Iterator<Item = Tool<'a>> {
        self.elements.iter().filter_map(Element::tool)
    }

    pub(super) fn next_cursor(&self) -> Option<String> {
        Some(self.next_cursor?.text()?.text.into_owned())
    }

    /// `ttlMs`, rounded towards zero; `None` if there is none or it is no number.
    pub(super) fn ttl_ms(&self) -> Option<u64> {
        let token = self.ttl?.token()?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates at both ends")]
        token.parse().ok().or_else(|| token.parse::<f64>().ok().map(|ttl| ttl as u64))
    }
}

impl<'a> Element<'a> {
    fn read(cursor: &mut Cursor<'a>) -> Result<Element<'a>, Fault> {
        let raw = cursor.value()?;
        let mut element =
            Element { raw, name: None, description: None, annotations: None, meta: None, input_schema: None };
        let mut inside = Cursor::within(raw);
        members(&mut inside, |cursor, key| {
            let value = cursor.value()?;
            match key {
                "name" => element.name = value.text().map(|name| name.text),
                "description" => element.description = Some(value),
                "annotations" => element.annotations = Some(value),
                "_meta" => element.meta = Some(value),
                "inputSchema" => element.input_schema = Some(value),
                _ => {}
            }
            Ok(())
        })?;
        Ok(element)
    }

    /// The tool, if the element is one: an object with a name.
    pub(super) fn tool(&self) -> Option<Tool<'a>> {
        let bytes = |raw: Option<Raw<'a>>| raw.map(|raw| raw.bytes);
        Some(Tool {
            name: self.name.clone()?,
            annotations: bytes(self.annotations),
            meta: bytes(self.meta),
            input_schema: bytes(self.input_schema),
        })
    }

    /// Adds to the description and sets the health in `_meta`. What is there with a type that it must not have is left.
    pub(super) fn annotate(&self, description: Option<String>, health: Option<String>, patches: &mut Vec<Patch>) {
        if let Some(text) = description.filter(|text| !text.is_empty()) {
            self.describe(&text, patches);
        }
        if let Some(health) = health {
            self.set_health(&health.replace(['\n', '\r'], " "), patches);
        }
    }

    fn describe(&self, text: &str, patches: &mut Vec<Patch>) {
        match self.description {
            Some(old) if old.first() == b'"' => {
                let escaped = quoted(text);
                let inside = escaped.get(1..escaped.len() - 1).unwrap_or_default().to_owned();
                patches.push(Patch::insert(old.end() - 1, inside));
            }
            Some(old) if old.bytes == b"null" => patches.push(Patch::replace(old, quoted(text.trim_start()))),
            Some(_) => {}
            None => {
                let member = format!(",\"description\":{}", quoted(text.trim_start()));
                patches.push(Patch::insert(self.raw.end() - 1, member));
            }
        }
    }

    fn set_health(&self, health: &str, patches: &mut Vec<Patch>) {
        match self.meta {
            Some(meta) if meta.first() == b'{' => {
                let (old, empty) = health_in(meta);
                patches.push(match old {
                    Some(old) => Patch::replace(old, health.to_owned()),
                    None => {
                        let comma = if empty { "" } else { "," };
                        Patch::insert(meta.end() - 1, format!("{comma}\"{HEALTH}\":{health}"))
                    }
                });
            }
            Some(meta) if meta.bytes == b"null" => {
                patches.push(Patch::replace(meta, format!("{{\"{HEALTH}\":{health}}}")));
            }
            Some(_) => {}
            None => {
                let member = format!(",\"_meta\":{{\"{HEALTH}\":{health}}}");
                patches.push(Patch::insert(self.raw.end() - 1, member));
            }
        }
    }
}

/// The value under our key in a `_meta` object, and whether the object is empty.
fn health_in(meta: Raw<'_>) -> (Option<Raw<'_>>, bool) {
    let (mut old, mut empty) = (None, true);
    let mut cursor = Cursor::within(meta);
    let read = members(&mut cursor, |cursor, key| {
        empty = false;
        let value = cursor.value()?;
        if key == HEALTH {
            old = Some(value);
        }
        Ok(())
    });
    (old.filter(|_| read.is_ok()), empty)
}
