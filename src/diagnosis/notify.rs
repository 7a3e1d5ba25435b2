//! Notifications to people: the first failure of a tool, a reminder every half hour while it lasts, its recovery, and each
//! user who is concerned by a fault of his own (with what he can do about it). Posted to one receiver, signed.
//!
//! It follows the stream of events as any reader does, so that a receiver that is slow or away holds nobody up. What was told
//! is in the store: a restart tells nothing twice, and of what has ended meanwhile it tells the end.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::client::{Client, Signer, signed};
use crate::clock::{Clock, Now, Tick, Wall, millis};
use crate::health::{Document, Key, Registry, Status};
use crate::store::Store;
use crate::telemetry::Telemetry;
use crate::telemetry::bus::{Happening, Kind};

/// How often it is said that something still fails.
const REMIND: Duration = Duration::from_secs(30 * 60);
/// Failures that are remembered at once.
const FAILING_MAX: usize = 10_000;
/// Tries of one notification.
const TRIES: u32 = 5;
const PREFIX: &str = "notified/";

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
    /// From where.
    pub from: u64,
    /// What is believed, for what happened while nobody followed.
    pub registry: Arc<Registry>,
    /// Remembers what was told.
    pub store: Option<Arc<Store>>,
}

/// What is failing and was told.
#[derive(Default)]
pub(super) struct Failing {
    ill: HashMap<String, Ill>,
    store: Option<Arc<Store>>,
}

#[derive(Debug)]
struct Ill {
    facts: Map<String, Value>,
    remind: Tick,
}

/// The same on disk.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Told {
    facts: Map<String, Value>,
    said_at: Wall,
}

/// A notification.
#[derive(Debug)]
pub(super) struct Message {
    text: Value,
    /// What it is the end of: remembered until it was said.
    ends: Option<String>,
}

impl Failing {
    /// What the store remembers.
    fn remembered(store: Option<Arc<Store>>, now: Now) -> Failing {
        let records = store.as_ref().map(|store| store.records(PREFIX)).unwrap_or_default();
        let told = records.iter().filter_map(|(_, bytes)| serde_json::from_slice::<Told>(bytes).ok());
        let ill = told.take(FAILING_MAX).map(|told| {
            let remind = Wall(told.said_at.0.saturating_add(i64::try_from(millis(REMIND)).unwrap_or(i64::MAX)));
            // No clock that was wrong then can put a reminder off any longer.
            let remind = now.tick_at(remind).min(now.tick.after(REMIND));
            (key_of(&told.facts), Ill { facts: told.facts, remind })
        });
        Failing { ill: ill.collect(), store }
    }

    /// What is to be said of ends that nobody has heard of.
    fn compares(&mut self, document: impl Fn(&Key) -> Option<Document>) -> Vec<Message> {
        let mut messages = Vec::new();
        for (key, ill) in std::mem::take(&mut self.ill) {
            let of = serde_json::from_value::<Key>(Value::Object(ill.facts.clone())).ok();
            match of.and_then(|of| document(&of)) {
                None => self.forget(&key),
                Some(document) if document.status == Status::Ok => {
                    messages.push(Message { text: message("recovered", &end_of(&document)), ends: Some(key) });
                }
                Some(_) => {
                    self.ill.insert(key, ill);
                }
            }
        }
        messages
    }

    /// What is to be said about something that happened.
    pub(super) fn hears(&mut self, happening: &Happening, now: Now) -> Option<Message> {
        let facts = &happening.facts;
        let key = key_of(facts);
        match happening.kind {
            Kind::Transition => {}
            Kind::Deleted => {
                self.ill.remove(&key);
                self.forget(&key);
                return None;
            }
            _ => return None,
        }
        let to = facts.get("to").and_then(Value::as_str)?;
        let was = self.ill.contains_key(&key);
        match to {
            "DOWN" if !was => {
                if self.ill.len() < FAILING_MAX {
                    let ill = Ill { facts: facts.clone(), remind: now.tick.after(REMIND) };
                    keep(self.store.as_ref(), (&key, &ill), now.wall);
                    self.ill.insert(key, ill);
                }
                let users = facts.get("scope").and_then(Value::as_str) == Some("USER");
                let text = message(if users { "user_concerned" } else { "first_failure" }, facts);
                Some(Message { text, ends: None })
            }
            "OK" if was => {
                self.ill.remove(&key);
                Some(Message { text: message("recovered", facts), ends: Some(key) })
            }
            _ => None,
        }
    }

    /// What is still failing and was not spoken of for half an hour.
    pub(super) fn reminders(&mut self, now: Now) -> Vec<Message> {
        let due = self.ill.iter_mut().filter(|(_, ill)| ill.remind <= now.tick);
        due.map(|(key, ill)| {
            ill.remind = now.tick.after(REMIND);
            keep(self.store.as_ref(), (key, ill), now.wall);
            Message { text: message("still_failing", &ill.facts), ends: None }
        })
        .collect()
    }

    /// A notification has been said, or was lost.
    fn said(&self, message: &Message) {
        // It may have failed again meanwhile.
        if let Some(key) = message.ends.as_deref().filter(|key| !self.ill.contains_key(*key)) {
            self.forget(key);
        }
    }

    fn forget(&self, key: &str) {
        if let Some(store) = &self.store {
            store.keep(&name_of(key), None);
        }
    }
}

fn keep(store: Option<&Arc<Store>>, (key, ill): (&str, &Ill), now: Wall) {
    let told = || serde_json::to_vec(&Told { facts: ill.facts.clone(), said_at: now });
    if let Some((store, Ok(bytes))) = store.map(|store| (store, told())) {
        store.keep(&name_of(key), Some(bytes));
    }
}

fn name_of(key: &str) -> String {
    format!("{PREFIX}{}", blake3::hash(key.as_bytes()).to_hex())
}

/// The facts of an end that is seen in the document alone.
fn end_of(document: &Document) -> Map<String, Value> {
    let note = document.history.last().map(|entry| &entry.note);
    let facts = json!({"at": document.since, "to": document.status, "note": note});
    let parts = [serde_json::to_value(&document.key).unwrap_or_default(), facts];
    parts
        .into_iter()
        .filter_map(|part| if let Value::Object(part) = part { Some(part) } else { None })
        .flatten()
        .collect()
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
    let now = notifier.clock.now();
    let mut failing = Failing::remembered(notifier.store.clone(), now);
    let compare = |failing: &mut Failing, now| failing.compares(|key| notifier.registry.document(key, now));
    let mut messages = compare(&mut failing, now);
    let mut at = notifier.from;
    let mut bell = notifier.telemetry.bus().bell();
    loop {
        for message in std::mem::take(&mut messages) {
            send(&notifier, &message.text).await;
            failing.said(&message);
        }
        let _ = tokio::time::timeout(Duration::from_secs(10), bell.wait_for(|latest| *latest > at)).await;
        let now: Now = notifier.clock.now();
        let batch = notifier.telemetry.bus().after(at, 64);
        for happening in &batch.happenings {
            at = happening.number;
            messages.extend(failing.hears(happening, now));
        }
        if batch.missed > 0 {
            messages.extend(compare(&mut failing, now));
        }
        messages.extend(failing.reminders(now));
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
    use crate::telemetry::bus::Bus;

    fn at(tick: u64) -> Now {
        Now { tick: Tick(tick), wall: Wall(i64::try_from(tick).unwrap()) }
    }

    fn happens(failing: &mut Failing, scope: &str, to: &str, now: u64) -> Option<Value> {
        let bus = Bus::default();
        let facts = json!({
            "scope": scope, "scopeId": "alice", "tenantId": "acme", "backend": "demo", "toolName": "search", "to": to,
            "userActionHint": "Sign in again.",
        });
        bus.publish(Kind::Transition, Wall(0), facts.as_object().unwrap().clone());
        failing.hears(&bus.after(0, 1).happenings[0], at(now)).map(|message| message.text)
    }

    #[test]
    fn a_failure_is_told_once_then_every_half_hour_and_so_is_its_end() {
        let mut failing = Failing::default();
        assert_eq!(happens(&mut failing, "PROJECT", "DOWN", 0).unwrap()["notification"], "first_failure");
        assert_eq!(happens(&mut failing, "PROJECT", "DOWN", 10), None);
        let half_hour = 30 * 60 * 1_000;
        assert!(failing.reminders(at(half_hour - 1)).is_empty());
        assert_eq!(failing.reminders(at(half_hour))[0].text["notification"], "still_failing");
        assert!(failing.reminders(at(half_hour + 1)).is_empty());
        assert_eq!(happens(&mut failing, "PROJECT", "OK", half_hour).unwrap()["notification"], "recovered");
        assert_eq!(happens(&mut failing, "PROJECT", "OK", half_hour), None);
        assert!(failing.reminders(at(9 * half_hour)).is_empty());
    }

    #[test]
    fn a_user_who_is_concerned_is_named_with_what_he_can_do() {
        let told = happens(&mut Failing::default(), "USER", "DOWN", 0).unwrap();
        assert_eq!(told["notification"], "user_concerned");
        assert_eq!((&told["user"], &told["tool"]), (&json!("alice"), &json!("search")));
        assert_eq!(told["userActionHint"], "Sign in again.");
    }
}
