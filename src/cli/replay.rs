//! `toolvane replay FILE`: recorded outcomes judged again: which decisions, and which changes of status, would be others.

use std::collections::{BTreeMap, HashSet};
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use super::args::{Form, Replay};
use super::rules::{Layered, Streams, columns, refuse_in, text_of};
use super::{BAD, FINE, USAGE, counted};
use crate::clock::Now;
use crate::health::{Caller, Recorded, Step, Timeline};
use crate::json;
use crate::rules::{Exchange, Finding, Kind, Limits, Table, Verdict, case, load};
use crate::yaml::duration_text;

/// How far apart two outcomes are that do not say when they were.
const STEP: Duration = Duration::from_secs(1);

/// What rules say about an outcome, as far as two of them are compared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct Said {
    rule: Option<Arc<str>>,
    signature: Option<Arc<str>>,
    classification: &'static str,
}

/// Outcomes of one tool about which the rules say the same, before and after.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Change {
    backend: Arc<str>,
    tool: Arc<str>,
    before: Said,
    after: Said,
    /// What else is said otherwise, by name, as it was and as it is.
    differs: Differences,
    outcomes: usize,
    first_line: usize,
}

type Differences = BTreeMap<String, [String; 2]>;

/// Backend, tool, and what is said otherwise.
type Key = (Arc<str>, Arc<str>, Said, Said, Differences);

#[derive(Debug, Default)]
struct Replayed {
    outcomes: usize,
    unreadable: usize,
    changes: BTreeMap<Key, Change>,
    before: Timeline,
    after: Timeline,
}

/// One outcome, and what was said of it then.
struct Line {
    exchange: Exchange,
    caller: Arc<Caller>,
    took: Duration,
    verdict: Option<Verdict>,
}

/// Runs the command; gives the exit code. `now` is when outcomes begin that do not say when they were.
pub fn replay<O: Write, W: Write>(args: &Replay, now: Now, streams: &mut Streams<O, W>) -> u8 {
    let (then, layered) = match (load(&[], Limits::default()), Layered::load(&args.rules)) {
        (Ok(then), Ok(layered)) => (then, layered),
        (Err(report), _) | (_, Err(report)) => return refuse_in(args.output, &report, streams),
    };
    let text = match text_of(&args.file) {
        Ok(text) => text,
        Err(error) => {
            let _ = writeln!(streams.words, "error: cannot read {}: {error}", args.file.display());
            return USAGE;
        }
    };
    let replayed = run(&text, now, (&then, &layered.table), &mut streams.words);
    let data = match args.output {
        Form::Json => as_json(&replayed),
        Form::Table => as_table(&replayed),
    };
    let _ = streams.data.write_all(data.as_bytes());
    let changed: usize = replayed.changes.values().map(|change| change.outcomes).sum();
    let _ = writeln!(streams.words, "{}, {changed} judged otherwise", counted(replayed.outcomes, "outcome"));
    if replayed.unreadable == 0 { FINE } else { BAD }
}

fn run(text: &str, begin: Now, tables: (&Table, &Table), words: &mut impl Write) -> Replayed {
    let mut replayed = Replayed::default();
    let mut now = begin;
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        now = now.after(STEP);
        match read(line, now) {
            Ok(line) => replayed.add(number, &line, tables),
            Err(why) => {
                replayed.unreadable += 1;
                let _ = writeln!(words, "line {number}: {why}");
            }
        }
    }
    replayed
}

/// A line of a recording, or any other case, which does not say who called.
fn read(line: &str, now: Now) -> Result<Line, case::BadCase> {
    if let Ok(recorded) = json::read::<Recorded>(line.as_bytes()) {
        return Ok(Line {
            exchange: recorded.outcome.into_exchange(Now { wall: recorded.at, ..now }),
            caller: Arc::new(recorded.caller.into_caller()),
            took: Duration::from_millis(recorded.took_ms),
            verdict: Some(recorded.verdict),
        });
    }
    let case = case::read(line, now)?;
    Ok(Line { exchange: case.exchange, caller: Arc::new(Caller::somebody()), took: Duration::ZERO, verdict: None })
}

impl Replayed {
    fn add(&mut self, number: usize, line: &Line, (then, table): (&Table, &Table)) {
        let Line { exchange, caller, took, verdict } = line;
        let before = verdict.clone().unwrap_or_else(|| then.judge(exchange));
        let after = table.judge(exchange);
        self.outcomes += 1;
        self.before.add(exchange, caller, *took, &before);
        self.after.add(exchange, caller, *took, &after);
        if before == after {
            return;
        }
        let (backend, tool) = (Arc::clone(&exchange.backend), Arc::clone(&exchange.tool));
        let differs = differences(&before, &after);
        let (before, after) = (Said::of(&before), Said::of(&after));
        let key = (Arc::clone(&backend), Arc::clone(&tool), before.clone(), after.clone(), differs.clone());
        let new = Change { backend, tool, before, after, differs, outcomes: 0, first_line: number };
        self.changes.entry(key).or_insert(new).outcomes += 1;
    }
}

impl Said {
    fn of(verdict: &Verdict) -> Said {
        let finding = verdict.finding.as_ref();
        Said {
            rule: finding.map(|finding| Arc::clone(&finding.rule)),
            signature: finding.map(|finding| Arc::clone(&finding.signature)),
            classification: match (finding, verdict.kind) {
                (Some(finding), _) => finding.classification.as_str(),
                (None, Kind::Success) => "WORKING",
                (None, _) => "neutral",
            },
        }
    }

    fn words(&self) -> String {
        let name = self.rule.as_deref().unwrap_or("-");
        format!("{name} {}", self.classification)
    }
}

/// What two judgements say otherwise, besides what [`Said`] tells.
fn differences(before: &Verdict, after: &Verdict) -> Differences {
    let (before, after) = (traits(before), traits(after));
    let both = before.into_iter().zip(after.into_iter().map(|(_, value)| value));
    both.filter(|((_, before), after)| before != after).map(|((name, before), after)| (name, [before, after])).collect()
}

fn traits(verdict: &Verdict) -> [(String, String); 9] {
    let finding = verdict.finding.as_ref();
    let of = |say: fn(&Finding) -> Value| finding.map_or(Value::Null, say);
    let lasts = |wait: Option<Duration>| wait.map_or(Value::Null, |wait| duration_text(wait).into());
    [
        ("kind", json!(verdict.kind)),
        ("dispatchCode", of(|finding| json!(finding.dispatch_code))),
        ("healthAction", of(|finding| json!(finding.health_action))),
        ("evidence", of(|finding| json!(finding.evidence))),
        ("disproves", of(|finding| json!(finding.disproves))),
        ("scope", of(|finding| json!(finding.scope))),
        ("cooldown", lasts(finding.and_then(|finding| finding.cooldown))),
        ("hint", lasts(finding.and_then(|finding| finding.hint))),
        ("answerAsResult", of(|finding| json!(finding.answer_as_result))),
    ]
    .map(|(name, value)| {
        let text = match value {
            Value::Null => "-".to_owned(),
            Value::String(text) => text,
            other => other.to_string(),
        };
        (name.to_owned(), text)
    })
}

/// Changes of status that one side has and the other has not.
fn only<'s>(one: &'s Timeline, other: &Timeline) -> Vec<&'s Step> {
    let known: HashSet<&Step> = other.steps().iter().collect();
    one.steps().iter().filter(|step| !known.contains(step)).collect()
}

fn as_json(replayed: &Replayed) -> String {
    let answer = json!({
        "outcomes": replayed.outcomes,
        "unreadable": replayed.unreadable,
        "changes": replayed.changes.values().collect::<Vec<_>>(),
        "transitions": {
            "gone": only(&replayed.before, &replayed.after),
            "new": only(&replayed.after, &replayed.before),
        },
    });
    format!("{answer}\n")
}

fn as_table(replayed: &Replayed) -> String {
    let mut rows: Vec<Vec<String>> = Vec::new();
    for change in replayed.changes.values() {
        let differs = change.differs.iter().map(|(name, [before, after])| format!("{name} {before} → {after}"));
        rows.push(vec![
            format!("{}×", change.outcomes),
            place(&change.backend, &change.tool),
            change.before.words(),
            format!("→ {}", change.after.words()),
            format!("first on line {}", change.first_line),
            differs.collect::<Vec<_>>().join(", "),
        ]);
    }
    let mut out = columns(&rows);
    let steps = |steps: Vec<&Step>, word: &str| -> Vec<Vec<String>> {
        let row = |step: &&Step| {
            let signature = step.signature.as_deref().unwrap_or("-").to_owned();
            let change = format!("{:?} → {:?}", step.from, step.to).to_uppercase();
            let at = place(&step.key.backend, &step.key.tool_name);
            vec![word.to_owned(), step.at.to_string(), at, step.key.scope.to_string(), change, signature]
        };
        steps.iter().map(row).collect()
    };
    let mut changes = steps(only(&replayed.before, &replayed.after), "no longer");
    changes.extend(steps(only(&replayed.after, &replayed.before), "now"));
    if !rows.is_empty() && !changes.is_empty() {
        out.push('\n');
    }
    out.push_str(&columns(&changes));
    out
}

fn place(backend: &str, tool: &str) -> String {
    if backend.is_empty() { tool.to_owned() } else { format!("{backend}/{tool}") }
}
