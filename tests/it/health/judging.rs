//! When evidence makes a tool DOWN or DEGRADED, and when it does not (DESIGN 7).

use std::sync::Arc;
use std::time::Duration;

use toolvane::health::{Policy, Status};
use toolvane::rules::Classification;

use super::support::*;

#[test]
fn five_failing_seconds_in_a_row_make_down_and_four_do_not() {
    for (outcome, down) in [
        (Outcome::ServerError, true),
        (Outcome::Edge503, true),
        (Outcome::Timeout, true),
        (Outcome::Throttled, false),
        (Outcome::UnknownText, false),
        (Outcome::Forbidden, false),
        (Outcome::BadArguments, false),
    ] {
        let mut world = World::new();
        world.goes_each_second("nobody", "search", outcome, 4);
        assert_eq!(world.status("bob", "search"), Status::Ok, "{outcome:?}");
        world.goes_each_second("nobody", "search", outcome, 10);
        assert_eq!(world.status("bob", "search") == Status::Down, down, "{outcome:?}");
    }
}

#[test]
fn one_blip_with_two_hundred_calls_in_flight_is_no_outage() {
    let mut world = World::new();
    let calls: Vec<_> = (0..200)
        .map(|_| {
            world.pass(0.1);
            world.call(&caller("alice"), &tool("search"), None)
        })
        .collect();
    for call in calls {
        world.record(call, &Outcome::Timeout.verdict());
    }
    assert_ne!(world.status("alice", "search"), Status::Down);
}

#[test]
fn a_success_starts_the_count_anew() {
    let mut world = World::new();
    for _ in 0..20 {
        world.goes_each_second("alice", "search", Outcome::ServerError, 4);
        world.goes("alice", "search", Outcome::Success);
    }
    assert_ne!(world.status("alice", "search"), Status::Down);
}

#[test]
fn a_tool_that_worked_well_until_now_needs_half_of_its_last_twenty_calls_to_fail() {
    let mut world = World::new();
    world.goes_each_second("alice", "search", Outcome::Success, 15);
    world.goes_each_second("alice", "search", Outcome::ServerError, 9);
    assert_ne!(world.status("alice", "search"), Status::Down);
    world.goes_each_second("alice", "search", Outcome::ServerError, 1);
    assert_eq!(world.status("alice", "search"), Status::Down);
}

#[test]
fn failures_that_lie_five_minutes_apart_add_up_to_nothing() {
    let mut world = World::new();
    for _ in 0..30 {
        world.goes("alice", "search", Outcome::ServerError);
        world.pass(301.0);
    }
    assert_eq!(world.status("alice", "search"), Status::Ok);
}

#[test]
fn three_in_ten_failures_of_a_minute_make_degraded_until_one_in_ten() {
    let mut world = World::new();
    for round in 0..22 {
        world.goes("alice", "search", if round % 3 == 0 { Outcome::ServerError } else { Outcome::Success });
        world.pass(0.5);
    }
    assert_eq!(world.status("bob", "search"), Status::Degraded, "8 of 22");
    assert_eq!(world.seen_by("bob", "search").entry.unwrap().classification, Some(Classification::Intermittent));
    world.goes_each_second("alice", "search", Outcome::Success, 25);
    assert_eq!(world.status("bob", "search"), Status::Degraded, "8 of 47");
    world.goes_each_second("alice", "search", Outcome::Success, 40);
    assert_eq!(world.status("bob", "search"), Status::Ok);
}

#[test]
fn slow_calls_make_degraded_and_never_down() {
    let mut world = World::new();
    world.policy = Arc::new(Policy { slow_call: Some(Duration::from_secs(1)), ..Policy::default() });
    for _ in 0..100 {
        let call = world.call(&caller("alice"), &tool("search"), None);
        world.pass(1.5);
        world.record(call, &Outcome::Success.verdict());
    }
    assert_eq!(world.status("bob", "search"), Status::Degraded);
}

#[test]
fn a_tool_that_goes_down_and_up_and_down_ends_in_degraded() {
    let mut world = World::new();
    let mut downs = 0;
    for _ in 0..8 {
        world.goes_each_second("alice", "search", Outcome::ServerError, 5);
        if world.status("bob", "search") != Status::Down {
            break;
        }
        downs += 1;
        world.wait_for_retest("search");
        world.goes("bob", "search", Outcome::Success).unwrap();
        assert_eq!(world.status("bob", "search"), Status::Ok);
    }
    assert_eq!(world.status("bob", "search"), Status::Degraded);
    assert!((3..=4).contains(&downs), "{downs}");
}

#[test]
fn a_fetch_tool_is_not_broken_because_one_site_is() {
    for (sites, down) in [(1, false), (2, true)] {
        let mut world = World::new();
        world.policy = Arc::new(Policy { has_targets: true, ..Policy::default() });
        for round in 0..10 {
            let mut call = world.call(&caller("alice"), &tool("fetch"), None);
            call.target = Some(Arc::from(format!("site-{}.example", round % sites)));
            world.pass(1.0);
            world.record(call, &Outcome::Timeout.verdict());
        }
        assert_eq!(world.status("bob", "fetch") == Status::Down, down, "{sites} sites");
    }
}

#[test]
fn down_on_first_failure_needs_one() {
    let mut world = World::new();
    world.policy = Arc::new(Policy { down_on_first_failure: true, ..Policy::default() });
    world.goes("alice", "search", Outcome::Throttled);
    assert_eq!(world.status("bob", "search"), Status::Ok);
    world.goes("alice", "search", Outcome::Timeout);
    assert_eq!(world.status("bob", "search"), Status::Down);
}

#[test]
fn a_rule_marks_down_or_degraded_at_once() {
    let mut world = World::new();
    world.goes("alice", "search", Outcome::Broken);
    assert_eq!(world.status("bob", "search"), Status::Down);
    world.goes("nobody", "fetch", Outcome::ThrottledFor40);
    let view = world.seen_by("bob", "fetch");
    assert_eq!(view.status, Status::Degraded);
    assert_eq!(view.expected_recovery_at, Some(world.now.after(Duration::from_secs(40)).wall));
    world.goes("bob", "fetch", Outcome::Success);
    assert_eq!(world.status("bob", "fetch"), Status::Ok, "what a rule set, one success clears");
}

#[test]
fn what_began_before_the_status_was_set_changes_nothing() {
    let mut world = World::new();
    let early = world.call(&caller("bob"), &tool("search"), None);
    world.go_down("search");
    assert!(transitions(&world.record(early, &Outcome::Success.verdict())).is_empty());
    assert_eq!(world.status("bob", "search"), Status::Down);

    let early = world.call(&caller("bob"), &tool("search"), None);
    world.wait_for_retest("search");
    world.goes("bob", "search", Outcome::Success).unwrap();
    let before = world.documents();
    assert_eq!(world.record(early, &Outcome::Broken.verdict()), []);
    assert_eq!(world.documents(), before);
}

#[test]
fn what_an_answer_says_about_its_return_is_believed() {
    let mut world = World::new();
    let mut verdict = Outcome::Edge503.verdict();
    verdict.finding.as_mut().unwrap().hint = Some(Duration::from_secs(90));
    for _ in 0..5 {
        world.goes_as(&caller("alice"), "search", &verdict);
        world.pass(1.0);
    }
    let view = world.seen_by("bob", "search");
    assert_eq!(view.expected_recovery_at, view.since.map(|since| since.plus_millis(90_000)));
    assert_eq!(view.next_trial_at, view.expected_recovery_at);
}

#[test]
fn three_past_outages_give_the_fourth_an_estimate() {
    let mut world = World::new();
    for outage in 0..4 {
        world.goes_each_second("alice", "search", Outcome::ServerError, 5);
        let view = world.seen_by("bob", "search");
        assert_eq!(view.status, Status::Down);
        let estimate = view.expected_recovery_at.map(|at| at.0 - view.since.unwrap().0);
        assert_eq!(estimate.is_some(), outage == 3, "outage {outage}: {estimate:?}");
        assert!(estimate.is_none_or(|ahead| (100_000..200_000).contains(&ahead)), "{estimate:?}");
        world.pass(120.0);
        world.wait_for_retest("search");
        world.goes("bob", "search", Outcome::Success).unwrap();
        world.pass(3_600.0);
    }
}
