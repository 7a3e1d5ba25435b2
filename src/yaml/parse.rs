//! Parser events to tree: depth and alias bounds, duplicate keys, merge keys, one document a file.

use std::collections::HashMap;
use std::sync::Arc;

use serde_yaml::granit_parser::{self as yaml, ErrorKind, Event, Parser, ScalarStyle, ScanError, StructureStyle};

use super::problem::Problem;
use super::sheet::Sheet;
use super::source::{MAX_FILE, Place, Source};
use super::tree::{Entry, Node, Value};

/// Levels of lists and maps within each other.
const MAX_DEPTH: usize = 64;
/// Nodes of a document, those behind an alias counted each time it is used.
const MAX_NODES: usize = 100_000;

/// Parses the one document of a file. Problems that leave a tree to go on with (a key that stands twice) are reported
/// to the sheet; `None` if there is no tree.
pub(super) fn parse(source: &Arc<Source>, sheet: &Sheet) -> Option<Arc<Node>> {
    if source.text().len() > MAX_FILE {
        let size = source.text().len();
        sheet.push(Problem::new(
            source,
            Place::START,
            format!("the file has {size} bytes, at most {MAX_FILE} are read"),
        ));
        return None;
    }
    let mut builder = Builder {
        source,
        sheet,
        events: Parser::new_from_str(source.text()),
        anchors: HashMap::new(),
        open: Vec::new(),
    };
    match builder.document() {
        Ok(node) => Some(node),
        Err(problem) => {
            sheet.push(*problem);
            None
        }
    }
}

struct Builder<'a> {
    source: &'a Arc<Source>,
    sheet: &'a Sheet,
    events: Parser<'a, yaml::StrInput<'a>>,
    anchors: HashMap<usize, Arc<Node>>,
    /// Brackets and braces that no closing one has come for.
    open: Vec<Place>,
}

type Step<T> = Result<T, Box<Problem>>;

impl<'a> Builder<'a> {
    fn document(&mut self) -> Step<Arc<Node>> {
        let mut root = None;
        loop {
            let (event, place) = self.next()?;
            match event {
                Event::StreamEnd => break,
                Event::StreamStart | Event::DocumentEnd => {}
                Event::DocumentStart(..) if root.is_some() => {
                    return Err(self
                        .fault(place, "a second document starts here, a file holds one")
                        .help("remove the `---`, or move what follows to a file of its own")
                        .into());
                }
                Event::DocumentStart(..) => {}
                event => root = Some(self.node(event, place, 0)?),
            }
        }
        match root {
            Some(node) if !matches!(node.value, Value::Null) => Ok(node),
            _ => Err(self.fault(Place::START, "the file is empty").into()),
        }
    }

    fn node(&mut self, event: Event<'a>, place: Place, depth: usize) -> Step<Arc<Node>> {
        if depth > MAX_DEPTH {
            return Err(self.fault(place, format!("nested too deep, at most {MAX_DEPTH} levels are read")).into());
        }
        match event {
            Event::Alias(anchor) => self
                .anchors
                .get(&anchor)
                .cloned()
                .ok_or_else(|| self.fault(place, "this alias stands inside the value it refers to").into()),
            Event::Scalar(text, style, anchor, tag) => {
                let value = match tag.as_deref().map(|tag| (tag.is_yaml_core_schema_tag("str"), tag)) {
                    None if style == ScalarStyle::Plain => Value::plain(&text),
                    None | Some((true, _)) => Value::Text(Arc::from(&*text)),
                    Some((false, tag)) => return Err(self.tag(place, tag)),
                };
                Ok(self.keep(anchor, Node { place, value, weight: 1 }))
            }
            Event::SequenceStart(style, anchor, tag) => {
                self.enter(style, place);
                tag.map_or(Ok(()), |tag| Err(self.tag(place, &tag)))?;
                self.list(anchor, place, depth)
            }
            Event::MappingStart(style, anchor, tag) => {
                self.enter(style, place);
                tag.map_or(Ok(()), |tag| Err(self.tag(place, &tag)))?;
                self.map(anchor, place, depth)
            }
            _ => Err(self.fault(place, "this is not understood here").into()),
        }
    }

    fn list(&mut self, anchor: usize, start: Place, depth: usize) -> Step<Arc<Node>> {
        let mut items: Vec<Arc<Node>> = Vec::new();
        let mut weight = 1;
        loop {
            let (event, place) = self.next()?;
            if matches!(event, Event::SequenceEnd) {
                self.leave(start);
                let place = spanning(start, items.last().map(|item| item.place), place);
                return Ok(self.keep(anchor, Node { place, value: Value::List(items), weight }));
            }
            let item = self.node(event, place, depth + 1)?;
            weight = self.weigh(weight, &item, place)?;
            items.push(item);
        }
    }

    fn map(&mut self, anchor: usize, start: Place, depth: usize) -> Step<Arc<Node>> {
        let mut entries = Entries::default();
        let mut weight = 1;
        let mut last = None;
        loop {
            let (event, place) = self.next()?;
            if matches!(event, Event::MappingEnd) {
                self.leave(start);
                let place = spanning(start, last, place);
                return Ok(self.keep(anchor, Node { place, value: Value::Map(entries.list), weight }));
            }
            let plain = matches!(&event, Event::Scalar(_, ScalarStyle::Plain, _, None));
            let key = self.key(event, place)?;
            let (event, value_place) = self.next()?;
            let value = self.node(event, value_place, depth + 1)?;
            weight = self.weigh(weight, &value, place)?;
            last = Some(value.place);
            if plain && &*key == "<<" {
                self.merge(&value, &mut entries)?;
            } else if let Some(first) = entries.insert(Entry { key: key.clone(), place, value, merged: false }) {
                let (line, _) = self.source.line_column(first);
                let problem = self.fault(place, format!("the key `{key}` stands here twice"));
                self.sheet.push(problem.label(format!("first on line {line}")).help("remove one of the two"));
            }
        }
    }

    fn enter(&mut self, style: StructureStyle, place: Place) {
        if style == StructureStyle::Flow {
            self.open.push(place);
        }
    }

    fn leave(&mut self, start: Place) {
        self.open.pop_if(|open| *open == start);
    }

    fn key(&self, event: Event<'a>, place: Place) -> Step<Arc<str>> {
        match event {
            Event::Scalar(text, ..) => Ok(Arc::from(&*text)),
            Event::Alias(anchor) => match self.anchors.get(&anchor).map(|node| &node.value) {
                Some(Value::Text(text)) => Ok(text.clone()),
                _ => Err(self.fault(place, "a key must be a text").into()),
            },
            _ => Err(self.fault(place, "a key must be a text, not a list or a map").into()),
        }
    }

    /// `<<: *anchor` or `<<: [*a, *b]`: keys of the map itself go first, then the earlier of the merged maps.
    fn merge(&self, value: &Node, entries: &mut Entries) -> Step<()> {
        match &value.value {
            Value::Map(merged) => {
                for entry in merged {
                    entries.insert(Entry { merged: true, ..entry.clone() });
                }
                Ok(())
            }
            Value::List(items) if items.iter().all(|item| matches!(item.value, Value::Map(_))) => {
                items.iter().try_for_each(|item| self.merge(item, entries))
            }
            _ => Err(self.fault(value.place, "`<<` takes a map or a list of maps").into()),
        }
    }

    fn keep(&mut self, anchor: usize, node: Node) -> Arc<Node> {
        let node = Arc::new(node);
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        node
    }

    fn weigh(&self, sum: usize, node: &Node, place: Place) -> Step<usize> {
        let sum = sum.saturating_add(node.weight);
        if sum > MAX_NODES {
            return Err(self
                .fault(place, format!("too large with its aliases followed, at most {MAX_NODES} values are read"))
                .into());
        }
        Ok(sum)
    }

    fn next(&mut self) -> Step<(Event<'a>, Place)> {
        match self.events.next() {
            Some(Ok((event, span))) => Ok((event, place(&span))),
            Some(Err(error)) => Err(self.syntax(&error)),
            None => Ok((Event::StreamEnd, Place::START)),
        }
    }

    fn syntax(&self, error: &ScanError) -> Box<Problem> {
        let start = error.marker().byte_offset().unwrap_or_default();
        let place = Place { start, end: start + 1 };
        if matches!(error.kind(), ErrorKind::RecursionLimitExceeded) {
            return Box::new(self.fault(place, format!("nested too deep, at most {MAX_DEPTH} levels are read")));
        }
        let problem = self.fault(place, format!("not valid YAML: {}", error.kind()));
        let line = self.source.text().get(..start).and_then(|before| before.rsplit('\n').next()).unwrap_or_default();
        if line.contains('\t') || self.source.text().get(start..).is_some_and(|rest| rest.starts_with('\t')) {
            return Box::new(problem.help("indent with spaces, YAML allows no tabs there"));
        }
        if let Some(open) = self.open.last() {
            let (line, column) = self.source.line_column(*open);
            return Box::new(problem.help(format!("the bracket on line {line}, column {column} is still open here")));
        }
        Box::new(problem)
    }

    fn tag(&self, place: Place, tag: &yaml::Tag) -> Box<Problem> {
        let problem = self.fault(place, format!("the tag `{}` is not supported", shorten(&tag.to_string())));
        Box::new(problem.help("write the value without a tag; quote what must stay a text"))
    }

    fn fault(&self, place: Place, message: impl Into<String>) -> Problem {
        Problem::new(self.source, place, message)
    }
}

#[derive(Default)]
struct Entries {
    list: Vec<Entry>,
    index: HashMap<Arc<str>, usize>,
}

impl Entries {
    /// Adds an entry; if the map itself holds the key already, the place where.
    fn insert(&mut self, entry: Entry) -> Option<Place> {
        let Some(known) = self.index.get(&entry.key).and_then(|index| self.list.get_mut(*index)) else {
            self.index.insert(entry.key.clone(), self.list.len());
            self.list.push(entry);
            return None;
        };
        match (known.merged, entry.merged) {
            (true, false) => *known = entry,
            (false, false) => return Some(known.place),
            (_, true) => {}
        }
        None
    }
}

/// A text from outside, safe to print: one line, no control characters, at most 60 characters.
pub(super) fn shorten(text: &str) -> String {
    let mut out: String = text
        .chars()
        .take(60)
        .flat_map(char::escape_debug)
        .collect::<String>()
        .replace("\\\"", "\"")
        .replace("\\'", "'");
    if text.chars().nth(60).is_some() {
        out.push('…');
    }
    out
}

fn place(span: &yaml::Span) -> Place {
    Place { start: span.start.byte_offset().unwrap_or_default(), end: span.end.byte_offset().unwrap_or_default() }
}

/// A block ends where its last value ends; the parser says only where the next thing starts.
fn spanning(start: Place, last: Option<Place>, end: Place) -> Place {
    let end = if end.end > end.start { end.end } else { last.map_or(start.end, |last| last.end) };
    Place { start: start.start, end: end.max(start.end) }
}
