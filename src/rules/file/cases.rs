//! Reads one entry of a rule's `tests`: a short form of an exchange, and whether the rule must decide it.

use http::{HeaderMap, HeaderName, HeaderValue};

use super::exceptions;
use crate::rules::exchange::{BackendKind, Described, Exchange};
use crate::rules::rule::RuleTest;
use crate::yaml::{At, Fields};

/// Reads one test of a rule.
pub(super) fn test(at: At<'_>) -> Option<RuleTest> {
    at.map(|fields| {
        let exchange = exchange(fields);
        let expect_match =
            fields.need("expect", "whether the rule decides it", |at| at.word(&[("match", true), ("no-match", false)]));
        Some(RuleTest { exchange, expect_match: expect_match?, place: at.place() })
    })?
}

/// The short form of an exchange. What speaks MCP is told by `mcpError` and `rpcCode`, or by `kind`.
pub(super) fn exchange(fields: &Fields<'_>) -> Exchange {
    let status = fields.opt("status", "HTTP status of the answer", |at| at.int(100..=999));
    let headers = fields.opt("headers", "header fields of the answer", headers);
    let body = fields.opt("body", "body of the answer, or the text of an MCP error", |at| at.text());
    let mcp_error = fields.opt("mcpError", "the answer is an MCP result with this isError", |at| at.bool());
    let rpc_code =
        fields.opt("rpcCode", "the answer is a JSON-RPC error with this code", |at| at.int(i64::MIN..=i64::MAX));
    let faults = fields.opt("exceptionType", "no answer came: a kind of fault", exceptions::read);
    let tool = fields.opt("tool", "name of the tool", |at| at.text());
    let backend = fields.opt("backend", "name of the backend", |at| at.text());
    let targets = fields.opt("targets", "hosts that the arguments name", |at| at.one_or_list(|at| at.text()));
    let kind = fields.opt("kind", "what the backend speaks", |at| {
        at.word(&[("mcp", BackendKind::Mcp), ("http", BackendKind::Http)])
    });
    let described = Described {
        kind,
        status: status.and_then(|status| u16::try_from(status).ok()),
        headers: headers.unwrap_or_default(),
        body: body.as_deref().unwrap_or_default().to_owned(),
        mcp_error,
        rpc_code,
        fault: faults.and_then(|faults| faults.transport.first().copied()),
        tool: tool.unwrap_or_default(),
        backend: backend.unwrap_or_default(),
        targets: targets.unwrap_or_default().iter().map(|host| host.to_lowercase()).collect(),
    };
    if let Some(why) = described.contradiction() {
        fields.at().fail::<()>(format!("there is no such outcome: {why}"));
    }
    described.into_exchange()
}

fn headers(at: At<'_>) -> Option<HeaderMap> {
    let mut map = HeaderMap::new();
    for (_, (name, value)) in at.every_entry(|name, at| {
        let Ok(name) = HeaderName::try_from(&**name) else {
            return at.fail_key("this is not the name of a header field", |problem| problem);
        };
        let value = at.text()?;
        match HeaderValue::from_str(&value) {
            Ok(value) => Some((name, value)),
            Err(_) => at.fail("this is not the value of a header field"),
        }
    })? {
        map.append(name, value);
    }
    Some(map)
}
