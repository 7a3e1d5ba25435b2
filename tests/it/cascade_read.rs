//! What every call pays: a cascade read allocates nothing, whatever it finds.

use std::sync::Arc;
use std::time::Duration;

use allocation_counter::measure;
use toolvane::clock::{Now, Tick, Wall};
use toolvane::health::{
    Admission, Caller, Key, Mark, MemoryOnly, Mode, Origin, Policy, Registry, Status, ToolRef, Tuning,
};
use toolvane::rules::{Classification, Scope};

const NOW: Now = Now { tick: Tick(1_000_000), wall: Wall(1_790_000_000_000) };

fn caller() -> Caller {
    Caller {
        session: Some(Arc::from("session")),
        user: Some(Arc::from("alice")),
        project: Arc::from("project"),
        tenant: Arc::from("tenant"),
        roles: Vec::new(),
        credential: None,
    }
}

fn mark(to: Status, recovery: Option<Duration>) -> Mark {
    Mark {
        to,
        classification: Classification::TechnicallyBroken,
        signature: Some(Arc::from("maintenance")),
        origin: Origin::Admin,
        by: Arc::from("ops"),
        note: Arc::from("a note of some length, which must not be copied"),
        since: None,
        recovery,
        user_action_hint: Some(Arc::from("a hint")),
    }
}

fn key(scope: Scope, id: &str, tool: &str) -> Key {
    let wide = scope == Scope::Global;
    Key {
        tenant_id: (!wide).then(|| "tenant".to_owned()),
        scope,
        scope_id: (!wide).then(|| id.to_owned()),
        backend: "backend".to_owned(),
        tool_name: tool.to_owned(),
    }
}

#[test]
fn a_cascade_read_allocates_nothing_whatever_it_finds() {
    let registry = Registry::new(Tuning::default(), Arc::new(MemoryOnly));
    for (scope, id) in [(Scope::Session, "s"), (Scope::User, "u"), (Scope::Project, "p"), (Scope::Tenant, "t")] {
        for tool in ["search", "*"] {
            // Of somebody else: every level must be looked at.
            registry.mark(&key(scope, id, tool), &mark(Status::Down, None), NOW, &mut || 0.5);
        }
    }
    for (tool, to, recovery) in
        [("down", Status::Down, Some(600)), ("due", Status::Down, Some(1)), ("degraded", Status::Degraded, None)]
    {
        let mark = mark(to, recovery.map(Duration::from_secs));
        registry.mark(&key(Scope::Global, "", tool), &mark, NOW, &mut || 0.5);
    }
    let (caller, now) = (caller(), NOW.after(Duration::from_secs(60)));
    let observe = Policy { mode: Mode::Observe, ..Policy::default() };
    for (tool, policy, expected) in [
        ("unknown", Policy::default(), "pass"),
        ("degraded", Policy::default(), "pass"),
        ("due", Policy::default(), "trial"),
        ("down", Policy::default(), "reject"),
        ("down", observe, "observed"),
    ] {
        let at = ToolRef { backend: Arc::from("backend"), tool: Arc::from(tool) };
        // The first look of a thread registers it with the map.
        drop((registry.admit(&caller, &at, &policy, now), registry.lookup(&caller, &at, now)));
        let mut said = "";
        let info = measure(|| {
            for _ in 0..100 {
                let view = registry.lookup(&caller, &at, now);
                said = match registry.admit(&caller, &at, &policy, now) {
                    Admission::Pass => "pass",
                    Admission::Trial(_) => "trial",
                    Admission::Reject(_) => "reject",
                    Admission::Observed(_) => "observed",
                };
                drop(view);
            }
        });
        assert_eq!((said, info.count_total), (expected, 0), "{tool}");
    }
}
