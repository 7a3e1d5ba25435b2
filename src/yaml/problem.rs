//! What is wrong with a file and where, and how a report of it looks.

use std::fmt;
use std::sync::Arc;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

use super::source::{Place, Source};

/// How many problems of one report are shown in full.
const SHOWN: usize = 100;

/// How a report is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// Letters alone, for logs and files.
    #[default]
    Plain,
    /// With colours, for a terminal.
    Coloured,
}

/// One thing that is wrong.
#[derive(Clone, Debug)]
pub struct Problem {
    source: Arc<Source>,
    place: Place,
    message: String,
    label: Option<String>,
    help: Option<String>,
    is_warning: bool,
}

impl Problem {
    /// A problem at a place. The message is lower case, without a full stop, and names the thing, the value and what is
    /// allowed.
    pub fn new(source: &Arc<Source>, place: Place, message: impl Into<String>) -> Problem {
        Problem { source: source.clone(), place, message: message.into(), label: None, help: None, is_warning: false }
    }

    /// A few words beside the caret.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Problem {
        self.label = Some(label.into());
        self
    }

    /// What to do about it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Problem {
        self.help = Some(help.into());
        self
    }

    /// Makes it a warning: odd, but valid.
    #[must_use]
    pub fn warning(mut self) -> Problem {
        self.is_warning = true;
        self
    }

    /// What is wrong.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The few words beside the caret.
    pub fn label_text(&self) -> Option<&str> {
        self.label.as_deref()
    }

    /// What to do about it.
    pub fn help_text(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// The file.
    pub fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// Where in the file.
    pub fn place(&self) -> Place {
        self.place
    }

    /// The name of the file with line and column, as editors and terminals understand it.
    pub fn position(&self) -> String {
        let (line, column) = self.source.line_column(self.place);
        format!("{}:{line}:{column}", self.source.name())
    }

    /// The whole message with snippet, caret and help.
    pub fn render(&self, style: Style) -> String {
        let renderer = match style {
            Style::Plain => Renderer::plain(),
            Style::Coloured => Renderer::styled(),
        };
        let (line, text, range) = self.source.first_line(self.place);
        let mark = AnnotationKind::Primary.span(range).label(self.label.as_deref());
        let snippet = Snippet::source(text).line_start(line).path(self.source.name()).annotation(mark);
        let level = if self.is_warning { Level::WARNING } else { Level::ERROR };
        let mut group = level.primary_title(self.message.as_str()).element(snippet);
        if let Some(help) = &self.help {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        renderer.render(&[group])
    }
}

/// All that is wrong, over one or several files.
#[derive(Clone, Debug, Default)]
pub struct Report {
    problems: Vec<Problem>,
}

impl Report {
    /// Nothing wrong so far.
    pub fn new() -> Report {
        Report::default()
    }

    /// Adds a problem.
    pub fn push(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    /// Adds all problems of another report.
    pub fn merge(&mut self, other: Report) {
        self.problems.extend(other.problems);
    }

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.problems.is_empty()
    }

    /// How many problems there are.
    pub fn len(&self) -> usize {
        self.problems.len()
    }

    /// The problems, in the order of their places where they come from one file.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// `value` if nothing is wrong.
    ///
    /// # Errors
    /// The report itself if it holds a problem.
    pub fn into_result<T>(self, value: T) -> Result<T, Report> {
        if self.is_empty() { Ok(value) } else { Err(self) }
    }

    /// Everything, one problem after the other with an empty line between; after the first hundred only their number.
    pub fn render(&self, style: Style) -> String {
        let mut out: Vec<String> = self.problems.iter().take(SHOWN).map(|problem| problem.render(style)).collect();
        if let Some(more) = self.problems.len().checked_sub(SHOWN).filter(|more| *more > 0) {
            out.push(format!("and {more} more problems"));
        }
        out.join("\n\n")
    }

    pub(super) fn sort(&mut self) {
        self.problems.sort_by_key(|problem| problem.place);
    }
}

impl From<Problem> for Report {
    fn from(problem: Problem) -> Report {
        Report { problems: vec![problem] }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(Style::Plain))
    }
}

impl std::error::Error for Report {}
