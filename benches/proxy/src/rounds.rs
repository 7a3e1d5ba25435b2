//! Alternating rounds: every subject of a case has a turn in every round, and is compared with the first subject of the
//! same round, so that what the machine does meanwhile meets all alike.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::Serialize;

use crate::load;
use crate::peers::{Peer, Places, Running, initialize};
use crate::plan::{Case, Drive, Metric, Subject};
use crate::process::{Cpu, scrape};
use crate::requests::Call;
use crate::stats::{Median, median};

/// How long and how often.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Rounds {
    pub rounds: usize,
    pub turn: Duration,
    pub warm_up: Duration,
}

/// One turn.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Turn {
    /// Microseconds of CPU per call, and how much of it in the kernel.
    pub cpu: f64,
    pub system: f64,
    pub per_second: f64,
    /// Microseconds.
    pub p50: f64,
    pub p99: f64,
    pub body: usize,
}

impl Turn {
    pub fn of(&self, metric: Metric) -> f64 {
        match metric {
            Metric::Cpu => self.cpu,
            Metric::Throughput => self.per_second,
            Metric::P50 => self.p50,
        }
    }
}

/// All turns of a case by subject, in the order of the rounds.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Outcome {
    pub turns: BTreeMap<String, Vec<Turn>>,
    /// The subjects in their order.
    pub order: Vec<String>,
    /// Those that could not run, and why.
    pub missing: BTreeMap<String, String>,
}

impl Outcome {
    /// The median of the ratios of `of` to `to`, round by round.
    pub fn ratio(&self, of: &str, to: &str, metric: Metric) -> Option<Median> {
        let (of, to) = (self.turns.get(of)?, self.turns.get(to)?);
        let ratios: Vec<f64> = of.iter().zip(to).map(|(a, b)| a.of(metric) / b.of(metric)).collect();
        (!ratios.is_empty()).then(|| median(&ratios))
    }

    pub fn median(&self, of: &str, value: impl Fn(&Turn) -> f64) -> f64 {
        let values: Vec<f64> = self.turns.get(of).into_iter().flatten().map(value).collect();
        median(&values).median
    }
}

/// The proxies that run, by instance.
#[derive(Debug)]
pub struct Fleet {
    pub places: Places,
    running: BTreeMap<String, Running>,
    failed: BTreeMap<String, String>,
}

impl Fleet {
    pub fn new(places: Places) -> Fleet {
        Fleet { places, running: BTreeMap::new(), failed: BTreeMap::new() }
    }

    /// The instance of that name, started if it does not run yet.
    pub fn get(&mut self, peer: Peer, instance: &str) -> Result<&Running> {
        if let Some(why) = self.failed.get(instance) {
            bail!("{why}");
        }
        if !self.running.contains_key(instance) {
            let started = peer.start(&self.places, instance).and_then(|running| {
                if let Peer::Toolvane { .. } = peer {
                    prepare(&running, 2000)?;
                }
                Ok(running)
            });
            match started {
                Ok(running) => self.running.insert(instance.to_owned(), running),
                Err(why) => {
                    self.failed.insert(instance.to_owned(), format!("{why:#}"));
                    bail!("{why:#}");
                }
            };
        }
        self.running.get(instance).context("it runs")
    }

    /// Command and configuration of everything that ran.
    pub fn ran(&self) -> impl Iterator<Item = (&String, &Running)> {
        self.running.iter()
    }
}

/// Fills an instance of toolvane: so many health documents, and twenty tools that are DOWN for an hour.
pub fn prepare(running: &Running, documents: usize) -> Result<()> {
    let mut socket = std::net::TcpStream::connect(running.at)?;
    socket.set_nodelay(true)?;
    let mut buffer = vec![0; 256 * 1024];
    // A list, so that the tools have names of their own.
    load::exchange(&mut socket, &Call { case: "list200", ..Call::default() }.list(), &mut buffer)?;
    for n in 0..documents {
        let user = format!("u{n}");
        let call = Call { case: "403", user: &user, session: "s-0", size: 200, ..Call::default() };
        load::exchange(&mut socket, &call.bytes(), &mut buffer)?;
    }
    for n in 10..30 {
        let tool = format!("tool_{n}");
        load::exchange(&mut socket, &Call { case: "outage", tool: &tool, ..Call::default() }.bytes(), &mut buffer)?;
    }
    Ok(())
}

/// Runs a case.
pub fn run(fleet: &mut Fleet, case: &Case, how: Rounds) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let mut subjects = Vec::new();
    for subject in &case.subjects {
        outcome.order.push(subject.name.to_owned());
        match fleet.get(subject.peer, subject.instance) {
            Ok(_) => subjects.push(subject.clone()),
            Err(why) => {
                outcome.missing.insert(subject.name.to_owned(), format!("{why:#}"));
            }
        }
    }
    for round in 0..how.rounds {
        let turns = subjects.len();
        for n in 0..turns {
            // Every other round runs backwards: nobody always follows the same one.
            let at = if round % 2 == 0 { n } else { turns - 1 - n };
            let Some(subject) = subjects.get(at) else { continue };
            let running = fleet.get(subject.peer, subject.instance)?;
            match turn(running, subject, case.drive, how) {
                Ok(turn) => outcome.turns.entry(subject.name.to_owned()).or_default().push(turn),
                Err(why) => {
                    outcome.turns.remove(subject.name);
                    outcome.missing.insert(subject.name.to_owned(), format!("{why:#}"));
                }
            }
        }
        subjects.retain(|subject| !outcome.missing.contains_key(subject.name));
    }
    Ok(outcome)
}

/// One turn of one subject.
pub fn turn(running: &Running, subject: &Subject, drive: Drive, how: Rounds) -> Result<Turn> {
    let mut accounts = Vec::with_capacity(2);
    let take = || accounts.push(running.process.cpu());
    let _scraper = running.admin.map(Scraper::start);
    let done = match drive {
        Drive::Closed => load::closed(running.at, &subject.work, how.warm_up, how.turn, take)?,
        Drive::Open(rate) => load::open(running.at, &subject.work, rate, how.turn, take)?,
        Drive::FirstEvents(streams) => {
            let mut take = take;
            take();
            let done = load::first_events(running.at, &subject.work.requests[0], streams)?;
            take();
            done
        }
    };
    let [before, after] = <[Cpu; 2]>::try_from(accounts).map_err(|_| anyhow::anyhow!("CPU time was not taken"))?;
    if done.calls == 0 {
        bail!("no call was answered");
    }
    let per_call = |time: Duration| time.as_secs_f64() * 1e6 / done.calls as f64;
    let ticks = (after.user - before.user + after.system - before.system).as_secs_f64();
    let kernel = if ticks > 0.0 { (after.system - before.system).as_secs_f64() / ticks } else { 0.0 };
    let cpu = per_call(after.total - before.total);
    Ok(Turn {
        cpu,
        system: cpu * kernel,
        per_second: done.per_second(),
        p50: done.quantile(0.5),
        p99: done.quantile(0.99),
        body: done.body,
    })
}

/// Fetches the metrics once a second until dropped.
#[derive(Debug)]
struct Scraper {
    stop: std::sync::mpsc::Sender<()>,
}

impl Scraper {
    fn start(at: std::net::SocketAddr) -> Scraper {
        let (stop, stopped) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            while let Err(std::sync::mpsc::RecvTimeoutError::Timeout) = stopped.recv_timeout(Duration::from_millis(500))
            {
                let _ = scrape(at);
                if stopped.recv_timeout(Duration::from_millis(500)) != Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                    break;
                }
            }
        });
        Scraper { stop }
    }
}

impl Drop for Scraper {
    fn drop(&mut self) {
        let _ = self.stop.send(());
    }
}

/// Calls per second of CPU of a proxy that holds MCP sessions of its own, and those of toolvane, over four connections.
pub fn sessions(fleet: &mut Fleet, peers: &[Peer], how: Rounds) -> Result<(Outcome, Vec<(String, Median)>)> {
    let mut outcome = Outcome::default();
    let mut factors = Vec::new();
    for &peer in peers {
        let name = peer.name().to_owned();
        outcome.order.push(name.clone());
        match against(fleet, peer, how, &mut outcome) {
            Ok(factor) => factors.push((name, factor)),
            Err(why) => {
                outcome.missing.insert(name, format!("{why:#}"));
            }
        }
    }
    Ok((outcome, factors))
}

fn against(fleet: &mut Fleet, peer: Peer, how: Rounds, outcome: &mut Outcome) -> Result<Median> {
    let at = fleet.get(peer, peer.name())?.at;
    let session = initialize(at)?;
    let call = Call { case: "", session: session.as_deref().unwrap_or("none"), ..Call::default() };
    let work = load::Work { requests: std::sync::Arc::new(vec![call.bytes()]), connections: 4, status: 200 };
    let theirs = Subject { name: peer.name(), peer, instance: peer.name(), work: work.clone() };
    let full = crate::plan::FULL;
    let ours = Subject { name: "toolvane", peer: full, instance: "toolvane", work };
    let mut factors = Vec::new();
    for _ in 0..how.rounds {
        let their = turn(fleet.get(peer, peer.name())?, &theirs, Drive::Closed, how)?;
        let our = turn(fleet.get(full, "toolvane")?, &ours, Drive::Closed, how)?;
        factors.push(their.cpu / our.cpu);
        outcome.turns.entry(peer.name().to_owned()).or_default().push(their);
        outcome.turns.entry("toolvane".to_owned()).or_default().push(our);
    }
    Ok(median(&factors))
}
