//! Jobs are handed out once, and never lost.

use super::*;
use crate::clock::{ManualClock, Wall};
use crate::health::Key;
use crate::rules::Scope;

fn claim(signature: &str) -> Claim {
    let key = Key {
        tenant_id: Some("default".into()),
        scope: Scope::Project,
        scope_id: Some("default".into()),
        backend: "demo".into(),
        tool_name: "search".into(),
    };
    let originating_user = Some("alice".into());
    Claim { key, signature: signature.into(), user: None, originating_user, originating_session: None }
}

fn queue(max: usize) -> (Queue, ManualClock) {
    let clock = ManualClock::new(Now { tick: Tick(1_000_000), wall: Wall(1_772_460_120_000) });
    (Queue::new(None, Arc::new(clock.clone()), max), clock)
}

const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn one_kind_of_failure_is_one_job_with_the_details_of_the_last_five() {
    let (queue, clock) = queue(10);
    for number in 0..9 {
        assert!(queue.add(&claim("tool-error"), &format!("it said {number}"), clock.now()));
    }
    let all = queue.list(clock.now());
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].job.error_detail.len(), 5);
    assert_eq!(all[0].job.error_detail.last().unwrap(), "it said 8");
}

#[test]
fn a_full_queue_takes_no_other_job() {
    let (queue, clock) = queue(2);
    assert!(queue.add(&claim("a"), "", clock.now()) && queue.add(&claim("b"), "", clock.now()));
    assert!(!queue.add(&claim("c"), "", clock.now()));
    assert!(queue.add(&claim("a"), "", clock.now()), "that one is under way");
}

#[test]
fn a_lease_is_its_holders_until_it_runs_out_and_then_the_next_ones() {
    let (queue, clock) = queue(10);
    queue.add(&claim("a"), "", clock.now());
    let job = queue.lease("engine-1", MINUTE, clock.now()).unwrap();
    assert!(queue.lease("engine-2", MINUTE, clock.now()).is_none());
    assert_eq!(queue.done(&job.id, "engine-2", "", clock.now()), Err(JobError::Leased("engine-1".into())));
    clock.advance(MINUTE);
    let again = queue.lease("engine-2", MINUTE, clock.now()).unwrap();
    assert_eq!((again.id.as_str(), again.attempts), (job.id.as_str(), 2));
    assert_eq!(queue.done(&job.id, "engine-1", "", clock.now()), Err(JobError::Leased("engine-2".into())));
    assert_eq!(queue.done(&job.id, "engine-2", "fine", clock.now()), Ok(()));
    assert_eq!(queue.done(&job.id, "engine-2", "fine", clock.now()), Err(JobError::Done));
}

#[test]
fn a_job_that_cannot_be_done_is_tried_again_later_and_given_up_in_the_end() {
    let (queue, clock) = queue(10);
    queue.add(&claim("a"), "", clock.now());
    for _ in 0..ATTEMPTS_MAX {
        let job = queue.lease(OWN, MINUTE, clock.now()).unwrap();
        queue.retry(&job.id, OWN, ("nobody answers", MINUTE), clock.now()).unwrap();
        assert!(queue.lease(OWN, MINUTE, clock.now()).is_none(), "not before its time");
        clock.advance(MINUTE);
    }
    assert!(queue.lease(OWN, MINUTE, clock.now()).is_none());
    assert!(matches!(&queue.list(clock.now())[0].state, State::Done { outcome, .. } if outcome.contains("given up")));
}

#[test]
fn what_is_done_is_shown_for_a_while_and_bounded() {
    let (queue, clock) = queue(1_000);
    for number in 0..DONE_MAX + 20 {
        queue.add(&claim(&format!("s{number}")), "", clock.now());
        let job = queue.lease("engine", MINUTE, clock.now()).unwrap();
        queue.done(&job.id, "engine", "fine", clock.now()).unwrap();
    }
    assert_eq!(queue.list(clock.now()).len(), DONE_MAX);
}
