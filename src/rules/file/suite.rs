//! Reads a file of cases: exchanges in the short form of a rule's `tests`, each with what must come of it.

use std::sync::Arc;

use serde_json::Value;

use super::{cases, then};
use crate::rules::hint::{HINT_LIMIT, HINT_MIN};
use crate::rules::rule::Origin;
use crate::rules::suite::{Case, Expect};
use crate::yaml::{self, At, Report, Source};

/// The most cases that one file may hold.
const CASES_MAX: usize = 10_000;
/// The longest name of a case, in bytes.
const NAME_MAX: usize = 200;

/// Reads a file of cases, in their order.
///
/// # Errors
/// Every problem of the file.
pub fn read_cases(source: &Arc<Source>) -> Result<Vec<Case>, Report> {
    yaml::read(source, file)
}

/// The JSON Schema of files of cases, drawn by their reader.
pub fn cases_schema() -> Value {
    yaml::schema("Cases for rules of toolvane", "https://toolvane.dev/schema/cases.json", file)
}

fn file(at: At<'_>) -> Option<Vec<Case>> {
    at.map(|file| {
        let cases = file.need("cases", "outcomes, each with what must come of it", |at| at.list(case))?;
        if cases.len() > CASES_MAX {
            return at.fail(format!("the file holds {} cases, at most {CASES_MAX} are read", cases.len()));
        }
        Some(cases)
    })?
}

fn case(at: At<'_>) -> Option<Case> {
    at.map(|fields| {
        let name = fields.opt("name", "what the case is called in reports", |at| at.line(NAME_MAX));
        let exchange = cases::exchange(fields);
        let expect = fields.need("expect", "what must come of it; what is left out may be anything", expect);
        let origin = Origin { source: Arc::clone(at.source()), place: at.place() };
        let (line, _) = at.source().line_column(at.place());
        let name = name.unwrap_or_else(|| format!("line {line}").into());
        Some(Case { name, exchange, expect: expect?, origin })
    })?
}

fn expect(at: At<'_>) -> Option<Expect> {
    at.map(|fields| {
        let expect = Expect {
            rule: fields.opt("rule", "the rule that decides", then::name),
            signature: fields.opt("signature", "short stable name of this kind of failure", then::name),
            classification: fields.opt("classification", "what it says about the tool; WORKING for a success", |at| {
                at.word(&then::CLASSIFICATIONS)
            }),
            scope: fields.opt("scope", "who is affected", |at| at.word(&then::SCOPES)),
            dispatch_code: fields
                .opt("dispatchCode", "how the failure is named to the caller", |at| at.word(&then::CODES)),
            health_action: fields
                .opt("healthAction", "what it does to the status at once", |at| at.word(&then::ACTIONS)),
            hint: fields
                .opt("hint", "the recovery time that the answer states", |at| at.duration(HINT_MIN..=HINT_LIMIT)),
        };
        if fields.names().next().is_none() {
            return at.fail("`expect` must name at least one field");
        }
        Some(expect)
    })?
}
