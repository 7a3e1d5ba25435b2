//! The keys of one map. A reader takes each by name, says what it is for, and what holds where it is left out.

use std::cell::RefCell;
use std::ops::RangeInclusive;
use std::time::Duration;

use serde_json::{Map, Value as Json, json};

use super::at::At;
use super::parse::shorten;
use super::problem::Problem;
use super::schema::Sketch;
use super::source::Place;
use super::tree::Entry;
use super::units::{duration_text, size_text};

/// The keys of one map, taken one by one.
#[derive(Debug)]
pub struct Fields<'a> {
    at: At<'a>,
    entries: &'a [Entry],
    present: bool,
    taken: RefCell<Vec<&'static str>>,
    required: RefCell<Vec<&'static str>>,
    properties: RefCell<Map<String, Json>>,
}

impl<'a> Fields<'a> {
    pub(super) fn new(at: At<'a>, entries: &'a [Entry]) -> Fields<'a> {
        Fields {
            at,
            entries,
            present: true,
            taken: RefCell::default(),
            required: RefCell::default(),
            properties: RefCell::default(),
        }
    }

    /// The map itself, to report what concerns several of its keys.
    pub fn at(&self) -> At<'a> {
        self.at
    }

    /// Whether the file holds the key.
    pub fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|entry| &*entry.key == key)
    }

    /// The names of all keys in the file, in its order.
    pub fn names(&self) -> impl Iterator<Item = &'a str> {
        self.entries.iter().map(|entry| &*entry.key)
    }

    /// Where the value of a key stands; the map's own place where the key is left out.
    pub fn place_of(&self, key: &str) -> Place {
        self.entries.iter().find(|entry| &*entry.key == key).map_or(self.place(), |entry| entry.value.place)
    }

    /// Reports that something is wrong with the value of a key, or with the map where the key is left out.
    pub fn fail<T>(&self, key: &str, message: impl Into<String>, more: impl FnOnce(Problem) -> Problem) -> Option<T> {
        if self.at.sketch.is_none() {
            self.at.sheet.push(more(Problem::new(self.at.source(), self.place_of(key), message)));
        }
        None
    }

    /// The value of a key that must be there.
    pub fn need<T>(&self, key: &'static str, doc: &str, read: impl FnOnce(At<'_>) -> Option<T>) -> Option<T> {
        self.required.borrow_mut().push(key);
        if self.present && self.at.sketch.is_none() && !self.has(key) {
            let close = self.entries.iter().find(|entry| nearest(&entry.key, [key].into_iter()).is_some());
            if close.is_none() {
                let problem = Problem::new(self.at.source(), self.place(), format!("the key `{key}` is missing here"));
                self.at.sheet.push(problem.help(format!("`{key}`: {doc}")));
            }
        }
        self.opt(key, doc, read)
    }

    /// The value of a key that may be left out. `None` also if it failed to read.
    pub fn opt<T>(&self, key: &'static str, doc: &str, read: impl FnOnce(At<'_>) -> Option<T>) -> Option<T> {
        self.with_default(key, doc, None, read)
    }

    /// A duration within bounds.
    pub fn duration(
        &self,
        key: &'static str,
        doc: &str,
        default: Duration,
        bounds: RangeInclusive<Duration>,
    ) -> Duration {
        let shown = json!(duration_text(default));
        self.with_default(key, doc, Some(shown), |at| at.duration(bounds)).unwrap_or(default)
    }

    /// A duration within bounds, or `off`.
    pub fn duration_or_off(
        &self,
        key: &'static str,
        doc: &str,
        default: Option<Duration>,
        bounds: RangeInclusive<Duration>,
    ) -> Option<Duration> {
        let shown = default.map_or_else(|| "off".to_owned(), duration_text);
        self.with_default(key, doc, Some(json!(shown)), |at| at.duration_or_off(bounds)).unwrap_or(default)
    }

    /// A size in bytes within bounds.
    pub fn size(&self, key: &'static str, doc: &str, default: usize, bounds: RangeInclusive<usize>) -> usize {
        self.with_default(key, doc, Some(json!(size_text(default))), |at| at.size(bounds)).unwrap_or(default)
    }

    /// A whole number within bounds.
    pub fn count(&self, key: &'static str, doc: &str, default: usize, bounds: RangeInclusive<usize>) -> usize {
        self.with_default(key, doc, Some(json!(default)), |at| at.count(bounds)).unwrap_or(default)
    }

    /// `true` or `false`.
    pub fn flag(&self, key: &'static str, doc: &str, default: bool) -> bool {
        self.with_default(key, doc, Some(json!(default)), |at| at.bool()).unwrap_or(default)
    }

    /// One word of a closed set.
    pub fn word<T: Clone + PartialEq>(
        &self,
        key: &'static str,
        doc: &str,
        default: T,
        words: &[(&'static str, T)],
    ) -> T {
        let shown = words.iter().find(|word| word.1 == default).map(|word| json!(word.0));
        self.with_default(key, doc, shown, |at| at.word(words)).unwrap_or(default)
    }

    /// A part of the file whose keys all have defaults: read as if empty where it is left out.
    pub fn section<T>(&self, key: &'static str, doc: &str, reader: impl Fn(&Fields<'_>) -> T) -> T {
        self.opt(key, doc, |at| at.map(&reader)).unwrap_or_else(|| {
            let at = At { node: None, sketch: None, ..self.at };
            reader(&Fields { present: false, ..Fields::new(at, &[]) })
        })
    }

    /// The value of any key with the default that the schema names.
    pub fn with_default<T>(
        &self,
        key: &'static str,
        doc: &str,
        default: Option<Json>,
        read: impl FnOnce(At<'_>) -> Option<T>,
    ) -> Option<T> {
        self.taken.borrow_mut().push(key);
        if self.at.sketch.is_some() {
            let sketch = Sketch::default();
            read(At::drawing(self.at.sheet, &sketch));
            let mut drawn = sketch.take();
            if let Some(object) = drawn.as_object_mut() {
                object.insert("description".to_owned(), json!(doc));
                default.map(|default| object.insert("default".to_owned(), default));
            }
            self.properties.borrow_mut().insert(key.to_owned(), drawn);
            return None;
        }
        let entry = self.entries.iter().find(|entry| &*entry.key == key)?;
        read(At { node: Some(&entry.value), key: Some(entry), item: false, ..self.at })
    }

    pub(super) fn into_schema(self) -> Json {
        let mut schema = json!({
            "type": "object",
            "properties": self.properties.into_inner(),
            "patternProperties": {"^x-": {}},
            "additionalProperties": false,
        });
        let required = self.required.into_inner();
        if let Some(object) = schema.as_object_mut().filter(|_| !required.is_empty()) {
            object.insert("required".to_owned(), json!(required));
        }
        schema
    }

    pub(super) fn refuse_unknown(&self) {
        let taken = self.taken.borrow();
        let strange = |entry: &&Entry| !entry.key.starts_with("x-") && !taken.contains(&&*entry.key);
        for entry in self.entries.iter().filter(strange) {
            let problem = Problem::new(self.at.source(), entry.place, format!("unknown key `{}`", shorten(&entry.key)));
            let problem = match nearest(&entry.key, taken.iter().copied()) {
                Some(name) => problem.label(format!("did you mean `{name}`?")),
                None => problem,
            };
            self.at.sheet.push(problem.help(format!("allowed here: {}", taken.join(", "))));
        }
    }

    /// Where a missing key is reported: at the first key of the map, which is where a reader looks.
    fn place(&self) -> Place {
        self.entries.first().map_or(self.at.place(), |entry| entry.place)
    }
}

/// The name that was probably meant: equal but for case, `-` and `_`, or a few letters apart.
pub fn nearest<'n>(typed: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let bare = |text: &str| {
        text.chars().take(64).filter(|char| !matches!(char, '-' | '_')).collect::<String>().to_ascii_lowercase()
    };
    let typed = bare(typed);
    let allowed = 1.max(typed.chars().count() / 3);
    names
        .map(|name| (strsim::damerau_levenshtein(&typed, &bare(name)), name))
        .filter(|(distance, _)| *distance <= allowed && *distance < typed.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}
