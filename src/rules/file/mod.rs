//! Rule files (DESIGN 6): the bundled table, the operator's layers over it, and one compiled [`Table`] out of both. All
//! problems of all files are reported at once, with file, line, column and caret.

mod cases;
mod exceptions;
mod layers;
mod suite;
mod then;
mod when;

#[cfg(test)]
mod mistakes;
#[cfg(test)]
mod tests;

pub use exceptions::{fault, faults};
pub use suite::{cases_schema, read_cases};

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use super::rule::{Before, FALLBACK, Origin, Rule};
use super::table::{Limits, Table};
use crate::yaml::{self, At, Fields, Place, Problem, Report, Source};

/// The table that is compiled in.
pub const BUNDLED: &str = include_str!("../../../config/error-patterns.yaml");
/// What messages call the bundled table.
pub const BUNDLED_NAME: &str = "error-patterns.yaml (bundled)";
/// The most rules that one file may hold.
const RULES_MAX: usize = 10_000;

/// Compiles the bundled table with `layers` over it, the widest first (DESIGN 6, Cascade). Tables of tenants and projects
/// are made by this function too.
///
/// # Errors
/// Every problem of every file.
pub fn load(layers: &[Arc<Source>], limits: Limits) -> Result<Table, Report> {
    let bundled = bundled();
    let last = layers.last().unwrap_or(&bundled);
    Table::new(layered(layers)?, limits).map_err(|why| Problem::new(last, Place::START, why).into())
}

/// The rules of the bundled table with `layers` over it, in the order in which they are asked.
///
/// # Errors
/// Every problem of every file.
pub fn layered(layers: &[Arc<Source>]) -> Result<Vec<Rule>, Report> {
    let mut report = Report::new();
    let bundled = bundled();
    let files = std::iter::once(&bundled).chain(layers);
    let read: Vec<Vec<Rule>> =
        files.clone().filter_map(|source| read(source).map_err(|e| report.merge(e)).ok()).collect();
    if !report.is_empty() {
        layers::unknown_names(files, &mut report);
        return Err(report);
    }
    let mut report = Report::new();
    let rules = read.into_iter().fold(Vec::new(), |below, layer| layers::lay(below, layer, &mut report));
    report.into_result(rules)
}

fn bundled() -> Arc<Source> {
    Arc::new(Source::new(BUNDLED_NAME, BUNDLED))
}

/// Compiles the rules of one file alone, in the order of the file, without the bundled table.
///
/// # Errors
/// Every problem of the file.
pub fn load_alone(source: &Arc<Source>, limits: Limits) -> Result<Table, Report> {
    Table::new(read(source)?, limits).map_err(|why| Problem::new(source, Place::START, why).into())
}

/// Reads the rules of one file, in their order.
///
/// # Errors
/// Every problem of the file.
pub fn read(source: &Arc<Source>) -> Result<Vec<Rule>, Report> {
    yaml::read(source, patterns)
}

/// The JSON Schema of rule files, drawn by their reader.
pub fn schema() -> Value {
    yaml::schema("Rules of toolvane", "https://toolvane.dev/schema/error-patterns.json", patterns)
}

fn patterns(at: At<'_>) -> Option<Vec<Rule>> {
    at.map(|file| {
        let taken = Taken::default();
        let rules = file
            .need("patterns", "the rules; the first that matches decides", |at| at.list(|item| rule(item, &taken)))?;
        if rules.len() > RULES_MAX {
            return at.fail(format!("the file holds {} rules, at most {RULES_MAX} are read", rules.len()));
        }
        Some(rules)
    })?
}

fn rule(at: At<'_>, taken: &Taken) -> Option<Rule> {
    at.map(|fields| {
        let id = fields.need("id", "unique name of the rule, for messages and layers", |at| taken.take(at));
        let before =
            fields.opt("before", "id of the rule before which a layer puts this one", |at| before(at, id.as_ref()));
        let when = fields.need(
            "match",
            "what must hold: fields are ANDed, lists are ORed, `{}` matches everything",
            when::when,
        );
        let then = then::then(fields, id.as_ref());
        let locked = fields.flag("locked", "automatic maintenance must not touch the rule", false);
        let tests = fields.opt("tests", "exchanges that must, or must not, match", |at| at.list(cases::test));
        let origin = Origin { source: Arc::clone(at.source()), place: fields.place_of("id") };
        let rule = Rule { id: id?, before, when: when?, then: then?, locked, tests: tests.unwrap_or_default(), origin };
        sound(fields, &rule).then_some(rule)
    })?
}

/// The rule before which this one is to stand.
fn before(at: At<'_>, own: Option<&Arc<str>>) -> Option<Before> {
    let id = then::name(at)?;
    match own {
        Some(own) if **own == *id => at.fail("a rule cannot come before itself"),
        Some(own) if **own == *FALLBACK => at.fail(format!("`{FALLBACK}` is the last rule and stays it")),
        _ => Some(Before { id, place: at.place() }),
    }
}

/// The ids of a file so far, with the lines they stand on.
#[derive(Default)]
struct Taken(RefCell<HashMap<Arc<str>, usize>>);

impl Taken {
    fn take(&self, at: At<'_>) -> Option<Arc<str>> {
        let id = then::name(at)?;
        let (line, _) = at.source().line_column(at.place());
        match self.0.borrow_mut().insert(id.clone(), line) {
            None => Some(id),
            Some(earlier) => at.fail_with(format!("the id `{id}` is taken by the rule on line {earlier}"), |problem| {
                problem.help("ids are unique within a file; give this rule another one or remove one of the two")
            }),
        }
    }
}

/// What no single key can say: text of a success is read only for a named tool, and faults of the caller mark nothing.
fn sound(fields: &Fields<'_>, rule: &Rule) -> bool {
    let when = &rule.when;
    if when.names_success() && when.reads_text() && when.tool.is_none() && when.backend.is_none() {
        fields.fail::<()>("match", "text of a successful answer is read only for a named `tool` or `backend`", |problem| {
            problem.help("name the tool or backend, or look at `json`, `header` or `errorCode`: a result that talks about an error is a success")
        });
        return false;
    }
    then::sound(fields, rule)
}
