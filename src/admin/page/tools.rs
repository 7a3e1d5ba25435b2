//! The view of all tools, and that of one.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use super::events::{self, Told};
use super::show;
use super::view::Frame;
use super::words::{Moment, Pill, Strip, percent, rate};
use crate::admin::Admin;
use crate::admin::overview::{self, Others, Row, word};
use crate::admin::past::{Past, TOOLS_MAX};
use crate::admin::query::{Parameters, Path, Query};
use crate::admin::target::Who;
use crate::clock::{Now, Wall};
use crate::health::document::{ANY_BACKEND, WHOLE_BACKEND};
use crate::health::{Document, Filter, Force, Status};

type Given = Query<BTreeMap<String, String>>;

/// Most tools on one page.
const ROWS_MAX: usize = 1_000;
/// Most entries of a tool's history, and most documents, on its page.
const ENTRIES_MAX: usize = 200;
const SORTS: [&str; 4] = ["status", "name", "calls", "failed"];

/// One tool as a line.
struct Line {
    /// Tells it from the others.
    key: String,
    link: String,
    name: String,
    backend: String,
    pill: Pill,
    /// What stands against it besides its health.
    against: String,
    badges: Vec<String>,
    since: Option<Moment>,
    why: String,
    signature: String,
    back: Option<Moment>,
    calls: String,
    failed: String,
    refused: String,
    strip: Option<Strip>,
}

impl Line {
    fn new(row: &Row, now: Wall) -> Line {
        let whole = &*row.tool == WHOLE_BACKEND;
        let mut badges = Vec::new();
        badges.extend(row.forced.as_ref().map(|forced| format!("override: {}", force(forced.force))));
        if row.users_affected > 0 {
            badges.push(format!(
                "{} user{} affected",
                row.users_affected,
                if row.users_affected == 1 { "" } else { "s" }
            ));
        }
        let text = |text: &Option<Arc<str>>| text.as_deref().unwrap_or_default().to_owned();
        let against = row.status_reason.map(|reason| {
            let reason = reason.as_str().replace('_', " ");
            if row.listed { reason } else { format!("hidden: {reason}") }
        });
        Line {
            against: against.unwrap_or_default(),
            key: format!("{}/{}", row.backend, row.tool),
            link: link(&row.backend, &row.tool),
            name: if whole { "whole backend".to_owned() } else { row.tool.to_string() },
            backend: row.backend.to_string(),
            pill: Pill::new(row.word()),
            badges,
            since: Moment::maybe(row.since, now),
            why: text(&row.note),
            signature: text(&row.signature),
            back: Moment::maybe(row.expected_recovery_at.filter(|_| row.status != Status::Ok), now),
            calls: rate(row.calls_per_minute),
            failed: row.failed_share.map(percent).unwrap_or_default(),
            refused: refused(row.refused_per_minute),
            strip: (!row.cells.is_empty()).then(|| Strip::new(&row.cells)),
        }
    }
}

fn refused(per_minute: f64) -> String {
    if per_minute > 0.0 { rate(per_minute) } else { String::new() }
}

fn force(force: Force) -> &'static str {
    match force {
        Force::Ok => "OK",
        Force::Down => "DOWN",
        Force::Observe => "observe",
    }
}

/// The path of a tool's page.
pub(super) fn link(backend: &str, tool: &str) -> String {
    let part = crate::config::percent_encoded;
    format!("/tools/{}/{}", part(backend), part(tool))
}

/// How many tools stand how.
struct Count {
    status: &'static str,
    pill: Pill,
    count: usize,
}

/// A heading that sorts.
struct Sort {
    key: &'static str,
    on: bool,
    query: String,
}

#[derive(Template)]
#[template(path = "tools.html")]
struct All {
    frame: Frame,
    counts: Vec<Count>,
    lines: Vec<Line>,
    left_out: usize,
    query: String,
    status: String,
    sorts: Vec<Sort>,
    from: Moment,
    tools_max: usize,
    others: Vec<Other>,
}

/// The calls of a backend's tools that have no line.
struct Other {
    backend: String,
    calls: String,
    failed: String,
    refused: String,
}

impl From<Others> for Other {
    fn from(others: Others) -> Other {
        Other {
            backend: others.backend.to_string(),
            calls: rate(others.calls_per_minute),
            failed: others.failed_share.map(percent).unwrap_or_default(),
            refused: refused(others.refused_per_minute),
        }
    }
}

impl All {
    fn sort(&self, key: &str) -> Option<&Sort> {
        self.sorts.iter().find(|sort| sort.key == key)
    }
}

/// `GET /`.
pub(super) async fn all(State(admin): State<Arc<Admin>>, who: Who, Query(given): Given) -> Response {
    let given = match Parameters::checked(given, &["q", "status", "sort"]) {
        Ok(given) => given,
        Err(refusal) => return *refusal,
    };
    let now = admin.clock.now();
    let rows = overview::rows(&admin, now);
    let text = |name: &str| given.text(name).unwrap_or_default().to_owned();
    let (query, status) = (text("q"), text("status"));
    let sorted_by = SORTS.into_iter().find(|sort| given.text("sort") == Some(sort)).unwrap_or("status");
    let counts = ["DOWN", "RETESTING", "DEGRADED", "HIDDEN", "OK"].map(|status| Count {
        status,
        pill: Pill::new(status),
        count: rows.iter().filter(|row| row.word() == status).count(),
    });
    let mut rows: Vec<Row> = rows.into_iter().filter(|row| fits(row, &query, &status)).collect();
    rows.sort_by(|one, other| order(sorted_by, one, other));
    let sort = |key| Sort {
        key,
        on: key == sorted_by,
        query: format!("?sort={key}&status={}&q={}", super::part(&status), super::part(&query)),
    };
    show(
        StatusCode::OK,
        &All {
            frame: Frame::new((&admin, &who), "Tools", "/", now),
            counts: counts.into(),
            left_out: rows.len().saturating_sub(ROWS_MAX),
            lines: rows.iter().take(ROWS_MAX).map(|row| Line::new(row, now.wall)).collect(),
            sorts: SORTS.map(sort).into(),
            query,
            status,
            from: Moment::new(Past::begin(now.wall), now.wall),
            tools_max: TOOLS_MAX,
            others: overview::others(&admin, now).into_iter().map(Other::from).collect(),
        },
    )
}

fn fits(row: &Row, query: &str, status: &str) -> bool {
    let query = query.to_lowercase();
    let holds = |text: &str| text.to_lowercase().contains(&query);
    (status.is_empty() || row.word().eq_ignore_ascii_case(status))
        && (query.is_empty() || holds(&row.tool) || holds(&row.backend) || row.signature.as_deref().is_some_and(holds))
}

fn order(by: &str, one: &Row, other: &Row) -> Ordering {
    let name = |row: &Row| (Arc::clone(&row.backend), Arc::clone(&row.tool));
    let failed = |row: &Row| row.failed_share.unwrap_or(-1.0);
    let first = match by {
        "name" => Ordering::Equal,
        "calls" => other.calls_per_minute.total_cmp(&one.calls_per_minute),
        "failed" => failed(other).total_cmp(&failed(one)),
        _ => one.rank().cmp(&other.rank()),
    };
    first.then_with(|| name(one).cmp(&name(other)))
}

/// What is held about a tool at one scope.
struct Held {
    scope: String,
    id: String,
    place: String,
    pill: Pill,
    since: Moment,
    signature: String,
    by: String,
    next_trial: Option<Moment>,
    hint: String,
}

/// A cooldown.
struct Cooling {
    signature: String,
    scope: String,
    user: String,
    class: String,
    hits: u64,
    level: u32,
    until: Moment,
    over: bool,
}

/// An entry of a history.
struct Episode {
    at: Wall,
    when: Moment,
    scope: String,
    pill: Pill,
    class: String,
    by: String,
    note: String,
}

#[derive(Template)]
#[template(path = "tool.html")]
struct One {
    frame: Frame,
    line: Line,
    row: Row,
    next_trial: Option<Moment>,
    until: Option<Moment>,
    held: Vec<Held>,
    cooling: Vec<Cooling>,
    history: Vec<Episode>,
    told: Vec<Told>,
    left_out: usize,
    from: Moment,
    /// The tool as an argument of a command.
    argument: String,
}

/// What is shown in place of a tool that nobody knows.
#[derive(Template)]
#[template(path = "missing.html")]
struct Missing {
    frame: Frame,
    detail: String,
}

/// `GET /tools/{backend}/{tool}`.
pub(super) async fn one(
    State(admin): State<Arc<Admin>>,
    who: Who,
    Path((backend, tool)): Path<(String, String)>,
) -> Response {
    let now = admin.clock.now();
    let documents = documents(&admin, &backend, &tool, now);
    let row = overview::rows(&admin, now).into_iter().find(|row| *row.backend == *backend && *row.tool == *tool);
    // What is held about a whole backend, or about the name at any backend, makes no tool of a name and no backend.
    let is_named = |document: &Document| document.key.tool_name == tool && document.key.backend == backend;
    let is_held = documents.iter().any(is_named);
    let Some(row) = row.or_else(|| is_held.then(|| overview::fine((backend.as_str().into(), tool.as_str().into()))))
    else {
        let detail = format!("no list, no route and no document names the tool {tool:?} of the backend {backend:?}");
        let frame = Frame::new((&admin, &who), "No such tool", "/", now).still();
        return show(StatusCode::NOT_FOUND, &Missing { frame, detail });
    };
    let mut history: Vec<Episode> = documents.iter().flat_map(|document| past_of(document, now.wall)).collect();
    history.sort_by_key(|entry| std::cmp::Reverse(entry.at));
    history.truncate(ENTRIES_MAX);
    let line = Line::new(&row, now.wall);
    show(
        StatusCode::OK,
        &One {
            frame: Frame::new((&admin, &who), line.name.clone(), "/", now),
            next_trial: Moment::maybe(row.next_trial_at, now.wall),
            until: row.forced.as_ref().map(|forced| Moment::new(forced.until, now.wall)),
            left_out: documents.len().saturating_sub(ENTRIES_MAX),
            held: documents.iter().take(ENTRIES_MAX).map(|document| held(document, now.wall)).collect(),
            cooling: documents.iter().flat_map(|document| cooling(document, now.wall)).take(ENTRIES_MAX).collect(),
            history,
            told: events::of_tool(&admin, &backend, &tool, now.wall),
            from: Moment::new(Past::begin(now.wall), now.wall),
            argument: argument(&tool),
            line,
            row,
        },
    )
}

/// What is held about a tool and about its whole backend, what is not OK first.
fn documents(admin: &Admin, backend: &str, tool: &str, now: Now) -> Vec<Document> {
    let of = |backend: &str, tool: &str| {
        let filter =
            Filter { backend: Some(backend.to_owned()), tool_name: Some(tool.to_owned()), ..Filter::default() };
        admin.registry.documents(&filter, now)
    };
    let mut documents = of(backend, tool);
    if tool != WHOLE_BACKEND {
        documents.extend(of(backend, WHOLE_BACKEND));
    }
    documents.extend(of(ANY_BACKEND, tool));
    documents.sort_by_key(|document| std::cmp::Reverse((document.status, document.key.scope)));
    documents
}

fn held(document: &Document, now: Wall) -> Held {
    let due = document.status == Status::Down && document.next_trial_at.is_some_and(|at| at <= now);
    let diagnosis = document.last_diagnosis.as_ref();
    Held {
        scope: document.key.scope.to_string(),
        id: document.key.scope_id.clone().unwrap_or_default(),
        place: if document.key.tool_name == WHOLE_BACKEND { "whole backend" } else { "this tool" }.to_owned(),
        pill: Pill::new(if due { "RETESTING" } else { word(document.status) }),
        since: Moment::new(document.since, now),
        signature: document.signature.clone().unwrap_or_default(),
        by: document.history.last().map(|entry| entry.by.clone()).unwrap_or_default(),
        next_trial: Moment::maybe(document.next_trial_at, now),
        hint: diagnosis.and_then(|diagnosis| diagnosis.user_action_hint.clone()).unwrap_or_default(),
    }
}

fn cooling(document: &Document, now: Wall) -> Vec<Cooling> {
    let one = |cooldown: &crate::health::document::Cooldown| Cooling {
        signature: cooldown.error_signature.clone(),
        scope: document.key.scope.to_string(),
        user: cooldown.user_id.clone().unwrap_or_default(),
        class: cooldown.last_classification.to_string(),
        hits: cooldown.hits,
        level: cooldown.level,
        until: Moment::new(cooldown.next_spawn_allowed_at, now),
        over: cooldown.next_spawn_allowed_at <= now,
    };
    document.cooldowns.iter().map(one).collect()
}

fn past_of(document: &Document, now: Wall) -> Vec<Episode> {
    let scope = match &document.key.scope_id {
        Some(id) => format!("{} {id}", document.key.scope),
        None => document.key.scope.to_string(),
    };
    let one = |entry: &crate::health::document::HistoryEntry| Episode {
        at: entry.at,
        when: Moment::new(entry.at, now),
        scope: scope.clone(),
        pill: Pill::new(word(entry.status)),
        class: entry.classification.to_string(),
        by: entry.by.clone(),
        note: entry.note.clone(),
    };
    document.history.iter().map(one).collect()
}

/// A name as a shell takes it.
fn argument(name: &str) -> String {
    let plain =
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/'));
    if plain { name.to_owned() } else { format!("'{}'", name.replace('\'', r"'\''")) }
}
