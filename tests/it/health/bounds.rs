//! Memory is bounded whatever comes (DESIGN 8, STATE 4.8), and what is forgotten reads as OK.

use toolvane::health::{Effect, Status, Tuning};

use super::support::*;

fn evicted(effects: &[Effect]) -> usize {
    effects.iter().map(|effect| if let Effect::Evicted { idle, unwell } = effect { idle + unwell } else { 0 }).sum()
}

#[test]
fn a_success_of_a_tool_that_nobody_knows_makes_no_document() {
    let mut world = World::with(Tuning { documents_max: 1_000, ..Tuning::default() });
    for number in 0..10_000 {
        world.goes("alice", &format!("tool-{number}"), Outcome::Success);
        world.goes("alice", &format!("other-{number}"), Outcome::Protocol);
    }
    assert!(world.documents().is_empty());
    assert!(world.kept.0.lock().unwrap().is_empty());
    assert!(world.registry.size() <= 1_000);
}

#[test]
fn a_hundred_thousand_users_that_fail_once_each_stay_within_bounds_and_are_counted() {
    let mut world = World::with(Tuning { documents_max: 2_000, ..Tuning::default() });
    let mut gone = 0;
    for number in 0..100_000 {
        gone += evicted(&world.goes(&format!("user-{number}"), "search", Outcome::Forbidden).unwrap());
    }
    assert!(world.registry.size() <= 2_000);
    assert_eq!(gone + world.registry.size(), 100_000);
    assert_eq!(world.status("user-1", "search"), Status::Ok);
}

#[test]
fn what_is_down_is_the_last_to_leave_memory() {
    let mut world = World::with(Tuning { documents_max: 100, ..Tuning::default() });
    world.go_down("search");
    for number in 0..10_000 {
        world.goes(&format!("user-{number}"), "fetch", Outcome::Forbidden);
    }
    assert_eq!(world.status("alice", "search"), Status::Down);
    for number in 0..500 {
        for _ in 0..2 {
            world.goes(&format!("user-{number}"), &format!("tool-{number}"), Outcome::TokenExpired);
        }
    }
    assert!(world.registry.size() <= 100);
    assert!(world.registry.unwell() <= 100);
    assert_eq!(world.status("alice", "search"), Status::Ok, "over the limit reads as OK");
    assert_eq!(world.status("user-499", "tool-499"), Status::Down);
}

#[test]
fn one_document_holds_no_more_than_it_may() {
    let mut world = World::new();
    for number in 0..2_000 {
        let mut verdict = Outcome::UnknownText.verdict();
        let finding = verdict.finding.as_mut().unwrap();
        finding.signature = std::sync::Arc::from(format!("kind-{number}"));
        world.goes_as(&caller("alice"), "search", &verdict);
        if number % 7 == 0 {
            world.goes("alice", "search", Outcome::Success);
            world.goes("alice", "search", Outcome::Broken);
            world.pass(61.0);
        }
    }
    let document = world.document(&project("search")).unwrap();
    assert!(document.cooldowns.len() <= 64 && document.tombstones.len() <= 256 && document.history.len() <= 20);
}
