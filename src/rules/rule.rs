//! One rule in its valid form: what it asks of an exchange and what it says when all of that holds (DESIGN 6).

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderName;

use super::exchange::BackendKind;
use super::pattern::Pattern;
use super::vocabulary::{Classification, DispatchCode, HealthAction, Scope, TransportFault};
use crate::glob::Glob;
use crate::yaml::{Place, Source};

/// The id of the last rule of every table; new rules of a layer that name no place go right before it.
pub const FALLBACK: &str = "fallback";

/// A rule that can be relied on.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Unique within a table.
    pub id: Arc<str>,
    /// Before which rule a layer puts it, wherever its id stood.
    pub before: Option<Before>,
    /// What must hold.
    pub when: When,
    /// What is then said.
    pub then: Then,
    /// Automatic maintenance must not touch it.
    pub locked: bool,
    /// Exchanges that must, or must not, match.
    pub tests: Vec<RuleTest>,
    /// Where it is written.
    pub origin: Origin,
}

/// The rule before which another is put.
#[derive(Clone, Debug)]
pub struct Before {
    /// Its id.
    pub id: Arc<str>,
    /// Where that is written.
    pub place: Place,
}

/// Where something of a rule file is written.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The file.
    pub source: Arc<Source>,
    /// The place in it.
    pub place: Place,
}

impl fmt::Display for Origin {
    /// As compilers write it: `file:line:column`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, column) = self.source.line_column(self.place);
        write!(f, "{}:{line}:{column}", self.source.name())
    }
}

/// What a matching rule says.
#[derive(Clone, Debug)]
pub struct Then {
    /// Short stable name of this kind of failure, at most 64 characters.
    pub signature: Arc<str>,
    /// What it says about the tool.
    pub classification: Classification,
    /// Where the cooldown comes from.
    pub cooldown: Cooldown,
    /// How far a hint may reach for this rule; the table's bound otherwise.
    pub hint_max: Option<Duration>,
    /// What it does to the status at once.
    pub health_action: HealthAction,
    /// Goes before the default scopes of DESIGN 5.
    pub scope: Option<Scope>,
    /// Goes before the derived code.
    pub dispatch_code: Option<DispatchCode>,
    /// The answer is the protocol's, not the tool's: it neither trips nor clears, whatever the classification.
    pub neutral: bool,
    /// A 5xx or 429 of a `tools/call` is to be answered in the result shape.
    pub answer_as_result: bool,
    /// Shown in history.
    pub note: Option<Arc<str>>,
}

/// Where a rule's cooldown comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Cooldown {
    /// The classification's own (DESIGN 7).
    #[default]
    Default,
    /// Stated by the rule.
    Fixed(Duration),
    /// The answer's own hint, whatever its status.
    Hint,
    /// The value of a header field: seconds, a date, or a duration.
    Header(HeaderName),
}

/// What a rule asks. Fields are ANDed, the values of one field are ORed; without any field it matches everything.
#[derive(Clone, Debug, Default)]
pub struct When {
    /// `httpStatus`.
    pub status: Option<BTreeSet<u16>>,
    /// `httpStatusRange`, inclusive.
    pub status_range: Option<(u16, u16)>,
    /// `exceptionType`.
    pub faults: Option<Faults>,
    /// `kind`: what the backend speaks.
    pub kind: Option<BackendKind>,
    /// `tool`.
    pub tool: Option<Vec<Glob>>,
    /// `backend`.
    pub backend: Option<Vec<Glob>>,
    /// `mcpError`: `isError` of an MCP result.
    pub mcp_error: Option<bool>,
    /// `rpcCode`.
    pub rpc_code: Option<BTreeSet<i64>>,
    /// `quotedStatus`: statuses, of which the failure quotes one in the position of a status.
    pub quoted_status: Option<BTreeSet<u16>>,
    /// `quotedRpcCode`: JSON-RPC codes, of which the innermost that the failure quotes is one.
    pub quoted_rpc: Option<BTreeSet<i64>>,
    /// `envelope`: whether the answer calls itself a success and is an error by its structure.
    pub envelope: Option<bool>,
    /// `target`: whether the failing host is one that the arguments name.
    pub target: Option<bool>,
    /// `header`: each must be there with a value that fits.
    pub headers: Vec<(HeaderName, Want)>,
    /// `contentType`: the media type, without parameters; lower case.
    pub content_type: Option<Vec<Glob>>,
    /// `json`: pointers into the body, `structuredContent` or the error's `data`; each must lead to a value that fits.
    pub json: Vec<(Box<str>, Want)>,
    /// `errorCode` in the normal form of codes, `*` and `?` kept.
    pub codes: Option<Vec<Glob>>,
    /// `bodyContains`, folded.
    pub contains: Option<Vec<Box<str>>>,
    /// `bodyRegex`, over the bytes of the text as it came; classes and case are those of ASCII unless `(?u)` says otherwise.
    pub regex: Option<Vec<Pattern>>,
    /// `reasonWords`: phrases over the words of the reason (see [`super::phrase`]).
    pub phrases: Option<Vec<Pattern>>,
    /// `not`: none of its fields may hold.
    pub not: Option<Box<When>>,
}

/// What is asked of a value that may be absent.
#[derive(Clone, Debug)]
pub enum Want {
    /// Present and not null, whatever it is.
    Present,
    /// Fits one of the globs, which are lower case; the value's case is ignored.
    Like(Vec<Glob>),
}

impl Want {
    /// Whether `value` is what is wanted.
    pub fn fits(&self, value: &str) -> bool {
        match self {
            Want::Present => true,
            Want::Like(globs) => {
                let value = value.to_lowercase();
                globs.iter().any(|glob| glob.matches(&value))
            }
        }
    }
}

/// The values of `exceptionType`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Transport faults.
    pub transport: BTreeSet<TransportFault>,
    /// Any error that came as an answer: what a tool's own exception class stands for.
    pub any_tool_error: bool,
    /// The class names that were taken for a tool's own.
    pub own_classes: Vec<Box<str>>,
}

/// One entry of a rule's `tests`.
#[derive(Clone, Debug)]
pub struct RuleTest {
    /// What is judged, in the form of a case (see [`super::case`]).
    pub exchange: super::exchange::Exchange,
    /// Whether the rule must be the one that decides it.
    pub expect_match: bool,
    /// Where it is written.
    pub place: Place,
}

impl When {
    /// Whether the rule speaks of successful answers: it names a 2xx or 3xx status, or `mcpError: false`. Only such
    /// rules are asked about a success (DESIGN 4, "no rule says otherwise").
    pub fn names_success(&self) -> bool {
        let status = self.status.as_ref().is_some_and(|set| set.range(100..400).next().is_some());
        let range = self.status_range.is_some_and(|(from, to)| from < 400 && to >= 100);
        self.mcp_error == Some(false) || status || (range && self.status.is_none())
    }

    /// Whether any field reads the text of the answer.
    pub fn reads_text(&self) -> bool {
        self.contains.is_some()
            || self.regex.is_some()
            || self.phrases.is_some()
            || self.quoted_status.is_some()
            || self.quoted_rpc.is_some()
            || self.not.as_ref().is_some_and(|not| not.reads_text())
    }

    /// Whether any field reads the body of the answer in some form.
    pub fn reads_body(&self) -> bool {
        self.reads_text()
            || !self.json.is_empty()
            || self.codes.is_some()
            || self.not.as_ref().is_some_and(|not| not.reads_body())
    }
}
