//! The engine that needs nobody: it tries the tool as the system and as the user whose call failed, and compares (DESIGN 13).

use std::sync::Arc;

use super::answer::Answer;
use super::job::Job;
use super::redact::redact;
use super::work::Found;
use crate::health::{ProbeAs, Prober, ToolRef, Tried};
use crate::rules::Classification;

/// Tries the tool of a job, where it may be tried.
pub(super) async fn diagnose(job: &Job, prober: &dyn Prober) -> Found {
    let at = ToolRef { backend: Arc::from(job.key.backend.as_str()), tool: Arc::from(job.key.tool_name.as_str()) };
    let system = prober.probe(&at, &ProbeAs::System).await;
    let user = match job.originating_user_id.as_deref() {
        Some(user) => prober.probe(&at, &ProbeAs::User(Arc::from(user))).await,
        None => Tried::Impossible("nobody knows whose call it was".to_owned()),
    };
    match compare(&system, &user) {
        Some(answer) => Found::Answer(Box::new(answer)),
        None => Found::Nothing(match (system, user) {
            (Tried::Impossible(why), _) | (_, Tried::Impossible(why)) => why,
            _ => "the two tries say nothing together".to_owned(),
        }),
    }
}

/// What two tries say together; `None` if nothing.
fn compare(system: &Tried, user: &Tried) -> Option<Answer> {
    use Tried::{Fails, Impossible, Works};
    let (classification, note) = match (system, user) {
        (Works, Works) => (Classification::Working, "it works for the system and for the user".to_owned()),
        (Works, Impossible(_)) => {
            (Classification::Intermittent, "a call failed, a try of the system worked".to_owned())
        }
        (Works, Fails { classification, signature, text }) => match classification {
            // The user may not, or the sample does not fit him: nothing is ill.
            Classification::UserPermission | Classification::UserInput => (*classification, failed(signature, text)),
            _ => {
                let note = format!("it works for the system and not for the user: {}", failed(signature, text));
                (Classification::UserSpecificTechnical, note)
            }
        },
        (Fails { signature, text, .. }, Fails { .. }) => (
            Classification::TechnicallyBroken,
            format!("it fails for the system and for the user: {}", failed(signature, text)),
        ),
        (Fails { signature, text, classification }, Impossible(_)) => match classification {
            Classification::UserPermission | Classification::UserInput | Classification::Unclear => return None,
            _ => (Classification::TechnicallyBroken, format!("it fails for the system: {}", failed(signature, text))),
        },
        (Fails { .. }, Works) => (Classification::Working, "it works for the user; only the system may not".to_owned()),
        (Impossible(_), Works) => (Classification::Intermittent, "a call failed, a try for the user worked".to_owned()),
        (Impossible(_), _) => return None,
    };
    Some(Answer {
        classification,
        scope: None,
        expected_recovery_at: None,
        human_note: note,
        user_action_hint: None,
        cooldown_adjustments: Vec::new(),
    })
}

fn failed(signature: &str, text: &str) -> String {
    let text = redact(text);
    let first: String = text.chars().take(200).collect();
    format!("{signature} {first}").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fails(classification: Classification) -> Tried {
        Tried::Fails { signature: "http-500".into(), classification, text: "no token=abcdefgh here".into() }
    }

    #[test]
    fn two_tries_are_compared_as_the_contract_says() {
        use Classification as C;
        let cannot = || Tried::Impossible("no credentials".into());
        for (system, user, expected) in [
            (Tried::Works, fails(C::TechnicallyBroken), Some(C::UserSpecificTechnical)),
            (fails(C::TechnicallyBroken), fails(C::Unclear), Some(C::TechnicallyBroken)),
            (Tried::Works, Tried::Works, Some(C::Working)),
            (Tried::Works, cannot(), Some(C::Intermittent)),
            (Tried::Works, fails(C::UserPermission), Some(C::UserPermission)),
            (fails(C::TechnicallyBroken), cannot(), Some(C::TechnicallyBroken)),
            (fails(C::Unclear), cannot(), None),
            (cannot(), fails(C::TechnicallyBroken), None),
            (cannot(), cannot(), None),
        ] {
            let found = compare(&system, &user);
            assert_eq!(found.as_ref().map(|answer| answer.classification), expected, "{system:?} {user:?}");
            assert!(found.is_none_or(|answer| !answer.human_note.contains("abcdefgh")));
        }
    }
}
