//! Every path of the admin surface: what it does and which role it takes. The guard asks this table, the OpenAPI document is
//! drawn from it, and the answer to a wrong path names what there is.

use axum::http::Method;
use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::body;
use super::health::{Effective, Shown};
use super::overview::Overview;
use super::page::PAGES;
use super::reload::Applied;
use crate::config::Role;
use crate::diagnosis::Job;
use crate::rules::case;

/// Draws the schema of a body.
pub(super) type Draw = fn(&mut SchemaGenerator) -> Schema;

/// One method of one path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Route {
    /// `GET`, `POST` or `DELETE`. `GET` stands for `HEAD` as well.
    pub(super) method: &'static str,
    /// The path; `{name}` stands for one segment.
    pub(super) path: &'static str,
    /// The role that it takes; `None` lets everybody in, whatever the request is addressed to.
    pub(super) role: Option<Role>,
    /// What it does.
    pub(super) about: &'static str,
    /// Query parameters.
    pub(super) query: &'static [&'static str],
    /// The body that it takes.
    pub(super) body: Option<Draw>,
    /// The statuses of what went well.
    pub(super) codes: &'static [u16],
    /// What the answer then holds.
    pub(super) gives: Gives,
}

/// What an answer holds.
#[derive(Clone, Copy, Debug)]
pub(super) enum Gives {
    /// JSON of a known form.
    Json(Draw),
    /// A JSON object that is not described.
    Object,
    /// Something that is no JSON, by its media types.
    Other(&'static [&'static str]),
}

impl Route {
    const fn giving(self, draw: Draw) -> Route {
        Route { gives: Gives::Json(draw), ..self }
    }

    const fn telling(self, media: &'static [&'static str]) -> Route {
        Route { gives: Gives::Other(media), ..self }
    }

    const fn coded(self, codes: &'static [u16]) -> Route {
        Route { codes, ..self }
    }
}

/// What probes say, in either case.
const TEXT: &[&str] = &["text/plain; charset=utf-8"];
const HTML: &[&str] = &["text/html; charset=utf-8"];
const EXPOSITION: &[&str] = &[
    "text/plain; version=0.0.4; charset=utf-8",
    "application/openmetrics-text; version=1.0.0; charset=utf-8",
    "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited",
];

const fn open(path: &'static str, about: &'static str, codes: &'static [u16]) -> Route {
    Route { role: None, ..read(path, about, &[]).telling(TEXT).coded(codes) }
}

const fn read(path: &'static str, about: &'static str, query: &'static [&'static str]) -> Route {
    let role = Some(Role::Reader);
    Route { method: "GET", path, role, about, query, body: None, codes: &[200], gives: Gives::Object }
}

const fn write(
    path: &'static str,
    role: Role,
    about: &'static str,
    query: &'static [&'static str],
    body: Draw,
) -> Route {
    Route { method: "POST", role: Some(role), body: Some(body), ..read(path, about, query) }
}

/// A view of the status page, or a form on it that changes nothing.
pub(super) const fn page(method: &'static str, path: &'static str) -> Route {
    Route { method, ..read(path, "", &[]).telling(HTML) }
}

/// A path of the status page for everybody, whatever a request is addressed to.
pub(super) const fn anybody(method: &'static str, path: &'static str) -> Route {
    Route { role: None, ..page(method, path) }
}

const fn act(method: &'static str, path: &'static str, role: Role, about: &'static str) -> Route {
    Route { method, role: Some(role), ..read(path, about, &[]) }
}

fn drawn<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// What tells a document from others of the same scope and tool.
pub(super) const APART: &[&str] = &["backend", "tenant"];
/// What a list of documents can be narrowed by.
pub(super) const LIST: &[&str] = &["scope", "scopeId", "tenant", "backend", "tool", "status", "limit", "after"];
/// What tells whose view is asked for.
pub(super) const CALLER: &[&str] = &["tool", "backend", "session", "user", "project", "tenant"];
/// What a list of tools can be narrowed by.
pub(super) const TOOLS: &[&str] =
    &["backend", "session", "user", "project", "tenant", "status", "tool", "limit", "after"];
/// Whose tool list is asked for.
pub(super) const MANIFEST: &[&str] = &["backend", "session", "user", "project", "tenant", "roles", "profile"];
/// For whom an outcome is explained.
pub(super) const EXPLAIN: &[&str] = &["session", "user", "project", "tenant"];
/// Which entry an override stands on.
pub(super) const OVERRIDE: &[&str] = &["tool", "scope", "scopeId", "backend", "tenant"];
/// Which events are told.
pub(super) const EVENTS: &[&str] = &["kind", "backend", "tool", "after"];

/// All of them.
pub(super) const ROUTES: &[Route] = &[
    open("/livez", "Whether the process lives.", &[200]),
    open(
        "/readyz",
        "Whether toolvane can answer; 503 while it starts or drains. Says nothing about tools.",
        &[200, 503],
    ),
    open("/startupz", "Whether the start is over.", &[200, 503]),
    open("/metrics", "Prometheus metrics, in the format that the scraper asks for.", &[200]).telling(EXPOSITION),
    read("/v1/openapi.json", "This document.", &[]),
    read("/v1/health", "Health documents, page by page.", LIST),
    read("/v1/health/{scope}/{scopeId}/{tool}", "One health document; `-` is GLOBAL's scope id.", APART)
        .giving(drawn::<Shown>)
        .coded(&[200, 304]),
    read("/v1/lookup", "What a caller is told about a tool.", CALLER).giving(drawn::<Effective>),
    read("/v1/tools", "Every tool that is known by name, and how it stands for a caller.", TOOLS),
    read("/v1/overview", "Every tool as it stands for everybody, its rates, and its last 24 hours.", &[])
        .giving(drawn::<Overview>),
    read("/v1/manifest", "What a caller would see of the tools, and why not the rest.", MANIFEST),
    read("/v1/integrations", "What backs tools, whether it is set up, and the tools that it unlocks.", &[]),
    read("/v1/integrations/{id}", "One integration.", &[]),
    write(
        "/v1/explain",
        Role::Reader,
        "Which rule decides an exchange, which clause failed in each earlier one, and what follows. Changes nothing.",
        EXPLAIN,
        drawn::<case::Raw>,
    ),
    read("/v1/overrides", "The overrides that stand.", &[]),
    read("/v1/events", "What happens, as server-sent events; resumed by `Last-Event-ID` or `after`.", EVENTS)
        .telling(&["text/event-stream"]),
    read("/v1/config", "The configuration in force, with secrets as `*`.", &[]),
    write(
        "/v1/health/{scope}/{scopeId}/{tool}/unavailable",
        Role::HealthWriter,
        "Sets DOWN.",
        APART,
        drawn::<body::Statement>,
    )
    .giving(drawn::<Shown>),
    write(
        "/v1/health/{scope}/{scopeId}/{tool}/degraded",
        Role::HealthWriter,
        "Sets DEGRADED.",
        APART,
        drawn::<body::Statement>,
    )
    .giving(drawn::<Shown>),
    write(
        "/v1/health/{scope}/{scopeId}/{tool}/available",
        Role::HealthWriter,
        "Sets OK.",
        APART,
        drawn::<body::Statement>,
    )
    .giving(drawn::<Shown>),
    write(
        "/v1/health/{scope}/{scopeId}/{tool}/cooldowns",
        Role::HealthWriter,
        "Arms a cooldown, or moves the deadline of one.",
        APART,
        drawn::<body::Cooldown>,
    )
    .giving(drawn::<Shown>),
    write(
        "/v1/health/{scope}/{scopeId}/{tool}/clear",
        Role::HealthWriter,
        "Removes cooldowns, and without `cooldownsOnly` sets OK.",
        APART,
        drawn::<body::Clear>,
    )
    .giving(drawn::<Shown>),
    Route {
        query: APART,
        ..act("DELETE", "/v1/health/{scope}/{scopeId}/{tool}", Role::Operator, "Deletes a document for good.")
            .coded(&[204])
    },
    write("/v1/override", Role::Operator, "Decides against the evidence, until an end.", &[], drawn::<body::Decision>)
        .giving(drawn::<Shown>),
    Route {
        query: OVERRIDE,
        ..act("DELETE", "/v1/override", Role::Operator, "Takes an override back.").giving(drawn::<Shown>)
    },
    read("/v1/diagnosis/jobs", "Diagnosis jobs: those that wait, are worked on, or were done lately.", &["state"]),
    write(
        "/v1/diagnosis/jobs/claim",
        Role::HealthWriter,
        "Leases the next job that is due; 204 if there is none.",
        &[],
        drawn::<body::Lease>,
    )
    .giving(drawn::<Job>)
    .coded(&[200, 204]),
    write(
        "/v1/diagnosis/jobs/{id}/claim",
        Role::HealthWriter,
        "Leases one job, or prolongs one's own lease.",
        &[],
        drawn::<body::Lease>,
    )
    .giving(drawn::<Job>),
    write(
        "/v1/diagnosis/jobs/{id}/complete",
        Role::HealthWriter,
        "Answers a job. A malformed answer is taken too: it becomes DEGRADED for 15 minutes.",
        &[],
        drawn::<crate::diagnosis::answer::Answer>,
    ),
    Route {
        query: &["backend", "user"],
        ..act(
            "POST",
            "/v1/tools/{tool}/recheck",
            Role::Prober,
            "Calls a SAFE_PROBE tool once; if it works, its next call passes.",
        )
    },
    act("POST", "/v1/integrations/invalidate", Role::Operator, "Has all integrations asked anew.").coded(&[202]),
    act("POST", "/v1/integrations/{id}/invalidate", Role::Operator, "Has an integration asked anew.").coded(&[202]),
    act("POST", "/v1/reload", Role::Operator, "Reads configuration and rules again; 422 keeps what is in force.")
        .giving(drawn::<Applied>),
    act(
        "POST",
        "/v1/drain",
        Role::Operator,
        "Announces the end: not ready any more, health frozen, callers told to connect anew; served on until SIGTERM.",
    )
    .coded(&[202]),
];

/// The MCP server, which describes itself and is no part of the OpenAPI document. Each of its tools has a role of its own.
pub(super) const MCP: Route = act("POST", "/mcp", Role::Reader, "MCP over streamable HTTP.");

/// The route of a request, if there is one.
pub(super) fn find(method: &Method, path: &str) -> Option<&'static Route> {
    let wanted = if *method == Method::HEAD { "GET" } else { method.as_str() };
    ROUTES.iter().chain([&MCP]).chain(PAGES).find(|route| route.method == wanted && fits(route.path, path))
}

pub(super) fn fits(pattern: &str, path: &str) -> bool {
    let mut given = path.split('/');
    let all = pattern.split('/').all(|part| {
        given.next().is_some_and(|given| if part.starts_with('{') { !given.is_empty() } else { part == given })
    });
    all && given.next().is_none()
}

/// The role that a request takes, also where the table does not know it: then what changes something is the operator's.
pub(super) fn role(method: &Method, path: &str) -> Option<Role> {
    match find(method, path) {
        Some(route) => route.role,
        None if is_read(method) => Some(Role::Reader),
        None => Some(Role::Operator),
    }
}

/// Whether a request changes something, if it is let in: then it is audited.
pub(super) fn is_write(method: &Method, path: &str) -> bool {
    !is_read(method) && role(method, path) != Some(Role::Reader)
}

/// Whether a request only reads, by its method.
pub(super) fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// The paths, for whoever asked for another.
pub(super) fn paths() -> String {
    let mut paths: Vec<&str> = PAGES.iter().chain(ROUTES).chain([&MCP]).map(|route| route.path).collect();
    paths.dedup();
    paths.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_takes_the_role_of_its_row_and_what_no_row_knows_the_strictest() {
        let role = |method: Method, path| role(&method, path);
        assert_eq!(role(Method::GET, "/livez"), None);
        assert_eq!(role(Method::HEAD, "/v1/health"), Some(Role::Reader));
        assert_eq!(role(Method::POST, "/v1/health/USER/alice/x/unavailable"), Some(Role::HealthWriter));
        assert_eq!(role(Method::POST, "/v1/health/USER//x/unavailable"), Some(Role::Operator));
        assert_eq!(role(Method::DELETE, "/v1/health/USER/alice/x"), Some(Role::Operator));
        assert_eq!(role(Method::POST, "/v1/never-heard-of"), Some(Role::Operator));
        assert_eq!(role(Method::POST, "/livez"), Some(Role::Operator));
        assert_eq!(role(Method::GET, "/never-heard-of"), Some(Role::Reader));
    }
}
