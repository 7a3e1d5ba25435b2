//! Whether a rule asks for what cannot be: fields that exclude each other, lists that nothing fits.
//!
//! The answer is sound, not complete: "never" is certain, silence may be an oversight.

use super::cover::ruled_out;
use super::exchange::BackendKind;
use super::index::takes_status;
use super::rule::{Faults, Want, When};

/// Why clauses exclude each other, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Contradiction {
    pub(crate) why: String,
    pub(crate) help: &'static str,
}

/// The fields that are lists without a value: none of them ever holds.
pub(crate) fn empty_lists(when: &When) -> Vec<&'static str> {
    let bare = |want: &Want| matches!(want, Want::Like(globs) if globs.is_empty());
    let nothing = |faults: &Faults| faults.transport.is_empty() && !faults.any_tool_error;
    let all = [
        ("httpStatus", when.status.as_ref().is_some_and(|set| set.is_empty())),
        ("exceptionType", when.faults.as_ref().is_some_and(nothing)),
        ("tool", when.tool.as_ref().is_some_and(Vec::is_empty)),
        ("backend", when.backend.as_ref().is_some_and(Vec::is_empty)),
        ("rpcCode", when.rpc_code.as_ref().is_some_and(|set| set.is_empty())),
        ("quotedStatus", when.quoted_status.as_ref().is_some_and(|set| set.is_empty())),
        ("quotedRpcCode", when.quoted_rpc.as_ref().is_some_and(|set| set.is_empty())),
        ("header", when.headers.iter().any(|(_, want)| bare(want))),
        ("contentType", when.content_type.as_ref().is_some_and(Vec::is_empty)),
        ("json", when.json.iter().any(|(_, want)| bare(want))),
        ("errorCode", when.codes.as_ref().is_some_and(Vec::is_empty)),
        ("bodyContains", when.contains.as_ref().is_some_and(Vec::is_empty)),
        ("bodyRegex", when.regex.as_ref().is_some_and(Vec::is_empty)),
        ("reasonWords", when.phrases.as_ref().is_some_and(Vec::is_empty)),
    ];
    all.into_iter().filter(|(_, is_empty)| *is_empty).map(|(field, _)| field).collect()
}

/// The first contradiction between fields.
pub(crate) fn contradiction(when: &When) -> Option<Contradiction> {
    between_kinds(when).or_else(|| between_statuses(when)).or_else(|| with_a_fault(when)).or_else(|| with_not(when))
}

/// The fields that ask for an MCP answer: `mcpError` for a result, `rpcCode` for an error.
fn of_mcp_answers(when: &When) -> Option<&'static str> {
    let fields = [("mcpError", when.mcp_error.is_some()), ("rpcCode", when.rpc_code.is_some())];
    fields.into_iter().find(|(_, is_stated)| *is_stated).map(|(field, _)| field)
}

fn between_kinds(when: &When) -> Option<Contradiction> {
    let field = of_mcp_answers(when)?;
    if when.kind == Some(BackendKind::Http) {
        let why = format!("`{field}` is about MCP answers, and `kind: http` leaves none");
        return Some(Contradiction { why, help: "remove one of the two; an HTTP answer has `httpStatus` and a body" });
    }
    let both = when.mcp_error.is_some() && when.rpc_code.is_some();
    both.then(|| Contradiction {
        why: "`mcpError` is about results and `rpcCode` about errors, and no answer is both".to_owned(),
        help: "make two rules of it, with the same `signature` if they are one kind of failure",
    })
}

fn between_statuses(when: &When) -> Option<Contradiction> {
    let (set, (from, to)) = (when.status.as_ref()?, when.status_range?);
    let is_empty = set.iter().all(|status| !takes_status(when, *status));
    is_empty.then(|| Contradiction {
        why: format!("nothing in `httpStatus` lies within `httpStatusRange: [{from}, {to}]`, and both must hold"),
        help: "remove one of the two, or make two rules of it",
    })
}

/// Where no answer came there is no status; where one broke off there is no MCP message.
fn with_a_fault(when: &When) -> Option<Contradiction> {
    let faults = when.faults.as_ref().filter(|faults| !faults.any_tool_error && !faults.transport.is_empty())?;
    let of_heads = [
        ("httpStatus", when.status.is_some()),
        ("httpStatusRange", when.status_range.is_some()),
        ("header", !when.headers.is_empty()),
        ("contentType", when.content_type.is_some()),
    ];
    let headless = faults.transport.iter().all(|fault| fault.is_before_any_answer());
    let of_head = of_heads.into_iter().find(|(_, is_stated)| headless && *is_stated).map(|(field, _)| field);
    let field = of_mcp_answers(when).or(of_head)?;
    let kinds = faults.transport.iter().map(|fault| fault.as_str()).collect::<Vec<_>>().join(", ");
    Some(Contradiction {
        why: format!("`exceptionType` is about calls without an answer ({kinds}), and `{field}` about an answer"),
        help: "remove one of the two, or make two rules of it",
    })
}

fn with_not(when: &When) -> Option<Contradiction> {
    let not = when.not.as_deref()?;
    let excluded = |status: &u16| {
        not.status.as_ref().is_some_and(|set| set.contains(status))
            || not.status_range.is_some_and(|(from, to)| (from..=to).contains(status))
    };
    let no_status_left = match (&when.status, when.status_range) {
        (Some(set), _) => set.iter().filter(|status| takes_status(when, **status)).all(excluded),
        (None, Some((from, to))) => (from..=to).all(|status| excluded(&status)),
        (None, None) => false,
    };
    let field = ruled_out(when).or(no_status_left.then_some("httpStatus"))?;
    Some(Contradiction {
        why: format!("`not` excludes all that `{field}` asks for"),
        help: "narrow what stands under `not`, or remove it",
    })
}
