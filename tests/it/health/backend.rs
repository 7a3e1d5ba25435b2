//! The backend as a whole: confirmation of transport faults, `*`, probes (DESIGN 7, 8).

use std::sync::Arc;
use std::time::Duration;

use toolvane::health::{Effect, Status};

use super::support::*;

fn asks(effects: &[Effect]) -> usize {
    effects.iter().filter(|effect| matches!(effect, Effect::ConfirmBackend { .. })).count()
}

#[test]
fn one_transport_fault_asks_for_one_confirmation_and_three_failures_of_three_make_down() {
    let mut world = World::new();
    assert_eq!(asks(&world.goes("alice", "search", Outcome::Refused).unwrap()), 1);
    assert_eq!(asks(&world.goes("bob", "fetch", Outcome::Refused).unwrap()), 0, "one is under way");
    assert_eq!(world.status("bob", "fetch"), Status::Ok);
    let effects = world.confirm([true, true, true]);
    assert_eq!(transitions(&effects).len(), 1);
    for name in ["search", "fetch", "never called"] {
        assert_eq!(world.status("carol", name), Status::Down, "{name}");
    }
}

#[test]
fn a_backend_that_can_be_reached_once_is_not_dead() {
    for results in [[false, true, true], [true, false, true], [true, true, false]] {
        let mut world = World::new();
        world.goes("alice", "search", Outcome::Refused);
        assert_eq!(transitions(&world.confirm(results)).len(), 0, "{results:?}");
        assert_eq!(world.status("alice", "search"), Status::Ok);
        assert_eq!(asks(&world.goes("alice", "search", Outcome::Refused).unwrap()), 1, "and is asked again next time");
    }
}

#[test]
fn an_answer_meanwhile_ends_the_confirmation() {
    for answer in [Outcome::Success, Outcome::Protocol, Outcome::Forbidden, Outcome::ServerError, Outcome::Throttled] {
        let mut world = World::new();
        world.goes("alice", "search", Outcome::Refused);
        world.goes("bob", "fetch", answer);
        assert_eq!(transitions(&world.confirm([true, true, true])).len(), 0, "{answer:?}");
    }
}

#[test]
fn a_dead_backend_is_dead_for_every_project_that_meets_it() {
    let mut world = World::new();
    let mut other = caller("dave");
    other.project = Arc::from("other");
    let mut late = caller("erin");
    late.project = Arc::from("late");
    world.goes("alice", "search", Outcome::Refused);
    world.goes_as(&other, "search", &Outcome::Refused.verdict());
    let effects = world.confirm([true, true, true]);
    assert_eq!(transitions(&effects).len(), 2);
    let status = |world: &World, who| world.registry.lookup(who, &tool("x"), world.now).status;
    assert_eq!(status(&world, &other), Status::Down);
    assert_eq!(status(&world, &late), Status::Ok, "has not called");
    world.goes_as(&late, "search", &Outcome::Refused.verdict());
    assert_eq!(status(&world, &late), Status::Down, "needs no confirmation of its own");

    let targets = world.registry.probe_targets(world.now.after(Duration::from_secs(1)));
    assert_eq!(targets.len(), 1, "one probe for all");
    world.registry.probe_succeeded(&targets[0], world.now);
    for who in [&caller("alice"), &other, &late] {
        assert!(world.registry.lookup(who, &tool("x"), world.now).retesting);
    }
}

#[test]
fn any_answer_ends_a_transport_down() {
    for (answer, ends) in [
        (Outcome::Success, true),
        (Outcome::Forbidden, true),
        (Outcome::Protocol, true),
        (Outcome::ServerError, true),
        (Outcome::Timeout, false),
        (Outcome::Refused, false),
    ] {
        let mut world = World::new();
        world.goes("alice", "search", Outcome::Refused);
        world.confirm([true, true, true]);
        world.wait_for_retest("search");
        world.goes("bob", "fetch", answer).unwrap();
        let view = world.seen_by("carol", "search");
        assert_eq!(view.status == Status::Ok, ends, "{answer:?}");
        assert!(!view.retesting);
    }
}

#[test]
fn one_dead_backend_is_one_down_and_not_one_for_each_tool() {
    let mut world = World::new();
    world.goes("alice", "search", Outcome::Refused);
    world.confirm([true, true, true]);
    for _ in 0..10 {
        world.wait_for_retest("search");
        world.goes("alice", "search", Outcome::Refused).unwrap();
    }
    let down: Vec<_> = world.documents().into_iter().filter(|document| document.status == Status::Down).collect();
    assert_eq!(down.len(), 1);
    assert_eq!(down[0].key.tool_name, "*");
}

#[test]
fn broken_tools_never_take_the_healthy_ones_of_their_backend_away() {
    let mut world = World::new();
    for _ in 0..100 {
        world.goes("alice", "echo", Outcome::Success);
        for broken in ["one", "two", "three", "four"] {
            world.goes("alice", broken, Outcome::ServerError);
        }
        world.pass(1.0);
        assert_eq!(world.status("alice", "echo"), Status::Ok);
    }
    assert_eq!(world.status("alice", "four"), Status::Down);
}

#[test]
fn a_retest_of_the_backend_is_one_permit_for_all_its_tools() {
    let mut world = World::new();
    world.goes("alice", "search", Outcome::Refused);
    world.confirm([true, true, true]);
    world.wait_for_retest("search");
    let _trial = world.admit(&caller("alice"), &tool("search"));
    assert!(matches!(world.admit(&caller("bob"), &tool("fetch")), toolvane::health::Admission::Reject(_)));
}

#[test]
fn three_tools_down_and_no_success_make_the_backend_down() {
    let mut world = World::new();
    for name in ["a", "b"] {
        world.go_down(name);
    }
    world.goes_each_second("alice", "c", Outcome::Edge503, 4);
    assert_eq!(world.status("bob", "d"), Status::Ok);
    world.goes_each_second("alice", "c", Outcome::Edge503, 1);
    assert_eq!(world.status("bob", "d"), Status::Down);

    let mut world = World::new();
    for name in ["a", "b"] {
        world.go_down(name);
    }
    world.goes("bob", "d", Outcome::Success);
    world.goes_each_second("alice", "c", Outcome::Edge503, 5);
    assert_eq!(world.status("bob", "d"), Status::Ok, "one works");
}
