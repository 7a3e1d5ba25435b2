//! Which rules are in question at all: by status, JSON-RPC code, kind of ending and needles seen, as sets of rule numbers.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use super::bits::Bits;
use super::exchange::Exchange;
use super::facts::Facts;
use super::matcher::{Matcher, Views};
use super::rule::When;
use super::search::Built;

/// The index of one table. It only ever leaves out rules that cannot match; the clauses themselves decide.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    by_status: ByStatus,
    by_rpc_code: HashMap<i64, Bits>,
    other_rpc_code: Bits,
    with_fault: Bits,
    without_fault: Bits,
    success: Bits,
    contains: ByNeedle,
    regexes: ByNeedle,
    phrases: ByNeedle,
}

/// Rules by the status that they take. Most statuses are named by no rule, so that many share one set.
#[derive(Clone, Debug, Default)]
struct ByStatus {
    /// Which of `sets` belongs to a status.
    set_of: Vec<u16>,
    sets: Vec<Bits>,
    /// Rules that take an answer without a status.
    without: Bits,
}

impl ByStatus {
    fn new(matchers: &[Matcher]) -> ByStatus {
        let mut without = Bits::empty(matchers.len());
        let mut named: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
        for (at, matcher) in matchers.iter().enumerate() {
            let when = &matcher.when;
            let statuses: Vec<u16> = match (&when.status, when.status_range) {
                (None, None) => {
                    without.insert(at);
                    continue;
                }
                (Some(set), _) => set.iter().copied().filter(|status| takes_status(when, *status)).collect(),
                (None, Some((from, to))) => (from..=to.min(STATUS_MAX)).collect(),
            };
            statuses.into_iter().for_each(|status| named.entry(status).or_default().push(at));
        }
        let mut sorted = ByStatus { set_of: vec![0; usize::from(STATUS_MAX)], sets: vec![without.clone()], without };
        let mut known: HashMap<Vec<usize>, u16> = HashMap::new();
        for (status, rules) in named {
            let next = u16::try_from(sorted.sets.len()).unwrap_or(0);
            let set = *known.entry(rules).or_insert_with_key(|rules| {
                let mut bits = sorted.without.clone();
                rules.iter().for_each(|rule| bits.insert(*rule));
                sorted.sets.push(bits);
                next
            });
            if let Some(place) = sorted.set_of.get_mut(usize::from(status)) {
                *place = set;
            }
        }
        sorted
    }

    fn rules_of(&self, status: Option<u16>) -> &Bits {
        let set = status.and_then(|status| self.set_of.get(usize::from(status)));
        set.and_then(|set| self.sets.get(usize::from(*set))).unwrap_or(&self.without)
    }
}

/// Rules by the needles of which they must have seen one, and those that need none.
#[derive(Clone, Debug, Default)]
struct ByNeedle {
    without: Bits,
    rules: Vec<Vec<usize>>,
}

impl ByNeedle {
    fn new<'m>(needles: impl Iterator<Item = Option<Cow<'m, [usize]>>>, count: usize, built: &Built) -> ByNeedle {
        let mut sorted = ByNeedle { without: Bits::empty(count), rules: vec![Vec::new(); built.needle_count()] };
        for (at, needles) in needles.enumerate() {
            match needles {
                None => sorted.without.insert(at),
                Some(needles) => needles.iter().for_each(|needle| {
                    if let Some(rules) = sorted.rules.get_mut(*needle) {
                        rules.push(at);
                    }
                }),
            }
        }
        sorted
    }

    fn rules_of(&self, seen: &Bits) -> Bits {
        let mut rules = self.without.clone();
        for needle in seen.iter() {
            self.rules.get(needle).into_iter().flatten().for_each(|rule| rules.insert(*rule));
        }
        rules
    }
}

/// One more than the largest status that HTTP messages can carry.
const STATUS_MAX: u16 = 1000;

impl Index {
    /// Sorts the rules of a table.
    pub(crate) fn new(matchers: &[Matcher], built: &Views) -> Index {
        let all = |wanted: &dyn Fn(&Matcher) -> bool| {
            let mut bits = Bits::empty(matchers.len());
            (0..).zip(matchers).filter(|(_, m)| wanted(m)).for_each(|(at, _)| bits.insert(at));
            bits
        };
        let contains = matchers.iter().map(|m| m.needles.as_deref().map(Cow::Borrowed));
        let regexes = matchers.iter().map(|m| built.text.guards(m.regexes.as_deref()?).map(Cow::Owned));
        let phrases = matchers.iter().map(|m| built.reason.guards(m.phrases.as_deref()?).map(Cow::Owned));
        let codes = matchers.iter().flat_map(|m| m.when.rpc_code.iter().flatten().copied());
        Index {
            by_status: ByStatus::new(matchers),
            by_rpc_code: codes
                .map(|code| (code, all(&|m| m.when.rpc_code.as_ref().is_none_or(|set| set.contains(&code)))))
                .collect(),
            other_rpc_code: all(&|m| m.when.rpc_code.is_none()),
            with_fault: all(&|m| m.when.faults.as_ref().is_none_or(|f| !f.transport.is_empty())),
            without_fault: all(&|m| m.when.faults.as_ref().is_none_or(|f| f.any_tool_error)),
            success: all(&|m| m.when.names_success()),
            contains: ByNeedle::new(contains, matchers.len(), &built.text),
            regexes: ByNeedle::new(regexes, matchers.len(), &built.text),
            phrases: ByNeedle::new(phrases, matchers.len(), &built.reason),
        }
    }

    /// The rules in question for a success, which must name one.
    pub(crate) fn for_success(&self, exchange: &Exchange) -> Bits {
        let mut rules = self.success.clone();
        self.narrow(exchange, &mut rules);
        rules
    }

    /// The rules in question for anything else. Reads the text of the failure once.
    pub(crate) fn for_failure(&self, facts: &Facts<'_>, built: &Views) -> Bits {
        let mut rules =
            if facts.exchange.fault.is_some() { self.with_fault.clone() } else { self.without_fault.clone() };
        self.narrow(facts.exchange, &mut rules);
        let seen = built.text.needles(facts);
        rules.keep(&self.contains.rules_of(seen));
        rules.keep(&self.regexes.rules_of(seen));
        rules.keep(&self.phrases.rules_of(built.reason.needles(facts)));
        rules
    }

    /// Whether any rule asks about successes.
    pub(crate) fn asks_about_success(&self) -> bool {
        self.success.iter().next().is_some()
    }

    fn narrow(&self, exchange: &Exchange, rules: &mut Bits) {
        rules.keep(self.by_status.rules_of(exchange.status));
        let by_code = exchange.rpc_code().and_then(|code| self.by_rpc_code.get(&code));
        rules.keep(by_code.unwrap_or(&self.other_rpc_code));
    }
}

/// Whether the status clauses of a rule hold for a status.
pub(crate) fn takes_status(when: &When, status: u16) -> bool {
    when.status.as_ref().is_none_or(|set| set.contains(&status))
        && when.status_range.is_none_or(|(from, to)| (from..=to).contains(&status))
}
