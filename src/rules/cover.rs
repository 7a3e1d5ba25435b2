//! Whether one rule asks for no more than another. Then the later of the two never decides anything.
//!
//! The answer is sound, not complete: "covers" is certain, "does not cover" may be an oversight.

use super::index::takes_status;
use super::pattern::Pattern;
use super::rule::{Faults, Want, When};
use crate::glob::Glob;

/// Whether every outcome that `narrow` matches is one that `wide` matches too.
pub(crate) fn covers(wide: &When, narrow: &When) -> bool {
    if narrow.names_success() && !wide.names_success() {
        return false;
    }
    // A field that is added must be compared too: until it is, this does not compile.
    let When {
        status: _,
        status_range: _,
        faults: _,
        kind: _,
        tool: _,
        backend: _,
        mcp_error: _,
        rpc_code: _,
        quoted_status: _,
        quoted_rpc: _,
        envelope: _,
        target: _,
        headers: _,
        content_type: _,
        json: _,
        codes: _,
        contains: _,
        regex: _,
        phrases: _,
        not: _,
    } = wide;
    let not = match (&wide.not, &narrow.not) {
        (None, _) => true,
        (Some(_), None) => false,
        // What one may not be, the other must not be either.
        (Some(wide), Some(narrow)) => FIELDS.iter().all(|field| !(field.stated)(wide) || field.covers(narrow, wide)),
    };
    let by_status = |field: &&Field| !matches!(field.name, "httpStatus" | "httpStatusRange");
    not && statuses(wide, narrow)
        && FIELDS.iter().filter(by_status).all(|field| !(field.stated)(wide) || field.covers(wide, narrow))
}

/// The field of `not` that holds whenever the same field of the rule itself does.
pub(crate) fn ruled_out(when: &When) -> Option<&'static str> {
    let not = when.not.as_deref()?;
    FIELDS.iter().find(|field| field.covers(not, when)).map(|field| field.name)
}

/// One value of a list of alternatives: the field, the value in words, and the clauses with this value alone.
pub(crate) type Alternative = (&'static str, String, When);

/// What the rule would ask with each single value of its lists. Lists of one value are left out.
pub(crate) fn alternatives(when: &When) -> Vec<Alternative> {
    let only = |change: &dyn Fn(&mut When)| {
        let mut one = when.clone();
        change(&mut one);
        one
    };
    let mut all: Vec<Vec<Alternative>> = Vec::new();
    let status = when.status.iter().flatten();
    all.push(status.map(|s| ("httpStatus", s.to_string(), only(&|when| when.status = Some([*s].into())))).collect());
    let codes = when.rpc_code.iter().flatten();
    all.push(codes.map(|c| ("rpcCode", c.to_string(), only(&|when| when.rpc_code = Some([*c].into())))).collect());
    let tools = when.tool.iter().flatten();
    all.push(tools.map(|g| ("tool", g.to_string(), only(&|when| when.tool = Some(vec![g.clone()])))).collect());
    let backends = when.backend.iter().flatten();
    all.push(
        backends.map(|g| ("backend", g.to_string(), only(&|when| when.backend = Some(vec![g.clone()])))).collect(),
    );
    let codes = when.codes.iter().flatten();
    all.push(codes.map(|g| ("errorCode", g.to_string(), only(&|when| when.codes = Some(vec![g.clone()])))).collect());
    let needles = when.contains.iter().flatten();
    all.push(
        needles.map(|n| ("bodyContains", n.to_string(), only(&|when| when.contains = Some(vec![n.clone()])))).collect(),
    );
    let regexes = when.regex.iter().flatten();
    all.push(regexes.map(|r| ("bodyRegex", r.to_string(), only(&|when| when.regex = Some(vec![r.clone()])))).collect());
    let quoted = when.quoted_status.iter().flatten();
    let quote = |status: u16| only(&|when| when.quoted_status = Some([status].into()));
    all.push(quoted.map(|s| ("quotedStatus", s.to_string(), quote(*s))).collect());
    let faults = when.faults.iter().filter(|faults| !faults.any_tool_error).flat_map(|faults| &faults.transport);
    let alone = |fault| Faults { transport: [fault].into(), ..Faults::default() };
    all.push(faults.map(|f| ("exceptionType", f.to_string(), only(&|when| when.faults = Some(alone(*f))))).collect());
    all.into_iter().filter(|values| values.len() > 1).flatten().collect()
}

struct Field {
    name: &'static str,
    stated: fn(&When) -> bool,
    /// Both state the field; the first at least as widely as the second.
    wider: fn(&When, &When) -> Option<bool>,
}

impl Field {
    fn covers(&self, wide: &When, narrow: &When) -> bool {
        (self.stated)(wide) && (self.stated)(narrow) && (self.wider)(wide, narrow).unwrap_or(false)
    }
}

/// Every field but `not`, by itself.
const FIELDS: [Field; 19] = [
    Field {
        name: "httpStatus",
        stated: |when| when.status.is_some(),
        wider: |wide, narrow| Some(wide.status.as_ref()?.is_superset(narrow.status.as_ref()?)),
    },
    Field {
        name: "httpStatusRange",
        stated: |when| when.status_range.is_some(),
        wider: |wide, narrow| {
            let ((low, high), (from, to)) = (wide.status_range?, narrow.status_range?);
            Some(low <= from && to <= high)
        },
    },
    Field {
        name: "exceptionType",
        stated: |when| when.faults.is_some(),
        wider: |wide, narrow| {
            let (wide, narrow) = (wide.faults.as_ref()?, narrow.faults.as_ref()?);
            Some(wide.transport.is_superset(&narrow.transport) && (wide.any_tool_error || !narrow.any_tool_error))
        },
    },
    Field { name: "kind", stated: |when| when.kind.is_some(), wider: |wide, narrow| Some(wide.kind? == narrow.kind?) },
    Field {
        name: "mcpError",
        stated: |when| when.mcp_error.is_some(),
        wider: |wide, narrow| Some(wide.mcp_error? == narrow.mcp_error?),
    },
    Field {
        name: "target",
        stated: |when| when.target.is_some(),
        wider: |wide, narrow| Some(wide.target? == narrow.target?),
    },
    Field {
        name: "rpcCode",
        stated: |when| when.rpc_code.is_some(),
        wider: |wide, narrow| Some(wide.rpc_code.as_ref()?.is_superset(narrow.rpc_code.as_ref()?)),
    },
    Field {
        name: "quotedStatus",
        stated: |when| when.quoted_status.is_some(),
        wider: |wide, narrow| Some(wide.quoted_status.as_ref()?.is_superset(narrow.quoted_status.as_ref()?)),
    },
    Field {
        name: "quotedRpcCode",
        stated: |when| when.quoted_rpc.is_some(),
        wider: |wide, narrow| Some(wide.quoted_rpc.as_ref()?.is_superset(narrow.quoted_rpc.as_ref()?)),
    },
    Field {
        name: "envelope",
        stated: |when| when.envelope.is_some(),
        wider: |wide, narrow| Some(wide.envelope? == narrow.envelope?),
    },
    Field {
        name: "reasonWords",
        stated: |when| when.phrases.is_some(),
        wider: |wide, narrow| Some(regexes(wide.phrases.as_ref()?, narrow.phrases.as_ref()?)),
    },
    Field {
        name: "tool",
        stated: |when| when.tool.is_some(),
        wider: |wide, narrow| Some(globs(wide.tool.as_ref()?, narrow.tool.as_ref()?)),
    },
    Field {
        name: "backend",
        stated: |when| when.backend.is_some(),
        wider: |wide, narrow| Some(globs(wide.backend.as_ref()?, narrow.backend.as_ref()?)),
    },
    Field {
        name: "contentType",
        stated: |when| when.content_type.is_some(),
        wider: |wide, narrow| Some(globs(wide.content_type.as_ref()?, narrow.content_type.as_ref()?)),
    },
    Field {
        name: "errorCode",
        stated: |when| when.codes.is_some(),
        wider: |wide, narrow| Some(globs(wide.codes.as_ref()?, narrow.codes.as_ref()?)),
    },
    Field {
        name: "header",
        stated: |when| !when.headers.is_empty(),
        wider: |wide, narrow| Some(wants(&wide.headers, &narrow.headers)),
    },
    Field {
        name: "json",
        stated: |when| !when.json.is_empty(),
        wider: |wide, narrow| Some(wants(&wide.json, &narrow.json)),
    },
    Field {
        name: "bodyContains",
        stated: |when| when.contains.is_some(),
        wider: |wide, narrow| {
            let (wide, narrow) = (wide.contains.as_ref()?, narrow.contains.as_ref()?);
            Some(narrow.iter().all(|needle| wide.iter().any(|part| needle.contains(&**part))))
        },
    },
    Field {
        name: "bodyRegex",
        stated: |when| when.regex.is_some(),
        wider: |wide, narrow| Some(regexes(wide.regex.as_ref()?, narrow.regex.as_ref()?)),
    },
];

/// `httpStatus` and `httpStatusRange` together.
fn statuses(wide: &When, narrow: &When) -> bool {
    if wide.status.is_none() && wide.status_range.is_none() {
        return true;
    }
    let taken = |status: &u16| takes_status(wide, *status);
    match (&narrow.status, narrow.status_range) {
        (Some(set), _) => set.iter().filter(|status| takes_status(narrow, **status)).all(taken),
        (None, Some((from, to))) => (from..=to).all(|status| taken(&status)),
        (None, None) => false,
    }
}

fn globs(wide: &[Glob], narrow: &[Glob]) -> bool {
    narrow.iter().all(|glob| wide.iter().any(|other| glob_covers(other, glob)))
}

/// Two regexes are only known to be alike if they are written alike.
fn regexes(wide: &[Pattern], narrow: &[Pattern]) -> bool {
    narrow.iter().all(|regex| wide.iter().any(|other| other.as_str() == regex.as_str()))
}

/// A pattern without `?` that fits another pattern's own text fits whatever that one fits: its `*` takes the other's.
fn glob_covers(wide: &Glob, narrow: &Glob) -> bool {
    wide.as_str() == narrow.as_str()
        || ((narrow.is_literal() || !wide.as_str().contains('?')) && wide.matches(narrow.as_str()))
}

/// Each that is wanted widely is wanted narrowly too.
fn wants<N: PartialEq>(wide: &[(N, Want)], narrow: &[(N, Want)]) -> bool {
    wide.iter().all(|(name, want)| {
        let same = narrow.iter().filter(|(other, _)| other == name);
        same.into_iter().any(|(_, other)| match (want, other) {
            (Want::Present, Want::Present) => true,
            // The text `null` fits a value that counts as absent.
            (Want::Present, Want::Like(globs)) => !globs.iter().any(|glob| glob.matches("null")),
            (Want::Like(_), Want::Present) => false,
            (Want::Like(wide), Want::Like(narrow)) => globs(wide, narrow),
        })
    })
}

#[cfg(test)]
#[path = "cover_tests.rs"]
mod tests;
