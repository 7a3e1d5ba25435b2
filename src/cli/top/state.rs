//! What `toolvane top` shows and what a key does to it. Pure: no terminal, no clock, no network.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::Value;

use super::row::{Place, Row, Stand};
use crate::clock::Wall;

/// What the loop has to do after a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Draw.
    Stay,
    /// Ask, then draw.
    Ask,
    /// End.
    Quit,
}

/// By what rows are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    Status,
    Name,
    Calls,
    Failed,
    Since,
}

impl Sort {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Sort::Status => "status",
            Sort::Name => "name",
            Sort::Calls => "calls",
            Sort::Failed => "failed",
            Sort::Since => "since",
        }
    }

    const fn next(self) -> Sort {
        match self {
            Sort::Status => Sort::Name,
            Sort::Name => Sort::Calls,
            Sort::Calls => Sort::Failed,
            Sort::Failed => Sort::Since,
            Sort::Since => Sort::Status,
        }
    }
}

/// What is held about one tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Detail {
    pub(super) place: Place,
    /// One line for each document and cooldown.
    pub(super) held: Vec<String>,
    /// One line for each entry, newest first.
    pub(super) history: Vec<String>,
}

impl Detail {
    /// Reads the answer of `/v1/health`.
    pub(super) fn read(place: Place, answer: &Value) -> Detail {
        let documents = answer.get("documents").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let mut detail = Detail { place, ..Detail::default() };
        let mut history: Vec<(String, String)> = Vec::new();
        for document in documents {
            let whose = words(document, &["scope", "scopeId"]);
            detail.held.push(format!("{whose}: {}", words(document, &["status", "signature"])));
            for cooldown in list(document, "cooldowns") {
                let until = words(cooldown, &["nextSpawnAllowedAt"]);
                let what = words(cooldown, &["errorSignature", "userId", "lastClassification"]);
                detail.held.push(format!("  cooldown {what} until {until}"));
            }
            for entry in list(document, "history") {
                let at = words(entry, &["at"]);
                let what = words(entry, &["status", "classification", "by", "note"]);
                history.push((at.clone(), format!("{at}  {whose}: {what}")));
            }
        }
        history.sort_by(|one, other| other.0.cmp(&one.0));
        detail.history = history.into_iter().map(|(_, line)| line).collect();
        detail
    }
}

fn list<'a>(of: &'a Value, name: &str) -> &'a [Value] {
    of.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn words(of: &Value, names: &[&str]) -> String {
    let texts = names.iter().filter_map(|name| of.get(*name).and_then(Value::as_str));
    texts.collect::<Vec<_>>().join(" ")
}

/// Everything that is shown.
#[derive(Debug)]
pub(super) struct State {
    pub(super) admin: String,
    pub(super) at: Wall,
    pub(super) draining: bool,
    /// Calls a minute that no row counts.
    pub(super) others: f64,
    /// Why the last question had no answer.
    pub(super) lost: Option<String>,
    pub(super) sort: Sort,
    pub(super) reversed: bool,
    pub(super) filter: String,
    /// The filter is being typed.
    pub(super) typing: bool,
    pub(super) open: bool,
    pub(super) details: Option<Detail>,
    rows: Vec<Row>,
    selected: Option<Place>,
    /// Lines that a page holds; the last drawing knows.
    page: usize,
}

impl State {
    /// Nothing is known yet.
    pub(super) fn new(admin: String) -> State {
        State {
            admin,
            at: Wall(0),
            draining: false,
            others: 0.0,
            lost: None,
            sort: Sort::Status,
            reversed: false,
            filter: String::new(),
            typing: false,
            open: false,
            details: None,
            rows: Vec::new(),
            selected: None,
            page: 10,
        }
    }

    /// Takes an answer of `/v1/overview`.
    pub(super) fn take(&mut self, answer: &Value) {
        let read = |row: &Value| serde_json::from_value(row.clone()).ok();
        self.rows = list(answer, "tools").iter().filter_map(read).collect();
        self.at = answer.get("at").and_then(Value::as_str).and_then(|at| at.parse().ok()).unwrap_or_default();
        self.draining = answer.get("draining").and_then(Value::as_bool).unwrap_or_default();
        let calls = |others: &Value| others.get("callsPerMinute").and_then(Value::as_f64);
        self.others = list(answer, "others").iter().filter_map(calls).sum();
        self.lost = None;
    }

    /// The last question had no answer: what is shown is as old as it says.
    pub(super) fn lost(&mut self, why: String) {
        self.lost = Some(why);
    }

    pub(super) fn detail(&mut self, detail: Detail) {
        self.details = Some(detail);
    }

    /// The tool whose details are open.
    pub(super) fn wants_detail(&self) -> Option<Place> {
        self.open.then(|| self.current().map(|row| row.place())).flatten()
    }

    /// How many tools stand so.
    pub(super) fn count(&self, stand: Stand) -> usize {
        self.rows.iter().filter(|row| row.stand() == stand).count()
    }

    /// The rows that fit, in their order.
    pub(super) fn shown(&self) -> Vec<&Row> {
        let needle = self.filter.to_lowercase();
        let fits = |row: &&Row| {
            let text = format!("{} {} {} {}", row.backend, row.tool, row.stand().as_str(), row.reason()).to_lowercase();
            text.contains(&needle)
        };
        let mut rows: Vec<&Row> = self.rows.iter().filter(fits).collect();
        rows.sort_by(|one, other| {
            let first = match self.sort {
                Sort::Status => one.stand().cmp(&other.stand()),
                Sort::Name => std::cmp::Ordering::Equal,
                Sort::Calls => other.calls_per_minute.total_cmp(&one.calls_per_minute),
                Sort::Failed => {
                    let share = |row: &Row| row.failed_share.unwrap_or(-1.0);
                    share(other).total_cmp(&share(one))
                }
                Sort::Since => other.since.cmp(&one.since),
            };
            let first = if self.reversed { first.reverse() } else { first };
            first.then_with(|| (&one.backend, &one.tool).cmp(&(&other.backend, &other.tool)))
        });
        rows
    }

    /// The row that is selected: the first where the one that was is gone.
    pub(super) fn current(&self) -> Option<&Row> {
        let shown = self.shown();
        shown.get(self.index(&shown)).copied()
    }

    /// Where that is.
    pub(super) fn index(&self, shown: &[&Row]) -> usize {
        let is = |row: &&Row| {
            self.selected.as_ref().is_some_and(|(backend, tool)| row.backend == *backend && row.tool == *tool)
        };
        shown.iter().position(is).unwrap_or(0)
    }

    /// Lines that a page holds.
    pub(super) fn set_page(&mut self, lines: usize) {
        self.page = lines.max(1);
    }

    /// Does what a key says.
    pub(super) fn key(&mut self, key: KeyEvent) -> Step {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return if key.code == KeyCode::Char('c') { Step::Quit } else { Step::Stay };
        }
        if self.typing { self.typed(key.code) } else { self.pressed(key.code) }
    }

    fn typed(&mut self, code: KeyCode) -> Step {
        match code {
            KeyCode::Enter => self.typing = false,
            KeyCode::Esc => (self.typing, self.filter) = (false, String::new()),
            KeyCode::Backspace => {
                self.filter.pop();
            }
            KeyCode::Char(letter) if self.filter.chars().count() < 64 => self.filter.push(letter),
            _ => {}
        }
        Step::Stay
    }

    fn pressed(&mut self, code: KeyCode) -> Step {
        match code {
            KeyCode::Char('q') => return Step::Quit,
            KeyCode::Esc if self.open => self.open = false,
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Char('/') => self.typing = true,
            KeyCode::Char('s') => self.sort = self.sort.next(),
            KeyCode::Char('r') => self.reversed = !self.reversed,
            KeyCode::Enter => {
                self.open = !self.open;
                self.details = None;
                return Step::Ask;
            }
            _ => return self.moved(code),
        }
        Step::Stay
    }

    fn moved(&mut self, code: KeyCode) -> Step {
        let shown = self.shown();
        let (at, last) = (self.index(&shown), shown.len().saturating_sub(1));
        let to = match code {
            KeyCode::Down | KeyCode::Char('j') => at + 1,
            KeyCode::Up | KeyCode::Char('k') => at.saturating_sub(1),
            KeyCode::PageDown => at + self.page,
            KeyCode::PageUp => at.saturating_sub(self.page),
            KeyCode::Home | KeyCode::Char('g') => 0,
            KeyCode::End | KeyCode::Char('G') => last,
            _ => return Step::Stay,
        };
        let selected = shown.get(to.min(last)).map(|row| row.place());
        let other = selected != self.selected;
        self.selected = selected;
        if self.open && other { Step::Ask } else { Step::Stay }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn state() -> State {
        let mut state = State::new("127.0.0.1:9090".to_owned());
        state.take(&json!({"at": "2026-03-02T14:00:00Z", "tools": [
            {"backend": "b", "tool": "calm", "status": "OK", "callsPerMinute": 9.0, "failedShare": 0.0},
            {"backend": "b", "tool": "broken", "status": "DOWN", "signature": "rpc-32603", "callsPerMinute": 1.0, "failedShare": 1.0},
            {"backend": "a", "tool": "busy", "status": "OK", "callsPerMinute": 100.0},
            {"backend": "b", "tool": "tried", "status": "DOWN", "retesting": true},
        ]}));
        state
    }

    fn press(state: &mut State, keys: &str) -> Step {
        let mut step = Step::Stay;
        for word in keys.split(' ') {
            let code = match word {
                "enter" => KeyCode::Enter,
                "esc" => KeyCode::Esc,
                "down" => KeyCode::Down,
                "up" => KeyCode::Up,
                "end" => KeyCode::End,
                "home" => KeyCode::Home,
                "pagedown" => KeyCode::PageDown,
                "back" => KeyCode::Backspace,
                letter => KeyCode::Char(letter.chars().next().unwrap()),
            };
            step = state.key(KeyEvent::from(code));
        }
        step
    }

    fn names(state: &State) -> Vec<&str> {
        state.shown().iter().map(|row| row.tool.as_str()).collect()
    }

    #[test]
    fn what_is_worst_stands_first_and_s_sorts_otherwise() {
        let mut state = state();
        assert_eq!(names(&state), ["broken", "tried", "busy", "calm"]);
        for (keys, order) in [
            ("s", ["busy", "broken", "calm", "tried"]),
            ("s", ["busy", "calm", "broken", "tried"]),
            ("s", ["broken", "calm", "busy", "tried"]),
            ("r", ["busy", "tried", "calm", "broken"]),
        ] {
            press(&mut state, keys);
            assert_eq!(names(&state), order, "{:?}", state.sort);
        }
    }

    #[test]
    fn the_selection_stays_on_its_tool_whatever_comes_and_moves_within_what_is_shown() {
        let mut state = state();
        press(&mut state, "down down");
        assert_eq!(state.current().unwrap().tool, "busy");
        press(&mut state, "s");
        assert_eq!(state.current().unwrap().tool, "busy");
        press(&mut state, "end down down");
        assert_eq!(state.current().unwrap().tool, "tried");
        press(&mut state, "home up");
        assert_eq!(state.current().unwrap().tool, "busy");
        state.set_page(2);
        press(&mut state, "pagedown");
        assert_eq!(state.current().unwrap().tool, "calm");
        state.take(&json!({"tools": []}));
        assert_eq!(press(&mut state, "down"), Step::Stay);
        assert!(state.current().is_none());
    }

    #[test]
    fn a_filter_takes_letters_that_are_commands_otherwise_until_enter_or_esc() {
        let mut state = state();
        assert_eq!(press(&mut state, "/ q"), Step::Stay);
        press(&mut state, "back r e t e s t enter");
        assert_eq!((names(&state), state.filter.as_str()), (vec!["tried"], "retest"));
        press(&mut state, "esc");
        assert_eq!(names(&state).len(), 4);
        press(&mut state, "/ x y z esc");
        assert_eq!(state.filter, "");
    }

    #[test]
    fn details_are_asked_for_when_they_are_opened_or_another_tool_is_selected() {
        let mut state = state();
        assert_eq!(state.wants_detail(), None);
        assert_eq!(press(&mut state, "enter"), Step::Ask);
        assert_eq!(state.wants_detail(), Some(("b".to_owned(), "broken".to_owned())));
        assert_eq!(press(&mut state, "down"), Step::Ask);
        assert_eq!(press(&mut state, "esc"), Step::Stay);
        assert_eq!(state.wants_detail(), None);
    }

    #[test]
    fn q_and_control_c_quit_also_while_somebody_types() {
        assert_eq!(press(&mut state(), "q"), Step::Quit);
        let mut typing = state();
        press(&mut typing, "/");
        let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(typing.key(control_c), Step::Quit);
    }
}
