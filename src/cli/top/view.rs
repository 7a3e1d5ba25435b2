//! What a state of `toolvane top` looks like. A status is told by its word; colours only repeat it.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Cell, Paragraph, Row as TableRow, Table, TableState, Wrap};

use super::row::{Row, Stand, distance};
use super::state::State;

/// Letters of a day: one for each hour.
const DAY: usize = 24;

/// Draws everything.
pub(super) fn draw(frame: &mut Frame<'_>, state: &mut State, colours: bool) {
    let look = Look { colours };
    let below = if state.open { (frame.area().height / 2).min(16) } else { 0 };
    let parts = [Constraint::Length(1), Constraint::Min(3), Constraint::Length(below), Constraint::Length(1)];
    let [head, table, details, foot] = Layout::vertical(parts).areas(frame.area());
    frame.render_widget(Paragraph::new(look.head(state)), head);
    state.set_page(usize::from(table.height.saturating_sub(1)));
    look.table(frame, state, table);
    if below > 0 {
        look.details(frame, state, details);
    }
    frame.render_widget(Paragraph::new(foot_line(state)), foot);
}

/// A column of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Status,
    Tool,
    Backend,
    Since,
    Back,
    Calls,
    Failed,
    Day,
    Reason,
}

/// How long the longest names are.
#[derive(Clone, Copy)]
struct Names {
    tool: usize,
    backend: usize,
}

impl Column {
    /// What a terminal of this width has room for.
    fn that_fit(width: u16) -> Vec<Column> {
        use Column::{Back, Backend, Calls, Day, Failed, Reason, Since, Status, Tool};
        match width {
            0..80 => vec![Status, Tool, Since, Calls, Failed, Reason],
            80..110 => vec![Status, Tool, Since, Back, Calls, Failed, Reason],
            _ => vec![Status, Tool, Backend, Since, Back, Calls, Failed, Day, Reason],
        }
    }

    const fn head(self) -> &'static str {
        match self {
            Column::Status => "STATUS",
            Column::Tool => "TOOL",
            Column::Backend => "BACKEND",
            Column::Since => "SINCE",
            Column::Back => "BACK IN",
            Column::Calls => "CALLS/M",
            Column::Failed => "FAILED",
            Column::Day => "LAST 24 H",
            Column::Reason => "REASON",
        }
    }

    fn width(self, names: Names) -> Constraint {
        let of = |letters: usize, least: usize, most: usize| {
            Constraint::Length(u16::try_from(letters.clamp(least, most)).unwrap_or(u16::MAX))
        };
        match self {
            Column::Status => Constraint::Length(9),
            Column::Tool => of(names.tool, 15, 32),
            Column::Backend => of(names.backend, 7, 16),
            Column::Since | Column::Back | Column::Calls => Constraint::Length(7),
            Column::Failed => Constraint::Length(6),
            Column::Day => of(DAY, DAY, DAY),
            Column::Reason => Constraint::Fill(1),
        }
    }
}

/// With colours or without.
#[derive(Clone, Copy)]
struct Look {
    colours: bool,
}

impl Look {
    fn of(self, stand: Stand) -> Style {
        let strong = if stand == Stand::Ok { Modifier::empty() } else { Modifier::BOLD };
        let style = Style::new().add_modifier(strong);
        let colour = match stand {
            Stand::Down => Color::Red,
            Stand::Retesting => Color::Cyan,
            Stand::Degraded => Color::Yellow,
            Stand::Hidden => Color::DarkGray,
            Stand::Ok => Color::Green,
        };
        if self.colours { style.fg(colour) } else { style }
    }

    fn head(self, state: &State) -> Line<'static> {
        let mut spans =
            vec![Span::styled("toolvane", Modifier::BOLD), Span::raw(format!("  {}  ", harmless(&state.admin)))];
        if let Some(why) = &state.lost {
            let words = format!("as of {}, no answer since: {}", clock(state), harmless(why));
            spans.push(Span::styled(words, Modifier::REVERSED));
            return Line::from(spans);
        }
        for stand in Stand::ALL {
            let count = state.count(stand);
            let style = if count > 0 { self.of(stand) } else { Style::new() };
            spans.push(Span::styled(format!("{count} {}", stand.as_str()), style));
            spans.push(Span::raw("  "));
        }
        if state.draining {
            spans.push(Span::styled("draining  ", Modifier::BOLD));
        }
        spans.push(Span::raw(format!("as of {}", clock(state))));
        if state.others > 0.0 {
            spans.push(Span::raw(format!("  and {:.1} calls/m of other tools", state.others)));
        }
        Line::from(spans)
    }

    fn table(self, frame: &mut Frame<'_>, state: &State, area: Rect) {
        let shown = state.shown();
        let columns = Column::that_fit(area.width);
        let longest = |name: fn(&Row) -> &str| shown.iter().map(|row| name(row).chars().count()).max().unwrap_or(0);
        let names = Names { tool: longest(|row| &row.tool), backend: longest(|row| &row.backend) };
        let rows = shown.iter().map(|row| TableRow::new(columns.iter().map(|column| self.cell(*column, row, state))));
        let table = Table::new(rows, columns.iter().map(|column| column.width(names)))
            .header(TableRow::new(columns.iter().map(|column| column.head())).style(Modifier::BOLD))
            .row_highlight_style(Modifier::REVERSED)
            .column_spacing(1);
        let mut at = TableState::default();
        if !shown.is_empty() {
            at.select(Some(state.index(&shown)));
        }
        frame.render_stateful_widget(table, area, &mut at);
    }

    fn cell(self, column: Column, row: &Row, state: &State) -> Cell<'static> {
        let stand = row.stand();
        match column {
            Column::Status => Cell::new(Span::styled(stand.as_str(), self.of(stand))),
            Column::Tool if row.tool == "*" => Cell::new("(whole backend)"),
            Column::Tool => Cell::new(harmless(&row.tool)),
            Column::Backend => Cell::new(harmless(&row.backend)),
            Column::Since => Cell::new(distance(row.since, state.at)),
            Column::Back if stand == Stand::Ok => Cell::new(""),
            Column::Back => Cell::new(distance(row.expected_recovery_at, state.at)),
            Column::Calls => Cell::new(format!("{:>7.1}", row.calls_per_minute)),
            Column::Failed => {
                let share = row.failed_share.map(|share| format!("{:.0} %", share * 100.0)).unwrap_or_default();
                Cell::new(format!("{share:>6}"))
            }
            Column::Day => Cell::new(row.day(DAY)),
            Column::Reason => Cell::new(harmless(&row.reason())),
        }
    }

    fn details(self, frame: &mut Frame<'_>, state: &State, area: Rect) {
        let Some(row) = state.current() else { return };
        let mut lines = vec![Line::from(vec![
            Span::styled(row.stand().as_str(), self.of(row.stand())),
            Span::raw(format!("  {}", harmless(&row.reason()))),
        ])];
        let trial = distance(row.next_trial_at, state.at);
        if !trial.is_empty() {
            lines.push(Line::raw(if row.stand() == Stand::Retesting {
                "trial due".to_owned()
            } else {
                format!("next trial in {trial}")
            }));
        }
        if row.refused_per_minute > 0.0 {
            lines.push(Line::raw(format!("{:.1} calls a minute are refused", row.refused_per_minute)));
        }
        match &state.details {
            Some(details) if details.place == row.place() => {
                lines.extend(details.held.iter().chain(&details.history).map(|line| Line::raw(harmless(line))));
                if details.held.is_empty() {
                    lines.push(Line::raw("nothing is held about it, which reads as OK"));
                }
            }
            _ => lines.push(Line::raw("asking …")),
        }
        let title = format!(" {} of {} ", harmless(&row.tool), harmless(&row.backend));
        let block = Block::new().borders(Borders::TOP).title(title);
        frame.render_widget(Paragraph::new(lines).block(block).wrap(Wrap { trim: false }), area);
    }
}

fn foot_line(state: &State) -> Line<'static> {
    if state.typing {
        return Line::raw(format!("find: {}▏  (Enter keeps it, Esc drops it)", harmless(&state.filter)));
    }
    let order = if state.reversed { " reversed" } else { "" };
    let mut words =
        format!("q quit  ↑↓ select  Enter details  / find  s sort: {}{order}  r reverse", state.sort.as_str());
    if !state.filter.is_empty() {
        words.push_str(&format!("  found by {:?} (Esc shows all)", harmless(&state.filter)));
    }
    Line::raw(words)
}

/// Hours, minutes and seconds in UTC.
fn clock(state: &State) -> String {
    state.at.to_string().get(11..19).map(|time| format!("{time} UTC")).unwrap_or_default()
}

/// A text without what could move a cursor.
fn harmless(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ratatui::crossterm::event::{KeyCode, KeyEvent};
    use serde_json::{Value, json};

    use super::super::state::Detail;
    use super::*;

    fn overview() -> Value {
        let day = |bad: &str| format!("{}{}", "-".repeat(60), bad.repeat(228 / bad.len()));
        json!({"at": "2026-03-02T14:00:00Z", "tools": [
            {"backend": "demo", "tool": "echo", "status": "OK", "callsPerMinute": 12.5, "failedShare": 0.0, "history": day("O"),
             "since": "2026-03-02T11:55:00Z"},
            {"backend": "demo", "tool": "broken", "status": "DOWN", "signature": "rpc-32603", "callsPerMinute": 3.0,
             "failedShare": 1.0, "note": "a note\u{1b}[31m that is long", "refusedPerMinute": 7.5, "usersAffected": 2,
             "since": "2026-03-02T13:56:00Z", "expectedRecoveryAt": "2026-03-02T14:30:00Z", "nextTrialAt": "2026-03-02T14:00:20Z",
             "history": day(&format!("{}{}", "O".repeat(180), "D".repeat(48)))},
            {"backend": "demo", "tool": "tried", "status": "DOWN", "retesting": true, "since": "2026-03-02T13:00:00Z"},
            {"backend": "other", "tool": "slow", "status": "DEGRADED", "signature": "slow", "since": "2026-02-27T13:00:00Z",
             "override": {"force": "OBSERVE"}, "history": day("G")},
            {"backend": "other", "tool": "mail", "status": "OK", "listed": false, "statusReason": "credentials_missing"},
        ], "others": [{"backend": "demo", "callsPerMinute": 4.0}, {"backend": "other", "callsPerMinute": 0.5}]})
    }

    fn state() -> State {
        let mut state = State::new("127.0.0.1:9090".to_owned());
        state.take(&overview());
        state
    }

    fn drawn(state: &mut State, (width, height): (u16, u16), colours: bool) -> Terminal<TestBackend> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, state, colours)).unwrap();
        terminal
    }

    #[test]
    fn all_tools_what_is_worst_first() {
        insta::assert_snapshot!(drawn(&mut state(), (140, 10), true).backend());
    }

    #[test]
    fn the_details_of_the_selected_tool() {
        let mut state = state();
        state.key(KeyEvent::from(KeyCode::Enter));
        let answer = json!({"documents": [{
            "scope": "PROJECT", "scopeId": "default", "status": "DOWN", "signature": "rpc-32603",
            "cooldowns": [{"errorSignature": "rpc-32603", "userId": null, "lastClassification": "TECHNICALLY_BROKEN",
                           "nextSpawnAllowedAt": "2026-03-02T14:11:00Z"}],
            "history": [
                {"at": "2026-03-02T11:00:00Z", "status": "OK", "classification": "WORKING", "by": "success", "note": "answered"},
                {"at": "2026-03-02T13:56:00Z", "status": "DOWN", "classification": "TECHNICALLY_BROKEN", "by": "judge", "note": "5 slots"},
            ],
        }]});
        state.detail(Detail::read(state.wants_detail().unwrap(), &answer));
        insta::assert_snapshot!(drawn(&mut state, (120, 20), true).backend());
    }

    #[test]
    fn a_narrow_terminal_a_filter_and_a_lost_connection() {
        let mut state = state();
        for key in "/demo".chars() {
            state.key(KeyEvent::from(KeyCode::Char(key)));
        }
        state.lost("nobody answers".to_owned());
        insta::assert_snapshot!(drawn(&mut state, (72, 8), true).backend());
    }

    #[test]
    fn without_colours_nothing_is_coloured_and_the_text_is_the_same() {
        let (with, without) = (drawn(&mut state(), (140, 10), true), drawn(&mut state(), (140, 10), false));
        let coloured = |terminal: &Terminal<TestBackend>| {
            terminal.backend().buffer().content().iter().any(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset)
        };
        assert!(coloured(&with) && !coloured(&without));
        assert_eq!(with.backend().to_string(), without.backend().to_string());
    }
}
