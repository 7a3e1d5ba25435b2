//! One admitted call, from the gate to its judgement: recorded exactly once, or abandoned when dropped (DESIGN 4).

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;

use super::effects;
use super::facts::{self, Effect, Facts};
use super::gate::{JudgedBefore, Wanted};
use super::net::{CallPermit, Cause, Fault, Whole};
use super::observe::{Head, Place};
use super::reading::Reading;
use crate::clock::Now;
use crate::config::ToolSettings;
use crate::health::{self, Call, Caller, Permit, ToolRef, View};
use crate::rules::{self, Classification, target};
use crate::rules::{DispatchCode, Exchange, Finding, Kind, Scope, Table, TransportFault, Verdict};
use crate::store;
use crate::telemetry::Outcome;
use crate::telemetry::events::CallEnded;
use crate::telemetry::trace::{CallSpan, Ended, Origin};

/// A call on its way.
#[derive(Debug)]
pub(super) struct Ticket {
    place: Arc<Place>,
    wanted: Arc<Wanted>,
    /// `None` once it is judged.
    call: Option<Call>,
    /// Raw JSON; looked into only when a call fails.
    arguments: Bytes,
    origin: Option<Arc<Origin>>,
    _room: CallPermit,
}

/// What is needed to open a ticket.
#[derive(Debug)]
pub(super) struct Opening {
    pub(super) place: Arc<Place>,
    pub(super) wanted: Arc<Wanted>,
    pub(super) caller: Arc<Caller>,
    pub(super) started: Now,
    pub(super) permit: Option<Permit>,
    /// Raw JSON; empty if there are none.
    pub(super) arguments: Bytes,
    pub(super) origin: Option<Arc<Origin>>,
    pub(super) room: CallPermit,
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
            at: opening.wanted.at.clone(),
            policy: Arc::clone(&opening.wanted.policy),
            started: opening.started,
            permit: opening.permit,
            target: None,
            duration: None,
        };
        opening.place.backend.metrics.call_begins();
        Ticket {
            place: opening.place,
            wanted: opening.wanted,
            call: Some(call),
            arguments: opening.arguments,
            origin: opening.origin,
            _room: opening.room,
        }
    }

    /// Whether the session itself provides the tool.
    pub(super) fn is_session_tool(&self) -> bool {
        self.wanted.policy.session_tool
    }

    /// When the request began.
    pub(super) fn started(&self) -> Now {
        self.call.as_ref().map(|call| call.started).unwrap_or_default()
    }

    /// Judges what was read and records it.
    pub(super) fn judge(mut self, reading: Reading) -> Judged {
        let place = Arc::clone(&self.place);
        let shared = &place.shared;
        let now = shared.clock.now();
        let Some(mut call) = self.call.take() else { return Judged::nothing(&self.wanted.settings) };
        let (caller, at) = (Arc::clone(&call.caller), call.at.clone());
        let rules = shared.rules.load();
        let table = rules.table(&caller);
        let whole = reading.whole();
        let mut exchange = self.exchange(reading, &caller, &at, (now, table));
        call.target = exchange.targets.first().map(|host| Arc::from(host.as_str()));
        let mut verdict = self.wanted.judge(table, &exchange, whole);
        // Whether a list names the tool is looked up for the one failure that it changes.
        if is_unknown_tool(&verdict) && shared.lists.lists(&at.backend, &caller, &at.tool) {
            exchange.listed = true;
            verdict = table.judge(&exchange);
        }
        let took = now.tick.since(call.started.tick);
        self.record(call, &verdict, Some(&exchange), now);
        if let Some(file) = shared.outcomes.get() {
            file.record(store::Judged { exchange, verdict: verdict.clone(), caller: Arc::clone(&caller), took, now });
        }
        if verdict.kind == Kind::Success {
            // Nobody has to be told anything.
            return Judged { verdict, ..Judged::nothing(&self.wanted.settings) };
        }
        let view = shared.registry.lookup(&caller, &at, now);
        let facts = Facts::of_verdict(&verdict, &view, now);
        let user_action = view.entry.as_ref().and_then(|entry| entry.user_action_hint.clone());
        Judged { facts, verdict, tool: at.tool, advice: self.wanted.policy.advice.clone(), user_action }
    }

    /// Whether it takes no more than its structure for an answer to count as a success: no rule asks about successes, and
    /// nobody wants to see the whole exchange.
    pub(super) fn takes_structure(&self) -> bool {
        let shared = &self.place.shared;
        let asks = || {
            let rules = shared.rules.load();
            self.call.as_ref().is_none_or(|call| rules.table(&call.caller).asks_about_success())
        };
        shared.outcomes.get().is_none() && !asks()
    }

    /// What was judged of this very answer when another call got it, if that holds for this one.
    pub(super) fn judged_before(&self, whole: &Whole, id: &str) -> Option<(Arc<JudgedBefore>, Now)> {
        let shared = &self.place.shared;
        let call = self.call.as_ref()?;
        let judged = self.wanted.judged_before((whole, id), call.caller.credential.is_some())?;
        let now = shared.clock.now();
        // Dates in it may mean something else in another second.
        let holds = judged.exchange.now.wall.unix_seconds() == now.wall.unix_seconds()
            && Arc::ptr_eq(&judged.table, shared.rules.load().table(&call.caller))
            && !target::may_name_one(&self.arguments, &self.wanted.settings.target)
            && shared.outcomes.get().is_none();
        holds.then_some((judged, now))
    }

    /// Records what was judged before.
    pub(super) fn failed_again(mut self, judged: &JudgedBefore, now: Now) {
        let Some(call) = self.call.take() else { return };
        let JudgedBefore { exchange, verdict, .. } = judged;
        self.count(&call, (Outcome::from(verdict.kind), verdict.finding.as_ref()), Some(exchange), now);
        let effects = self.registered(call, verdict, now);
        // What it says has been added to a diagnosis under way.
        if effects.iter().any(|effect| matches!(effect, health::Effect::Claimed(_))) {
            self.ask_for_diagnosis(&effects, exchange, verdict, now);
        }
        effects::act(self.place.shared.shared(), effects);
    }

    /// The call succeeded, and nobody has to be told anything.
    pub(super) fn succeeded(mut self) {
        if let Some(call) = self.call.take() {
            let now = self.place.shared.clock.now();
            self.record_success(call, now);
        }
    }

    fn record_success(&self, call: Call, now: Now) {
        let (shared, wanted) = (&self.place.shared, &self.wanted);
        let registry = &shared.registry;
        let known = wanted.footing(&call.caller);
        self.count(&call, (Outcome::Success, None), None, now);
        let recorded = match known {
            Some(footing) => registry.record_success(&footing, call, now),
            None => Err(call),
        };
        let effects = recorded.unwrap_or_else(|call| {
            let caller = Arc::clone(&call.caller);
            let effects = registry.record(call, &Verdict::SUCCESS, now, &mut || (shared.random)());
            wanted.stands(&caller, registry.footing(&caller, &wanted.at));
            effects
        });
        effects::act(shared.shared(), effects);
    }

    /// The call came to something that says nothing about the tool.
    pub(super) fn neutral(mut self) {
        if let Some(call) = self.call.take() {
            let now = self.place.shared.clock.now();
            self.record(call, &Verdict::NEUTRAL, None, now);
        }
    }

    /// This proxy itself gave the call up. That an answer was beyond our limits still shows that there was one.
    pub(super) fn given_up(self, cause: Cause) {
        match cause {
            Cause::Limit => self.neutral(),
            Cause::Drain => drop(self),
        }
    }

    /// The fault as it is once it is known whose it was.
    pub(super) fn blame(&self, fault: Fault) -> Fault {
        self.place.shared.blame(fault)
    }

    /// The tool that is called.
    pub(super) fn tool(&self) -> Arc<str> {
        self.call.as_ref().map(|call| Arc::clone(&call.at.tool)).unwrap_or_default()
    }

    fn record(&self, call: Call, verdict: &Verdict, exchange: Option<&Exchange>, now: Now) {
        let shared = &self.place.shared;
        self.count(&call, (Outcome::from(verdict.kind), verdict.finding.as_ref()), exchange, now);
        let effects = self.registered(call, verdict, now);
        if let Some(exchange) = exchange {
            self.ask_for_diagnosis(&effects, exchange, verdict, now);
        }
        effects::act(shared.shared(), effects);
    }

    fn registered(&self, call: Call, verdict: &Verdict, now: Now) -> Vec<health::Effect> {
        let shared = &self.place.shared;
        shared.registry.record(call, verdict, now, &mut || (shared.random)())
    }

    /// Asks for the diagnosis that this failure has claimed, or adds what it says to one that is under way.
    fn ask_for_diagnosis(&self, effects: &[health::Effect], exchange: &Exchange, verdict: &Verdict, now: Now) {
        let unclear = |finding: &&Finding| finding.classification == Classification::Unclear;
        let (Some(finding), Some(diagnoser)) =
            (verdict.finding.as_ref().filter(unclear), self.place.shared.diagnoser.get())
        else {
            return;
        };
        let claim = effects.iter().find_map(|effect| match effect {
            health::Effect::Claimed(claim) => Some(claim),
            _ => None,
        });
        let said = said(exchange);
        match claim {
            Some(claim) => diagnoser.claimed(claim, &said, now),
            None => {
                let at = ToolRef { backend: Arc::clone(&exchange.backend), tool: Arc::clone(&exchange.tool) };
                diagnoser.again(&at, &finding.signature, &said, now);
            }
        }
    }

    fn count(
        &self,
        call: &Call,
        (outcome, finding): (Outcome, Option<&Finding>),
        exchange: Option<&Exchange>,
        now: Now,
    ) {
        let (telemetry, metrics) = (&self.place.shared.telemetry, &self.wanted.metrics);
        let duration = now.tick.since(call.started.tick);
        // A success proves that a tool exists which no list named: from then on it may have a name in the metrics.
        let unnamed = outcome == Outcome::Success && **metrics.tool_label() != *call.at.tool;
        let proven = unnamed.then(|| telemetry.proven_tool(&call.at.backend, &call.at.tool));
        telemetry.emit(CallEnded {
            tool: proven.as_ref().unwrap_or(metrics),
            name: &call.at.tool,
            outcome,
            finding,
            duration,
            upstream: Some(duration),
            trace: self.origin.as_ref().and_then(|origin| origin.parent.as_ref()).map(|parent| (parent, now.wall)),
        });
        if let Some(origin) = &self.origin {
            let error = exchange.and_then(error_type);
            telemetry.span(&CallSpan {
                backend: &call.at.backend,
                tool: &call.at.tool,
                server: self.place.backend.config.address(),
                origin,
                started: call.started,
                duration,
                ended: Ended::Judged { outcome, finding, error: error.as_deref() },
            });
        }
    }

    fn targets(&self) -> Vec<String> {
        target::hosts_in(&self.arguments, &self.wanted.settings.target)
    }

    /// Whether a rule may have to look at the body that comes under this head.
    pub(super) fn reads_body(&self, head: &Head) -> bool {
        if !(head.status.is_success() || head.status.is_redirection()) {
            return true;
        }
        let Some(call) = &self.call else { return false };
        let rules = self.place.shared.rules.load();
        let table: &Table = rules.table(&call.caller);
        let exchange =
            self.exchange(Reading::of_http(head, String::new(), None), &call.caller, &call.at, (call.started, table));
        table.reads_success_body(&exchange)
    }

    fn exchange(&self, reading: Reading, caller: &Caller, at: &ToolRef, (now, table): (Now, &Table)) -> Exchange {
        let mut exchange = Exchange {
            backend: Arc::clone(&at.backend),
            tool: Arc::clone(&at.tool),
            kind: self.place.backend.kind(),
            now,
            credentialed: caller.credential.is_some(),
            backend_host: Some(Arc::clone(&self.place.backend.host)),
            session_tool: self.wanted.policy.session_tool,
            ..Exchange::default()
        };
        reading.fill(&mut exchange, |exchange| table.reads_success_body(exchange));
        if !exchange.succeeded() {
            exchange.targets = self.targets();
            // What is recorded must say it of every failure.
            let recorded = self.place.shared.outcomes.get().is_some();
            exchange.listed = recorded && self.place.shared.lists.lists(&at.backend, caller, &at.tool);
        }
        exchange
    }
}

fn is_unknown_tool(verdict: &Verdict) -> bool {
    verdict.finding.as_ref().is_some_and(|finding| finding.dispatch_code == DispatchCode::NotRegistered)
}

/// What kind of failure an answer is, in the words of OpenTelemetry's conventions for MCP; `None` for a success.
fn error_type(exchange: &Exchange) -> Option<Cow<'static, str>> {
    match (&exchange.fault, &exchange.answer, exchange.status) {
        _ if exchange.succeeded() => None,
        (Some(fault), ..) => Some(fault.kind.as_str().into()),
        (None, rules::Answer::Error { code, .. }, _) => Some(code.to_string().into()),
        (None, rules::Answer::Result { is_error: true, .. }, _) => Some("tool_error".into()),
        (None, _, Some(status)) => Some(status.to_string().into()),
        _ => None,
    }
}

/// What a failure said, in one text; empty for a success.
pub(super) fn said(exchange: &Exchange) -> String {
    if exchange.succeeded() {
        return String::new();
    }
    let mut said = match (&exchange.fault, &exchange.answer, exchange.status) {
        (Some(fault), ..) => format!("{}: {}", fault.kind, fault.detail),
        (None, rules::Answer::Error { code, message, .. }, _) => format!("JSON-RPC error {code}: {message}"),
        (None, _, Some(status)) if status != 200 => format!("HTTP {status}"),
        _ => String::new(),
    };
    if !exchange.text.is_empty() && !said.ends_with(&exchange.text) {
        said = format!("{said} {}", exchange.text);
    }
    said.trim().to_owned()
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.place.backend.metrics.call_ends();
        if let Some(call) = &self.call {
            let shared = &self.place.shared;
            self.count(call, (Outcome::Abandoned, None), None, shared.clock.now());
            shared.abandoned();
        }
    }
}

impl Judged {
    fn nothing(settings: &ToolSettings) -> Judged {
        let facts = Facts::of_verdict(&Verdict::NEUTRAL, &View::OK, Now::default());
        let advice = settings.policy.advice.clone();
        Judged { facts, verdict: Verdict::NEUTRAL, tool: Arc::from(""), advice, user_action: None }
    }

    /// What the model reads if the backend gave no valid answer.
    pub(super) fn unreachable_words(&self, fault: TransportFault, effect: Effect) -> String {
        let words = self.facts.unreachable_words(&self.tool, fault, effect);
        facts::with_advice(words, self.advice.as_deref(), self.user_action.as_deref())
    }

    /// What the model reads in place of the backend's own refusal.
    pub(super) fn failed_words(&self) -> String {
        let words =
            if self.provider_left() { self.facts.down_words(&self.tool) } else { self.facts.failed_words(&self.tool) };
        facts::with_advice(words, self.advice.as_deref(), self.user_action.as_deref())
    }

    /// Whether the backend called a tool unknown that this session's own provider has taken along: the caller must not read
    /// that it never was (DESIGN 1 and 4).
    pub(super) fn provider_left(&self) -> bool {
        let left = |finding: &Finding| {
            finding.scope == Some(Scope::Session) && finding.dispatch_code == DispatchCode::BackendUnreachable
        };
        self.verdict.finding.as_ref().is_some_and(left)
    }

    /// Whether the rule wants the backend's 5xx or 429 in the result shape.
    pub(super) fn wants_result(&self) -> bool {
        self.verdict.kind != Kind::Success
            && self.verdict.finding.as_ref().is_some_and(|finding| finding.answer_as_result)
    }
}
