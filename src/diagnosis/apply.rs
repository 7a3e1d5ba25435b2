//! What an answer does to health (DESIGN 7 and 13). Pure: the engine says what it found, this says what follows.

use std::sync::Arc;
use std::time::Duration;

use super::answer::Answer;
use super::job::Job;
use crate::clock::Now;
use crate::health::{Key, Mark, Order, Origin, Status};
use crate::rules::{Classification, Scope};

/// How long a job whose answer could not be read leaves its tool DEGRADED.
const MALFORMED_FOR: Duration = Duration::from_secs(15 * 60);

/// The orders that an answer comes to.
pub(super) fn orders(job: &Job, answer: &Answer, by: &str, now: Now) -> Vec<(Key, Order)> {
    use Classification as C;
    let users = matches!(answer.classification, C::UserSpecificTechnical | C::UserPermission | C::UserInput);
    let scope = answer.scope.unwrap_or(if users { Scope::User } else { job.key.scope });
    // A fault of a user whom nobody knows writes no status.
    let place = at(job, scope);
    let to = match answer.classification {
        C::TechnicallyBroken | C::UserSpecificTechnical => Some(Status::Down),
        C::Intermittent => Some(Status::Degraded),
        C::Working => Some(Status::Ok),
        C::UserPermission | C::UserInput | C::Unclear => None,
    };
    let mut orders = Vec::new();
    if let (Some(key), Some(to)) = (&place, to) {
        let ahead =
            |at: crate::clock::Wall| u64::try_from(at.0.saturating_sub(now.wall.0)).ok().map(Duration::from_millis);
        let mark = Mark {
            to,
            classification: answer.classification,
            signature: Some(Arc::from(job.error_signature.as_str())),
            origin: Origin::Engine,
            by: Arc::from(by),
            note: Arc::from(answer.human_note.as_str()),
            since: None,
            recovery: answer.expected_recovery_at.and_then(ahead),
            user_action_hint: answer.user_action_hint.as_deref().map(Arc::from),
        };
        orders.push((key.clone(), Order::Mark(mark)));
    }
    let usual = Order::Cooldown {
        signature: Arc::from(job.error_signature.as_str()),
        user: job.user_id.as_deref().map(Arc::from),
        classification: answer.classification,
        length: None,
    };
    let adjusts_it = |signature: &str| signature == job.error_signature;
    if !answer.cooldown_adjustments.iter().any(|adjustment| adjusts_it(&adjustment.error_signature)) {
        orders.push((job.key.clone(), usual));
    }
    for adjustment in &answer.cooldown_adjustments {
        let ahead = u64::try_from(adjustment.next_spawn_allowed_at.0.saturating_sub(now.wall.0)).unwrap_or(0);
        let order = Order::Cooldown {
            signature: Arc::from(adjustment.error_signature.as_str()),
            user: adjustment.user_id.as_deref().map(Arc::from),
            classification: answer.classification,
            length: Some(Duration::from_millis(ahead)),
        };
        orders.push((job.key.clone(), order));
    }
    orders
}

/// The orders for an answer that could not be read.
pub(super) fn malformed(job: &Job, why: &str, by: &str) -> Vec<(Key, Order)> {
    let mark = Mark {
        to: Status::Degraded,
        classification: Classification::Intermittent,
        signature: Some(Arc::from(job.error_signature.as_str())),
        origin: Origin::Engine,
        by: Arc::from(by),
        note: Arc::from(format!("the diagnosis could not be read: {why}")),
        since: None,
        recovery: Some(MALFORMED_FOR),
        user_action_hint: None,
    };
    vec![(job.key.clone(), Order::Mark(mark))]
}

/// The document at another scope of the job's caller; `None` if he has none there.
fn at(job: &Job, scope: Scope) -> Option<Key> {
    if scope == job.key.scope {
        return Some(job.key.clone());
    }
    let scope_id = match scope {
        Scope::Session => Some(job.originating_session_id.clone()?),
        Scope::User => Some(job.originating_user_id.clone()?),
        Scope::Tenant => Some(job.key.tenant_id.clone()?),
        Scope::Global => None,
        // From a narrower document the project cannot be told: the engine has to leave the scope to us.
        Scope::Project => return None,
    };
    let tenant_id = job.key.tenant_id.clone().filter(|_| scope != Scope::Global);
    Some(Key { tenant_id, scope, scope_id, ..job.key.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Tick, Wall};
    use crate::diagnosis::job::Trigger;

    const NOW: Now = Now { tick: Tick(0), wall: Wall(1_772_460_120_000) };

    fn job(user: Option<&str>) -> Job {
        Job {
            id: "1".into(),
            service_type: "tool".into(),
            key: Key {
                tenant_id: Some("acme".into()),
                scope: Scope::Project,
                scope_id: Some("web".into()),
                backend: "demo".into(),
                tool_name: "search".into(),
            },
            user_id: None,
            originating_user_id: user.map(str::to_owned),
            originating_session_id: None,
            trigger: Trigger::ToolCallError,
            error_signature: "tool-error".into(),
            error_detail: Vec::new(),
            created_at: NOW.wall,
            attempts: 1,
        }
    }

    fn statuses(classification: &str, user: Option<&str>) -> Vec<(Scope, Status)> {
        let text = format!(r#"{{"classification": "{classification}", "humanNote": "x"}}"#);
        let answer = Answer::read(text.as_bytes(), Scope::Project, NOW).unwrap();
        let orders = orders(&job(user), &answer, "engine", NOW);
        let marks = orders.iter().filter_map(|(key, order)| match order {
            Order::Mark(mark) => Some((key.scope, mark.to)),
            _ => None,
        });
        marks.collect()
    }

    #[test]
    fn each_class_leads_to_the_status_and_the_scope_that_section_seven_gives_it() {
        assert_eq!(statuses("TECHNICALLY_BROKEN", Some("alice")), [(Scope::Project, Status::Down)]);
        assert_eq!(statuses("USER_SPECIFIC_TECHNICAL", Some("alice")), [(Scope::User, Status::Down)]);
        assert_eq!(statuses("INTERMITTENT", Some("alice")), [(Scope::Project, Status::Degraded)]);
        assert_eq!(statuses("WORKING", Some("alice")), [(Scope::Project, Status::Ok)]);
        for never in ["USER_PERMISSION", "USER_INPUT"] {
            assert_eq!(statuses(never, Some("alice")), []);
        }
        assert_eq!(statuses("USER_SPECIFIC_TECHNICAL", None), [], "nobody knows whose it is");
    }
}
