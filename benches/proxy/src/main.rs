//! toolvane against other proxies. One command redoes every figure of `docs/benchmarks.md`; see `make bench`.

mod backend;
mod growth;
mod http;
mod load;
mod memory;
mod peers;
mod plan;
#[path = "../../shared/plot.rs"]
mod plot;
mod process;
mod report;
mod requests;
mod rounds;
mod stats;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::peers::{Peer, Places};
use crate::report::{Report, Verdict};
use crate::rounds::{Fleet, Rounds};

/// What is to be done.
#[derive(Debug)]
struct Options {
    quick: bool,
    only: Vec<String>,
    rounds: Rounds,
    out: PathBuf,
    toolvane: PathBuf,
    python: PathBuf,
    pingora: PathBuf,
    backend_only: bool,
}

const USAGE: &str = "proxy-bench [--quick] [--only CASE,…] [--rounds N] [--turn MILLISECONDS] [--out DIR] --toolvane PATH \
                     [--python VENV/bin] [--pingora PATH]\nCASE is a case, `sessions`, `memory` or `growth`";

fn options() -> Result<Options> {
    let mut options = Options {
        quick: false,
        only: Vec::new(),
        rounds: Rounds { rounds: 9, turn: Duration::from_millis(1500), warm_up: Duration::from_millis(250) },
        out: PathBuf::from("docs"),
        toolvane: PathBuf::from("target/release/toolvane"),
        python: PathBuf::from(".cache/bench/bin"),
        pingora: PathBuf::from("pingora-peer"),
        backend_only: false,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().with_context(|| format!("{argument} needs a value\n{USAGE}"));
        match argument.as_str() {
            "--quick" => {
                options.quick = true;
                options.rounds.turn = Duration::from_millis(500);
                options.rounds.warm_up = Duration::from_millis(100);
            }
            "--only" => options.only = value()?.split(',').map(str::to_owned).collect(),
            "--rounds" => options.rounds.rounds = value()?.parse()?,
            "--turn" => options.rounds.turn = Duration::from_millis(value()?.parse()?),
            "--out" => options.out = value()?.into(),
            "--toolvane" => options.toolvane = value()?.into(),
            "--python" => options.python = value()?.into(),
            "--pingora" => options.pingora = value()?.into(),
            "--backend" => options.backend_only = true,
            _ => bail!("unknown argument {argument}\n{USAGE}"),
        }
    }
    Ok(options)
}

fn main() -> Result<()> {
    let options = options()?;
    let backend = backend::start()?;
    if options.backend_only {
        println!("{backend}");
        loop {
            std::thread::park();
        }
    }
    let dir = std::env::temp_dir().join(format!("proxy-bench-{}", std::process::id()));
    std::fs::create_dir_all(&dir)?;
    let absolute = |path: &PathBuf| std::path::absolute(path);
    let places = Places {
        dir: dir.clone(),
        toolvane: absolute(&options.toolvane)?,
        python: absolute(&options.python)?,
        pingora: absolute(&options.pingora)?,
        backend,
    };
    let done = measure(&options, places);
    std::fs::remove_dir_all(&dir)?;
    done
}

fn measure(options: &Options, places: Places) -> Result<()> {
    let wanted = |id: &str| options.only.is_empty() || options.only.iter().any(|only| only == id);
    let plan = plan::cases(options.quick);
    let mut fleet = Fleet::new(places.clone());
    let mut cases = Vec::new();
    for case in plan.iter().filter(|case| wanted(case.id)) {
        eprintln!("{}: {}", case.id, case.title);
        let outcome = rounds::run(&mut fleet, case, options.rounds)?;
        for name in &outcome.order {
            let ratio = outcome.ratio(name, &outcome.order[0], plan::Metric::Cpu);
            let p50 = outcome.ratio(name, &outcome.order[0], plan::Metric::P50).map_or(f64::NAN, |m| m.median);
            let cpu = outcome.median(name, |t| t.cpu);
            let (ratio, low, high) = ratio.map_or((f64::NAN, f64::NAN, f64::NAN), |m| (m.median, m.low, m.high));
            let why = outcome.missing.get(name).map(String::as_str).unwrap_or_default();
            eprintln!(
                "  {name:28} cpu {cpu:8.2} us  ratio {ratio:5.2} [{low:.2}..{high:.2}]  p50 ratio {p50:.2}  {:.0}/s {why}",
                outcome.median(name, |t| t.per_second)
            );
        }
        cases.push((case.id.to_owned(), case.title.to_owned(), outcome));
    }
    let mut bars: Vec<Verdict> = Vec::new();
    for bar in plan::bars() {
        let outcome = cases.iter().find(|(id, _, _)| id == bar.case).map(|(_, _, outcome)| outcome);
        if outcome.is_some() {
            bars.push(Verdict::of(&bar, outcome));
        }
    }
    failing(&cases, &mut bars);
    let mut missing: Vec<String> = Vec::new();
    if !options.quick && wanted("sessions") {
        eprintln!("sessions");
        let (outcome, factors) = rounds::sessions(&mut fleet, &[Peer::McpProxy, Peer::FastMcp], options.rounds)?;
        for ((name, factor), must) in factors.iter().zip([300.0, 2300.0]) {
            eprintln!("  {name}: {:.0} times the CPU of toolvane", factor.median);
            let must = if name == "mcp-proxy" { 300.0 } else { must };
            bars.push(Verdict {
                title: format!("calls per CPU second v {name}"),
                case: String::new(),
                value: Some(*factor),
                must,
                at_least: true,
            });
        }
        cases.push(("sessions".to_owned(), "MCP sessions, 4 connections".to_owned(), outcome));
    }
    let versions = versions(&plan, &places);
    let ran =
        fleet.ran().map(|(name, running)| (name.clone(), (running.command.clone(), running.config.clone()))).collect();
    drop(fleet);
    let mut taken = Vec::new();
    if !options.quick && wanted("memory") {
        eprintln!("memory");
        for found in memory::measure(&places) {
            match found {
                Ok(memory) => {
                    eprintln!("  {memory:?}");
                    taken.push(memory);
                }
                Err(why) => missing.push(format!("{why:#}")),
            }
        }
        memory_bars(&taken, &mut bars);
    }
    let growth = if !options.quick && wanted("growth") {
        eprintln!("growth");
        let curves = growth::measure(&places, Rounds { turn: options.rounds.turn / 3, ..options.rounds })?;
        curves.iter().for_each(|curve| eprintln!("  {curve:?}"));
        curves
    } else {
        Vec::new()
    };
    growth_bars(&growth, &mut bars);
    let report = Report {
        machine: report::machine(),
        command: if options.quick { "make bench-quick".to_owned() } else { "make bench".to_owned() },
        rounds: options.rounds,
        quick: options.quick,
        versions,
        controls: report::controls(&cases, &plan),
        cases,
        bars,
        memory: taken,
        growth,
        missing,
        ran,
    };
    report.write(&options.out)?;
    println!("{}", report.markdown()?.split("## Versions").next().unwrap_or_default());
    println!("written to {}", options.out.display());
    if !report.counts() {
        eprintln!("a control lies outside 0.95 to 1.05: this run does not count; repeat it on a quieter machine");
        std::process::exit(1);
    }
    Ok(())
}

/// A failing call against one that succeeds, from the ratios of both to nginx.
fn failing(cases: &[(String, String, rounds::Outcome)], bars: &mut Vec<Verdict>) {
    let median = |id: &str| {
        let (_, _, outcome) = cases.iter().find(|(case, _, _)| case == id)?;
        let cpu = outcome.median("toolvane", |turn| turn.cpu);
        cpu.is_finite().then_some(cpu)
    };
    if let (Some(failure), Some(success)) = (median("iserror"), median("forward")) {
        bars.push(Verdict::figure("a failing call v one that succeeds, CPU", "iserror", failure / success, 1.5, false));
    }
}

fn memory_bars(taken: &[memory::Memory], bars: &mut Vec<Verdict>) {
    if let Some(own) = taken.iter().find(|memory| memory.name == "toolvane") {
        for (title, value, must) in [
            ("idle PSS, MiB", own.idle, 12.0),
            ("per idle connection, KiB", own.per_connection, 10.0),
            ("per open stream, KiB", own.per_stream, 22.0),
            ("start to the first answered call, ms", own.start_ms, 30.0),
        ] {
            bars.push(Verdict::figure(title, "", value, must, false));
        }
    }
}

fn growth_bars(curves: &[growth::Curve], bars: &mut Vec<Verdict>) {
    for (name, title) in
        [("documents", "a call with 100,000 documents v 10"), ("rules, success", "a call with 2,000 rules v 10")]
    {
        if let Some(curve) = curves.iter().find(|curve| curve.name == name) {
            let value = curve.points.last().map(|(_, m)| *m);
            bars.push(Verdict {
                title: title.to_owned(),
                case: String::new(),
                value,
                must: curve.must,
                at_least: false,
            });
        }
    }
}

fn versions(plan: &[plan::Case], places: &Places) -> BTreeMap<String, String> {
    let peers = plan.iter().flat_map(|case| &case.subjects).map(|subject| subject.peer);
    let sessions = [Peer::McpProxy, Peer::FastMcp];
    peers.chain(sessions).map(|peer| (format!("{} ({})", peer.name(), peer.work()), peer.version(places))).collect()
}
