//! The text of one file, its name, and the form of it that may be shown.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::problem::{Problem, Report};

/// The largest file that is read, in bytes.
pub const MAX_FILE: usize = 4 * 1024 * 1024;

/// Parts of a key that mark its value as a secret, compared without case, `-` and `_`.
const SECRET_KEYS: [&str; 8] =
    ["password", "passwd", "secret", "apikey", "privatekey", "accesskey", "authorization", "cookie"];

/// A place in a file, as bytes of its text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// First byte.
    pub start: usize,
    /// The byte after the last.
    pub end: usize,
}

impl Place {
    /// The very beginning of a file.
    pub const START: Place = Place { start: 0, end: 0 };
}

/// One file in memory.
#[derive(Debug)]
pub struct Source {
    name: String,
    text: String,
    shown: String,
}

impl Source {
    /// A file by the name that messages call it.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Source {
        let text = text.into();
        let shown = masked(&text);
        Source { name: name.into(), text, shown }
    }

    /// Reads a file, called by its path.
    ///
    /// # Errors
    /// If it cannot be opened, is larger than [`MAX_FILE`], or is not UTF-8.
    pub fn load(path: &Path) -> Result<Arc<Source>, Report> {
        let name = path.display().to_string();
        let bytes = bounded(path).map_err(|error| {
            let empty = Arc::new(Source::new(name.as_str(), ""));
            Report::from(Problem::new(&empty, Place::START, format!("cannot read the file: {error}")))
        })?;
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Arc::new(Source::new(name, text))),
            Err(error) => {
                let start = error.utf8_error().valid_up_to();
                let source = Arc::new(Source::new(name, String::from_utf8_lossy(error.as_bytes())));
                let problem =
                    Problem::new(&source, Place { start, end: start + 1 }, "the file is not UTF-8 from here on");
                Err(problem.help("save it as UTF-8").into())
            }
        }
    }

    /// What messages call the file: usually its path.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text with the values of secret-looking keys and passwords in URLs as `*`, byte for byte as long.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// Line and column of a place, both from 1; columns count characters.
    pub fn line_column(&self, place: Place) -> (usize, usize) {
        let range = self.clamp(place);
        let before = self.text.get(..range.start).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        (line, column)
    }

    /// Whether any of the place is kept from being shown.
    pub fn is_secret(&self, place: Place) -> bool {
        let range = self.clamp(place);
        self.text.get(range.clone()) != self.shown.get(range)
    }

    /// The line in which a place starts, as it may be shown, with its number and the part of it that the place covers.
    pub(super) fn first_line(&self, place: Place) -> (usize, &str, Range<usize>) {
        let range = self.clamp(place);
        let before = self.shown.get(..range.start).unwrap_or_default();
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = self.shown.get(start..).unwrap_or_default().lines().next().unwrap_or_default();
        let number = before.matches('\n').count() + 1;
        let within = (range.start - start).min(line.len())..(range.end - start).min(line.len());
        (number, line, within)
    }

    /// The place as a range that lies within the text and on character borders, whatever a parser said.
    pub(super) fn clamp(&self, place: Place) -> Range<usize> {
        let end = border(&self.text, place.end);
        let start = border(&self.text, place.start).min(end);
        start..end
    }
}

/// One byte more than allowed tells a file that is too large.
fn bounded(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_FILE as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > MAX_FILE {
        return Err(io::Error::other(format!("it is larger than {MAX_FILE} bytes")));
    }
    Ok(bytes)
}

fn border(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (0..=at).rev().find(|index| text.is_char_boundary(*index)).unwrap_or(0)
}

/// Works on lines, not on the tree, because it must hold for text that does not parse, too.
fn masked(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut secret_block: Option<usize> = None;
    for line in text.split_inclusive('\n') {
        let indent = line.len() - line.trim_start_matches(' ').len();
        let blank = line.trim().is_empty();
        if secret_block.is_some_and(|outer| indent > outer) && !blank {
            cover(line, indent, &mut out);
            continue;
        }
        if !blank {
            secret_block = None;
        }
        match secret_value(line) {
            Some(value) => {
                secret_block = Some(indent);
                cover(line, value, &mut out);
            }
            None => match url_password(line) {
                Some(password) => {
                    cover(line.get(..password.end).unwrap_or(line), password.start, &mut out);
                    out.push_str(line.get(password.end..).unwrap_or_default());
                }
                None => out.push_str(line),
            },
        }
    }
    out
}

/// Where the value of a secret-looking key starts in a line.
fn secret_value(line: &str) -> Option<usize> {
    let mut from = 0;
    while let Some(colon) = line.get(from..).and_then(|rest| rest.find(':')).map(|at| at + from) {
        let key = line.get(..colon)?.rsplit(['{', ',', ' ', '[']).next().unwrap_or_default();
        let plain: String = key.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
        if plain == "token" || plain.ends_with("token") || SECRET_KEYS.iter().any(|word| plain.contains(word)) {
            let rest = line.get(colon + 1..)?;
            return Some(colon + 1 + (rest.len() - rest.trim_start().len()));
        }
        from = colon + 1;
    }
    None
}

/// The `user:password` part of the first URL in a line.
fn url_password(line: &str) -> Option<Range<usize>> {
    let start = line.find("://")? + 3;
    let authority = line.get(start..)?.split(['/', ' ', '"', '\'', '\n']).next()?;
    let at = authority.rfind('@')?;
    Some(start..start + at)
}

fn cover(line: &str, from: usize, out: &mut String) {
    for (index, char) in line.char_indices() {
        if index < from || char == '\n' || char == '\r' {
            out.push(char);
        } else {
            out.extend(std::iter::repeat_n('*', char.len_utf8()));
        }
    }
}
