//! What the commands for rules share: reading layers, the table they make, and the form of an answer.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};

use super::CONFIG;
use super::args::Form;
use crate::rules::{self, Limits, Table};
use crate::yaml::{Problem, Report, Source, Style};

/// The largest file or input that is read, in bytes.
const INPUT_MAX: u64 = 256 << 20;

/// Where a command writes.
#[derive(Debug)]
pub struct Streams<O, W> {
    /// Data.
    pub data: O,
    /// Words.
    pub words: W,
    /// How reports look.
    pub style: Style,
}

/// Rule files laid over the bundled table.
#[derive(Debug)]
pub struct Layered {
    /// The files, in their order.
    pub sources: Vec<Arc<Source>>,
    /// What they make.
    pub table: Table,
}

impl Layered {
    /// Reads and compiles.
    ///
    /// # Errors
    /// Every problem of every file.
    pub fn load(paths: &[PathBuf]) -> Result<Layered, Report> {
        let mut report = Report::new();
        let mut sources = Vec::new();
        for path in paths {
            match Source::load(path) {
                Ok(source) => sources.push(source),
                Err(problems) => report.merge(problems),
            }
        }
        report.into_result(())?;
        let table = rules::load(&sources, Limits::default())?;
        Ok(Layered { sources, table })
    }

    /// Whether a rule's file is one of these; with none, whether it is the bundled table.
    pub fn holds(&self, source: &Arc<Source>) -> bool {
        let is = |own: &Arc<Source>| Arc::ptr_eq(own, source);
        if self.sources.is_empty() { true } else { self.sources.iter().any(is) }
    }
}

/// Writes a report of what is wrong with files; gives the exit code for it.
pub fn refuse(report: &Report, words: &mut impl Write, style: Style) -> u8 {
    let _ = writeln!(words, "{}", report.render(style));
    CONFIG
}

/// The same in the form that was asked for.
pub fn refuse_in<O: Write, W: Write>(form: Form, report: &Report, streams: &mut Streams<O, W>) -> u8 {
    match form {
        Form::Json => refuse_as_json(report, streams),
        Form::Table => refuse(report, &mut streams.words, streams.style),
    }
}

/// The same for a program that reads: on standard output what is wrong stands in its form, too.
pub fn refuse_as_json<O: Write, W: Write>(report: &Report, streams: &mut Streams<O, W>) -> u8 {
    let problems: Vec<Value> = report.problems().iter().map(problem_as_json).collect();
    let _ = writeln!(streams.data, "{}", json!({"valid": false, "problems": problems}));
    refuse(report, &mut streams.words, streams.style)
}

/// A problem with its place.
pub fn problem_as_json(problem: &Problem) -> Value {
    let (line, column) = problem.source().line_column(problem.place());
    json!({
        "file": problem.source().name(),
        "line": line,
        "column": column,
        "message": problem.message(),
        "label": problem.label_text(),
        "help": problem.help_text(),
    })
}

/// A file whole, or standard input for `-`, as text; bytes that are no UTF-8 are replaced.
///
/// # Errors
/// If it cannot be read, or is larger than 256 MiB.
pub fn text_of(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        io::stdin().lock().take(INPUT_MAX + 1).read_to_end(&mut bytes)?;
    } else {
        std::fs::File::open(path)?.take(INPUT_MAX + 1).read_to_end(&mut bytes)?;
    }
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > INPUT_MAX {
        return Err(io::Error::other(format!("it has more than {} MiB", INPUT_MAX >> 20)));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Columns that are as wide as they must be, without heads. Characters that could move a cursor are replaced.
pub fn columns(rows: &[Vec<String>]) -> String {
    let shown = |cell: &String| cell.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect::<String>();
    let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(shown).collect()).collect();
    let width = |at: usize| rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max();
    let mut out = String::new();
    for row in &rows {
        let mut line = String::new();
        for (at, cell) in row.iter().enumerate() {
            let pad = if at + 1 == row.len() { 0 } else { width(at).unwrap_or(0) + 2 };
            line.push_str(&format!("{cell:pad$}"));
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}
