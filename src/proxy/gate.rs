//! The gate in front of a tool (DESIGN 7 to 9): whether a call may pass, and the ticket of one that may.

use std::sync::Arc;

use bytes::Bytes;

use super::facts::{self, Facts};
use super::net::CallPermit;
use super::ticket::{Opening, Ticket};
use super::visit::Visit;
use crate::config::{BackendKind, ToolSettings};
use crate::health::document::WHOLE_BACKEND;
use crate::health::{Admission, Permit, StatusReason, ToolRef, Unready, View};
use crate::telemetry::events::{LimitRejected, ShortCircuited, WouldShortCircuit};
use crate::telemetry::trace::{CallSpan, Ended, Origin};
use crate::telemetry::{Reason, ToolMetrics};

/// A tool that somebody wants to call.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) at: ToolRef,
    pub(super) settings: Arc<ToolSettings>,
    metrics: Arc<ToolMetrics>,
    /// What its span will say of the request, where there will be one.
    pub(super) origin: Option<Arc<Origin>>,
}

/// Why a call may not pass.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The tool is DOWN for this caller.
    Down(View),
    /// Too many calls are in flight.
    Limit(usize),
    /// What backs the tool is not set up.
    Unready(Unready),
    /// The operator's lists exclude the tool.
    Disallowed,
}

impl Wanted {
    pub(super) fn new(visit: &Visit, tool: &str) -> Wanted {
        let backend = &visit.backend.name;
        let telemetry = &visit.shared.telemetry;
        let metrics = telemetry.labelled(backend, tool).unwrap_or_else(|| {
            let named = visit.backend.config.kind == BackendKind::Http;
            if named || visit.shared.lists.lists(backend, &visit.caller, tool) {
                telemetry.tool(backend, tool)
            } else {
                visit.backend.metrics.other()
            }
        });
        Wanted {
            at: visit.backend.tool(tool),
            settings: visit.shared.config.tools.settings(backend, tool),
            metrics,
            origin: None,
        }
    }

    /// A place for the call and, if the tool is RETESTING, the right to be its trial.
    pub(super) fn admit(&self, visit: &Visit) -> Result<(CallPermit, Option<Permit>), Refusal> {
        let place = self.place(visit)?;
        let admission = visit.shared.registry.admit(&visit.caller, &self.at, &self.settings.policy, visit.started);
        match admission {
            Admission::Pass => Ok((place, None)),
            Admission::Observed(view) => {
                visit.shared.telemetry.emit(WouldShortCircuit {
                    tool: &self.metrics,
                    name: &self.at.tool,
                    reason: reason_of(&view),
                    signature: view.entry.as_deref().and_then(|entry| entry.signature.as_deref()),
                });
                Ok((place, None))
            }
            Admission::Trial(permit) => Ok((place, Some(permit))),
            Admission::Reject(view) => {
                visit.shared.telemetry.emit(ShortCircuited {
                    tool: &self.metrics,
                    name: &self.at.tool,
                    reason: reason_of(&view),
                    signature: view.entry.as_deref().and_then(|entry| entry.signature.as_deref()),
                });
                Err(Refusal::Down(view))
            }
        }
    }

    /// A place for a call that is never refused for its tool's sake: a continuation, or a member of a batch.
    pub(super) fn place(&self, visit: &Visit) -> Result<CallPermit, Refusal> {
        let limit = visit.shared.calls.limit();
        visit.shared.calls.enter().ok_or_else(|| {
            let value = u64::try_from(limit).unwrap_or(u64::MAX);
            visit.shared.telemetry.emit(LimitRejected { limit: "limits.calls", value });
            Refusal::Limit(limit)
        })
    }

    /// The ticket of a call that may pass; `arguments` is its raw JSON.
    pub(super) fn ticket(
        &self,
        visit: &Visit,
        (place, permit): (CallPermit, Option<Permit>),
        arguments: Bytes,
    ) -> Ticket {
        Ticket::open(Opening {
            shared: Arc::clone(&visit.shared),
            backend: Arc::clone(&visit.backend),
            caller: Arc::clone(&visit.caller),
            at: self.at.clone(),
            settings: Arc::clone(&self.settings),
            metrics: Arc::clone(&self.metrics),
            started: visit.started,
            permit,
            arguments,
            place,
            origin: self.origin.clone(),
        })
    }

    /// The call was answered without the upstream.
    pub(super) fn ended_here(&self, visit: &Visit, reason: facts::Reason) {
        if let Some(origin) = &self.origin {
            let duration = visit.shared.clock.now().tick.since(visit.started.tick);
            visit.shared.telemetry.span(&CallSpan {
                backend: &visit.backend.name,
                tool: &self.at.tool,
                server: visit.backend.config.address(),
                origin,
                started: visit.started,
                duration,
                ended: Ended::ShortCircuited(reason.as_str()),
            });
        }
    }

    /// Counts the refusal of a call that nothing but the operator can change.
    pub(super) fn refuse(&self, visit: &Visit, refusal: Refusal) -> Refusal {
        let reason = match &refusal {
            Refusal::Unready(unready) => match unready.reason {
                StatusReason::CredentialsMissing => Reason::CredentialsMissing,
                StatusReason::IntegrationUnconfigured => Reason::IntegrationUnconfigured,
            },
            _ => Reason::Disallowed,
        };
        let (tool, name) = (&*self.metrics, &*self.at.tool);
        visit.shared.telemetry.emit(ShortCircuited { tool, name, reason, signature: None });
        refusal
    }
}

/// Why a call that finds this is not carried out.
fn reason_of(view: &View) -> Reason {
    match view.entry.as_deref() {
        _ if view.retesting => Reason::Retesting,
        Some(entry) if entry.key.tool_name == WHOLE_BACKEND => Reason::BackendDown,
        _ => Reason::Down,
    }
}

impl Refusal {
    /// The reason in the mark of the answer.
    pub(super) fn reason(&self) -> facts::Reason {
        match self {
            Refusal::Down(_) => facts::Reason::Down,
            Refusal::Limit(_) => facts::Reason::Limit,
            Refusal::Unready(unready) => facts::Reason::Unready(unready.reason),
            Refusal::Disallowed => facts::Reason::Disallowed,
        }
    }

    /// The facts and the words of the answer.
    pub(super) fn explain(&self, visit: &Visit, wanted: &Wanted) -> (Facts, String) {
        match self {
            Refusal::Down(view) => {
                let facts = Facts::of_view(view, visit.started);
                let words = facts.down_words(&wanted.at.tool);
                let hint = view.entry.as_deref().and_then(|entry| entry.user_action_hint.as_deref());
                let advice = wanted.settings.policy.advice.as_deref();
                (facts, facts::with_advice(words, advice, hint))
            }
            Refusal::Unready(unready) => {
                let words = Facts::unready_words(&wanted.at.tool, unready);
                let advice = wanted.settings.policy.advice.as_deref();
                (Facts::of_unready(unready, visit.started), facts::with_advice(words, advice, None))
            }
            Refusal::Disallowed => {
                let words = Facts::disallowed_words(&wanted.at.tool);
                let advice = wanted.settings.policy.advice.as_deref();
                (Facts::of_disallowed(), facts::with_advice(words, advice, None))
            }
            Refusal::Limit(limit) => {
                let words = format!(
                    "{} was not called: {limit} calls are in flight already, the most that toolvane's `limits.calls` allows. \
                     Try again in a few seconds.",
                    wanted.at.tool
                );
                (Facts::of_ours(), words)
            }
        }
    }
}
