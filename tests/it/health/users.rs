//! One user's fault is his own (DESIGN 1, 5): cooldowns, USER entries, widening, credentials, sessions.

use std::sync::Arc;

use toolvane::health::{Admission, CredentialHash, Effect, Mark, Origin, Policy, Status};
use toolvane::rules::{Classification, Scope};

use super::support::*;

#[test]
fn what_a_caller_may_not_do_or_did_wrong_changes_no_status_however_often() {
    for outcome in [Outcome::Forbidden, Outcome::BadArguments] {
        let mut world = World::new();
        for user in ["alice", "bob", "carol", "nobody"] {
            world.goes_each_second(user, "search", outcome, 10);
        }
        assert!(world.documents().iter().all(|document| document.status == Status::Ok), "{outcome:?}");
        let alice = world.document(&key(Scope::User, "alice", "search")).unwrap();
        assert_eq!(alice.cooldowns.len(), 1);
        assert_eq!(alice.cooldowns[0].hits, 10);
        assert_eq!(alice.cooldowns[0].user_id.as_deref(), Some("alice"));
        let unknown = world.document(&project("search")).unwrap();
        assert_eq!(unknown.cooldowns[0].user_id.as_deref(), Some("anonymous"));
    }
}

#[test]
fn the_second_expired_token_of_a_user_makes_the_tool_down_for_him_alone() {
    let mut world = World::new();
    world.goes("alice", "search", Outcome::TokenExpired);
    assert_eq!(world.status("alice", "search"), Status::Ok);
    world.goes("alice", "search", Outcome::TokenExpired);
    assert_eq!(world.status("alice", "search"), Status::Down);
    assert_eq!(world.status("bob", "search"), Status::Ok);
    assert_eq!(world.status("alice", "fetch"), Status::Ok);
}

#[test]
fn the_same_user_with_another_credential_is_let_through_as_a_trial() {
    let mut world = World::new();
    world.goes("alice", "search", Outcome::TokenExpired);
    world.goes("alice", "search", Outcome::TokenExpired);
    let mut renewed = caller("alice");
    renewed.credential = Some(CredentialHash(99));
    assert!(matches!(world.admit(&caller("alice"), &tool("search")), Admission::Reject(_)));
    assert!(matches!(world.admit(&renewed, &tool("search")), Admission::Trial(_)));
    world.goes_as(&renewed, "search", &Outcome::TokenExpired.verdict()).unwrap();
    assert!(matches!(world.admit(&renewed, &tool("search")), Admission::Reject(_)), "that one is no better");
    renewed.credential = Some(CredentialHash(100));
    world.goes_as(&renewed, "search", &Outcome::Success.verdict()).unwrap();
    assert_eq!(world.status("alice", "search"), Status::Ok);
}

#[test]
fn faults_of_a_user_nobody_knows_write_no_status() {
    let mut world = World::new();
    world.goes_each_second("nobody", "search", Outcome::TokenExpired, 20);
    assert!(world.documents().iter().all(|document| document.status == Status::Ok));
}

#[test]
fn the_same_fault_of_three_users_and_no_success_is_one_of_the_project() {
    let mut world = World::new();
    for user in ["alice", "bob"] {
        world.goes(user, "search", Outcome::TokenExpired);
    }
    assert_eq!(world.status("dave", "search"), Status::Ok);
    let effects = world.goes("carol", "search", Outcome::TokenExpired).unwrap();
    assert!(effects.iter().any(|effect| matches!(effect, Effect::Widened { users: 3, .. })));
    assert_eq!(world.status("dave", "search"), Status::Down);

    let mut world = World::new();
    for user in ["alice", "bob"] {
        world.goes(user, "search", Outcome::TokenExpired);
    }
    world.goes("dave", "search", Outcome::Success);
    world.goes("carol", "search", Outcome::TokenExpired);
    assert_eq!(world.status("dave", "search"), Status::Ok, "it works for somebody");
}

#[test]
fn a_throttled_credential_degrades_the_tool_for_its_user_alone() {
    let mut world = World::new();
    world.goes("alice", "search", Outcome::ThrottledFor40);
    assert_eq!(world.status("alice", "search"), Status::Degraded);
    assert_eq!(world.status("bob", "search"), Status::Ok);
}

#[test]
fn server_errors_that_only_one_user_meets_are_his() {
    let mut world = World::new();
    for _ in 0..6 {
        world.goes("alice", "search", Outcome::ServerError);
        world.goes("bob", "search", Outcome::Success);
        world.pass(1.0);
    }
    assert_eq!(world.status("alice", "search"), Status::Down);
    assert_eq!(world.status("bob", "search"), Status::Ok);
    assert_eq!(world.seen_by("alice", "search").scope(), Some(Scope::User));
}

#[test]
fn a_success_clears_the_callers_cooldowns_and_the_shared_ones_but_nobody_elses() {
    let mut world = World::new();
    world.goes("alice", "search", Outcome::Forbidden);
    world.goes("nobody", "search", Outcome::Forbidden);
    world.goes("bob", "search", Outcome::UnknownText);
    world.goes("bob", "search", Outcome::Success);
    let held = |world: &World, at| world.document(&at).unwrap().cooldowns.len();
    assert_eq!(held(&world, key(Scope::User, "alice", "search")), 1);
    let shared: Vec<_> = world.document(&project("search")).unwrap().cooldowns;
    assert_eq!(shared.len(), 1);
    assert_eq!(shared[0].user_id.as_deref(), Some("anonymous"));
    world.goes("alice", "search", Outcome::Success);
    assert_eq!(held(&world, key(Scope::User, "alice", "search")), 0);
}

#[test]
fn the_narrowest_entry_that_is_not_ok_decides() {
    let mut world = World::new();
    let mark = |to| Mark {
        to,
        classification: Classification::TechnicallyBroken,
        signature: None,
        origin: Origin::Admin,
        by: Arc::from("ops"),
        note: Arc::from("maintenance"),
        since: None,
        recovery: None,
        user_action_hint: None,
    };
    let wide = key(Scope::Global, "", "search");
    world.registry.mark(&wide, &mark(Status::Down), world.now, &mut || 0.0);
    world.goes("alice", "fetch", Outcome::Forbidden);
    assert_eq!(world.status("alice", "search"), Status::Down, "a document that holds only cooldowns hides nothing");
    world.registry.mark(&key(Scope::User, "alice", "search"), &mark(Status::Degraded), world.now, &mut || 0.0);
    assert_eq!(world.status("alice", "search"), Status::Degraded);
    assert_eq!(world.status("bob", "search"), Status::Down);
    world.registry.mark(&key(Scope::User, "alice", "*"), &mark(Status::Down), world.now, &mut || 0.0);
    assert_eq!(world.status("alice", "search"), Status::Down, "at equal scope the worse");
}

#[test]
fn only_a_rule_that_names_a_wider_scope_writes_there() {
    for (scope, others) in
        [(None, Status::Ok), (Some(Scope::Tenant), Status::Down), (Some(Scope::Global), Status::Down)]
    {
        let mut world = World::new();
        let mut verdict = Outcome::Broken.verdict();
        verdict.finding.as_mut().unwrap().scope = scope;
        world.goes_as(&caller("alice"), "search", &verdict);
        let mut elsewhere = caller("bob");
        elsewhere.project = Arc::from("another");
        assert_eq!(world.registry.lookup(&elsewhere, &tool("search"), world.now).status, others, "{scope:?}");
        elsewhere.tenant = Arc::from("foreign");
        let foreign = world.registry.lookup(&elsewhere, &tool("search"), world.now).status;
        assert_eq!(foreign == Status::Down, scope == Some(Scope::Global), "{scope:?}");
    }
}

#[test]
fn alice_of_one_tenant_is_not_alice_of_another() {
    let mut world = World::new();
    world.goes("alice", "search", Outcome::TokenExpired);
    world.goes("alice", "search", Outcome::TokenExpired);
    let mut namesake = caller("alice");
    namesake.tenant = Arc::from("foreign");
    assert_eq!(world.registry.lookup(&namesake, &tool("search"), world.now).status, Status::Ok);
}

#[test]
fn a_provider_that_leaves_takes_its_tool_from_its_own_session_only() {
    let mut world = World::new();
    world.policy = Arc::new(Policy { session_tool: true, ..Policy::default() });
    let effects = world.registry.provider_left(&caller("alice"), &tool("client_file_read"), world.now, &mut || 0.0);
    assert_eq!(transitions(&effects).len(), 1);
    assert_eq!(world.status("alice", "client_file_read"), Status::Down);
    assert_eq!(world.status("bob", "client_file_read"), Status::Ok);
    world.wait_for(&caller("alice"), "client_file_read");
    world.goes("alice", "client_file_read", Outcome::Success).unwrap();
    assert_eq!(world.status("alice", "client_file_read"), Status::Ok);
}

#[test]
fn failures_of_a_session_tool_stay_in_the_session() {
    let mut world = World::new();
    world.policy = Arc::new(Policy { session_tool: true, ..Policy::default() });
    world.goes_each_second("alice", "client_file_read", Outcome::Timeout, 6);
    assert_eq!(world.status("alice", "client_file_read"), Status::Down);
    assert_eq!(world.status("bob", "client_file_read"), Status::Ok);
}

#[test]
fn a_thousand_unclear_failures_at_once_ask_for_one_diagnosis() {
    let mut world = World::new();
    let mut asked = 0;
    for user in 0..1_000 {
        let call = world.call(&caller(&format!("user-{user}")), &tool("search"), None);
        asked += claims(&world.record(call, &Outcome::UnknownText.verdict()));
    }
    assert_eq!(asked, 1);
    world.goes("bob", "search", Outcome::Success);
    assert_eq!(claims(&world.goes("bob", "search", Outcome::UnknownText).unwrap()), 0, "taken, also across a clear");
    world.pass(30.0);
    assert_eq!(claims(&world.goes("bob", "search", Outcome::UnknownText).unwrap()), 1);
}

#[test]
fn no_more_than_ten_diagnoses_start_at_once() {
    let mut world = World::new();
    let asked: usize =
        (0..50).map(|tool| claims(&world.goes("bob", &format!("tool-{tool}"), Outcome::UnknownText).unwrap())).sum();
    assert_eq!(asked, 10);
}

#[test]
fn a_cooldown_is_armed_again_at_the_next_level_only_after_it_ran_out() {
    let mut world = World::new();
    let mut levels = Vec::new();
    for _ in 0..200 {
        world.goes("nobody", "search", Outcome::Throttled);
        let cooldown = world.document(&project("search")).unwrap().cooldowns[0].clone();
        levels.push((cooldown.level, (cooldown.next_spawn_allowed_at.0 - world.now.wall.0 + 999) / 1_000));
        world.pass(10.0);
    }
    let starts: Vec<_> = levels.windows(2).filter(|pair| pair[0].0 < pair[1].0).map(|pair| pair[1]).collect();
    assert_eq!(levels[0], (1, 30));
    assert_eq!(starts, [(2, 120), (3, 480), (4, 1_920)], "times four");
}

#[test]
fn a_fault_that_returns_after_a_clear_does_not_start_from_the_bottom() {
    let mut world = World::new();
    let level = |world: &World| world.document(&project("search")).unwrap().cooldowns[0].level;
    world.goes("nobody", "search", Outcome::Throttled);
    world.pass(31.0);
    world.goes("nobody", "search", Outcome::Throttled);
    assert_eq!(level(&world), 2);
    world.goes("nobody", "search", Outcome::Success);
    world.goes("nobody", "search", Outcome::Throttled);
    assert_eq!(level(&world), 2, "remembered");
    world.goes("nobody", "search", Outcome::Success);
    world.pass(1_300.0);
    world.goes("nobody", "search", Outcome::Throttled);
    assert_eq!(level(&world), 1, "forgotten after quiet intervals");
}
