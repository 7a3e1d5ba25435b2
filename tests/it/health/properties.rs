//! The invariants of STATE 5 that concern one machine, over random histories. `PROPTEST_CASES` sets how many.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use toolvane::clock::Now;
use toolvane::health::{
    Admission, Backing, Call, Caller, Document, Effect, Key, Mark, MemoryOnly, Mode, Origin, Policy, Registry, Status,
    Tuning,
};
use toolvane::rules::{Classification, Scope};

use super::support::*;

const CASES: u32 = 1_000;
const USERS: [&str; 4] = ["alice", "bob", "carol", "nobody"];
const TOOLS: [&str; 4] = ["search", "fetch", "send", "client_file_read"];
const DAY: Duration = Duration::from_secs(86_400);

fn config() -> ProptestConfig {
    let given = ProptestConfig::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { given.cases } else { CASES };
    ProptestConfig { cases, failure_persistence: None, ..given }
}

/// One thing that happens.
#[derive(Clone, Debug)]
enum Step {
    /// A call begins.
    Begin { user: usize, tool: usize },
    /// One of the calls in flight ends.
    End { which: usize, outcome: Outcome },
    /// One of the calls in flight is abandoned.
    Abandon { which: usize },
    /// A whole call.
    Go { user: usize, tool: usize, outcome: Outcome },
    /// The confirmation of the backend reports.
    Confirm { number: usize, failed: bool },
    /// All due probes succeed.
    Probe,
    /// Somebody sets a status.
    Mark { scope: usize, tool: usize, to: usize, recovery: Option<u64> },
    /// Time passes.
    Pass { millis: u64 },
    /// The wall clock is stepped.
    SetWall { millis: i64 },
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![3 => Just(Outcome::ServerError), 3 => Just(Outcome::Success), 6 => prop::sample::select(&OUTCOMES[..])]
}

fn step() -> impl Strategy<Value = Step> {
    let (user, tool) = (0..USERS.len(), 0..TOOLS.len());
    prop_oneof![
        4 => (user.clone(), tool.clone()).prop_map(|(user, tool)| Step::Begin { user, tool }),
        4 => (0..8_usize, outcome()).prop_map(|(which, outcome)| Step::End { which, outcome }),
        1 => (0..8_usize).prop_map(|which| Step::Abandon { which }),
        12 => (user, tool.clone(), outcome()).prop_map(|(user, tool, outcome)| Step::Go { user, tool, outcome }),
        2 => (0..3_usize, prop::bool::weighted(0.9)).prop_map(|(number, failed)| Step::Confirm { number, failed }),
        1 => Just(Step::Probe),
        1 => (0..5_usize, tool, 0..3_usize, prop::option::of(0..200_000_u64))
            .prop_map(|(scope, tool, to, recovery)| Step::Mark { scope, tool, to, recovery }),
        8 => prop_oneof![0..3_000_u64, 900..1_100_u64, 5_000..70_000_u64, 0..100_000_000_u64]
            .prop_map(|millis| Step::Pass { millis }),
        1 => (-315_000_000_000..315_000_000_000_i64).prop_map(|millis| Step::SetWall { millis }),
    ]
}

fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(), 1..most)
}

struct Run {
    world: World,
    flight: Vec<Call>,
    /// The wall clock was stepped, so that stored wall times cannot be compared.
    stepped: bool,
    /// What each step decided, wall times aside.
    trace: Vec<String>,
}

struct Done {
    effects: Vec<Effect>,
    /// The call that was recorded, if one was.
    call: Option<(Caller, usize, Outcome, Now)>,
    admission: Option<&'static str>,
}

impl Run {
    fn new(tuning: Tuning) -> Run {
        Run { world: World::with(tuning), flight: Vec::new(), stepped: false, trace: Vec::new() }
    }

    fn policy(tool: usize) -> Arc<Policy> {
        Arc::new(Policy {
            session_tool: TOOLS[tool].starts_with("client_"),
            mode: if tool == 2 { Mode::Observe } else { Mode::Enforce },
            ..Policy::default()
        })
    }

    fn begin(&mut self, user: usize, name: usize) -> Option<&'static str> {
        let (caller, at) = (caller(USERS[user]), tool(TOOLS[name]));
        self.world.policy = Run::policy(name);
        let (permit, word) = match self.world.admit(&caller, &at) {
            Admission::Pass => (None, "pass"),
            Admission::Observed(_) => (None, "observed"),
            Admission::Trial(permit) => (Some(permit), "trial"),
            Admission::Reject(_) => return Some("reject"),
        };
        if self.flight.len() < 8 {
            self.flight.push(self.world.call(&caller, &at, permit));
        }
        Some(word)
    }

    fn end(&mut self, which: usize, outcome: Outcome) -> Done {
        if self.flight.is_empty() {
            return Done { effects: Vec::new(), call: None, admission: None };
        }
        let call = self.flight.swap_remove(which % self.flight.len());
        let name = TOOLS.iter().position(|name| **name == *call.at.tool).unwrap();
        let about = ((*call.caller).clone(), name, outcome, call.started);
        let effects = self.world.record(call, &outcome.verdict());
        Done { effects, call: Some(about), admission: None }
    }

    fn go(&mut self, step: &Step) -> Done {
        let mut done = Done { effects: Vec::new(), call: None, admission: None };
        match *step {
            Step::Begin { user, tool } => done.admission = self.begin(user, tool),
            Step::End { which, outcome } => done = self.end(which, outcome),
            Step::Abandon { which } => {
                if !self.flight.is_empty() {
                    drop(self.flight.swap_remove(which % self.flight.len()));
                }
            }
            Step::Go { user, tool, outcome } => {
                self.world.pass(0.001);
                let before = self.flight.len();
                let admission = self.begin(user, tool);
                if self.flight.len() > before {
                    self.world.pass(0.001);
                    done = self.end(before, outcome);
                }
                done.admission = admission;
            }
            Step::Confirm { number, failed } => {
                let attempt = toolvane::health::Attempt { backend: "jira", number, failed };
                done.effects = self.world.registry.confirm(&attempt, self.world.now, &mut || 0.5);
            }
            Step::Probe => {
                for target in self.world.registry.probe_targets(self.world.now) {
                    self.world.registry.probe_succeeded(&target, self.world.now);
                }
            }
            Step::Mark { scope, tool, to, recovery } => done.effects = self.mark(scope, tool, to, recovery),
            Step::Pass { millis } => self.world.now = self.world.now.after(Duration::from_millis(millis)),
            Step::SetWall { millis } => {
                self.stepped = true;
                self.world.now.wall = self.world.now.wall.plus_millis(millis);
            }
        }
        self.trace.push(format!("{:?} {:?}", done.admission, self.statuses()));
        done
    }

    fn mark(&mut self, scope: usize, tool: usize, to: usize, recovery: Option<u64>) -> Vec<Effect> {
        let scope = Scope::ALL[scope];
        let id = match scope {
            Scope::Session => "session-of-alice",
            Scope::User => "alice",
            _ => "default",
        };
        let mark = Mark {
            to: [Status::Ok, Status::Degraded, Status::Down][to],
            classification: Classification::TechnicallyBroken,
            signature: Some(Arc::from("maintenance")),
            origin: Origin::Admin,
            by: Arc::from("ops"),
            note: Arc::from("because"),
            since: None,
            recovery: recovery.map(Duration::from_secs),
            user_action_hint: None,
        };
        self.world.registry.mark(&key(scope, id, TOOLS[tool]), &mark, self.world.now, &mut || 0.5)
    }

    fn statuses(&self) -> Vec<(Key, Status)> {
        self.world.documents().into_iter().map(|document| (document.key, document.status)).collect()
    }
}

fn by_key(documents: Vec<Document>) -> BTreeMap<Key, Document> {
    documents.into_iter().map(|document| (document.key.clone(), document)).collect()
}

fn is_neutral(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Forbidden | Outcome::BadArguments)
}

/// What must hold between any two states with one step between them.
fn check_step(step: &Step, done: &Done, before: &BTreeMap<Key, Document>, run: &Run) -> Result<(), TestCaseError> {
    let now = run.world.now;
    let after = by_key(run.world.documents());
    let told = transitions(&done.effects);
    for (at, document) in &after {
        let old = before.get(at);
        let was = old.map_or(Status::Ok, |old| old.status);
        // I2: no status changes unsaid.
        prop_assert_eq!(was != document.status, told.iter().any(|told| told.key == *at && told.from != told.to));
        // I14
        prop_assert!(document.history.len() <= 20 && document.history.is_sorted_by_key(|entry| entry.at));
        // I15
        prop_assert!(document.cooldowns.len() <= 64 && document.tombstones.len() <= 64);
        // I4, I26
        let harmless =
            matches!(step, Step::Abandon { .. } | Step::Begin { .. } | Step::Pass { .. } | Step::SetWall { .. });
        let forgiven = done.call.as_ref().is_some_and(|(_, _, outcome, _)| is_neutral(*outcome));
        prop_assert!(!harmless || was == document.status);
        prop_assert!(!forgiven || document.status <= was);
        // DESIGN 8: since changes only when the status does.
        prop_assert!(old.is_none_or(|old| old.status != document.status || old.since == document.since));
        prop_assert!(old.is_none_or(|old| old.epoch <= document.epoch && old.version <= document.version));
        if let Some(old) = old {
            check_cooldowns(old, document, done, run.stepped)?;
            // I21: what began before the status was set does not change it.
            if let Some((.., started)) = &done.call {
                let began_before = !run.stepped && old.epoch > 0 && now.wall_at(started.tick) <= old.as_of;
                prop_assert!(!began_before || old.status == document.status);
            }
        }
    }
    // Documents do not vanish.
    prop_assert!(before.keys().all(|at| after.contains_key(at)));
    for told in told {
        // I17: an estimate lies between 1 s and 24 h ahead.
        if let Some(estimate) = told.expected_recovery_at {
            let ahead = estimate.0 - now.wall.0;
            prop_assert!((1_000..=86_400_000).contains(&ahead));
        }
        // I30: a signature is a word of the table.
        if let Some(signature) = &told.signature {
            let known = OUTCOMES
                .iter()
                .filter_map(|outcome| outcome.verdict().finding)
                .any(|finding| finding.signature == *signature);
            prop_assert!(known || &**signature == "maintenance");
        }
    }
    check_backing(run)
}

/// I5 to I8.
fn check_cooldowns(old: &Document, new: &Document, done: &Done, stepped: bool) -> Result<(), TestCaseError> {
    let caller = done.call.as_ref().map(|(caller, ..)| caller.user.as_deref().unwrap_or("anonymous"));
    for cooldown in &old.cooldowns {
        let same = |other: &&toolvane::health::document::Cooldown| {
            other.error_signature == cooldown.error_signature && other.user_id == cooldown.user_id
        };
        let Some(kept) = new.cooldowns.iter().find(same) else {
            let own = cooldown.user_id.is_none() || cooldown.user_id.as_deref() == caller;
            let success = done.call.as_ref().is_some_and(|(_, _, outcome, _)| *outcome == Outcome::Success);
            prop_assert!(own && success, "only the caller's own success clears");
            continue;
        };
        if stepped {
            continue;
        }
        prop_assert!(kept.next_spawn_allowed_at >= cooldown.next_spawn_allowed_at);
        prop_assert!(kept.level == cooldown.level || kept.last_triggered_at > cooldown.last_triggered_at);
        prop_assert!(kept.hits >= cooldown.hits);
    }
    Ok(())
}

/// I27: what the backing was told last is what memory holds.
fn check_backing(run: &Run) -> Result<(), TestCaseError> {
    let kept = run.world.kept.0.lock().unwrap();
    for document in run.world.documents() {
        let agrees = |stored: &Document| {
            (stored.status, stored.version, stored.cooldowns.len())
                == (document.status, document.version, document.cooldowns.len())
                && stored.history == document.history
        };
        prop_assert!(kept.get(&document.key).is_some_and(agrees));
    }
    Ok(())
}

/// I9 and I23: a success leaves nothing in the way of the caller who had it, but what an operator set DOWN until later.
fn check_success(run: &Run, done: &Done, before: &BTreeMap<Key, Document>) -> Result<(), TestCaseError> {
    let Some((caller, name, Outcome::Success, started)) = &done.call else { return Ok(()) };
    let id = |scope| match scope {
        Scope::Session => caller.session.as_deref(),
        Scope::User => caller.user.as_deref(),
        _ => Some("default"),
    };
    let cascade: Vec<Key> = Scope::ALL
        .into_iter()
        .filter_map(|scope| id(scope).map(|id| (scope, id)))
        .flat_map(|(scope, id)| [key(scope, id, TOOLS[*name]), key(scope, id, "*")])
        .collect();
    let narrowest = cascade.iter().find(|at| before.get(at).is_some_and(|old| old.status != Status::Ok));
    let after = by_key(run.world.documents());
    for at in &cascade {
        let Some(new) = after.get(at) else { continue };
        let own = caller.user.as_deref().unwrap_or("anonymous");
        prop_assert!(new.cooldowns.iter().all(|held| held.user_id.as_deref().is_some_and(|user| user != own)));
        let Some(old) = before.get(at).filter(|_| Some(at.scope) == narrowest.map(|at| at.scope)) else { continue };
        let judged = old.status == Status::Degraded && old.history.last().is_some_and(|last| last.by == "judge");
        let stood_before = !run.stepped && old.epoch > 0 && old.as_of < run.world.now.wall_at(started.tick);
        let set_down = old.origin == Origin::Admin && old.next_trial_at.is_some_and(|at| at > run.world.now.wall);
        prop_assert!(!stood_before || judged || set_down || new.status == Status::Ok, "{at:?}");
    }
    Ok(())
}

/// I11 and I13: what is shown follows from status and time, and there is no state without a way out.
fn check_way_out(run: &mut Run) -> Result<(), TestCaseError> {
    for (user, name) in (0..USERS.len()).flat_map(|user| (0..TOOLS.len()).map(move |tool| (user, tool))) {
        let (caller, at) = (caller(USERS[user]), tool(TOOLS[name]));
        let view = run.world.registry.lookup(&caller, &at, run.world.now);
        let due = view.next_trial_at.is_some_and(|at| at <= run.world.now.wall);
        prop_assert_eq!(view.retesting, view.status == Status::Down && due);
        prop_assert_eq!(view.status == Status::Ok, view.entry.is_none());
        let Some(next) = view.next_trial_at else { continue };
        let ahead = next.0 - run.world.now.wall.0;
        let bound = if view.expected_recovery_at.is_some() { 86_400_000 } else { 60_000 };
        prop_assert!(ahead <= bound, "{ahead}");
    }
    run.flight.clear();
    let later = run.world.now.after(DAY);
    for (user, name) in (0..USERS.len()).flat_map(|user| (0..TOOLS.len()).map(move |tool| (user, tool))) {
        let admission = run.world.registry.admit(&caller(USERS[user]), &tool(TOOLS[name]), &Run::policy(name), later);
        prop_assert!(!matches!(admission, Admission::Reject(_)), "stuck");
    }
    Ok(())
}

/// I28: what is stored and loaded is what it was, but that a DOWN without an estimate is RETESTING at once.
fn check_reload(run: &Run) -> Result<(), TestCaseError> {
    let now = run.world.now;
    for document in run.world.documents() {
        let text = serde_json::to_string(&document).unwrap();
        prop_assert!(!text.contains("RETESTING"), "I1");
        let registry = Registry::new(Tuning { documents_max: 10, ..Tuning::default() }, Arc::new(MemoryOnly));
        registry.load(serde_json::from_str(&text).unwrap(), now);
        let loaded = registry.document(&document.key, now).unwrap();
        prop_assert_eq!(&loaded.history, &document.history);
        prop_assert!(run.stepped || loaded.tombstones == document.tombstones);
        prop_assert_eq!(loaded.cooldowns.len(), document.cooldowns.len());
        prop_assert_eq!((loaded.status, loaded.epoch, loaded.level), (document.status, document.epoch, document.level));
        prop_assert!(loaded.next_trial_at <= document.next_trial_at.max(Some(now.wall)));
    }
    Ok(())
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_step_of_a_random_history_keeps_the_invariants(steps in steps(60)) {
        let mut run = Run::new(Tuning { documents_max: 200, ..Tuning::default() });
        for step in &steps {
            let before = by_key(run.world.documents());
            let done = run.go(step);
            check_step(step, &done, &before, &run)?;
            check_success(&run, &done, &before)?;
        }
        check_reload(&run)?;
        check_way_out(&mut run)?;
    }

    /// I19
    #[test]
    fn steps_of_the_wall_clock_change_no_decision(steps in steps(60)) {
        let mut stepped = Run::new(Tuning { documents_max: 200, ..Tuning::default() });
        let mut steady = Run::new(Tuning { documents_max: 200, ..Tuning::default() });
        for step in &steps {
            stepped.go(step);
            if let Step::SetWall { .. } = step {
                steady.trace.push(stepped.trace.last().unwrap().clone());
            } else {
                steady.go(step);
            }
            prop_assert_eq!(stepped.trace.last(), steady.trace.last(), "{:?}", step);
        }
    }

    /// I3
    #[test]
    fn one_transport_fault_among_anything_harmless_is_no_outage(steps in steps(40), at in 0..40_usize) {
        let mut run = Run::new(Tuning { documents_max: 200, ..Tuning::default() });
        for (number, step) in steps.iter().enumerate() {
            let harmless = match step {
                Step::Go { user, tool, outcome } => {
                    let outcome = if is_neutral(*outcome) { *outcome } else { Outcome::Success };
                    Step::Go { user: *user, tool: *tool, outcome }
                }
                Step::Mark { .. } | Step::Confirm { .. } => continue,
                Step::End { which, .. } => Step::End { which: *which, outcome: Outcome::Success },
                other => other.clone(),
            };
            run.go(&harmless);
            if number == at {
                run.go(&Step::Go { user: 0, tool: 0, outcome: Outcome::Refused });
            }
            prop_assert!(run.statuses().iter().all(|(_, status)| *status == Status::Ok));
        }
    }

    /// I10
    #[test]
    fn documents_that_hold_only_cooldowns_are_never_seen(steps in steps(60)) {
        let mut run = Run::new(Tuning { documents_max: 200, ..Tuning::default() });
        for step in &steps {
            if let Step::Go { user, tool: name, .. } = step {
                run.go(&Step::Go { user: *user, tool: *name, outcome: Outcome::Forbidden });
                let view = run.world.registry.lookup(&caller(USERS[*user]), &tool(TOOLS[*name]), run.world.now);
                prop_assert_eq!(view, toolvane::health::View::OK);
            } else if let Step::Pass { .. } | Step::SetWall { .. } = step {
                run.go(step);
            }
        }
    }

    /// I12
    #[test]
    fn no_entry_has_two_trials_at_once_and_every_permit_comes_back(steps in steps(60)) {
        let mut run = Run::new(Tuning { documents_max: 200, ..Tuning::default() });
        for step in &steps {
            run.go(step);
            let lease = Duration::from_secs(30);
            let live = run.flight.iter().filter(|call| run.world.now.tick.since(call.started.tick) < lease);
            let mut trials: Vec<&Key> = live.filter_map(|call| call.permit.as_ref()).map(|permit| permit.key()).collect();
            let all = trials.len();
            trials.sort();
            trials.dedup();
            prop_assert_eq!(trials.len(), all);
        }
        run.flight.clear();
        check_way_out(&mut run)?;
    }

    /// I16
    #[test]
    fn what_is_evicted_reads_no_worse(steps in steps(60), documents_max in 1..8_usize) {
        let mut small = Run::new(Tuning { documents_max, ..Tuning::default() });
        for step in &steps {
            let before = by_key(small.world.documents());
            let done = small.go(step);
            let told = transitions(&done.effects);
            for (at, status) in small.statuses() {
                let was = before.get(&at).map(|old| old.status).or_else(|| small.world.kept.read(&at).map(|old| old.status));
                let said = told.iter().any(|told| told.key == at);
                prop_assert!(said || was.is_some_and(|was| status <= was) || status == Status::Ok);
            }
            prop_assert!(small.world.registry.size() <= documents_max.max(1) + 1);
        }
    }

    /// I22
    #[test]
    fn a_diagnosis_is_asked_once_per_interval(gaps in prop::collection::vec((0..40_000_u64, 0..4_usize, any::<bool>()), 1..60)) {
        let mut world = World::new();
        let mut last = None;
        for (gap, user, success) in gaps {
            world.now = world.now.after(Duration::from_millis(gap));
            let outcome = if success { Outcome::Success } else { Outcome::UnknownText };
            let effects = world.goes(USERS[user], "search", outcome).unwrap();
            let asked = claims(&effects);
            prop_assert!(asked <= 1);
            if asked == 1 {
                let since = last.replace(world.now.tick).map(|last| world.now.tick.since(last));
                prop_assert!(since.is_none_or(|since| since >= Duration::from_secs(30)), "{since:?}");
            }
        }
    }

    /// I24
    #[test]
    fn a_fault_widens_only_by_enough_users_without_a_success(faults in prop::collection::vec((0..6_usize, 0..10_u8, 0..200_u64), 1..60)) {
        let mut world = World::new();
        let mut met: Vec<(usize, Now)> = Vec::new();
        for (user, kind, seconds) in faults {
            world.now = world.now.after(Duration::from_secs(seconds));
            let outcome = match kind { 0 => Outcome::Success, 1 => Outcome::Forbidden, _ => Outcome::TokenExpired };
            let Some(effects) = world.goes(&format!("user-{user}"), "search", outcome) else { continue };
            match outcome {
                Outcome::Success => met.clear(),
                Outcome::TokenExpired => met.push((user, world.now)),
                _ => {}
            }
            if effects.iter().any(|effect| matches!(effect, Effect::Widened { .. })) {
                let within = |at: &Now| world.now.tick.since(at.tick) <= Duration::from_secs(601);
                let mut users: Vec<_> = met.iter().filter(|(_, at)| within(at)).map(|(user, _)| *user).collect();
                users.sort_unstable();
                users.dedup();
                prop_assert!(users.len() >= 3, "{met:?}");
            }
        }
    }
}
