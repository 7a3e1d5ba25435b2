//! What a line looks like, and what never stands in one.

use std::io::Write;
use std::sync::{Arc, Mutex};

use super::*;
use crate::clock::{ManualClock, Now, Tick, Wall};

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn logged(format: Format, filter: &str, work: impl FnOnce()) -> String {
    let lines = Lines::default();
    let clock = ManualClock::new(Now { tick: Tick(0), wall: Wall(1_772_445_600_000) });
    let writer = lines.clone();
    let subscriber = subscriber(format, filter, Arc::new(clock), move || writer.clone()).unwrap();
    tracing::subscriber::with_default(subscriber, work);
    let bytes = lines.0.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn a_json_line_has_its_fields_at_the_top() {
    let line = logged(Format::Json, "info", || {
        tracing::info!(target: "toolvane::health", tool = %Shown("jira_search"), signature = "http-503", rule = "r1", "changed");
    });
    let parsed: serde_json::Value = serde_json::from_str(&line).unwrap();
    let expected = serde_json::json!({
        "timestamp": "2026-03-02T10:00:00.000Z", "level": "INFO", "target": "toolvane::health", "message": "changed",
        "tool": "jira_search", "signature": "http-503", "rule": "r1",
    });
    assert_eq!(parsed, expected);
}

#[test]
fn the_filter_selects_by_level_and_target() {
    let line = logged(Format::Text { ansi: false }, "warn,toolvane::call=debug", || {
        tracing::info!(target: "toolvane::health", "not this");
        tracing::debug!(target: "toolvane::call", "but this");
    });
    assert_eq!(line, "2026-03-02T10:00:00.000Z DEBUG toolvane::call: but this\n");
}

#[test]
fn libraries_below_say_nothing_under_warn_whatever_the_filter_says() {
    let line = logged(Format::Text { ansi: false }, "trace,h2=trace", || {
        tracing::debug!(target: "h2::codec", "authorization: Bearer secret");
        tracing::info!(target: "hyper::proto", "cookie: secret");
        tracing::warn!(target: "hyper::proto", "something odd");
    });
    assert!(line.contains("something odd") && !line.contains("secret"), "{line}");
}

#[test]
fn names_from_outside_cannot_forge_lines_or_move_cursors() {
    let name = "a\nINFO toolvane: forged\u{1b}[2J\u{202e}\u{9b}";
    for format in [Format::Json, Format::Text { ansi: false }, Format::Text { ansi: true }] {
        let line = logged(format, "info", || tracing::info!(target: "toolvane", tool = %Shown(name), "call"));
        assert_eq!(line.lines().count(), 1, "{line:?}");
        assert!(!line.contains("\u{1b}[2J") && !line.contains('\u{202e}') && !line.contains('\u{9b}'), "{line:?}");
    }
    assert_eq!(Shown(&"x".repeat(1_000)).to_string().chars().count(), 129);
}

#[test]
fn a_filter_that_cannot_be_read_is_a_clear_error() {
    for filter in ["toolvane=loud", "info,toolvane::call=", "[{"] {
        let Err(error) = subscriber(Format::Json, filter, Arc::new(crate::clock::SystemClock), std::io::sink) else {
            continue;
        };
        let said = error.to_string();
        assert!(said.contains(filter) && said.contains("debug"), "{said}");
    }
    assert!(subscriber(Format::Json, "toolvane=loud", Arc::new(crate::clock::SystemClock), std::io::sink).is_err());
}
