//! The view of what happens, newest first.

use std::collections::BTreeMap;
use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Map, Value};

use super::show;
use super::tools::link;
use super::view::Frame;
use super::words::{Moment, Pill};
use crate::admin::Admin;
use crate::admin::query::{Parameters, Query};
use crate::admin::target::Who;
use crate::clock::Wall;
use crate::telemetry::bus::{Happening, Kind};

type Given = Query<BTreeMap<String, String>>;

/// Most events on one page.
const EVENTS_MAX: usize = 300;
/// Most on the page of a tool.
const OF_TOOL_MAX: usize = 50;

/// One event as a line.
pub(super) struct Told {
    pub(super) number: u64,
    pub(super) kind: &'static str,
    pub(super) when: Option<Moment>,
    pub(super) subject: String,
    pub(super) link: String,
    /// What a status became, where it is one that changed.
    pub(super) became: Option<Pill>,
    pub(super) words: String,
}

/// A kind that can be chosen.
struct Choice {
    kind: &'static str,
    on: bool,
}

#[derive(Template)]
#[template(path = "events.html")]
struct All {
    frame: Frame,
    choices: Vec<Choice>,
    tool: String,
    told: Vec<Told>,
    older: bool,
}

/// `GET /events`.
pub(super) async fn all(State(admin): State<Arc<Admin>>, who: Who, Query(given): Given) -> Response {
    let given = match Parameters::checked(given, &["kind", "tool"]) {
        Ok(given) => given,
        Err(refusal) => return *refusal,
    };
    let now = admin.clock.now();
    let (kind, tool) = (given.text("kind"), given.text("tool").unwrap_or_default().to_owned());
    let wanted = |happening: &Happening| {
        kind.is_none_or(|kind| happening.kind.as_str() == kind)
            && (tool.is_empty() || fact(&happening.facts, "toolName") == tool)
    };
    let mut told = latest(&admin, now.wall, EVENTS_MAX + 1, wanted);
    let older = told.len() > EVENTS_MAX;
    told.truncate(EVENTS_MAX);
    let choice = |of: Kind| Choice { kind: of.as_str(), on: kind == Some(of.as_str()) };
    let choices = Kind::ALL.map(choice).into();
    show(
        StatusCode::OK,
        &All { frame: Frame::new((&admin, &who), "Events", "/events", now), choices, tool, told, older },
    )
}

/// What happened to a tool of late.
pub(super) fn of_tool(admin: &Admin, backend: &str, tool: &str, now: Wall) -> Vec<Told> {
    latest(admin, now, OF_TOOL_MAX, |happening| {
        fact(&happening.facts, "backend") == backend && fact(&happening.facts, "toolName") == tool
    })
}

fn latest(admin: &Admin, now: Wall, max: usize, wanted: impl Fn(&Happening) -> bool) -> Vec<Told> {
    let kept = admin.telemetry.bus().after(0, usize::MAX).happenings;
    kept.iter().rev().filter(|happening| wanted(happening)).take(max).map(|happening| told(happening, now)).collect()
}

fn told(happening: &Happening, now: Wall) -> Told {
    let facts = &happening.facts;
    let (backend, tool) = (fact(facts, "backend"), fact(facts, "toolName"));
    let place = match (tool.as_str(), fact(facts, "integration")) {
        ("", integration) if !integration.is_empty() => integration,
        ("", _) => backend.clone(),
        (tool, _) => tool.to_owned(),
    };
    let scope = [fact(facts, "scope"), fact(facts, "scopeId")].join(" ");
    let scope = scope.trim();
    let became = match fact(facts, "to").as_str() {
        "OK" => Some(Pill::new("OK")),
        "DEGRADED" => Some(Pill::new("DEGRADED")),
        "DOWN" => Some(Pill::new("DOWN")),
        _ => None,
    };
    Told {
        number: happening.number,
        kind: happening.kind.as_str(),
        when: fact(facts, "at").parse().ok().map(|at| Moment::new(at, now)),
        link: if tool.is_empty() { String::new() } else { link(&backend, &tool) },
        subject: if scope.is_empty() { place } else { format!("{place} ({scope})") },
        became,
        words: words(facts),
    }
}

/// The facts that are worth a word each, in the order in which they read best.
fn words(facts: &Map<String, Value>) -> String {
    const NAMES: [&str; 18] = [
        "change",
        "result",
        "who",
        "what",
        "outcome",
        "signature",
        "classification",
        "userId",
        "note",
        "reason",
        "error",
        "hash",
        "from",
        "to",
        "users",
        "statusReason",
        "detail",
        "problems",
    ];
    let is_status = matches!(fact(facts, "to").as_str(), "OK" | "DEGRADED" | "DOWN");
    let told = NAMES.iter().filter(|name| !(is_status && matches!(**name, "from" | "to")));
    let mut words: Vec<String> = told.map(|name| fact(facts, name)).filter(|word| !word.is_empty()).collect();
    if let Some(decision) = facts.get("override").and_then(Value::as_object) {
        words.extend(["force", "by", "reason"].map(|name| fact(decision, name)));
    }
    words.join(" · ")
}

/// A fact as text; empty where it is absent.
fn fact(facts: &Map<String, Value>, name: &str) -> String {
    match facts.get(name) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}
