//! What waits, what is merged, what is dropped, who is answered.

use super::*;
use crate::clock::Wall;
use crate::health::document::Flap;
use crate::health::{Origin, Status};
use crate::rules::Scope;

fn key(tool: &str) -> Key {
    Key {
        tenant_id: Some("default".into()),
        scope: Scope::Project,
        scope_id: Some("default".into()),
        backend: "jira".into(),
        tool_name: tool.into(),
    }
}

fn put(tool: &str, version: u64) -> Change {
    Change::Put(Box::new(Document {
        key: key(tool),
        status: Status::Down,
        since: Wall(0),
        last_checked_at: None,
        expected_recovery_at: None,
        next_trial_at: None,
        last_diagnosis: None,
        history: Vec::new(),
        cooldowns: Vec::new(),
        tombstones: Vec::new(),
        overridden: None,
        as_of: Wall(0),
        origin: Origin::Evidence,
        signature: None,
        classification: None,
        epoch: 1,
        version,
        level: 1,
        flap: Flap::default(),
        credential: None,
        created_at: Wall(0),
        updated_at: Wall(0),
    }))
}

fn place(tool: &str) -> Place {
    Place::Document(key(tool))
}

fn version_of(queue: &Queue, tool: &str) -> Option<u64> {
    queue.find(&key(tool)).flatten().map(|document| document.version)
}

fn waiter() -> Waiter {
    oneshot::channel().0
}

#[test]
fn of_several_changes_to_one_document_the_newest_waits() {
    let mut queue = Queue::new(10);
    for version in [1, 3, 2] {
        assert_eq!(queue.push(place("a"), put("a", version)), Pushed::Taken);
    }
    assert_eq!((queue.len(), version_of(&queue, "a")), (1, Some(3)));
}

#[test]
fn a_full_queue_merges_but_takes_no_new_document() {
    let mut queue = Queue::new(2);
    queue.push(place("a"), put("a", 1));
    queue.take();
    queue.push(place("b"), put("b", 1));
    assert_eq!(queue.push(place("c"), put("c", 1)), Pushed::Dropped);
    assert_eq!(queue.push(place("b"), put("b", 2)), Pushed::Taken);
    assert_eq!(queue.push_all(vec![(place("c"), put("c", 1))], waiter()), Err(CommitError::QueueFull { queued: 2 }));
    assert_eq!(queue.push_all(vec![(place("b"), put("b", 3))], waiter()), Ok(()));
}

#[test]
fn a_batch_that_failed_waits_again_but_yields_to_newer_changes() {
    let mut queue = Queue::new(10);
    queue.push(place("a"), put("a", 1));
    queue.push(place("b"), put("b", 1));
    drop(queue.take());
    queue.push(place("a"), put("a", 2));
    queue.give_back();
    assert_eq!((version_of(&queue, "a"), version_of(&queue, "b"), queue.len()), (Some(2), Some(1), 2));
}

#[test]
fn readers_find_what_is_being_written_and_what_is_being_deleted() {
    let mut queue = Queue::new(10);
    queue.push(place("a"), put("a", 1));
    queue.take();
    assert_eq!(version_of(&queue, "a"), Some(1));
    queue.push(place("a"), Change::Delete);
    assert_eq!(queue.find(&key("a")), Some(None));
    queue.settle();
    queue.take();
    queue.settle();
    assert_eq!(queue.find(&key("a")), None);
}

#[test]
fn a_group_a_waiter_and_the_end_are_urgent_and_less_is_not() {
    let mut queue = Queue::new(1000);
    for n in 0..GROUP {
        assert!(!queue.is_urgent(), "{n} documents");
        queue.push(place(&n.to_string()), put("a", 1));
    }
    assert!(queue.is_urgent());
    queue.take();
    queue.push_all(Vec::new(), waiter()).unwrap();
    assert!(queue.is_urgent());
    queue.take();
    queue.close(waiter());
    assert!(queue.is_urgent());
}

#[test]
fn a_closed_queue_takes_nothing_and_lets_late_waiters_go() {
    let mut queue = Queue::new(10);
    queue.close(waiter());
    assert_eq!(queue.push(place("a"), put("a", 1)), Pushed::Dropped);
    assert_eq!(queue.push_all(Vec::new(), waiter()), Err(CommitError::Closed));
    queue.stop();
    let (late, mut answer) = oneshot::channel();
    queue.close(late);
    assert!(answer.try_recv().is_err_and(|error| error == oneshot::error::TryRecvError::Closed));
}
