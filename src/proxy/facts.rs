//! What an answer of our own says (DESIGN 9): the facts as data for hosts, and the same facts in words for a model.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::clock::{Now, Wall};
use crate::health::{Status, StatusReason, Unready, View};
use crate::rules::{Classification, DispatchCode, Scope, TransportFault, Verdict};

/// After a call that came to nothing, where nobody stated a time: seconds.
const RETRY_SOON: u64 = 5;

/// Why the proxy answered by itself; the value of the `x-toolvane` header and of the `reason` label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Reason {
    /// The tool is DOWN for this caller and was not called.
    Down,
    /// The upstream gave no valid answer to this very call.
    Unreachable,
    /// The dispatcher's own request broke off, or was not sent in time.
    Request,
    /// A limit of our own was reached.
    Limit,
    /// A rule asked for the result shape in place of the backend's 5xx or 429.
    Result,
    /// The process ends, and the call took longer than it could wait.
    Drain,
    /// What backs the tool is not set up.
    Unready(StatusReason),
    /// The operator's lists exclude the tool.
    Disallowed,
}

impl Reason {
    /// The name in headers and labels.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Reason::Down => "down",
            Reason::Unreachable => "unreachable",
            Reason::Request => "request",
            Reason::Limit => "limit",
            Reason::Result => "result",
            Reason::Drain => "drain",
            Reason::Unready(reason) => reason.as_str(),
            Reason::Disallowed => "disallowed",
        }
    }
}

/// Whether the tool may have run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Effect {
    /// It was certainly not called.
    NotCalled,
    /// The request may have reached the upstream: its effect is unknown.
    Unknown,
}

impl Effect {
    fn words(self) -> &'static str {
        match self {
            Effect::NotCalled => "It was not called.",
            Effect::Unknown => "It may or may not have run: its effect is unknown. Check before you call it again.",
        }
    }
}

/// What a model reads when this proxy itself gave a call up, and why.
pub(super) fn given_up_words(tool: &str, why: &str, effect: Effect) -> String {
    let called = effect.words();
    format!("{tool} gave no answer that could be passed on: {why}. {called} Do not retry at once; plan without it.")
}

/// The facts of one answer, as they stand under `_meta["toolvane/health"]` and in problem documents.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Facts {
    /// How the failure is named.
    pub(super) code: DispatchCode,
    /// The status that applies to the caller.
    pub(super) status: Status,
    /// What it was found to be, if anything.
    pub(super) classification: Option<Classification>,
    /// The kind of failure.
    pub(super) signature: Option<Arc<str>>,
    /// Who is affected; `None` where no entry stands behind the answer.
    pub(super) scope: Option<Scope>,
    /// Since when.
    pub(super) since: Option<Wall>,
    /// When somebody estimated it to be back.
    pub(super) expected_recovery_at: Option<Wall>,
    /// Not before; `None` where waiting alone does not help.
    pub(super) retry_after_seconds: Option<u64>,
    /// A note for people.
    pub(super) note: Option<Arc<str>>,
    /// Why the tool is not set up; only where that is the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) status_reason: Option<StatusReason>,
    /// What backs the tool; only where that is not set up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) integration: Option<Arc<str>>,
}

impl Facts {
    /// What is believed about a tool that is not OK.
    pub(super) fn of_view(view: &View, now: Now) -> Facts {
        let entry = view.entry.as_deref();
        Facts {
            code: view.code().unwrap_or(DispatchCode::BackendFailed),
            status: view.status,
            classification: entry.and_then(|entry| entry.classification),
            signature: entry.and_then(|entry| entry.signature.clone()),
            scope: view.scope(),
            since: view.since,
            expected_recovery_at: view.expected_recovery_at,
            retry_after_seconds: Some(Facts::wait(view, now)),
            note: entry.and_then(|entry| entry.note.clone()),
            status_reason: None,
            integration: None,
        }
    }

    /// Seconds until the next trial.
    pub(super) fn wait(view: &View, now: Now) -> u64 {
        let wait = view.next_trial_at.map_or(0, |at| u64::try_from(at.0.saturating_sub(now.wall.0)).unwrap_or(0));
        Facts::seconds(Duration::from_millis(wait))
    }

    /// What one call came to, beside what is believed since.
    pub(super) fn of_verdict(verdict: &Verdict, view: &View, now: Now) -> Facts {
        let believed = Facts::of_view(view, now);
        let Some(finding) = &verdict.finding else { return believed };
        let wait = finding.hint.map_or(RETRY_SOON, Facts::seconds);
        Facts {
            code: finding.dispatch_code,
            classification: Some(finding.classification),
            signature: Some(Arc::clone(&finding.signature)),
            retry_after_seconds: believed.retry_after_seconds.max(Some(wait)),
            note: finding.note.clone().or(believed.note),
            ..believed
        }
    }

    /// What is said of a tool that is not set up.
    pub(super) fn of_unready(unready: &Unready, now: Now) -> Facts {
        let ahead = u64::try_from(unready.next_check.0.saturating_sub(now.wall.0)).unwrap_or(0);
        // A service that is asked again may have been set up meanwhile; a credential that is missing does not come by itself.
        let wait = match unready.reason {
            StatusReason::CredentialsMissing => None,
            StatusReason::IntegrationUnconfigured => Some(Facts::seconds(Duration::from_millis(ahead))),
        };
        Facts {
            status: Status::Down,
            since: unready.since,
            retry_after_seconds: wait,
            note: unready.setup_hint.clone(),
            status_reason: Some(unready.reason),
            integration: unready.integration.clone(),
            ..Facts::bare(DispatchCode::BackendUnreachable)
        }
    }

    /// What is said of a tool that the operator's lists exclude. It is no matter of time.
    pub(super) fn of_disallowed() -> Facts {
        Facts { retry_after_seconds: None, ..Facts::bare(DispatchCode::Disallowed) }
    }

    /// What is said of a call that this proxy itself refused or gave up: nothing is known of the tool.
    pub(super) fn of_ours() -> Facts {
        Facts::bare(DispatchCode::BackendUnreachable)
    }

    fn bare(code: DispatchCode) -> Facts {
        Facts {
            code,
            status: Status::Ok,
            classification: None,
            signature: None,
            scope: None,
            since: None,
            expected_recovery_at: None,
            retry_after_seconds: Some(RETRY_SOON),
            note: None,
            status_reason: None,
            integration: None,
        }
    }

    /// What a model reads when the backend refused the call by an HTTP status that would end its session.
    pub(super) fn failed_words(&self, tool: &str) -> String {
        let what = self.signature.as_deref().unwrap_or("an error");
        let wait = self.retry_after_seconds.unwrap_or(RETRY_SOON);
        format!("{tool} failed ({}: {what}). Do not call it again in the next {wait} s; plan without it.", self.code)
    }

    /// Whole seconds to wait, rounded up, at least one.
    pub(super) fn seconds(wait: Duration) -> u64 {
        let whole = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        whole.max(1)
    }

    /// The facts as JSON.
    pub(super) fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|_| "{}".to_owned())
    }

    /// What a model reads when a tool is DOWN and was not called.
    pub(super) fn down_words(&self, tool: &str) -> String {
        let mut words = format!("{tool} is temporarily unavailable ({}", self.code);
        if let Some(since) = self.since {
            let _ = write!(words, " since {} UTC", since.hour_minute());
        }
        words.push_str(") and was not called. ");
        match self.expected_recovery_at {
            Some(at) => {
                let _ = write!(
                    words,
                    "Expected back at {} UTC. Do not call it again before then; plan without it.",
                    at.hour_minute()
                );
            }
            None => {
                let _ = write!(
                    words,
                    "When it will be back is not known. Do not call it again in the next {} s; plan without it.",
                    self.retry_after_seconds.unwrap_or(RETRY_SOON)
                );
            }
        }
        words
    }

    /// What a model reads when a tool is not set up and was not called.
    pub(super) fn unready_words(tool: &str, unready: &Unready) -> String {
        format!(
            "{tool} is not set up here ({}) and was not called. Setup step: {} Calling it again does not help before that is \
             done; plan without it.",
            unready.reason.as_str(),
            setup_step(unready)
        )
    }

    /// What a model reads when the operator's lists exclude a tool.
    pub(super) fn disallowed_words(tool: &str) -> String {
        format!("{tool} is not allowed here (DISALLOWED) and was not called. Do not call it again; plan without it.")
    }

    /// What a model reads when this very call got no valid answer.
    pub(super) fn unreachable_words(&self, tool: &str, fault: TransportFault, effect: Effect) -> String {
        let what = self.signature.as_deref().unwrap_or("no answer");
        let called = effect.words();
        let happened = match (self.code, fault) {
            (DispatchCode::BackendUnreachable, fault) => no_answer(fault),
            _ => "gave no valid answer",
        };
        format!("{tool} {happened} ({}: {what}). {called} Do not retry at once; plan without it.", self.code)
    }
}

/// What became of a request that got no answer because of this fault.
pub(super) fn no_answer(fault: TransportFault) -> &'static str {
    match fault {
        TransportFault::Timeout => "did not answer in time",
        TransportFault::BodyTruncated | TransportFault::StreamEnded => "broke off its answer",
        TransportFault::Protocol => "gave no valid answer",
        _ => "could not be reached",
    }
}

/// What somebody has to do, as a sentence. Without the operator's words it names credentials, but not where files lie: that
/// is the operator's business.
pub(super) fn setup_step(unready: &Unready) -> String {
    if let Some(hint) = unready.setup_hint.as_deref() {
        let hint = hint.trim();
        return if hint.ends_with(['.', '!', '?']) { hint.to_owned() } else { format!("{hint}.") };
    }
    let name = |place: &Arc<str>| place.rsplit(['/', ':', '#']).next().unwrap_or_default().to_owned();
    match (unready.missing.as_slice(), &unready.integration) {
        ([], Some(integration)) => format!("check the credentials of the integration {integration}."),
        ([], None) => "ask whoever runs this installation.".to_owned(),
        (missing, _) => format!("provide {}.", missing.iter().map(name).collect::<Vec<_>>().join(", ")),
    }
}

/// Ends a text with the operator's advice and the hint for the user concerned, each as a sentence of its own.
pub(super) fn with_advice(mut words: String, advice: Option<&str>, user_action: Option<&str>) -> String {
    for extra in [advice, user_action].into_iter().flatten() {
        words.push(' ');
        words.push_str(extra.trim());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn down(expected: Option<&str>) -> Facts {
        Facts {
            code: DispatchCode::BackendUnreachable,
            status: Status::Down,
            classification: Some(Classification::TechnicallyBroken),
            signature: Some("connect-refused".into()),
            scope: Some(Scope::Project),
            since: Some("2026-03-02T14:02:31Z".parse().unwrap()),
            expected_recovery_at: expected.map(|at| at.parse().unwrap()),
            retry_after_seconds: Some(30),
            note: None,
            status_reason: None,
            integration: None,
        }
    }

    #[test]
    fn a_model_is_told_what_happened_whether_it_ran_and_what_to_do() {
        assert_eq!(
            down(Some("2026-03-02T14:30:00Z")).down_words("jira_search"),
            "jira_search is temporarily unavailable (BACKEND_UNREACHABLE since 14:02 UTC) and was not called. Expected back at \
             14:30 UTC. Do not call it again before then; plan without it."
        );
        assert_eq!(
            down(None).down_words("jira_search"),
            "jira_search is temporarily unavailable (BACKEND_UNREACHABLE since 14:02 UTC) and was not called. When it will be \
             back is not known. Do not call it again in the next 30 s; plan without it."
        );
        assert_eq!(
            down(None).unreachable_words("jira_search", TransportFault::ConnectRefused, Effect::Unknown),
            "jira_search could not be reached (BACKEND_UNREACHABLE: connect-refused). It may or may not have run: its effect is \
             unknown. Check before you call it again. Do not retry at once; plan without it."
        );
    }

    #[test]
    fn who_calls_what_is_not_set_up_is_told_the_setup_step_and_no_path() {
        let mut unready = Unready {
            reason: StatusReason::CredentialsMissing,
            integration: Some("gmail".into()),
            setup_hint: None,
            missing: vec!["env:GMAIL_TOKEN".into(), "file:/run/secrets/gmail".into(), "env_file:/etc/x.env#KEY".into()],
            since: None,
            next_check: Wall(0),
        };
        assert_eq!(
            Facts::unready_words("gmail_search", &unready),
            "gmail_search is not set up here (credentials_missing) and was not called. Setup step: provide GMAIL_TOKEN, gmail, \
             KEY. Calling it again does not help before that is done; plan without it."
        );
        unready.missing.clear();
        assert_eq!(setup_step(&unready), "check the credentials of the integration gmail.");
        unready.setup_hint = Some("Sign in at https://it.example/gmail".into());
        assert_eq!(setup_step(&unready), "Sign in at https://it.example/gmail.");
    }

    #[test]
    fn the_operators_advice_and_the_users_hint_end_the_text() {
        let words = with_advice("It is down.".into(), Some("Use wiki_search."), Some("Sign in again."));
        assert_eq!(words, "It is down. Use wiki_search. Sign in again.");
    }

    #[test]
    fn facts_carry_every_member_also_where_nothing_is_known() {
        let value: serde_json::Value = serde_json::from_str(&down(None).json()).unwrap();
        assert_eq!(value["expectedRecoveryAt"], serde_json::Value::Null);
        assert_eq!(value["retryAfterSeconds"], 30);
        let excluded: serde_json::Value = serde_json::from_str(&Facts::of_disallowed().json()).unwrap();
        assert!(excluded["retryAfterSeconds"].is_null(), "it is no matter of time");
        assert_eq!(value["status"], "DOWN");
        assert_eq!(Facts::seconds(Duration::from_millis(1_001)), 2);
        assert_eq!(Facts::seconds(Duration::ZERO), 1);
    }
}
