//! The clauses of a rule in the form in which they are checked: needles, regexes and codes by their numbers in the table.

use serde_json::Value;

use super::exchange::Exchange;
use super::facts::Facts;
use super::rule::{Faults, Want, When};
use super::search::{Built, Search};
use crate::glob::Glob;

/// A clause of a rule, by the name that it has in the file.
pub type Clause = &'static str;

/// A table's needles and regexes, by what they are looked for in.
#[derive(Clone, Debug)]
pub(crate) struct Views {
    pub(crate) text: Built,
    pub(crate) reason: Built,
}

/// The clauses of one rule.
#[derive(Clone, Debug)]
pub(crate) struct Matcher {
    pub(crate) when: When,
    pub(crate) needles: Option<Vec<usize>>,
    pub(crate) regexes: Option<Vec<usize>>,
    pub(crate) phrases: Option<Vec<usize>>,
    not: Option<Box<Matcher>>,
    /// The clauses that are stated, cheapest first.
    stated: Box<[&'static Check]>,
}

impl Matcher {
    /// Numbers the needles and regexes of `when` in `text`, its phrases in `reason`.
    pub(crate) fn new(when: &When, text: &mut Search, reason: &mut Search) -> Matcher {
        let needles = when.contains.as_ref().map(|all| all.iter().map(|n| text.needle(n)).collect());
        let regexes = when.regex.as_ref().map(|all| all.iter().map(|r| text.regex(r)).collect());
        let phrases = when.phrases.as_ref().map(|all| all.iter().map(|r| reason.regex(r)).collect());
        let not = when.not.as_ref().map(|not| Box::new(Matcher::new(not, text, reason)));
        let stated = CHECKS.iter().filter(|check| (check.is_stated)(when)).collect();
        Matcher { when: When { not: None, ..when.clone() }, needles, regexes, phrases, not, stated }
    }

    /// The first clause that does not hold; `None` if the rule matches.
    pub(crate) fn first_unmet(&self, facts: &Facts<'_>, search: &Views) -> Option<Clause> {
        let unmet = self.stated.iter().find(|check| !(check.holds)(self, facts, search)).map(|check| check.clause);
        unmet.or_else(|| {
            let not = self.not.as_ref()?;
            not.stated.iter().any(|check| (check.holds)(not, facts, search)).then_some("not")
        })
    }

    /// Whether the rule might look into the body of this exchange, going by what is known before the body.
    pub(crate) fn reads_body_of(&self, exchange: &Exchange) -> bool {
        let named = |globs: &Option<Vec<Glob>>, name: &str| globs.as_ref().is_none_or(|globs| any(globs, name));
        self.when.kind.is_none_or(|kind| kind == exchange.kind)
            && named(&self.when.tool, &exchange.tool)
            && named(&self.when.backend, &exchange.backend)
            && named(&self.when.content_type, &exchange.content_type().to_lowercase())
            && (self.when.reads_body() || self.not.as_ref().is_some_and(|not| not.when.reads_body()))
    }
}

/// How a clause is checked.
struct Check {
    clause: Clause,
    is_stated: fn(&When) -> bool,
    /// Asked only of rules that state it.
    holds: fn(&Matcher, &Facts<'_>, &Views) -> bool,
}

const fn check(clause: Clause, is_stated: fn(&When) -> bool, holds: fn(&Matcher, &Facts<'_>, &Views) -> bool) -> Check {
    Check { clause, is_stated, holds }
}

impl std::fmt::Debug for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.clause)
    }
}

/// All clauses but `not`, cheapest first.
static CHECKS: [Check; 19] = [
    check(
        "httpStatus",
        |w| w.status.is_some(),
        |m, f, _| any_of(&m.when.status, |set| is_in(f.exchange.status, |s| set.contains(&s))),
    ),
    check(
        "httpStatusRange",
        |w| w.status_range.is_some(),
        |m, f, _| any_of(&m.when.status_range, |(from, to)| is_in(f.exchange.status, |s| (*from..=*to).contains(&s))),
    ),
    check(
        "exceptionType",
        |w| w.faults.is_some(),
        |m, f, _| any_of(&m.when.faults, |faults| has_fault(faults, f.exchange)),
    ),
    check("kind", |w| w.kind.is_some(), |m, f, _| m.when.kind == Some(f.exchange.kind)),
    check(
        "mcpError",
        |w| w.mcp_error.is_some(),
        |m, f, _| m.when.mcp_error.is_some() && m.when.mcp_error == f.exchange.is_error(),
    ),
    check(
        "rpcCode",
        |w| w.rpc_code.is_some(),
        |m, f, _| any_of(&m.when.rpc_code, |set| f.exchange.rpc_code().is_some_and(|code| set.contains(&code))),
    ),
    check("envelope", |w| w.envelope.is_some(), |m, f, _| m.when.envelope == Some(f.exchange.is_envelope())),
    check("tool", |w| w.tool.is_some(), |m, f, _| any_of(&m.when.tool, |globs| any(globs, &f.exchange.tool))),
    check(
        "backend",
        |w| w.backend.is_some(),
        |m, f, _| any_of(&m.when.backend, |globs| any(globs, &f.exchange.backend)),
    ),
    check(
        "contentType",
        |w| w.content_type.is_some(),
        |m, f, _| any_of(&m.when.content_type, |globs| any(globs, &f.exchange.content_type().to_lowercase())),
    ),
    check(
        "header",
        |w| !w.headers.is_empty(),
        |m, f, _| m.when.headers.iter().all(|(name, want)| has_header(f.exchange, name, want)),
    ),
    check(
        "json",
        |w| !w.json.is_empty(),
        |m, f, _| m.when.json.iter().all(|(pointer, want)| has_json(f, pointer, want)),
    ),
    check(
        "errorCode",
        |w| w.codes.is_some(),
        |m, f, _| any_of(&m.when.codes, |globs| f.codes().iter().any(|code| any(globs, code))),
    ),
    check(
        "bodyContains",
        |w| w.contains.is_some(),
        |m, f, s| any_of(&m.needles, |ids| ids.iter().any(|id| s.text.needles(f).contains(*id))),
    ),
    check(
        "bodyRegex",
        |w| w.regex.is_some(),
        |m, f, s| any_of(&m.regexes, |ids| ids.iter().any(|id| s.text.regex_matches(*id, f))),
    ),
    check(
        "reasonWords",
        |w| w.phrases.is_some(),
        |m, f, s| any_of(&m.phrases, |ids| ids.iter().any(|id| s.reason.regex_matches(*id, f))),
    ),
    check(
        "quotedStatus",
        |w| w.quoted_status.is_some(),
        |m, f, _| any_of(&m.when.quoted_status, |set| f.quoted_statuses().iter().any(|status| set.contains(status))),
    ),
    check(
        "quotedRpcCode",
        |w| w.quoted_rpc.is_some(),
        |m, f, _| any_of(&m.when.quoted_rpc, |set| f.quoted_rpc_code().is_some_and(|code| set.contains(&code))),
    ),
    check("target", |w| w.target.is_some(), |m, f, _| m.when.target == Some(f.target())),
];

fn any_of<T>(wanted: &Option<T>, holds: impl Fn(&T) -> bool) -> bool {
    wanted.as_ref().is_some_and(holds)
}

fn any(globs: &[Glob], text: &str) -> bool {
    globs.iter().any(|glob| glob.matches(text))
}

fn is_in(status: Option<u16>, wanted: impl Fn(u16) -> bool) -> bool {
    status.is_some_and(wanted)
}

fn has_fault(faults: &Faults, exchange: &Exchange) -> bool {
    match &exchange.fault {
        Some(fault) => faults.transport.contains(&fault.kind),
        None => faults.any_tool_error && !exchange.succeeded(),
    }
}

fn has_header(exchange: &Exchange, name: &http::HeaderName, want: &Want) -> bool {
    exchange.headers.get_all(name).iter().any(|value| value.to_str().is_ok_and(|value| want.fits(value.trim())))
}

fn has_json(facts: &Facts<'_>, pointer: &str, want: &Want) -> bool {
    match facts.pointer(pointer) {
        None => false,
        Some(Value::Null) => matches!(want, Want::Like(_)) && want.fits("null"),
        Some(Value::String(text)) => want.fits(text),
        Some(Value::Object(_) | Value::Array(_)) => matches!(want, Want::Present),
        Some(value) => want.fits(&value.to_string()),
    }
}
