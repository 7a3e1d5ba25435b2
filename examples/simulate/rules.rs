//! The rules that are compared: three that others use, with their defaults, and the production registry.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use toolvane::clock::{Now, Tick, Wall};
use toolvane::health::{
    Admission, Attempt, CONFIRM_AFTER, Call, Caller, Effect, MemoryOnly, Permit, Policy, Registry, Status, ToolRef,
    Tuning,
};
use toolvane::rules::{Classification, DispatchCode, Disproves, Evidence, Finding, HealthAction, Kind, Verdict};

use crate::cases::Backend;

/// Something that lets calls through or refuses them. Times are milliseconds.
pub(crate) trait Rule {
    /// Whether a call may go.
    fn admit(&mut self, now: u64) -> bool;
    /// What an admitted call came to; `None` is a success.
    fn done(&mut self, now: u64, failed: Option<Backend>);
    /// Time has passed; whether calls would be refused now.
    fn tick(&mut self, now: u64, backend: Backend) -> bool;
    /// How often it began to refuse.
    fn trips(&self) -> u64;
    /// How often it called the tool degraded.
    fn degraded(&self) -> u64 {
        0
    }
}

/// Opens for 30 s on any failure, then lets one call try.
#[derive(Default)]
pub(crate) struct OneFailure {
    until: u64,
    trips: u64,
}

impl Rule for OneFailure {
    fn admit(&mut self, now: u64) -> bool {
        now >= self.until
    }

    fn done(&mut self, now: u64, failed: Option<Backend>) {
        if failed.is_some() {
            self.until = now + 30_000;
            self.trips += 1;
        }
    }

    fn tick(&mut self, now: u64, _: Backend) -> bool {
        now < self.until
    }

    fn trips(&self) -> u64 {
        self.trips
    }
}

/// Ejects for 30 s times the number of ejections, at most 300 s, after five failures in a row.
#[derive(Default)]
pub(crate) struct FiveConsecutive {
    failures: u32,
    until: u64,
    trips: u64,
}

impl Rule for FiveConsecutive {
    fn admit(&mut self, now: u64) -> bool {
        now >= self.until
    }

    fn done(&mut self, now: u64, failed: Option<Backend>) {
        self.failures = if failed.is_some() { self.failures + 1 } else { 0 };
        if self.failures >= 5 {
            self.failures = 0;
            self.trips += 1;
            self.until = now + (30_000 * self.trips).min(300_000);
        }
    }

    fn tick(&mut self, now: u64, _: Backend) -> bool {
        now < self.until
    }

    fn trips(&self) -> u64 {
        self.trips
    }
}

/// Opens when at least half of at least 20 calls in 10 s failed; one trial every 5 s.
#[derive(Default)]
pub(crate) struct Hystrix {
    calls: VecDeque<(u64, bool)>,
    open: bool,
    trial_at: u64,
    trips: u64,
}

impl Rule for Hystrix {
    fn admit(&mut self, now: u64) -> bool {
        if self.open && now < self.trial_at {
            return false;
        }
        self.trial_at = now + 5_000;
        true
    }

    fn done(&mut self, now: u64, failed: Option<Backend>) {
        if self.open {
            self.open = failed.is_some();
            if !self.open {
                self.calls.clear();
            }
            return;
        }
        self.calls.push_back((now, failed.is_some()));
        while self.calls.front().is_some_and(|(at, _)| at + 10_000 < now) {
            self.calls.pop_front();
        }
        let failures = self.calls.iter().filter(|(_, failed)| *failed).count();
        if self.calls.len() >= 20 && failures * 2 >= self.calls.len() {
            self.open = true;
            self.trips += 1;
            self.trial_at = now + 5_000;
        }
    }

    fn tick(&mut self, now: u64, _: Backend) -> bool {
        self.open && now < self.trial_at
    }

    fn trips(&self) -> u64 {
        self.trips
    }
}

/// The production registry, confirmation and probes included.
pub(crate) struct Toolvane {
    registry: Registry,
    caller: Arc<Caller>,
    at: ToolRef,
    policy: Arc<Policy>,
    draws: fastrand::Rng,
    probed: bool,
    permit: Option<Permit>,
    attempts: VecDeque<(u64, usize)>,
    trips: u64,
    degraded: u64,
}

impl Toolvane {
    pub(crate) fn new(seed: u64, probed: bool) -> Toolvane {
        let caller = Caller {
            session: None,
            user: None,
            project: Arc::from("default"),
            tenant: Arc::from("default"),
            roles: Vec::new(),
            credential: None,
        };
        Toolvane {
            registry: Registry::new(Tuning::default(), Arc::new(MemoryOnly)),
            caller: Arc::new(caller),
            at: ToolRef { backend: Arc::from("backend"), tool: Arc::from("tool") },
            policy: Arc::default(),
            draws: fastrand::Rng::with_seed(seed),
            probed,
            permit: None,
            attempts: VecDeque::new(),
            trips: 0,
            degraded: 0,
        }
    }

    fn take(&mut self, effects: &[Effect], now: u64) {
        for effect in effects {
            match effect {
                Effect::Transition(change) if change.to == Status::Down => self.trips += 1,
                Effect::Transition(change) if change.to == Status::Degraded => self.degraded += 1,
                Effect::ConfirmBackend { .. } => {
                    let due = CONFIRM_AFTER.iter().map(|after| now + toolvane::clock::millis(*after));
                    self.attempts = due.enumerate().map(|(number, at)| (at, number)).collect();
                }
                _ => {}
            }
        }
    }
}

fn at(now: u64) -> Now {
    let start = Now { tick: Tick(1_000_000), wall: Wall(1_790_000_000_000) };
    start.after(Duration::from_millis(now))
}

fn verdict(failed: Option<Backend>) -> Verdict {
    let Some(backend) = failed else { return Verdict::SUCCESS };
    let (signature, evidence, disproves) = match backend {
        Backend::Up(_) => ("http-500", Evidence::Down, Disproves::Transport),
        Backend::Failing => ("http-503", Evidence::Down, Disproves::Nothing),
        Backend::Refusing => ("connect-refused", Evidence::Transport, Disproves::Nothing),
    };
    let finding = Finding {
        rule: Arc::from(signature),
        signature: Arc::from(signature),
        classification: Classification::TechnicallyBroken,
        dispatch_code: DispatchCode::BackendFailed,
        health_action: HealthAction::None,
        scope: None,
        cooldown: None,
        hint: None,
        evidence,
        disproves,
        credential_fault: false,
        answer_as_result: false,
        note: None,
    };
    Verdict { kind: Kind::Failure, finding: Some(finding) }
}

impl Rule for Toolvane {
    fn admit(&mut self, now: u64) -> bool {
        match self.registry.admit(&self.caller, &self.at, &self.policy, at(now)) {
            Admission::Pass | Admission::Observed(_) => true,
            Admission::Trial(permit) => {
                self.permit = Some(permit);
                true
            }
            Admission::Reject(_) => false,
        }
    }

    fn done(&mut self, now: u64, failed: Option<Backend>) {
        let call = Call {
            caller: Arc::clone(&self.caller),
            at: self.at.clone(),
            policy: Arc::clone(&self.policy),
            started: at(now),
            permit: self.permit.take(),
            target: None,
            duration: None,
        };
        let draws = &mut self.draws;
        let effects = self.registry.record(call, &verdict(failed), at(now), &mut || draws.f64());
        self.take(&effects, now);
    }

    fn tick(&mut self, now: u64, backend: Backend) -> bool {
        let failed = backend == Backend::Refusing;
        while self.attempts.front().is_some_and(|(due, _)| *due <= now) {
            let Some((_, number)) = self.attempts.pop_front() else { break };
            let draws = &mut self.draws;
            let attempt = Attempt { backend: "backend", number, failed };
            let effects = self.registry.confirm(&attempt, at(now), &mut || draws.f64());
            self.take(&effects, now);
        }
        if self.probed {
            let due = self.registry.probe_targets(at(now));
            for target in due.iter().filter(|target| target.transport && !failed) {
                self.registry.probe_succeeded(target, at(now));
            }
        }
        let view = self.registry.lookup(&self.caller, &self.at, at(now));
        view.status == Status::Down && !view.retesting
    }

    fn trips(&self) -> u64 {
        self.trips
    }

    fn degraded(&self) -> u64 {
        self.degraded
    }
}
