//! Reads `match`.

use std::collections::BTreeSet;

use http::HeaderName;

use super::exceptions;
use crate::glob::Glob;
use crate::rules::codes;
use crate::rules::exchange::BackendKind;
use crate::rules::pattern::Pattern;
use crate::rules::phrase;
use crate::rules::rule::{Want, When};
use crate::rules::text::fold;
use crate::yaml::{At, Fields, Kind, Value};

/// Statuses that HTTP messages can carry.
const STATUS: std::ops::RangeInclusive<i64> = 100..=999;
/// JSON-RPC codes are whole numbers that a float holds exactly.
const CODE: std::ops::RangeInclusive<i64> = -9_007_199_254_740_991..=9_007_199_254_740_991;
/// The longest needle, regex or pointer, in bytes.
const TEXT_MAX: usize = 1_000;

/// Reads the clauses of a rule.
pub(super) fn when(at: At<'_>) -> Option<When> {
    at.map(|fields| {
        let clauses = clauses(fields);
        let not = fields.opt("not", "none of these may hold", |at| at.map(clauses_of_not)?);
        Some(When { not: not.map(Box::new), ..clauses? })
    })?
}

fn clauses_of_not(fields: &Fields<'_>) -> Option<When> {
    let clauses = clauses(fields);
    if fields.names().next().is_none() {
        return fields.at().fail("`not` must name at least one field");
    }
    clauses
}

/// The clauses that may stand in `match` and in `not`. A key that failed to read has been reported and reads as left out.
fn clauses(fields: &Fields<'_>) -> Option<When> {
    let status = fields.opt("httpStatus", "HTTP status, one or a list", |at| at.one_or_list(status));
    let status_range = fields.opt("httpStatusRange", "lowest and highest HTTP status, such as [500, 599]", range);
    let faults =
        fields.opt("exceptionType", "why no answer came: kinds of fault, or exception classes", exceptions::read);
    let contains =
        fields.opt("bodyContains", "texts within the failure's text, case ignored", |at| at.one_or_list(needle));
    let codes = fields.opt("errorCode", "the answer's own machine codes, globs, `_`, `-` and case ignored", |at| {
        at.one_or_list(code)
    });
    let tool = fields.opt("tool", "name of the tool, globs", |at| at.one_or_list(|at| at.glob()));
    let backend = fields.opt("backend", "name of the backend, globs", |at| at.one_or_list(|at| at.glob()));
    let kind = fields.opt("kind", "what the backend speaks", |at| {
        at.word(&[("mcp", BackendKind::Mcp), ("http", BackendKind::Http)])
    });
    let mcp_error = fields.opt("mcpError", "whether an MCP result has isError", |at| at.bool());
    let rpc_code = fields.opt("rpcCode", "JSON-RPC error code, one or a list", |at| at.one_or_list(|at| at.int(CODE)));
    let target = fields.opt("target", "whether the failing host is one that the arguments name", |at| at.bool());
    let headers = fields.opt("header", "header fields with a value (globs), or `true` for present", headers);
    let content_type = fields.opt("contentType", "media type, globs", |at| at.one_or_list(loose_glob));
    let json = fields.opt("json", "JSON pointers with a value (globs), or `true` for present", pointers);
    let regex = fields.opt("bodyRegex", "regexes over the failure's text", |at| at.one_or_list(regex));
    Some(When {
        status: status.map(BTreeSet::from_iter),
        status_range,
        faults,
        kind,
        tool,
        backend,
        mcp_error,
        rpc_code: rpc_code.map(BTreeSet::from_iter),
        target,
        headers: headers.unwrap_or_default(),
        content_type,
        json: json.unwrap_or_default(),
        codes,
        contains,
        regex,
        ..derived(fields)
    })
}

/// The clauses about what is worked out from an answer rather than read in it.
fn derived(fields: &Fields<'_>) -> When {
    let quoted_status = fields
        .opt("quotedStatus", "HTTP status that the failure quotes where a status stands", |at| at.one_or_list(status));
    let quoted_rpc = fields.opt("quotedRpcCode", "innermost JSON-RPC code that the failure quotes", |at| {
        at.one_or_list(|at| at.int(CODE))
    });
    let envelope = fields.opt("envelope", "whether a success is an error by its structure", |at| at.bool());
    let phrases =
        fields.opt("reasonWords", "phrases such as `token|key .. expired`, over codes and texts alike", |at| {
            at.one_or_list(phrase)
        });
    When {
        quoted_status: quoted_status.map(BTreeSet::from_iter),
        quoted_rpc: quoted_rpc.map(BTreeSet::from_iter),
        envelope,
        phrases,
        ..When::default()
    }
}

fn status(at: At<'_>) -> Option<u16> {
    if let Some(Value::Text(_)) = at.value() {
        let message = format!("{} must be a number such as 401, not {}", at.name(), at.found());
        return at.fail_with(message, |problem| problem.help("write `httpStatusRange: [500, 599]` for all of a kind"));
    }
    at.int(STATUS).and_then(|status| u16::try_from(status).ok())
}

fn range(at: At<'_>) -> Option<(u16, u16)> {
    let ends = at.list(status)?;
    match ends.as_slice() {
        [from, to] if from <= to => Some((*from, *to)),
        [from, to] => at.fail(format!("`httpStatusRange` must start with the lower end, not with {from} above {to}")),
        _ => at.fail(format!("`httpStatusRange` must have two ends such as [500, 599], not {}", ends.len())),
    }
}

fn needle(at: At<'_>) -> Option<Box<str>> {
    let text = at.text()?;
    if text.trim().is_empty() || text.len() > TEXT_MAX {
        return at.fail(format!("{} must have 1 to {TEXT_MAX} bytes that are not all spaces", at.name()));
    }
    Some(fold(&text).into())
}

fn code(at: At<'_>) -> Option<Glob> {
    let what = "a code such as `rate_limited` or `*throttl*`";
    at.parse(what, "[A-Za-z0-9]", |text| {
        let wild = |part: &str, with: &str| part.split(with).map(codes::normal).collect::<Vec<_>>().join(with);
        let normal: String = text.split('*').map(|part| wild(part, "?")).collect::<Vec<_>>().join("*");
        if normal.chars().all(|c| matches!(c, '*' | '?')) {
            return Err("it needs a letter or digit".to_owned());
        }
        Glob::new(&normal).map_err(|e| e.to_string())
    })
}

fn loose_glob(at: At<'_>) -> Option<Glob> {
    let glob = at.glob()?;
    Glob::new(&glob.as_str().to_lowercase()).ok()
}

fn want(at: At<'_>) -> Option<Want> {
    at.by_kind(Kind::Bool, present, |at| at.one_or_list(loose_glob).map(Want::Like))
}

fn present(at: At<'_>) -> Option<Want> {
    if at.bool()? {
        return Some(Want::Present);
    }
    at.fail_with("`false` says nothing here, a value is a text", |problem| {
        problem.help("write `\"false\"` for the value false; what must be absent goes under `not` with `true`")
    })
}

fn headers(at: At<'_>) -> Option<Vec<(HeaderName, Want)>> {
    let all = at.every_entry(|name, at| match HeaderName::try_from(&**name) {
        Ok(name) => want(at).map(|want| (name, want)),
        Err(_) => at.fail_key("this is not the name of a header field", |problem| problem),
    })?;
    Some(all.into_iter().map(|(_, header)| header).collect())
}

fn pointers(at: At<'_>) -> Option<Vec<(Box<str>, Want)>> {
    let all = at.every_entry(|pointer, at| {
        if pointer.len() <= TEXT_MAX && (pointer.is_empty() || pointer.starts_with('/')) {
            return want(at);
        }
        at.fail_key("a JSON pointer starts with `/`, such as `/error/code`", |problem| problem)
    })?;
    Some(all.into_iter().map(|(pointer, want)| (Box::from(&*pointer), want)).collect())
}

fn regex(at: At<'_>) -> Option<Pattern> {
    at.parse("a regex", ".", |text| {
        if text.len() > TEXT_MAX {
            return Err(format!("it has {} bytes, at most {TEXT_MAX} are read", text.len()));
        }
        let regex = Pattern::new(text).map_err(|e| in_short(&e))?;
        if regex.is_match(b"") { Err("it matches every text, also an empty one".to_owned()) } else { Ok(regex) }
    })
}

fn phrase(at: At<'_>) -> Option<Pattern> {
    at.parse("a phrase such as `rate limit*` or `token|key .. expired`", ".", |text| {
        if text.len() > TEXT_MAX {
            return Err(format!("it has {} bytes, at most {TEXT_MAX} are read", text.len()));
        }
        phrase::regex(text)
    })
}

fn in_short(error: &regex::Error) -> String {
    match error {
        regex::Error::CompiledTooBig(_) => "it is too large once compiled; narrow its repetitions".to_owned(),
        error => {
            let whole = error.to_string();
            let last = whole.lines().last().unwrap_or("").trim();
            match last.strip_prefix("error: ").unwrap_or(last) {
                "Unicode not allowed here" => "letters beyond ASCII stand within `(?u:…)`".to_owned(),
                said => said.to_owned(),
            }
        }
    }
}
