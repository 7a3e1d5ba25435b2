//! How a tool stood before is good for the next call exactly as long as nothing has changed.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use toolvane::clock::Wall;
use toolvane::health::{Admission, Effect, Footing, Mark, Origin, Permit, Status};
use toolvane::rules::{Classification, Scope, Verdict};

use super::support::*;

const USERS: [&str; 3] = ["alice", "bob", "nobody"];
const TOOLS: [&str; 2] = ["search", "fetch"];

/// A world in which calls go by how tools stood before, as the proxy has it.
struct Remembering {
    world: World,
    footings: BTreeMap<(usize, usize), Footing>,
    /// Calls that needed no look-up.
    known: usize,
}

impl Remembering {
    fn goes(&mut self, user: usize, name: usize, outcome: Outcome) -> Option<Vec<Effect>> {
        let (caller, at) = (caller(USERS[user]), tool(TOOLS[name]));
        self.world.pass(0.001);
        let stands = self.footings.get(&(user, name)).is_some_and(|footing| self.world.registry.still(footing));
        let permit: Option<Permit> = match if stands { Admission::Pass } else { self.world.admit(&caller, &at) } {
            Admission::Pass | Admission::Observed(_) => None,
            Admission::Trial(permit) => Some(permit),
            Admission::Reject(_) => return None,
        };
        let call = self.world.call(&caller, &at, permit);
        self.world.pass(0.001);
        let verdict = outcome.verdict();
        if verdict != Verdict::SUCCESS {
            return Some(self.world.record(call, &verdict));
        }
        let recorded = match self.footings.get(&(user, name)) {
            Some(footing) => self.world.registry.record_success(footing, call, self.world.now),
            None => Err(call),
        };
        Some(match recorded {
            Ok(effects) => {
                self.known += 1;
                effects
            }
            Err(call) => {
                let effects = self.world.record(call, &verdict);
                match self.world.registry.footing(&caller, &at) {
                    Some(footing) => drop(self.footings.insert((user, name), footing)),
                    None => drop(self.footings.remove(&(user, name))),
                }
                effects
            }
        })
    }
}

fn mark(world: &mut World, scope: usize, name: usize, to: Status) {
    let scope = Scope::ALL[scope];
    let id = match scope {
        Scope::Session => "session-of-alice",
        Scope::User => "alice",
        _ => "default",
    };
    let mark = Mark {
        to,
        classification: Classification::TechnicallyBroken,
        signature: None,
        origin: Origin::Admin,
        by: "ops".into(),
        note: "because".into(),
        since: None,
        recovery: Some(Duration::from_secs(60)),
        user_action_hint: None,
    };
    let key = key(scope, id, if name < TOOLS.len() { TOOLS[name] } else { "*" });
    let (now, draws) = (world.now, &mut world.draws);
    world.registry.mark(&key, &mark, now, &mut || draws.f64());
}

#[derive(Clone, Debug)]
enum Step {
    Go(usize, usize, Outcome),
    Mark(usize, usize, Status),
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let outcome = prop_oneof![4 => Just(Outcome::Success), 1 => prop::sample::select(&OUTCOMES[..])];
    let status = prop::sample::select(vec![Status::Ok, Status::Degraded, Status::Down]);
    prop_oneof![
        12 => (0..USERS.len(), 0..TOOLS.len(), outcome).prop_map(|(user, tool, outcome)| Step::Go(user, tool, outcome)),
        1 => (0..5_usize, 0..=TOOLS.len(), status).prop_map(|(scope, tool, to)| Step::Mark(scope, tool, to)),
        2 => prop_oneof![0..2_000_u64, 20_000..100_000_u64].prop_map(Step::Pass),
    ]
}

proptest! {
    #[test]
    fn calls_that_go_by_how_a_tool_stood_before_come_to_the_same(steps in prop::collection::vec(step(), 1..80)) {
        let mut plain = World::new();
        let mut remembering = Remembering { world: World::new(), footings: BTreeMap::new(), known: 0 };
        for step in steps {
            match step {
                Step::Go(user, name, outcome) => {
                    let expected = plain.goes(USERS[user], TOOLS[name], outcome);
                    prop_assert_eq!(remembering.goes(user, name, outcome), expected);
                }
                Step::Mark(scope, name, to) => {
                    mark(&mut plain, scope, name, to);
                    mark(&mut remembering.world, scope, name, to);
                }
                Step::Pass(millis) => {
                    let seconds = Duration::from_millis(millis).as_secs_f64();
                    plain.pass(seconds);
                    remembering.world.pass(seconds);
                }
            }
            for (user, name) in USERS.iter().flat_map(|user| TOOLS.iter().map(move |name| (user, name))) {
                prop_assert_eq!(remembering.world.seen_by(user, name), plain.seen_by(user, name));
            }
            prop_assert_eq!(remembering.world.documents(), plain.documents());
        }
    }
}

#[test]
fn a_tool_stands_as_it_did_until_something_is_held_against_it() {
    let mut remembering = Remembering { world: World::new(), footings: BTreeMap::new(), known: 0 };
    for _ in 0..10 {
        remembering.goes(0, 0, Outcome::Success).unwrap();
    }
    assert_eq!(remembering.known, 9);
    mark(&mut remembering.world, 2, 0, Status::Down);
    assert_eq!(remembering.goes(0, 0, Outcome::Success), None, "it is DOWN");
}

#[test]
fn what_only_counts_is_written_now_and_then_and_all_else_at_once() {
    let mut world = World::new();
    let written = |world: &World| {
        world.kept.0.lock().unwrap().get(&project("search")).map(|kept| (kept.version, kept.updated_at))
    };
    world.goes("alice", "search", Outcome::UnknownText);
    let (first, at) = written(&world).unwrap();
    for _ in 0..100 {
        world.goes("alice", "search", Outcome::UnknownText);
    }
    assert_eq!(written(&world), Some((first, at)), "the cooldown is active already: nothing but counts");
    world.pass(1.0);
    world.goes("alice", "search", Outcome::UnknownText);
    let (second, later) = written(&world).unwrap();
    assert!(second > first && later > Wall(at.0 + 900));
    world.goes("alice", "search", Outcome::Broken);
    assert_eq!(world.kept.0.lock().unwrap()[&project("search")].status, Status::Down);
}
