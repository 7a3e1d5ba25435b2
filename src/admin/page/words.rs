//! Times, statuses and days as a page shows them: small templates of their own, used by all views.

use askama::Template;
use askama::filters::HtmlSafe;

use crate::admin::past::{CELLS, Cell};
use crate::clock::Wall;

/// A time: how far away it is in words, and exactly.
#[derive(Clone, Debug, PartialEq, Eq, Template)]
#[template(path = "moment.html")]
pub(super) struct Moment {
    stamp: String,
    words: String,
}

impl HtmlSafe for Moment {}

impl Moment {
    pub(super) fn new(at: Wall, now: Wall) -> Moment {
        let stamp = Wall(at.0.div_euclid(1000) * 1000).to_string().replace(".000Z", "Z");
        Moment { stamp, words: relative(at, now) }
    }

    pub(super) fn maybe(at: Option<Wall>, now: Wall) -> Option<Moment> {
        at.map(|at| Moment::new(at, now))
    }
}

/// `4 min ago` or `in 4 min`. The script of the page says it the same way.
fn relative(at: Wall, now: Wall) -> String {
    let seconds = (at.0 - now.0).unsigned_abs() / 1000;
    let words = match seconds {
        0..60 => "under 1 min".to_owned(),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 if seconds % 3600 >= 60 => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
        3600..86_400 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    };
    if at > now { format!("in {words}") } else { format!("{words} ago") }
}

/// A state in a word, with the mark that goes with it: told apart by shape as well as by colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Template)]
#[template(path = "pill.html")]
pub(super) struct Pill {
    class: &'static str,
    word: &'static str,
}

impl HtmlSafe for Pill {}

impl Pill {
    pub(super) fn new(word: &'static str) -> Pill {
        let class = match word {
            "OK" | "ready" | "present" | "WORKING" => "ok",
            "DEGRADED" | "auth_failed" | "INTERMITTENT" => "degraded",
            "RETESTING" => "retesting",
            "DOWN" | "credentials_missing" | "unconfigured" | "missing" => "down",
            _ => "none",
        };
        Pill { class, word }
    }
}

/// A day of a tool as a picture of at most four paths, whatever happened in it, and in words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Template)]
#[template(path = "strip.html")]
pub(super) struct Strip {
    words: String,
    unknown: String,
    ok: String,
    degraded: String,
    down: String,
}

impl HtmlSafe for Strip {}

impl Strip {
    pub(super) fn new(cells: &[Cell]) -> Strip {
        let mut strip = Strip { words: in_words(cells), ..Strip::default() };
        let mut at = 0;
        for spell in cells.chunk_by(|one, other| one == other) {
            let length = spell.len();
            // How bad it was is how tall it is.
            let (path, top, height) = match spell.first() {
                None | Some(Cell::Unknown) => (&mut strip.unknown, 14, 1),
                Some(Cell::Ok) => (&mut strip.ok, 12, 4),
                Some(Cell::Degraded) => (&mut strip.degraded, 7, 9),
                Some(Cell::Down) => (&mut strip.down, 0, 16),
            };
            path.push_str(&format!("M{at} {top}h{length}v{height}h-{length}z"));
            at += length;
        }
        strip
    }
}

fn in_words(cells: &[Cell]) -> String {
    let minutes = |wanted: Cell| 5 * cells.iter().filter(|cell| **cell == wanted).count();
    let spells = cells.chunk_by(|one, other| one == other).filter(|spell| spell.first() == Some(&Cell::Down)).count();
    let mut words = Vec::new();
    if spells > 0 {
        words.push(format!(
            "DOWN in {spells} spell{} of {} in all",
            if spells == 1 { "" } else { "s" },
            length(minutes(Cell::Down))
        ));
    }
    if minutes(Cell::Degraded) > 0 {
        words.push(format!("DEGRADED for {}", length(minutes(Cell::Degraded))));
    }
    if words.is_empty() && minutes(Cell::Ok) > 0 {
        words.push("OK".to_owned());
    }
    match minutes(Cell::Unknown) {
        0 => {}
        all if all >= 5 * CELLS => words.push("not known".to_owned()),
        some => words.push(format!("not known for {}", length(some))),
    }
    format!("Last 24 hours: {}", words.join(", "))
}

fn length(minutes: usize) -> String {
    match (minutes / 60, minutes % 60) {
        (0, minutes) => format!("{minutes} min"),
        (hours, 0) => format!("{hours} h"),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}

/// A rate for people: as precise as it is worth.
pub(super) fn rate(per_minute: f64) -> String {
    match per_minute {
        none if none <= 0.0 => "0".to_owned(),
        few if few < 0.1 => "<0.1".to_owned(),
        some if some < 10.0 => format!("{some:.1}"),
        many => format!("{many:.0}"),
    }
}

/// A share in percent.
pub(super) fn percent(share: f64) -> String {
    match share * 100.0 {
        none if none <= 0.0 => "0 %".to_owned(),
        few if few < 1.0 => "<1 %".to_owned(),
        some => format!("{some:.0} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_say_how_far_away_they_are_and_exactly_when() {
        let now = Wall(1_772_460_000_000);
        for (seconds, words) in [
            (-5, "under 1 min ago"),
            (-61, "1 min ago"),
            (-3600, "1 h ago"),
            (-3 * 3600 - 300, "3 h 5 min ago"),
            (-200_000, "2 d ago"),
            (240, "in 4 min"),
        ] {
            assert_eq!(Moment::new(now.plus_millis(seconds * 1000), now).words, words);
        }
        let html = Moment::new(now.plus_millis(123), now).render().unwrap();
        assert!(html.contains("datetime=\"2026-03-02T14:00:00Z\""), "{html}");
    }

    #[test]
    fn a_day_is_a_few_paths_and_a_sentence_however_much_happened_in_it() {
        let cells: Vec<Cell> = (0..CELLS).map(|at| if at % 2 == 0 { Cell::Down } else { Cell::Ok }).collect();
        let strip = Strip::new(&cells);
        assert!(strip.words.starts_with("Last 24 hours: DOWN in 144 spells of 12 h in all"), "{}", strip.words);
        assert_eq!(strip.render().unwrap().matches("<path").count(), 4);
        let calm = Strip::new(&[vec![Cell::Unknown; 10], vec![Cell::Ok; CELLS - 10]].concat());
        assert_eq!(calm.words, "Last 24 hours: OK, not known for 50 min");
        assert_eq!(calm.ok, "M10 12h278v4h-278z");
    }

    #[test]
    fn rates_and_shares_are_as_precise_as_they_are_worth() {
        assert_eq!([0.0, 0.01, 2.345, 123.4].map(rate), ["0", "<0.1", "2.3", "123"]);
        assert_eq!([0.0, 0.001, 0.25].map(percent), ["0 %", "<1 %", "25 %"]);
    }
}
