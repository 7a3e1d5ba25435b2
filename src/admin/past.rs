//! The last 24 hours of each tool, kept in memory for whoever looks at it: how it stood, and how often it was called.
//!
//! Health documents remember the latest twenty changes, which a flapping tool makes in an hour, and no counts. So a day is
//! kept here in cells of five minutes, each with the worst that was seen in it: 288 bytes a tool, and 32 counts for rates.
//! Nothing of it is stored. At a start the day is filled in from what the documents remember; what nobody knows stays unknown.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock::{Now, Tick, Wall};
use crate::health::document::WHOLE_BACKEND;
use crate::health::{Document, Status};
use crate::rules::Scope;
use crate::telemetry::Totals;

/// Cells of a day.
pub(super) const CELLS: usize = 288;
/// Tools whose day is kept; further ones have none.
pub(super) const TOOLS_MAX: usize = 2_000;
/// How often somebody should look even if nobody asks.
pub(super) const LOOK: Duration = Duration::from_secs(10);

const CELL_MS: i64 = 300_000;
/// Over how long a rate is taken.
const WINDOW: Duration = Duration::from_secs(300);
/// Counts that are kept for rates: a window of looks, and some to spare.
const COUNTS: usize = 32;

/// How a tool stood at its worst in one cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cell {
    /// Nobody knows.
    #[default]
    Unknown,
    /// OK.
    Ok,
    /// DEGRADED.
    Degraded,
    /// DOWN, also while RETESTING.
    Down,
}

impl Cell {
    /// The letter in answers.
    pub(super) const fn letter(self) -> char {
        match self {
            Cell::Unknown => '-',
            Cell::Ok => 'O',
            Cell::Degraded => 'G',
            Cell::Down => 'D',
        }
    }
}

impl From<Status> for Cell {
    fn from(status: Status) -> Cell {
        match status {
            Status::Ok => Cell::Ok,
            Status::Degraded => Cell::Degraded,
            Status::Down => Cell::Down,
        }
    }
}

/// How often a tool was called of late.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Rates {
    /// Judged calls a minute.
    pub(super) calls: f64,
    /// The share of them that failed, from 0 to 1; `None` without calls.
    pub(super) failed: Option<f64>,
    /// Calls a minute that were answered without the upstream.
    pub(super) refused: f64,
}

/// What is kept of one tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Day {
    /// Oldest first; the last cell is the present one.
    pub(super) cells: Vec<Cell>,
    /// Since when it stands as it does, if that was seen.
    pub(super) since: Option<Wall>,
    /// Of the last five minutes.
    pub(super) rates: Rates,
}

type Tool = (Arc<str>, Arc<str>);

/// How one tool stands at a look.
#[derive(Clone, Debug)]
pub(super) struct Look {
    /// Backend and tool.
    pub(super) tool: Tool,
    /// How it stands.
    pub(super) status: Status,
    /// What was counted of it.
    pub(super) totals: Totals,
}

/// A change of status between two looks.
#[derive(Clone, Debug)]
pub(super) struct Moment {
    /// Backend and tool.
    pub(super) tool: Tool,
    /// What it became, at one scope.
    pub(super) status: Status,
    /// When.
    pub(super) at: Wall,
}

/// The days of all tools.
#[derive(Debug)]
pub struct Past(Mutex<Days>);

#[derive(Debug)]
struct Days {
    /// Number of the cell that is the present one.
    cell: i64,
    looked: Tick,
    tracks: HashMap<Tool, Track>,
    others: Others,
}

/// Calls of tools that have no row of their own, together for each backend. A tool may get a row at any time: so what counts
/// is what came in between two looks while it had none.
#[derive(Debug, Default)]
struct Others {
    /// What was counted at the last look; without a tool, under the label that several share.
    seen: HashMap<Counted, Totals>,
    of: BTreeMap<Arc<str>, (Totals, Counts)>,
}

/// A backend, and a tool of it that is counted by itself.
pub(super) type Counted = (Arc<str>, Option<Arc<str>>);

/// What was counted at some looks, for rates.
#[derive(Debug, Default)]
struct Counts(VecDeque<(Tick, Totals)>);

#[derive(Debug)]
struct Track {
    cells: VecDeque<Cell>,
    status: Cell,
    since: Option<Wall>,
    counts: Counts,
}

impl Past {
    /// What the documents remember of the last day; a history is full at `history_size` entries.
    pub fn new(documents: &[Document], history_size: usize, now: Now) -> Past {
        let mut days =
            Days { cell: number(now.wall), looked: now.tick, tracks: HashMap::new(), others: Others::default() };
        for document in documents.iter().filter(|document| document.key.scope >= Scope::Project) {
            days.remember(document, history_size, now.wall);
        }
        Past(Mutex::new(days))
    }

    /// Takes in how tools stand now, and what became of them since the last look, oldest first.
    pub(super) fn look(&self, looks: &[Look], others: &[(Counted, Totals)], moments: &[Moment], now: Now) {
        let mut days = self.lock();
        for moment in moments {
            days.advance(number(moment.at));
            if let Some(track) = days.track(&moment.tool) {
                track.stand(moment.status.into(), moment.at);
            }
        }
        days.advance(number(now.wall));
        let counted = now.tick.since(days.looked) >= LOOK;
        for look in looks {
            let before = days.looked;
            let Some(track) = days.track(&look.tool) else { continue };
            track.stand(look.status.into(), now.wall);
            track.counts.look(before, (now.tick, look.totals), counted);
        }
        days.count_others(looks, others, (now.tick, counted));
        if counted {
            days.looked = now.tick;
        }
    }

    /// The day of a tool; what stood against its whole backend is part of it. `None` beyond the bound.
    pub(super) fn day(&self, tool: &Tool, totals: Totals, now: Now) -> Option<Day> {
        let days = self.lock();
        let track = days.tracks.get(tool)?;
        let whole = days.tracks.get(&(Arc::clone(&tool.0), Arc::from(WHOLE_BACKEND)));
        let worse = |at: usize, cell: Cell| {
            let of_all = whole.and_then(|whole| whole.cells.get(at)).copied().unwrap_or_default();
            if of_all > Cell::Ok { cell.max(of_all) } else { cell }
        };
        Some(Day {
            cells: track.cells.iter().enumerate().map(|(at, cell)| worse(at, *cell)).collect(),
            since: track.since,
            rates: track.counts.rates(totals, now.tick),
        })
    }

    /// How often tools without a row of their own were called of late, for each backend of which any was.
    pub(super) fn others(&self, now: Now) -> Vec<(Arc<str>, Rates)> {
        let days = self.lock();
        let of =
            days.others.of.iter().map(|(backend, (sum, counts))| (Arc::clone(backend), counts.rates(*sum, now.tick)));
        of.filter(|(_, rates)| rates.calls > 0.0 || rates.refused > 0.0).collect()
    }

    /// The tools whose day is kept.
    pub(super) fn tools(&self) -> Vec<Tool> {
        self.lock().tracks.keys().cloned().collect()
    }

    /// When the first cell of a day begins.
    pub(super) fn begin(now: Wall) -> Wall {
        let first = number(now) - i64::try_from(CELLS).unwrap_or(0) + 1;
        Wall(first * CELL_MS)
    }

    fn lock(&self) -> MutexGuard<'_, Days> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Days {
    fn track(&mut self, tool: &Tool) -> Option<&mut Track> {
        if !self.tracks.contains_key(tool) && self.tracks.len() >= TOOLS_MAX {
            return None;
        }
        Some(self.tracks.entry(tool.clone()).or_insert_with(Track::new))
    }

    fn count_others(&mut self, looks: &[Look], counted: &[(Counted, Totals)], (now, keep): (Tick, bool)) {
        let Days { looked, tracks, others, .. } = self;
        let rows: HashSet<&Tool> =
            looks.iter().map(|look| &look.tool).filter(|tool| tracks.contains_key(*tool)).collect();
        for ((backend, tool), totals) in counted {
            let before = others.seen.insert((Arc::clone(backend), tool.clone()), *totals).unwrap_or_default();
            let has_row = tool.as_ref().is_some_and(|tool| rows.contains(&(Arc::clone(backend), Arc::clone(tool))));
            let (sum, _) = others.of.entry(Arc::clone(backend)).or_default();
            if !has_row {
                *sum = sum.and(totals.since(before));
            }
        }
        for (sum, counts) in others.of.values_mut() {
            counts.look(*looked, (now, *sum), keep);
        }
    }

    /// Moves every day on to a cell. A clock that is set back moves nothing.
    fn advance(&mut self, cell: i64) {
        let steps = usize::try_from(cell - self.cell).unwrap_or(0).min(CELLS);
        self.cell = self.cell.max(cell);
        for track in self.tracks.values_mut() {
            for _ in 0..steps {
                track.cells.pop_front();
                track.cells.push_back(track.status);
            }
        }
    }

    fn remember(&mut self, document: &Document, history_size: usize, now: Wall) {
        let present = self.cell;
        let key = &document.key;
        let Some(track) = self.track(&(key.backend.as_str().into(), key.tool_name.as_str().into())) else { return };
        let changes = document.history.iter().map(|entry| (entry.at, Cell::from(entry.status)));
        // A full history has lost its beginning: what was before its first entry is not known.
        let full = document.history.len() >= history_size;
        let first = (!full).then_some((document.created_at, Cell::Ok));
        let spells: Vec<(Wall, Cell)> = first.into_iter().chain(changes).collect();
        let ends = spells.iter().skip(1).map(|(at, _)| *at).chain([now]);
        for ((from, cell), to) in spells.iter().zip(ends) {
            track.fill(*cell, (number(*from) - present, number(to) - present));
        }
        if Cell::from(document.status) >= track.status {
            (track.status, track.since) = (document.status.into(), Some(document.since));
        }
    }
}

impl Track {
    fn new() -> Track {
        Track {
            cells: VecDeque::from(vec![Cell::Unknown; CELLS]),
            status: Cell::Unknown,
            since: None,
            counts: Counts::default(),
        }
    }

    /// Marks the cells from one to another; 0 is the present one, what lies before it is negative.
    fn fill(&mut self, cell: Cell, (from, to): (i64, i64)) {
        let last = i64::try_from(CELLS).unwrap_or(0) - 1;
        for at in (from + last).max(0)..=(to + last).min(last) {
            if let Some(known) = usize::try_from(at).ok().and_then(|at| self.cells.get_mut(at)) {
                *known = cell.max(*known);
            }
        }
    }

    fn mark(&mut self, cell: Cell) {
        if let Some(present) = self.cells.back_mut() {
            *present = cell.max(*present);
        }
    }

    fn stand(&mut self, cell: Cell, now: Wall) {
        if self.status != cell {
            self.since = (self.status != Cell::Unknown).then_some(now);
            self.status = cell;
        }
        self.mark(cell);
    }
}

impl Counts {
    /// Takes in what is counted now, if it is to be kept. What was there when nobody had looked yet counts as of the look before.
    fn look(&mut self, before: Tick, (now, totals): (Tick, Totals), keep: bool) {
        if self.0.is_empty() {
            self.0.push_back((before, Totals::default()));
        }
        if keep {
            if self.0.len() >= COUNTS {
                self.0.pop_front();
            }
            self.0.push_back((now, totals));
        }
    }

    fn rates(&self, totals: Totals, now: Tick) -> Rates {
        let base = self.0.iter().find(|(at, _)| now.since(*at) <= WINDOW).or(self.0.back());
        let Some((at, before)) = base else { return Rates::default() };
        // In the first minute calls are spread over a minute, so that five calls in a second are not 300 a minute.
        let minutes = now.since(*at).as_secs_f64().max(60.0) / 60.0;
        let more = totals.since(*before);
        let judged = more.judged as f64;
        Rates {
            calls: judged / minutes,
            failed: (more.judged > 0).then(|| more.failed as f64 / judged),
            refused: more.refused as f64 / minutes,
        }
    }
}

fn number(at: Wall) -> i64 {
    at.0.div_euclid(CELL_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Now = Now { tick: Tick(1_000_000), wall: Wall(1_772_460_000_000) };

    fn tool() -> Tool {
        (Arc::from("b"), Arc::from("t"))
    }

    fn look(status: Status, judged: u64, failed: u64) -> [Look; 1] {
        [Look { tool: tool(), status, totals: Totals { judged, failed, refused: 0 } }]
    }

    fn letters(past: &Past, now: Now) -> String {
        past.day(&tool(), Totals::default(), now).unwrap().cells.iter().map(|cell| cell.letter()).collect()
    }

    fn minutes(count: u64) -> Now {
        START.after(Duration::from_secs(60 * count))
    }

    #[test]
    fn a_cell_holds_the_worst_that_was_seen_in_it_also_between_two_looks() {
        let past = Past::new(&[], 20, START);
        past.look(&look(Status::Ok, 0, 0), &[], &[], START);
        past.look(&look(Status::Down, 0, 0), &[], &[], minutes(5));
        past.look(&look(Status::Ok, 0, 0), &[], &[], minutes(7));
        let moment = Moment { tool: tool(), status: Status::Degraded, at: minutes(11).wall };
        past.look(&look(Status::Ok, 0, 0), &[], &[moment], minutes(12));
        past.look(&look(Status::Ok, 0, 0), &[], &[], minutes(21));
        assert!(letters(&past, minutes(21)).ends_with("---ODGOO"), "{}", letters(&past, minutes(21)));
        assert_eq!(past.day(&tool(), Totals::default(), minutes(21)).unwrap().since, Some(minutes(12).wall));
    }

    #[test]
    fn what_nobody_looked_at_stood_as_it_was_and_a_day_later_nothing_else_is_left() {
        let past = Past::new(&[], 20, START);
        past.look(&look(Status::Down, 0, 0), &[], &[], START);
        past.look(&look(Status::Ok, 0, 0), &[], &[], minutes(60));
        assert!(letters(&past, minutes(60)).ends_with("-DDDDDDDDDDDDD"));
        past.look(&look(Status::Ok, 0, 0), &[], &[], minutes(60 + 24 * 60));
        assert_eq!(letters(&past, minutes(60 + 24 * 60)), "O".repeat(CELLS));
    }

    #[test]
    fn rates_are_those_of_the_last_five_minutes() {
        let past = Past::new(&[], 20, START);
        for minute in 0..=20 {
            past.look(&look(Status::Ok, minute * 10, minute), &[], &[], minutes(minute));
        }
        let totals = Totals { judged: 200, failed: 20, refused: 0 };
        let rates = past.day(&tool(), totals, minutes(20)).unwrap().rates;
        assert_eq!(rates, Rates { calls: 10.0, failed: Some(0.1), refused: 0.0 });
        let first = Past::new(&[], 20, START);
        first.look(&look(Status::Ok, 5, 0), &[], &[], START.after(Duration::from_secs(1)));
        let totals = Totals { judged: 5, failed: 0, refused: 0 };
        assert!((first.day(&tool(), totals, minutes(0)).unwrap().rates.calls - 5.0).abs() < 1e-9);
    }

    #[test]
    fn tools_beyond_the_bound_have_no_day() {
        let past = Past::new(&[], 20, START);
        let looks: Vec<Look> = (0..TOOLS_MAX + 1)
            .map(|number| Look {
                tool: (Arc::from("b"), number.to_string().into()),
                status: Status::Ok,
                totals: Totals::default(),
            })
            .collect();
        past.look(&looks, &[], &[], START);
        assert!(past.day(&looks[0].tool, Totals::default(), START).is_some());
        assert!(past.day(&looks[TOOLS_MAX].tool, Totals::default(), START).is_none());
    }

    #[test]
    fn what_has_no_row_is_counted_together_until_it_has_one() {
        let past = Past::new(&[], 20, START);
        let named = |name: &str| (Arc::from("b"), Some(Arc::from(name)));
        let totals = |judged, failed| Totals { judged, failed, refused: 0 };
        let counted = [(named("t"), totals(50, 0)), (named("u"), totals(7, 0)), ((Arc::from("b"), None), totals(3, 2))];
        past.look(&look(Status::Ok, 50, 0), &counted, &[], minutes(1));
        let rates = past.others(minutes(1));
        assert_eq!(rates, [(Arc::from("b"), Rates { calls: 10.0, failed: Some(0.2), refused: 0.0 })]);

        // `u` has a row by now: what came since then counts there, what came before stays counted here.
        let rows = ["t", "u"].map(|name| Look {
            tool: (Arc::from("b"), Arc::from(name)),
            status: Status::Ok,
            totals: Totals::default(),
        });
        let counted = [(named("u"), totals(90, 0)), ((Arc::from("b"), None), totals(13, 2))];
        past.look(&rows, &counted, &[], minutes(2));
        assert_eq!(past.others(minutes(2))[0].1.calls, 10.0);
        past.look(&rows, &counted, &[], minutes(8));
        assert!(past.others(minutes(8)).is_empty(), "nothing of late");
    }
}
