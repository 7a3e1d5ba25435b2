//! The cascade read at the load that DESIGN 8 states: 2,000 documents that are not OK, 1,000 changes a second beside it, five
//! scopes of which the first four miss, keys drawn afresh for each read, the result used. Bar: p99 below 1 µs.
//!
//! Prints percentiles of 10 million reads in batches of 16, because asking for the time costs as much as a read; then
//! criterion's mean. Wall time: on a busy machine the tail is that of the scheduler.

#![expect(clippy::print_stdout, reason = "a benchmark whose output is its result")]
#![expect(clippy::indexing_slicing, reason = "every index is drawn from the length of what it indexes")]

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use toolvane::clock::{Now, Tick, Wall};
use toolvane::health::{Caller, Key, Mark, MemoryOnly, Origin, Registry, Status, ToolRef, Tuning};
use toolvane::rules::{Classification, Scope};

const NOW: Now = Now { tick: Tick(1_000_000), wall: Wall(1_790_000_000_000) };
const DOCUMENTS: usize = 2_000;
const CALLERS: usize = 200;
const TOOLS: usize = 200;

fn mark(to: Status) -> Mark {
    Mark {
        to,
        classification: Classification::TechnicallyBroken,
        signature: Some(Arc::from("http-503")),
        origin: Origin::Admin,
        by: Arc::from("bench"),
        note: Arc::from("because"),
        since: None,
        recovery: Some(Duration::from_secs(3_600)),
        user_action_hint: None,
    }
}

fn id(scope: Scope, number: usize) -> String {
    format!("{}-{number}", scope.as_str().to_lowercase())
}

/// A random document: of the tool or (one in ten) of the whole backend; at GLOBAL, where every reader finds it, or at a narrower
/// scope of somebody who is not among the readers, so that each level must be looked at and misses.
fn key(random: &mut fastrand::Rng) -> Key {
    let scope = Scope::ALL[random.usize(..5)];
    let wide = scope == Scope::Global;
    let tool = if random.u32(..10) == 0 { "*".to_owned() } else { format!("tool-{}", random.usize(..TOOLS)) };
    let id = id(scope, CALLERS + random.usize(..CALLERS));
    Key {
        tenant_id: (!wide).then(|| "tenant".to_owned()),
        scope,
        scope_id: (!wide).then_some(id),
        backend: format!("backend-{}", random.usize(..20)),
        tool_name: tool,
    }
}

struct Load {
    registry: Registry,
    keys: Vec<Key>,
    callers: Vec<Caller>,
    tools: Vec<ToolRef>,
}

impl Load {
    fn new() -> Load {
        let registry = Registry::new(Tuning::default(), Arc::new(MemoryOnly));
        let mut random = fastrand::Rng::with_seed(1);
        let keys: Vec<Key> = (0..DOCUMENTS).map(|_| key(&mut random)).collect();
        for key in &keys {
            registry.mark(key, &mark(Status::Down), NOW, &mut || 0.5);
        }
        let callers = (0..CALLERS).map(|number| Caller {
            session: Some(Arc::from(id(Scope::Session, number))),
            user: Some(Arc::from(id(Scope::User, number))),
            project: Arc::from(id(Scope::Project, number)),
            tenant: Arc::from("tenant"),
            roles: Vec::new(),
            credential: None,
        });
        let tools = (0..TOOLS).map(|number| ToolRef {
            backend: Arc::from(format!("backend-{}", number % 20)),
            tool: Arc::from(format!("tool-{number}")),
        });
        Load { registry, keys, callers: callers.collect(), tools: tools.collect() }
    }

    fn read(&self, random: &mut fastrand::Rng) -> bool {
        let caller = &self.callers[random.usize(..CALLERS)];
        let at = &self.tools[random.usize(..TOOLS)];
        black_box(self.registry.lookup(caller, at, NOW)).status == Status::Down
    }

    /// Changes 1,000 statuses a second until told to stop.
    fn change(&self, stop: &AtomicBool) {
        let mut random = fastrand::Rng::with_seed(2);
        while !stop.load(Ordering::Relaxed) {
            for _ in 0..5 {
                let to = if random.u32(..10) > 0 { Status::Down } else { Status::Ok };
                self.registry.mark(&self.keys[random.usize(..DOCUMENTS)], &mark(to), NOW, &mut || 0.5);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn percentiles(load: &Load) {
    const BATCH: u128 = 16;
    let mut random = fastrand::Rng::with_seed(3);
    let mut times: Vec<u128> = Vec::with_capacity(625_000);
    let mut down = 0_u32;
    for _ in 0..625_000 {
        let began = std::time::Instant::now();
        for _ in 0..BATCH {
            down += u32::from(load.read(&mut random));
        }
        times.push(began.elapsed().as_nanos() / BATCH);
    }
    times.sort_unstable();
    let at = |share: usize| times[times.len() * share / 1_000];
    let (p50, p90, p99, p999) = (at(500), at(900), at(990), at(999));
    println!("cascade read, ns: p50 {p50} p90 {p90} p99 {p99} p99.9 {p999} ({down} of 10000000 found DOWN)");
}

fn cascade(criterion: &mut Criterion) {
    let (load, stop) = (Load::new(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| load.change(&stop));
        percentiles(&load);
        let mut random = fastrand::Rng::with_seed(4);
        criterion.bench_function("cascade read", |bencher| bencher.iter(|| load.read(&mut random)));
        stop.store(true, Ordering::Relaxed);
    });
}

criterion_group!(benches, cascade);
criterion_main!(benches);
