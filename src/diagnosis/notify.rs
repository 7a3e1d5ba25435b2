//! Notifications to people: the first failure of a tool, a reminder every half hour while it lasts, its recovery, and each
//! user who is concerned by a fault of his own (with what he can do about it). Posted to one receiver, signed.
//!
//! It follows the stream of events as any reader does, so that a receiver that is slow or away holds nobody up.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::client::{Client, Signer, signed};
use crate::clock::{Clock, Now, Tick};
use crate::telemetry::Telemetry;
use crate::telemetry::bus::{Happening, Kind};

/// How often it is said that something still fails.
const REMIND: Duration = Duration::from_secs(30 * 60);
/// Failures that are remembered at once.
const FAILING_MAX: usize = 10_000;
/// Tries of one notification.
const TRIES: u32 = 5;

/// Who is notified.
#[derive(Clone, Debug)]
pub struct Notifier {
    /// The address.
    pub url: String,
    /// What bodies are signed with, if they are.
    pub signer: Option<Signer>,
    /// How it is reached.
    pub client: Client,
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// What is followed.
    pub telemetry: Arc<Telemetry>,
}

/// What is failing.
#[derive(Debug, Default)]
pub(super) struct Failing(HashMap<String, Ill>);

#[derive(Debug)]
struct Ill {
    facts: Map<String, Value>,
    said: Tick,
}

impl Failing {
    /// What is to be said about something that happened.
    pub(super) fn hears(&mut self, happening: &Happening, now: Tick) -> Option<Value> {
        let facts = &happening.facts;
        let key = key_of(facts);
        match happening.kind {
            Kind::Transition => {}
            Kind::Deleted => {
                self.0.remove(&key);
                return None;
            }
            _ => return None,
        }
        let to = facts.get("to").and_then(Value::as_str)?;
        let was = self.0.contains_key(&key);
        match to {
            "DOWN" if !was => {
                if self.0.len() < FAILING_MAX {
                    self.0.insert(key, Ill { facts: facts.clone(), said: now });
                }
                let users = facts.get("scope").and_then(Value::as_str) == Some("USER");
                Some(message(if users { "user_concerned" } else { "first_failure" }, facts))
            }
            "OK" if was => {
                self.0.remove(&key);
                Some(message("recovered", facts))
            }
            _ => None,
        }
    }

    /// What is still failing and was not spoken of for half an hour.
    pub(super) fn reminders(&mut self, now: Tick) -> Vec<Value> {
        let due = self.0.values_mut().filter(|ill| now.since(ill.said) >= REMIND);
        due.map(|ill| {
            ill.said = now;
            message("still_failing", &ill.facts)
        })
        .collect()
    }
}

fn key_of(facts: &Map<String, Value>) -> String {
    let parts = ["tenantId", "scope", "scopeId", "backend", "toolName"].map(|name| facts.get(name));
    json!(parts).to_string()
}

fn message(what: &str, facts: &Map<String, Value>) -> Value {
    let fact = |name: &str| facts.get(name).cloned().unwrap_or_default();
    let mut said = json!({
        "notification": what, "at": fact("at"), "tool": fact("toolName"), "backend": fact("backend"),
        "scope": fact("scope"), "tenant": fact("tenantId"), "status": fact("to"),
        "classification": fact("classification"), "signature": fact("signature"), "note": fact("note"),
        "expectedRecoveryAt": fact("expectedRecoveryAt"), "userActionHint": fact("userActionHint"),
    });
    if let Some(said) = said.as_object_mut() {
        let name = match fact("scope").as_str() {
            Some("USER") => "user",
            Some("SESSION") => "session",
            _ => "project",
        };
        said.insert(name.to_owned(), fact("scopeId"));
    }
    said
}

/// Follows what happens and notifies, until the process ends.
pub async fn notify_forever(notifier: Notifier) {
    let mut failing = Failing::default();
    let mut at = notifier.telemetry.bus().latest();
    let mut bell = notifier.telemetry.bus().bell();
    loop {
        let _ = tokio::time::timeout(Duration::from_secs(10), bell.wait_for(|latest| *latest > at)).await;
        let now: Now = notifier.clock.now();
        let batch = notifier.telemetry.bus().after(at, 64);
        let mut messages = Vec::new();
        for happening in &batch.happenings {
            at = happening.number;
            messages.extend(failing.hears(happening, now.tick));
        }
        messages.extend(failing.reminders(now.tick));
        for message in messages {
            send(&notifier, &message).await;
        }
    }
}

/// A receiver that is away is tried some times; then the notification is lost, which the next reminder makes good.
async fn send(notifier: &Notifier, message: &Value) {
    let body = message.to_string().into_bytes();
    for number in 0..TRIES {
        let headers = signed(notifier.signer.as_ref(), &body, notifier.clock.now().wall);
        match notifier.client.post(&notifier.url, headers, body.clone()).await {
            Ok((200..=299, _)) => return,
            _ => tokio::time::sleep(Duration::from_secs(1 << number)).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Wall;
    use crate::telemetry::bus::Bus;

    fn happens(failing: &mut Failing, scope: &str, to: &str, now: u64) -> Option<Value> {
        let bus = Bus::default();
        let facts = json!({
            "scope": scope, "scopeId": "alice", "tenantId": "acme", "backend": "demo", "toolName": "search", "to": to,
            "userActionHint": "Sign in again.",
        });
        bus.publish(Kind::Transition, Wall(0), facts.as_object().unwrap().clone());
        failing.hears(&bus.after(0, 1).happenings[0], Tick(now))
    }

    #[test]
    fn a_failure_is_told_once_then_every_half_hour_and_so_is_its_end() {
        let mut failing = Failing::default();
        assert_eq!(happens(&mut failing, "PROJECT", "DOWN", 0).unwrap()["notification"], "first_failure");
        assert_eq!(happens(&mut failing, "PROJECT", "DOWN", 10), None);
        let half_hour = 30 * 60 * 1_000;
        assert!(failing.reminders(Tick(half_hour - 1)).is_empty());
        assert_eq!(failing.reminders(Tick(half_hour))[0]["notification"], "still_failing");
        assert!(failing.reminders(Tick(half_hour + 1)).is_empty());
        assert_eq!(happens(&mut failing, "PROJECT", "OK", half_hour).unwrap()["notification"], "recovered");
        assert_eq!(happens(&mut failing, "PROJECT", "OK", half_hour), None);
        assert!(failing.reminders(Tick(9 * half_hour)).is_empty());
    }

    #[test]
    fn a_user_who_is_concerned_is_named_with_what_he_can_do() {
        let told = happens(&mut Failing::default(), "USER", "DOWN", 0).unwrap();
        assert_eq!(told["notification"], "user_concerned");
        assert_eq!((&told["user"], &told["tool"]), (&json!("alice"), &json!("search")));
        assert_eq!(told["userActionHint"], "Sign in again.");
    }
}
