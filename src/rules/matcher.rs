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
}

impl Matcher {
    /// Numbers the needles and regexes of `when` in `text`, its phrases in `reason`.
    pub(crate) fn new(when: &When, text: &mut Search, reason: &mut Search) -> Matcher {
        let needles = when.contains.as_ref().map(|all| all.iter().map(|n| text.needle(n)).collect());
        let regexes = when.regex.as_ref().map(|all| all.iter().map(|r| text.regex(r)).collect());
        let phrases = when.phrases.as_ref().map(|all| all.iter().map(|r| reason.regex(r)).collect());
        let not = when.not.as_ref().map(|not| Box::new(Matcher::new(not, text, reason)));
        Matcher { when: When { not: None, ..when.clone() }, needles, regexes, phrases, not }
    }

    /// The first clause that does not hold; `None` if the rule matches.
    pub(crate) fn first_unmet(&self, facts: &Facts<'_>, search: &Views) -> Option<Clause> {
        let unmet = self.clauses(facts, search).find(|(_, holds)| !holds).map(|(clause, _)| clause);
        unmet.or_else(|| {
            let not = self.not.as_ref()?;
            not.clauses(facts, search).any(|(_, holds)| holds).then_some("not")
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

    /// Each clause that is stated, cheapest first, with whether it holds; worked out one by one.
    fn clauses<'a>(&'a self, facts: &'a Facts<'_>, search: &'a Views) -> impl Iterator<Item = (Clause, bool)> + 'a {
        let target = ("target", self.when.target.map(|wanted| wanted == facts.target()));
        CHECKS
            .into_iter()
            .map(move |(clause, check)| (clause, check(self, facts, search)))
            .chain([target])
            .filter_map(|(clause, holds)| Some((clause, holds?)))
    }
}

type Check = (Clause, fn(&Matcher, &Facts<'_>, &Views) -> Option<bool>);

/// All clauses but `target` and `not`, cheapest first.
const CHECKS: [Check; 18] = [
    ("httpStatus", |m, f, _| m.when.status.as_ref().map(|set| is_in(f.exchange.status, |s| set.contains(&s)))),
    ("httpStatusRange", |m, f, _| {
        m.when.status_range.map(|(from, to)| is_in(f.exchange.status, |s| (from..=to).contains(&s)))
    }),
    ("exceptionType", |m, f, _| m.when.faults.as_ref().map(|faults| has_fault(faults, f.exchange))),
    ("kind", |m, f, _| m.when.kind.map(|kind| kind == f.exchange.kind)),
    ("mcpError", |m, f, _| m.when.mcp_error.map(|wanted| f.exchange.is_error() == Some(wanted))),
    ("rpcCode", |m, f, _| {
        m.when.rpc_code.as_ref().map(|set| f.exchange.rpc_code().is_some_and(|code| set.contains(&code)))
    }),
    ("envelope", |m, f, _| m.when.envelope.map(|wanted| f.exchange.is_envelope() == wanted)),
    ("tool", |m, f, _| m.when.tool.as_ref().map(|globs| any(globs, &f.exchange.tool))),
    ("backend", |m, f, _| m.when.backend.as_ref().map(|globs| any(globs, &f.exchange.backend))),
    ("contentType", |m, f, _| {
        m.when.content_type.as_ref().map(|globs| any(globs, &f.exchange.content_type().to_lowercase()))
    }),
    ("header", |m, f, _| stated(&m.when.headers).map(|all| all.iter().all(|(n, w)| has_header(f.exchange, n, w)))),
    ("json", |m, f, _| stated(&m.when.json).map(|all| all.iter().all(|(p, want)| has_json(f, p, want)))),
    ("errorCode", |m, f, _| m.when.codes.as_ref().map(|globs| f.codes().iter().any(|code| any(globs, code)))),
    ("bodyContains", |m, f, s| m.needles.as_ref().map(|ids| ids.iter().any(|id| s.text.needles(f).contains(*id)))),
    ("bodyRegex", |m, f, s| m.regexes.as_ref().map(|ids| ids.iter().any(|id| s.text.regex_matches(*id, f)))),
    ("reasonWords", |m, f, s| m.phrases.as_ref().map(|ids| ids.iter().any(|id| s.reason.regex_matches(*id, f)))),
    ("quotedStatus", |m, f, _| {
        m.when.quoted_status.as_ref().map(|set| f.quoted_statuses().iter().any(|status| set.contains(status)))
    }),
    ("quotedRpcCode", |m, f, _| {
        m.when.quoted_rpc.as_ref().map(|set| f.quoted_rpc_code().is_some_and(|code| set.contains(&code)))
    }),
];

fn stated<T>(all: &[T]) -> Option<&[T]> {
    (!all.is_empty()).then_some(all)
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
