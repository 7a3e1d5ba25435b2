//! The report: everything as JSON, and what people want to know of it as Markdown.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use anyhow::Result;
use serde::Serialize;

use crate::growth::Curve;
use crate::memory::Memory;
use crate::plan::{Bar, Case, Metric};
use crate::rounds::{Outcome, Rounds};
use crate::stats::Median;

/// How far apart two of the same may lie before a run does not count.
const CONTROL: std::ops::RangeInclusive<f64> = 0.95..=1.05;

/// Everything that was measured.
#[derive(Debug, Serialize)]
pub struct Report {
    pub machine: BTreeMap<&'static str, String>,
    pub command: String,
    pub rounds: Rounds,
    pub quick: bool,
    /// A proxy's name and version.
    pub versions: BTreeMap<String, String>,
    pub cases: Vec<(String, String, Outcome)>,
    pub bars: Vec<Verdict>,
    pub controls: Vec<(String, Median)>,
    pub memory: Vec<Memory>,
    pub growth: Vec<Curve>,
    pub missing: Vec<String>,
    /// Command line and configuration of everything that ran.
    pub ran: BTreeMap<String, (String, String)>,
}

/// A bar and what became of it.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    pub title: String,
    pub case: String,
    pub value: Option<Median>,
    pub must: f64,
    pub at_least: bool,
}

impl Verdict {
    pub fn of(bar: &Bar, outcome: Option<&Outcome>) -> Verdict {
        Verdict {
            title: bar.title.to_owned(),
            case: bar.case.to_owned(),
            value: outcome.and_then(|outcome| outcome.ratio(bar.of, bar.to, bar.metric)),
            must: bar.must,
            at_least: bar.metric == Metric::Throughput,
        }
    }

    /// A figure that is known by itself.
    pub fn figure(title: &str, case: &str, value: f64, must: f64, at_least: bool) -> Verdict {
        let value = Some(Median { median: value, low: value, high: value });
        Verdict { title: title.to_owned(), case: case.to_owned(), value, must, at_least }
    }

    fn holds(&self) -> Option<bool> {
        let value = self.value?.median;
        Some(if self.at_least { value >= self.must } else { value <= self.must })
    }
}

/// The control of each case: the second of two that are the same.
pub fn controls(cases: &[(String, String, Outcome)], plan: &[Case]) -> Vec<(String, Median)> {
    let control = |case: &Case| {
        let (_, _, outcome) = cases.iter().find(|(id, _, _)| *id == case.id)?;
        let [first, second] = case.subjects.get(..2)? else { return None };
        let metric = if matches!(case.drive, crate::plan::Drive::Closed) { Metric::Cpu } else { Metric::P50 };
        Some((case.id.to_owned(), outcome.ratio(second.name, first.name, metric)?))
    };
    plan.iter().filter_map(control).collect()
}

/// What this was measured on.
pub fn machine() -> BTreeMap<&'static str, String> {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpuinfo = read("/proc/cpuinfo");
    let model = cpuinfo.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split(": ").nth(1));
    let memory = read("/proc/meminfo").lines().next().unwrap_or_default().replace("MemTotal:", "").trim().to_owned();
    let run = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output().map(|output| output.stdout).unwrap_or_default();
        String::from_utf8_lossy(&output).trim().to_owned()
    };
    let system = read("/etc/os-release").lines().find_map(|line| line.strip_prefix("PRETTY_NAME=").map(str::to_owned));
    BTreeMap::from([
        ("cpu", format!("{} x {}", cpuinfo.matches("processor\t").count(), model.unwrap_or("unknown"))),
        ("memory", memory),
        ("kernel", read("/proc/sys/kernel/osrelease").trim().to_owned()),
        ("system", system.unwrap_or_default().replace('"', "")),
        ("rustc", run("rustc", &["--version"])),
        ("date", run("date", &["-u", "+%Y-%m-%d %H:%M UTC"])),
        ("load", read("/proc/loadavg").trim().to_owned()),
    ])
}

impl Report {
    /// Whether the controls say that the machine was quiet enough.
    pub fn counts(&self) -> bool {
        self.controls.iter().all(|(_, m)| CONTROL.contains(&m.median))
    }

    /// Writes `benchmarks.json`, `benchmarks.md` and the plot.
    pub fn write(&self, dir: &Path) -> Result<()> {
        std::fs::create_dir_all(dir)?;
        std::fs::write(dir.join("benchmarks.json"), serde_json::to_string_pretty(self)?)?;
        std::fs::write(dir.join("benchmarks.md"), self.markdown()?)?;
        if !self.growth.is_empty() {
            std::fs::write(dir.join("benchmarks-growth.svg"), crate::growth::svg(&self.growth))?;
        }
        Ok(())
    }

    pub fn markdown(&self) -> Result<String> {
        let mut text = String::new();
        self.opening(&mut text)?;
        self.bars(&mut text)?;
        self.cases(&mut text)?;
        self.rest(&mut text)?;
        Ok(text)
    }

    fn opening(&self, text: &mut String) -> Result<()> {
        writeln!(text, "# Benchmarks\n\nWritten by `{}`; do not edit.\n", self.command)?;
        for (what, value) in &self.machine {
            writeln!(text, "- {what}: {value}")?;
        }
        writeln!(
            text,
            "\nLoad generator, backend and proxy share this machine, so what counts is the proxy's own CPU time per call \
             (from the scheduler's accounts, children included), as the median of ratios taken round by round in \
             alternating turns: {} rounds, turns of {:?} after {:?} of warm-up. Brackets hold the median with at least \
             95 %. Latency of the open loop counts from when a request was due.\n",
            self.rounds.rounds, self.rounds.turn, self.rounds.warm_up
        )?;
        if self.counts() {
            writeln!(
                text,
                "**The run counts**: the controls, two of the same against each other, lie within 0.95 to 1.05.\n"
            )?;
        } else {
            writeln!(
                text,
                "**This run does not count as a whole**: a control (two of the same against each other) lies outside 0.95 to 1.05. The machine was not quiet enough for the cases marked below.\n"
            )?;
        }
        writeln!(text, "| control | ratio | |\n| --- | --- | --- |")?;
        for (case, m) in &self.controls {
            writeln!(text, "| {case} | {} | {} |", shown(m), if CONTROL.contains(&m.median) { "" } else { "outside" })?;
        }
        for missing in &self.missing {
            writeln!(text, "\nDid not run: {missing}")?;
        }
        Ok(())
    }

    fn bars(&self, text: &mut String) -> Result<()> {
        writeln!(text, "\n## What must hold\n\n| what | value | must be | |\n| --- | --- | --- | --- |")?;
        for bar in &self.bars {
            let value = bar.value.map_or_else(|| "not run".to_owned(), |m| shown(&m));
            let unsure = self.controls.iter().any(|(case, m)| *case == bar.case && !CONTROL.contains(&m.median));
            let verdict = match bar.holds() {
                Some(true) => "holds",
                Some(false) => "**falls short**",
                None => "",
            };
            let sign = if bar.at_least { "≥" } else { "≤" };
            let note = if unsure { " (control outside)" } else { "" };
            writeln!(text, "| {} | {value} | {sign} {} | {verdict}{note} |", bar.title, bar.must)?;
        }
        Ok(())
    }

    fn cases(&self, text: &mut String) -> Result<()> {
        for (_, title, outcome) in &self.cases {
            writeln!(
                text,
                "\n## {title}\n\n| proxy | CPU µs/call | in the kernel | ratio to the first | calls/s | p50 µs | p99 µs | body bytes |\n| --- | --- | --- | --- | --- | --- | --- | --- |"
            )?;
            let first = outcome.order.first().map(String::as_str).unwrap_or_default();
            for name in &outcome.order {
                if let Some(why) = outcome.missing.get(name) {
                    writeln!(text, "| {name} | did not run: {} | | | | | | |", why.replace(['\n', '|'], " "))?;
                    continue;
                }
                let ratio = outcome.ratio(name, first, Metric::Cpu).map(|m| shown(&m)).unwrap_or_default();
                let body = outcome.turns.get(name).and_then(|turns| turns.last()).map_or(0, |turn| turn.body);
                writeln!(
                    text,
                    "| {name} | {:.2} | {:.2} | {ratio} | {:.0} | {:.0} | {:.0} | {body} |",
                    outcome.median(name, |t| t.cpu),
                    outcome.median(name, |t| t.system),
                    outcome.median(name, |t| t.per_second),
                    outcome.median(name, |t| t.p50),
                    outcome.median(name, |t| t.p99),
                )?;
            }
        }
        Ok(())
    }

    fn rest(&self, text: &mut String) -> Result<()> {
        if !self.memory.is_empty() {
            writeln!(
                text,
                "\n## Memory and start\n\nPSS; 5,000 connections with one answer each, 5,000 open event streams, a fresh process each.\n\n| proxy | start to first answer, ms | idle MiB | KiB per idle connection | KiB per open stream |\n| --- | --- | --- | --- | --- |"
            )?;
            for m in &self.memory {
                writeln!(
                    text,
                    "| {} | {:.1} | {:.1} | {:.2} | {:.2} |",
                    m.name, m.start_ms, m.idle, m.per_connection, m.per_stream
                )?;
            }
        }
        if !self.growth.is_empty() {
            writeln!(
                text,
                "\n## Growth\n\nCPU per call (per tool for lists), relative to the smallest number.\n\n![growth](benchmarks-growth.svg)\n\n| what there is more of | ratios | at most | |\n| --- | --- | --- | --- |"
            )?;
            for curve in &self.growth {
                let points: Vec<String> =
                    curve.points.iter().map(|(number, m)| format!("{number}: {}", shown(m))).collect();
                let flat = curve.points.last().is_some_and(|(_, m)| m.median <= curve.must);
                writeln!(
                    text,
                    "| {} | {} | {} | {} |",
                    curve.name,
                    points.join("; "),
                    curve.must,
                    if flat { "holds" } else { "**falls short**" }
                )?;
            }
        }
        writeln!(text, "\n## Versions\n")?;
        for (name, version) in self.versions.iter().filter(|(_, version)| !version.is_empty()) {
            writeln!(text, "- {name}: {version}")?;
        }
        writeln!(text, "\n## Commands and configurations")?;
        for (name, (command, config)) in self.ran.iter().filter(|(_, (command, _))| !command.is_empty()) {
            writeln!(
                text,
                "\n<details><summary>{name}</summary>\n\n```\n{command}\n```\n\n```\n{}\n```\n\n</details>",
                config.trim()
            )?;
        }
        Ok(())
    }
}

fn shown(m: &Median) -> String {
    if (m.low - m.high).abs() < f64::EPSILON {
        format!("{:.2}", m.median)
    } else {
        format!("{:.2} [{:.2}..{:.2}]", m.median, m.low, m.high)
    }
}
