//! RETESTING: one call at a time, and what its outcome does (DESIGN 8).

use std::sync::{Arc, Barrier};
use std::time::Duration;

use toolvane::health::{Admission, Effect, Mode, Policy, ProbeTarget, Status};
use toolvane::rules::DispatchCode;

use super::support::*;

#[test]
fn of_fifty_threads_on_a_retesting_tool_exactly_one_gets_through() {
    for round in 0..50 {
        let mut world = World::new();
        world.go_down("search");
        world.wait_for_retest("search");
        let (registry, start) = (&world.registry, Barrier::new(50));
        let admissions: Vec<Admission> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..50)
                .map(|_| {
                    scope.spawn(|| {
                        start.wait();
                        registry.admit(&caller("bob"), &tool("search"), &world.policy, world.now)
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let trials = admissions.iter().filter(|admission| matches!(admission, Admission::Trial(_))).count();
        assert_eq!(trials, 1, "round {round}");
    }
}

#[test]
fn a_refused_call_is_told_when_to_come_back() {
    let mut world = World::new();
    world.go_down("search");
    let Admission::Reject(view) = world.admit(&caller("bob"), &tool("search")) else { panic!("not refused") };
    assert_eq!(view.code(), Some(DispatchCode::BackendUnreachable));
    assert!(view.next_trial_at.unwrap() > world.now.wall);
    assert_eq!(view.expected_recovery_at, None, "nobody has estimated");
    world.wait_for_retest("search");
    let Admission::Trial(_permit) = world.admit(&caller("bob"), &tool("search")) else { panic!("no trial") };
    let Admission::Reject(view) = world.admit(&caller("alice"), &tool("search")) else { panic!("not refused") };
    assert_eq!(view.next_trial_at.unwrap(), world.now.after(Duration::from_secs(30)).wall, "when the lease ends");
}

#[test]
fn what_a_trial_comes_to_decides() {
    // (outcome, status after, still RETESTING)
    let table = [
        (Outcome::Success, Status::Ok, false),
        (Outcome::ServerError, Status::Down, false),
        (Outcome::Timeout, Status::Down, false),
        (Outcome::Throttled, Status::Down, false),
        (Outcome::Forbidden, Status::Ok, false),
        (Outcome::BadArguments, Status::Ok, false),
        (Outcome::Protocol, Status::Down, true),
        (Outcome::UnknownText, Status::Down, true),
    ];
    for (outcome, status, retesting) in table {
        let mut world = World::new();
        world.go_down("search");
        world.wait_for_retest("search");
        world.goes("bob", "search", outcome).unwrap();
        let view = world.seen_by("carol", "search");
        assert_eq!((view.status, view.retesting), (status, retesting), "{outcome:?}");
    }
}

#[test]
fn failed_trials_wait_longer_each_time_up_to_a_minute() {
    let mut world = World::new();
    world.go_down("search");
    let mut waits = Vec::new();
    for _ in 0..7 {
        world.wait_for_retest("search");
        let effects = world.goes("bob", "search", Outcome::ServerError).unwrap();
        assert_eq!(effects.iter().filter(|effect| matches!(effect, Effect::TrialFailed { .. })).count(), 1);
        waits.push((world.seen_by("bob", "search").next_trial_at.unwrap().0 - world.now.wall.0) / 1_000);
    }
    for (wait, (least, most)) in waits.iter().zip([(10, 12), (20, 24), (40, 48), (60, 60), (60, 60), (60, 60)]) {
        assert!((least..=most).contains(wait), "{waits:?}");
    }
}

#[test]
fn tripped_again_soon_after_a_clear_it_starts_at_the_next_level() {
    for (pause, level) in [(60.0, 2), (700.0, 1)] {
        let mut world = World::new();
        world.go_down("search");
        world.wait_for_retest("search");
        world.goes("bob", "search", Outcome::Success).unwrap();
        world.pass(pause);
        world.go_down("search");
        assert_eq!(world.document(&project("search")).unwrap().level, level, "after {pause} s");
    }
}

#[test]
fn a_permit_comes_back_when_the_call_is_abandoned_or_never_ends() {
    let mut world = World::new();
    world.go_down("search");
    world.wait_for_retest("search");
    let before = world.documents();
    let Admission::Trial(permit) = world.admit(&caller("bob"), &tool("search")) else { panic!("no trial") };
    drop(world.call(&caller("bob"), &tool("search"), Some(permit)));
    assert_eq!(world.documents(), before, "abandoned: nothing at all");
    let Admission::Trial(lost) = world.admit(&caller("bob"), &tool("search")) else { panic!("no trial") };
    world.pass(29.9);
    assert!(matches!(world.admit(&caller("bob"), &tool("search")), Admission::Reject(_)));
    world.pass(0.1);
    let Admission::Trial(_next) = world.admit(&caller("bob"), &tool("search")) else { panic!("stuck") };
    drop(lost);
    assert!(matches!(world.admit(&caller("bob"), &tool("search")), Admission::Reject(_)), "not his to give back");
}

#[test]
fn a_success_before_the_trial_is_due_clears_too() {
    let mut world = World::new();
    world.policy = Arc::new(Policy { mode: Mode::Observe, ..Policy::default() });
    world.go_down("search");
    assert!(
        matches!(world.admit(&caller("bob"), &tool("search")), Admission::Observed(view) if view.status == Status::Down)
    );
    world.goes("bob", "search", Outcome::Success).unwrap();
    assert_eq!(world.status("bob", "search"), Status::Ok);
}

#[test]
fn a_probe_opens_a_retest_and_writes_no_ok() {
    let mut world = World::new();
    world.go_down("search");
    world.wait_for_retest("search");
    assert_eq!(world.registry.probe_targets(world.now), [], "the next call is its trial");
    world.goes("bob", "search", Outcome::ServerError).unwrap();
    let targets = world.registry.probe_targets(world.now);
    assert_eq!(targets, [ProbeTarget { key: project("search"), transport: false }]);
    world.registry.probe_succeeded(&targets[0], world.now);
    let view = world.seen_by("bob", "search");
    assert_eq!((view.status, view.retesting), (Status::Down, true));
    world.goes("bob", "search", Outcome::Success).unwrap();
    assert_eq!(world.status("bob", "search"), Status::Ok);
}
