//! What a restart believes (DESIGN 8, STATE 4.7), and draining.

use std::time::Duration;

use toolvane::clock::{Now, Tick, Wall};
use toolvane::health::{Document, Status};
use toolvane::rules::Scope;

use super::support::*;

/// A registry of another process, which holds what this one wrote; its machine has just booted.
fn restarted(world: &World, later: Duration) -> World {
    let mut next = World::new();
    next.now = Now { tick: Tick(3_000), wall: world.now.after(later).wall };
    let kept: Vec<Document> = world.kept.0.lock().unwrap().values().cloned().collect();
    for document in kept {
        next.registry.load(document, next.now);
    }
    next
}

#[test]
fn a_down_is_believed_only_while_its_recovery_lies_ahead() {
    // (seconds ahead, seconds until the restart, refused after it)
    for (ahead, later, refused) in [(Some(600), 60, true), (Some(600), 700, false), (None, 0, false)] {
        let mut world = World::new();
        let mut verdict = Outcome::Broken.verdict();
        verdict.finding.as_mut().unwrap().hint = ahead.map(Duration::from_secs);
        world.goes_as(&caller("alice"), "search", &verdict);
        let next = restarted(&world, Duration::from_secs(later));
        let view = next.seen_by("bob", "search");
        assert_eq!(view.status, Status::Down);
        assert_eq!(view.retesting, !refused, "{ahead:?} {later}");
    }
}

#[test]
fn no_stored_time_reaches_further_than_a_day() {
    let mut world = World::new();
    world.goes("alice", "search", Outcome::Broken);
    let mut document = world.document(&project("search")).unwrap();
    document.expected_recovery_at = Some(Wall(i64::MAX));
    document.cooldowns[0].next_spawn_allowed_at = Wall(i64::MAX);
    let next = World::new();
    next.registry.load(document, next.now);
    let day = next.now.after(Duration::from_secs(86_400)).wall;
    let loaded = next.document(&project("search")).unwrap();
    assert_eq!(loaded.expected_recovery_at, Some(day));
    assert_eq!(loaded.cooldowns[0].next_spawn_allowed_at, day);
}

#[test]
fn a_damaged_document_is_no_reason_to_fall_over() {
    let mut world = World::new();
    world.goes("alice", "search", Outcome::Broken);
    let mut document = world.document(&project("search")).unwrap();
    document.since = Wall(i64::MIN);
    document.as_of = Wall(i64::MAX);
    document.level = 0;
    document.flap.penalty = f64::NAN;
    document.flap.at = Some(Wall(i64::MIN));
    document.next_trial_at = Some(Wall(i64::MIN));
    document.credential = Some("not hex".into());
    document.epoch = u64::MAX;
    document.version = u64::MAX;
    let mut next = World::new();
    next.registry.load(document, next.now);
    next.pass(1.0);
    assert!(next.goes("bob", "search", Outcome::Success).is_some());
    assert_eq!(next.status("bob", "search"), Status::Ok);
}

#[test]
fn a_draining_process_learns_nothing() {
    let mut world = World::new();
    world.registry.freeze();
    world.goes_each_second("alice", "search", Outcome::Timeout, 10);
    world.goes("alice", "search", Outcome::Refused);
    world.confirm([true; 3]);
    assert_eq!(world.documents(), []);
    assert_eq!(world.status("alice", "search"), Status::Ok);
}

#[test]
fn an_entry_that_left_memory_comes_back_with_its_history() {
    let mut world = World::new();
    world.goes("alice", "search", Outcome::Forbidden);
    let mut next = World::new();
    next.kept.0.lock().unwrap().extend(world.kept.0.lock().unwrap().clone());
    next.now = world.now.after(Duration::from_secs(1));
    assert!(next.documents().is_empty());
    next.goes("alice", "search", Outcome::Forbidden);
    let document = next.document(&key(Scope::User, "alice", "search")).unwrap();
    assert_eq!(document.cooldowns[0].hits, 2);
}
