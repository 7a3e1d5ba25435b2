//! `toolvane classify`: cases in, decisions out, one JSON object a line.

use std::io::{self, BufRead, Write};

use crate::clock::Now;
use crate::rules::{Table, case};

/// Longest line that is read, in bytes.
const LINE_MAX: usize = 16 * 1024 * 1024;

/// What came of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Cases that were judged.
    pub judged: usize,
    /// Lines that were no case; the command then exits with 1.
    pub bad: usize,
}

/// Judges each line of `input` by `table` and writes the decision to `output`; what is wrong with a line goes to `words`,
/// with its number. Empty lines are skipped. `now` stands in for the time at which each answer was received.
///
/// # Errors
/// Only if reading or writing fails.
pub fn classify(
    mut input: impl BufRead,
    mut output: impl Write,
    mut words: impl Write,
    table: &Table,
    now: Now,
) -> io::Result<Summary> {
    let mut summary = Summary::default();
    let mut line = Vec::new();
    for number in 1_usize.. {
        line.clear();
        if io::Read::take(&mut input, LINE_MAX as u64).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let text = String::from_utf8_lossy(&line);
        if text.trim().is_empty() {
            continue;
        }
        match case::read(text.trim_end(), now) {
            Ok(case) => {
                let decision = case.decision(&table.judge(&case.exchange));
                serde_json::to_writer(&mut output, &decision)?;
                output.write_all(b"\n")?;
                summary.judged += 1;
            }
            Err(error) => {
                writeln!(words, "line {number}: {error}")?;
                summary.bad += 1;
            }
        }
    }
    output.flush()?;
    Ok(summary)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{Limits, load};

    fn run(input: &str) -> (String, String, Summary) {
        let table = load(&[], Limits::default()).unwrap();
        let (mut output, mut words) = (Vec::new(), Vec::new());
        let summary = classify(input.as_bytes(), &mut output, &mut words, &table, Now::default()).unwrap();
        (String::from_utf8(output).unwrap(), String::from_utf8(words).unwrap(), summary)
    }

    #[test]
    fn each_case_gets_one_decision_under_its_own_id() {
        let (output, words, summary) = run(concat!(
            "{\"id\":\"a\",\"response\":{\"status\":200,\"headers\":{},\"body\":\"{}\"},\"rationale\":7}\n\n",
            "{\"id\":2,\"transport\":{\"kind\":\"connect_refused\"}}\n",
        ));
        let lines: Vec<serde_json::Value> = output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines[0]["id"], "a");
        assert_eq!(lines[0]["classification"], "WORKING");
        assert_eq!(lines[1]["id"], 2);
        assert_eq!(lines[1]["dispatchCode"], "BACKEND_UNREACHABLE");
        assert_eq!((words.as_str(), summary), ("", Summary { judged: 2, bad: 0 }));
    }

    #[test]
    fn a_bad_line_is_named_and_the_others_are_judged() {
        let (output, words, summary) = run(concat!(
            "nonsense\n",
            "{\"id\":1}\n",
            "{\"id\":1,\"transport\":{\"kind\":\"gremlins\"}}\n",
            "{\"id\":1,\"response\":{\"status\":204}}",
        ));
        assert_eq!(output.lines().count(), 1);
        assert_eq!(summary, Summary { judged: 1, bad: 3 });
        assert!(words.starts_with("line 1: not a case"), "{words}");
        assert!(words.contains("line 2: a case needs one of"), "{words}");
        assert!(words.contains("line 3: the transport kind `gremlins` is not known"), "{words}");
    }
}
