//! One admitted call, from the gate to its judgement: recorded exactly once, or abandoned when dropped (DESIGN 4).

use std::sync::Arc;

use super::effects;
use super::facts::{self, Effect, Facts};
use super::net::CallPermit;
use super::reading::Reading;
use super::shared::{Backend, Shared};
use crate::clock::Now;
use crate::config::ToolSettings;
use crate::health::{Call, Caller, Permit, ToolRef};
use crate::rules::{self, Exchange, Finding, Kind, Verdict};
use crate::telemetry::{InFlight, Outcome, ToolMetrics, events};

/// A call on its way.
#[derive(Debug)]
pub(super) struct Ticket {
    shared: Arc<Shared>,
    backend: Arc<Backend>,
    settings: Arc<ToolSettings>,
    metrics: Arc<ToolMetrics>,
    /// `None` once it is judged.
    call: Option<Call>,
    targets: Vec<String>,
    _in_flight: InFlight,
    _place: CallPermit,
}

/// What is needed to open a ticket.
#[derive(Debug)]
pub(super) struct Opening {
    pub(super) shared: Arc<Shared>,
    pub(super) backend: Arc<Backend>,
    pub(super) caller: Arc<Caller>,
    pub(super) at: ToolRef,
    pub(super) settings: Arc<ToolSettings>,
    pub(super) metrics: Arc<ToolMetrics>,
    pub(super) started: Now,
    pub(super) permit: Option<Permit>,
    /// Hosts that the arguments name.
    pub(super) targets: Vec<String>,
    pub(super) place: CallPermit,
}

/// A call that has been judged, for the words to its caller.
#[derive(Debug)]
pub(super) struct Judged {
    pub(super) facts: Facts,
    pub(super) verdict: Verdict,
    tool: Arc<str>,
    advice: Option<Arc<str>>,
    user_action: Option<Arc<str>>,
}

impl Ticket {
    pub(super) fn open(opening: Opening) -> Ticket {
        let call = Call {
            caller: opening.caller,
            at: opening.at,
            policy: Arc::clone(&opening.settings.policy),
            started: opening.started,
            permit: opening.permit,
            target: opening.targets.first().map(|host| Arc::from(host.as_str())),
            duration: None,
        };
        Ticket {
            _in_flight: opening.backend.metrics.in_flight(),
            shared: opening.shared,
            backend: opening.backend,
            settings: opening.settings,
            metrics: opening.metrics,
            call: Some(call),
            targets: opening.targets,
            _place: opening.place,
        }
    }

    /// When the request began.
    pub(super) fn started(&self) -> Now {
        self.call.as_ref().map(|call| call.started).unwrap_or_default()
    }

    /// Judges what was read and records it.
    pub(super) fn judge(mut self, reading: Reading) -> Judged {
        let now = self.shared.clock.now();
        let Some(call) = self.call.take() else { return Judged::nothing(&self.settings) };
        let (caller, at) = (Arc::clone(&call.caller), call.at.clone());
        let exchange = self.exchange(reading, &caller, &at, now);
        let verdict = self.shared.rules.load().table(&caller).judge(&exchange);
        self.record(call, &verdict, now);
        let view = self.shared.registry.lookup(&caller, &at, now);
        let facts = Facts::of_verdict(&verdict, &view, now);
        let user_action = view.entry.as_ref().and_then(|entry| entry.user_action_hint.clone());
        Judged { facts, verdict, tool: at.tool, advice: self.settings.policy.advice.clone(), user_action }
    }

    /// The call came to something that says nothing about the tool.
    pub(super) fn neutral(mut self) {
        if let Some(call) = self.call.take() {
            let now = self.shared.clock.now();
            self.record(call, &Verdict::NEUTRAL, now);
        }
    }

    fn record(&self, call: Call, verdict: &Verdict, now: Now) {
        self.count(Outcome::from(verdict.kind), call.started, verdict.finding.as_ref());
        let effects = self.shared.registry.record(call, verdict, now, &mut || (self.shared.random)());
        effects::act(&self.shared, effects);
    }

    fn count(&self, outcome: Outcome, started: Now, finding: Option<&Finding>) {
        let now = self.shared.clock.now();
        self.shared.telemetry.emit(events::CallJudged {
            tool: &self.metrics,
            outcome,
            finding,
            duration: now.tick.since(started.tick),
        });
    }

    fn exchange(&self, reading: Reading, caller: &Caller, at: &ToolRef, now: Now) -> Exchange {
        // Only a failure asks whether the tool is listed.
        let failed = !matches!(reading.answer, rules::Answer::Result { is_error: false, .. });
        Exchange {
            backend: Arc::clone(&at.backend),
            tool: Arc::clone(&at.tool),
            kind: self.backend.kind(),
            now,
            fault: reading.fault,
            cancelled: false,
            status: reading.status,
            headers: reading.headers,
            answer: reading.answer,
            text: reading.text,
            json: reading.json,
            credentialed: caller.credential.is_some(),
            targets: self.targets.clone(),
            backend_host: Some(Arc::clone(&self.backend.host)),
            listed: failed && self.shared.lists.lists(&at.backend, caller, &at.tool),
            session_tool: self.settings.policy.session_tool,
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if let Some(call) = &self.call {
            self.count(Outcome::Abandoned, call.started, None);
        }
    }
}

impl Judged {
    fn nothing(settings: &ToolSettings) -> Judged {
        let facts = Facts::of_verdict(&Verdict::NEUTRAL, &crate::health::View::OK, Now::default());
        let advice = settings.policy.advice.clone();
        Judged { facts, verdict: Verdict::NEUTRAL, tool: Arc::from(""), advice, user_action: None }
    }

    /// What the model reads if the backend gave no valid answer.
    pub(super) fn unreachable_words(&self, effect: Effect) -> String {
        let words = self.facts.unreachable_words(&self.tool, effect);
        facts::with_advice(words, self.advice.as_deref(), self.user_action.as_deref())
    }

    /// Whether the rule wants the backend's 5xx or 429 in the result shape.
    pub(super) fn wants_result(&self) -> bool {
        self.verdict.kind != Kind::Success && self.verdict.finding.as_ref().is_some_and(|finding| finding.answer_as_result)
    }
}
