//! Every tool at a glance: how it stands for everybody, why, how often it is called, and its last 24 hours. The status page
//! and `toolvane top` show the same rows.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::Admin;
use super::health::caller_of;
use super::past::{self, Cell, Counted, Day, Look, Moment, Past, Rates};
use super::query::Parameters;
use crate::clock::{Now, Wall};
use crate::health::document::{ANY_BACKEND, WHOLE_BACKEND};
use crate::health::{Force, Forced, Override, Shown, Standing, Status};
use crate::proxy::Hidden;
use crate::rules::{Classification, Scope};
use crate::telemetry::Totals;
use crate::telemetry::bus::{Happening, Kind};

/// Tools that are shown beside those of lists and routes.
const ROWS_MAX: usize = 5_000;
/// Events that are read at once.
const BATCH: usize = 512;

type Tool = (Arc<str>, Arc<str>);

/// Every tool at a glance.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Overview {
    /// When.
    at: Wall,
    /// When the first letter of each history begins.
    history_from: Wall,
    /// Whether the process is about to leave.
    draining: bool,
    /// By backend and name.
    tools: Vec<Row>,
    /// Calls that no row counts, by backend: of tools that no list, route or document names, and of those beyond a bound.
    others: Vec<Others>,
}

/// How often tools that have no row of their own were called in the last five minutes.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "OverviewOthers")]
pub(super) struct Others {
    pub(super) backend: Arc<str>,
    pub(super) calls_per_minute: f64,
    pub(super) failed_share: Option<f64>,
    pub(super) refused_per_minute: f64,
}

/// How a tool stands for everybody: the worst of what holds at PROJECT or wider, or what an operator decided.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "OverviewTool")]
pub(super) struct Row {
    pub(super) backend: Arc<str>,
    pub(super) tool: Arc<str>,
    /// OK, DEGRADED or DOWN.
    pub(super) status: Status,
    /// DOWN whose next trial is due.
    pub(super) retesting: bool,
    pub(super) since: Option<Wall>,
    pub(super) expected_recovery_at: Option<Wall>,
    pub(super) next_trial_at: Option<Wall>,
    pub(super) classification: Option<Classification>,
    pub(super) signature: Option<Arc<str>>,
    pub(super) scope: Option<Scope>,
    pub(super) scope_id: Option<String>,
    pub(super) note: Option<Arc<str>>,
    #[serde(rename = "override")]
    pub(super) forced: Option<Override>,
    /// Whether everybody's list shows it, if they have the role that it may take.
    pub(super) listed: bool,
    /// What stands against it whoever calls: calls of it are refused, unless it is only observed.
    pub(super) status_reason: Option<Hidden>,
    pub(super) integration: Option<Arc<str>>,
    /// Entries of single users and sessions that are not OK.
    pub(super) users_affected: usize,
    /// Of the last five minutes.
    pub(super) calls_per_minute: f64,
    pub(super) failed_share: Option<f64>,
    pub(super) refused_per_minute: f64,
    /// Five minutes a letter, oldest first: `O` OK, `G` DEGRADED, `D` DOWN, `-` not known; empty where no day is kept.
    pub(super) history: String,
    #[serde(skip)]
    pub(super) cells: Vec<Cell>,
}

impl Row {
    /// OK, DEGRADED, RETESTING or DOWN; HIDDEN where nothing else is to be said of a tool that nobody is shown.
    pub(super) fn word(&self) -> &'static str {
        match self.status {
            Status::Down if self.retesting => "RETESTING",
            Status::Ok if !self.listed => "HIDDEN",
            status => word(status),
        }
    }

    /// What is worst comes first.
    pub(super) fn rank(&self) -> u8 {
        match (self.status, self.retesting) {
            (Status::Down, false) => 0,
            (Status::Down, true) => 1,
            (Status::Degraded, _) => 2,
            (Status::Ok, _) if self.status_reason.is_some() => 3,
            (Status::Ok, _) => 4,
        }
    }
}

/// A status by its name.
pub(super) const fn word(status: Status) -> &'static str {
    match status {
        Status::Ok => "OK",
        Status::Degraded => "DEGRADED",
        Status::Down => "DOWN",
    }
}

/// Where the overview has got to in the stream of events.
#[derive(Debug, Default)]
pub struct Place(AtomicU64);

/// `GET /v1/overview`.
pub(super) async fn overview(State(admin): State<Arc<Admin>>) -> Response {
    let now = admin.clock.now();
    Json(Overview {
        at: now.wall,
        history_from: Past::begin(now.wall),
        draining: admin.drain.is_leaving(),
        tools: rows(&admin, now),
        others: others(&admin, now),
    })
    .into_response()
}

/// Every tool that is known by name or that something stands against, by backend and name.
pub(super) fn rows(admin: &Admin, now: Now) -> Vec<Row> {
    let standing = admin.registry.standing(now.tick);
    let forced: Vec<Arc<Forced>> = admin.registry.overrides(now);
    let mut known: BTreeMap<Tool, Row> = BTreeMap::new();
    for entry in admin.proxy.catalogue(&caller_of(&Parameters::default()), None) {
        let tool = (entry.backend, entry.tool);
        let reason = entry.reason.filter(|reason| *reason != Hidden::RoleMissing);
        let listed = entry.listed || reason.is_none();
        known.insert(tool.clone(), Row { listed, status_reason: reason, integration: entry.integration, ..fine(tool) });
    }
    let own = |(backend, tool): (&String, &String)| -> Tool { (backend.as_str().into(), tool.as_str().into()) };
    let decided = forced.iter().map(|forced| own((&forced.key.backend, &forced.key.tool_name)));
    let affected = standing.wide.keys().chain(standing.narrow.keys()).map(|(backend, tool)| own((backend, tool)));
    // A whole backend is a row only while there is something to say of it.
    let remembered = admin.past.tools().into_iter().filter(|(_, tool)| **tool != *WHOLE_BACKEND);
    for tool in decided.chain(affected).chain(remembered) {
        if known.len() >= ROWS_MAX {
            break;
        }
        known.entry(tool.clone()).or_insert_with(|| fine(tool));
    }
    let mut rows: Vec<Row> = known.into_values().collect();
    for row in &mut rows {
        stand(row, &standing, &forced, now);
    }
    remember(admin, &mut rows, now);
    rows
}

/// Calls that no row counts, as of the last look.
pub(super) fn others(admin: &Admin, now: Now) -> Vec<Others> {
    let others = admin.past.others(now).into_iter();
    let of = |(backend, rates): (Arc<str>, Rates)| Others {
        backend,
        calls_per_minute: rates.calls,
        failed_share: rates.failed,
        refused_per_minute: rates.refused,
    };
    others.map(of).collect()
}

/// Looks, so that a day is kept of what nobody asks for.
pub(super) async fn look_forever(admin: Arc<Admin>) {
    let mut ticks = tokio::time::interval(past::LOOK);
    loop {
        ticks.tick().await;
        rows(&admin, admin.clock.now());
    }
}

pub(super) fn fine((backend, tool): Tool) -> Row {
    Row {
        backend,
        tool,
        status: Status::Ok,
        retesting: false,
        since: None,
        expected_recovery_at: None,
        next_trial_at: None,
        classification: None,
        signature: None,
        scope: None,
        scope_id: None,
        note: None,
        forced: None,
        listed: true,
        status_reason: None,
        integration: None,
        users_affected: 0,
        calls_per_minute: 0.0,
        failed_share: None,
        refused_per_minute: 0.0,
        history: String::new(),
        cells: Vec::new(),
    }
}

/// Says what stands against a tool, at itself or at its whole backend.
fn stand(row: &mut Row, standing: &Standing, forced: &[Arc<Forced>], now: Now) {
    let places = [
        (&*row.backend, &*row.tool),
        (&row.backend, WHOLE_BACKEND),
        (ANY_BACKEND, &row.tool),
        (ANY_BACKEND, WHOLE_BACKEND),
    ];
    let own = |(backend, tool): (&str, &str)| (backend.to_owned(), tool.to_owned());
    let entries = places.iter().filter_map(|place| standing.wide.get(&own(*place)));
    let worst = entries.max_by_key(|shown| (shown.status, !shown.due(now.tick))).cloned();
    let applies = |forced: &&Arc<Forced>| {
        let at = (forced.key.backend.as_str(), forced.key.tool_name.as_str());
        forced.key.scope >= Scope::Project && places.contains(&at)
    };
    let decision = forced.iter().find(applies).map(|forced| forced.decision.clone());
    row.users_affected = standing.narrow.get(&own((&row.backend, &row.tool))).copied().unwrap_or_default();
    if let Some(worst) = worst {
        believe(row, &worst, now);
    }
    if let Some(decision) = decision {
        decide(row, decision);
    }
}

fn believe(row: &mut Row, shown: &Shown, now: Now) {
    row.status = shown.status;
    row.retesting = shown.due(now.tick);
    row.since = Some(shown.since.wall);
    row.expected_recovery_at = shown.expected_recovery.map(|at| now.wall_at(at.tick));
    row.next_trial_at = (shown.status == Status::Down).then(|| now.wall_at(shown.next_trial.tick));
    row.classification = shown.classification;
    row.signature.clone_from(&shown.signature);
    row.note.clone_from(&shown.note);
    row.scope = Some(shown.key.scope);
    row.scope_id.clone_from(&shown.key.scope_id);
}

fn decide(row: &mut Row, decision: Override) {
    match decision.force {
        Force::Observe => {}
        Force::Ok => (row.status, row.retesting) = (Status::Ok, false),
        Force::Down => (row.status, row.retesting) = (Status::Down, false),
    }
    if decision.force != Force::Observe {
        row.since = Some(decision.since);
        row.expected_recovery_at = (decision.force == Force::Down).then_some(decision.until);
        row.next_trial_at = None;
        row.note = Some(decision.reason.as_str().into());
    }
    row.forced = Some(decision);
}

/// Takes the rows into the days of tools, and what is remembered into the rows.
fn remember(admin: &Admin, rows: &mut [Row], now: Now) {
    let totals: HashMap<Tool, Totals> =
        admin.telemetry.totals().into_iter().map(|(backend, tool, totals)| ((backend, tool), totals)).collect();
    let of = |row: &Row| -> (Tool, Totals) {
        let tool = (Arc::clone(&row.backend), Arc::clone(&row.tool));
        let totals = totals.get(&tool).copied().unwrap_or_default();
        (tool, totals)
    };
    let looks: Vec<Look> = rows
        .iter()
        .map(|row| {
            let (tool, totals) = of(row);
            Look { tool, status: row.status, totals }
        })
        .collect();
    let own = totals.iter().map(|((backend, tool), totals)| ((Arc::clone(backend), Some(Arc::clone(tool))), *totals));
    let shared = admin.telemetry.other_totals().into_iter().map(|(backend, totals)| ((backend, None), totals));
    let counted: Vec<(Counted, Totals)> = own.chain(shared).collect();
    admin.past.look(&looks, &counted, &moments(admin), now);
    for row in rows {
        let (tool, totals) = of(row);
        let Some(Day { cells, since, rates }) = admin.past.day(&tool, totals, now) else { continue };
        row.since = row.since.or(since);
        row.calls_per_minute = rates.calls;
        row.failed_share = rates.failed;
        row.refused_per_minute = rates.refused;
        row.history = cells.iter().map(|cell| cell.letter()).collect();
        row.cells = cells;
    }
}

/// What became of tools since the last look.
fn moments(admin: &Admin) -> Vec<Moment> {
    let bus = admin.telemetry.bus();
    let mut moments = Vec::new();
    loop {
        let place = admin.place.0.load(Ordering::Relaxed);
        let batch = bus.after(place, BATCH);
        let Some(last) = batch.happenings.last() else { return moments };
        admin.place.0.fetch_max(last.number, Ordering::Relaxed);
        moments.extend(batch.happenings.iter().filter_map(|happening| moment(happening)));
    }
}

fn moment(happening: &Happening) -> Option<Moment> {
    let fact = |name: &str| happening.facts.get(name).and_then(Value::as_str);
    let wide = !matches!(fact("scope")?, "SESSION" | "USER");
    let status = match fact("to")? {
        "DOWN" => Status::Down,
        "DEGRADED" => Status::Degraded,
        _ => Status::Ok,
    };
    let tool = (fact("backend")?.into(), fact("toolName")?.into());
    let at = fact("at")?.parse().ok()?;
    (wide && happening.kind == Kind::Transition).then_some(Moment { tool, status, at })
}
