//! The gate in front of a tool (DESIGN 7 to 9): whether a call may pass, and the ticket of one that may.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use super::facts::{self, Facts};
use super::net::{CallPermit, Whole};
use super::ticket::{Opening, Ticket};
use super::visit::Visit;
use crate::clock::Now;
use crate::config::{BackendKind, ToolSettings};
use crate::health::document::WHOLE_BACKEND;
use crate::health::{Admission, Caller, Footing, Permit, Policy, Shown, StatusReason, ToolRef, Unready, View};
use crate::mcp::answer::Apart;
use crate::mcp::reply;
use crate::rules::{DispatchCode, Exchange, Finding, Kind, Scope, Table, Verdict};
use crate::telemetry::events::{LimitRejected, ShortCircuited, WouldShortCircuit};
use crate::telemetry::trace::{CallSpan, Ended};
use crate::telemetry::{Reason, ToolMetrics};

/// A tool that somebody wants to call, and all that is found out about it before it is asked who wants to.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) at: ToolRef,
    pub(super) settings: Arc<ToolSettings>,
    pub(super) metrics: Arc<ToolMetrics>,
    /// The same as in the settings, shared with nobody else.
    pub(super) policy: Arc<Policy>,
    /// Nothing but its health can stand against it, whoever calls.
    pub(super) is_open: bool,
    /// How often something had changed when this was found out.
    changes: u64,
    /// What is said to callers for whom it is DOWN.
    said: Mutex<Vec<Said>>,
    /// How it stands to callers while nothing is held against it, by the address of the caller.
    footings: Mutex<Footings>,
    /// The first failure of the last second that had one.
    failed: Mutex<Option<Failed>>,
}

/// A failure and what was judged of it. A tool that fails call after call mostly says the same each time.
#[derive(Debug)]
struct Failed {
    judged: Arc<JudgedBefore>,
    /// How it came, where what comes alike is judged alike.
    came: Option<Came>,
}

/// A failure, and what was judged of it by which table.
#[derive(Debug)]
pub(super) struct JudgedBefore {
    pub(super) table: Arc<Table>,
    pub(super) exchange: Exchange,
    pub(super) verdict: Verdict,
}

/// An answer as it came, but for its id.
#[derive(Debug)]
struct Came {
    whole: Whole,
    apart: Apart,
}

/// The largest failure that is kept, in bytes.
const FAILED_MAX: usize = 8 * 1024;

/// The `result` of an answer to a call that was refused. Most calls that are refused within a second get the same.
#[derive(Debug)]
struct Said {
    entry: Arc<Shown>,
    /// What else of the view the words depend on.
    moment: (bool, u64),
    result: Arc<str>,
}

/// Entries whose words are remembered for one tool by one worker.
const SAID: usize = 8;

type Footings = HashMap<usize, (Arc<Caller>, Arc<Footing>), foldhash::fast::RandomState>;

/// Callers whose standing is remembered for one tool by one worker.
const FOOTINGS: usize = 256;

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
    /// What is known of the tool; found out at its first call, and again when something has changed.
    pub(super) fn of(visit: &Visit, tool: &str) -> Arc<Wanted> {
        let changes = visit.shared.changes();
        if let Some(known) = visit.backend.known(tool, |known| known.changes == changes) {
            return known;
        }
        let wanted = Arc::new(Wanted::new(visit, tool, changes));
        // What has no name of its own in the metrics may get one by the next call, and may be any name at all.
        if **wanted.metrics.tool_label() == *tool {
            visit.backend.remember(&wanted);
        }
        wanted
    }

    fn new(visit: &Visit, tool: &str, changes: u64) -> Wanted {
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
        let at = ToolRef { backend: Arc::from(&**backend), tool: Arc::from(tool) };
        let settings = visit.shared.config.tools.settings(backend, tool);
        let is_open = visit.looker_at(visit.started).is_open_to_all(&at, &settings);
        Wanted {
            at,
            policy: Arc::new((*settings.policy).clone()),
            settings,
            metrics,
            is_open,
            changes,
            said: Mutex::default(),
            footings: Mutex::default(),
            failed: Mutex::default(),
        }
    }

    /// What the rules say of an outcome; `whole` is the answer that it was read from, if all of it came under a head that
    /// came before.
    pub(super) fn judge(&self, table: &Arc<Table>, exchange: &Exchange, whole: Option<Whole>) -> Verdict {
        if exchange.succeeded() {
            return table.judge(exchange);
        }
        let second = |exchange: &Exchange| exchange.now.wall.unix_seconds();
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        let known = failed.as_ref().map(|failed| &failed.judged).filter(|known| Arc::ptr_eq(&known.table, table));
        if let Some(known) = known.filter(|known| known.exchange.is_judged_as(exchange)) {
            return known.verdict.clone();
        }
        let verdict = table.judge(exchange);
        // Where each call fails with other words, only one a second is kept.
        let is_first = known.is_none_or(|known| second(&known.exchange) != second(exchange));
        if is_first && exchange.size().is_some_and(|size| size <= FAILED_MAX) {
            let came = whole.filter(|_| is_all_that_counts(exchange, &verdict));
            let came = came.and_then(|whole| Some(Came { apart: Apart::of(whole.body())?, whole }));
            let (table, exchange) = (Arc::clone(table), exchange.clone());
            let judged = Arc::new(JudgedBefore { table, exchange, verdict: verdict.clone() });
            *failed = Some(Failed { judged, came });
        }
        verdict
    }

    /// What was judged last of a failure that came under the same head with the same body, but for the id that is asked for;
    /// where nothing but these counted.
    pub(super) fn judged_before(&self, (whole, id): (&Whole, &str), credentialed: bool) -> Option<Arc<JudgedBefore>> {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        let Failed { judged, came } = failed.as_ref()?;
        let Came { whole: known, apart } = came.as_ref()?;
        let is_same = judged.exchange.credentialed == credentialed
            && known.is_headed_as(whole)
            && apart.is(whole.body(), id.as_bytes());
        is_same.then(|| Arc::clone(judged))
    }

    /// How the tool stood to this caller when somebody looked last, if nothing was held against it.
    pub(super) fn footing(&self, caller: &Arc<Caller>) -> Option<Arc<Footing>> {
        let footings = self.footings.lock().unwrap_or_else(PoisonError::into_inner);
        footings.get(&Arc::as_ptr(caller).addr()).map(|(_, footing)| Arc::clone(footing))
    }

    /// Remembers how the tool stands to a caller.
    pub(super) fn stands(&self, caller: &Arc<Caller>, footing: Option<Footing>) {
        let mut footings = self.footings.lock().unwrap_or_else(PoisonError::into_inner);
        match footing {
            None => drop(footings.remove(&Arc::as_ptr(caller).addr())),
            Some(footing) => {
                if footings.len() >= FOOTINGS {
                    footings.clear();
                }
                footings.insert(Arc::as_ptr(caller).addr(), (Arc::clone(caller), Arc::new(footing)));
            }
        }
    }

    /// A place for the call and, if the tool is RETESTING, the right to be its trial.
    pub(super) fn admit(&self, visit: &Visit) -> Result<(CallPermit, Option<Permit>), Refusal> {
        let place = self.place(visit)?;
        if self.footing(&visit.caller).is_some_and(|footing| visit.shared.registry.still(&footing)) {
            return Ok((place, None));
        }
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
        visit.shared.room.enter().ok_or_else(|| {
            let value = u64::try_from(limit).unwrap_or(u64::MAX);
            visit.shared.telemetry.emit(LimitRejected { limit: "limits.calls", value });
            Refusal::Limit(limit)
        })
    }

    /// The ticket of a call that may pass; `arguments` is its raw JSON.
    pub(super) fn ticket(
        self: &Arc<Self>,
        visit: &Visit,
        (room, permit): (CallPermit, Option<Permit>),
        arguments: Bytes,
    ) -> Ticket {
        Ticket::open(Opening {
            place: Arc::clone(&visit.place),
            wanted: Arc::clone(self),
            caller: Arc::clone(&visit.caller),
            started: visit.started,
            permit,
            arguments,
            room,
            origin: visit.origin.clone(),
        })
    }

    /// What a caller for whom the tool is DOWN is answered, as the `result` of a response.
    pub(super) fn refusal(&self, visit: &Visit, view: &View) -> Arc<str> {
        let tell = || {
            let (facts, words) = self.down(view, visit.started);
            Arc::from(reply::refusal(&words, &facts.json()))
        };
        let (Some(entry), None) = (&view.entry, &view.forced) else { return tell() };
        let moment = (view.retesting, Facts::wait(view, visit.started));
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = said.iter_mut().find(|known| Arc::ptr_eq(&known.entry, entry)) {
            if known.moment != moment {
                (known.moment, known.result) = (moment, tell());
            }
            return Arc::clone(&known.result);
        }
        if said.len() >= SAID {
            said.clear();
        }
        let result = tell();
        said.push(Said { entry: Arc::clone(entry), moment, result: Arc::clone(&result) });
        result
    }

    /// The facts and the words for a caller for whom the tool is DOWN.
    fn down(&self, view: &View, now: Now) -> (Facts, String) {
        let facts = Facts::of_view(view, now);
        let words = facts.down_words(&self.at.tool);
        let hint = view.entry.as_deref().and_then(|entry| entry.user_action_hint.as_deref());
        (facts, facts::with_advice(words, self.policy.advice.as_deref(), hint))
    }

    /// The call was answered without the upstream.
    pub(super) fn ended_here(&self, visit: &Visit, reason: facts::Reason) {
        if let Some(origin) = &visit.origin {
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

/// Whether nothing but the answer itself made it to this verdict, and nothing but the verdict follows from it: no target,
/// nothing that lists or logs say, and no answer of ours in place of the backend's.
fn is_all_that_counts(exchange: &Exchange, verdict: &Verdict) -> bool {
    let passes = |finding: &Finding| {
        !finding.answer_as_result
            && finding.scope != Some(Scope::Session)
            && finding.dispatch_code != DispatchCode::NotRegistered
    };
    exchange.fault.is_none()
        && exchange.targets.is_empty()
        && exchange.log.is_empty()
        && !exchange.listed
        && verdict.kind != Kind::Success
        && verdict.finding.as_ref().is_none_or(passes)
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
            Refusal::Down(view) => wanted.down(view, visit.started),
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
