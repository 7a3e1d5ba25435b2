//! `tools/call`: through the gate, to the backend, and back with somebody reading along.

use http::{HeaderMap, Response, StatusCode};

use super::access::{self, Access};
use super::answer;
use super::facts::{Effect, Facts, Reason, given_up_words};
use super::gate::{Refusal, Wanted};
use super::inflight::Waiting;
use super::mcp::Held;
use super::net::{Body, Cause, Collected, Fault, Side, collect};
use super::observe::{Expected, Place};
use super::reading::Reading;
use super::ticket::Judged;
use super::unknown;
use super::visit::{Visit, gateway_error, head_of, reason_of, whole};
use crate::http::{accept, media};
use crate::mcp::request::{Era, Message, Request};
use crate::mcp::{Format, reply};

/// Bytes of an answer that are held where a rule may want it in the result shape.
const HELD_FAILURE: usize = 64 * 1024;

/// JSON-RPC: invalid params.
const INVALID_PARAMS: i64 = -32602;

/// Carries one call.
pub(super) async fn call(visit: Visit, mut held: Held, request: &Request<'_>, tool: &str) -> Response<Body> {
    let mut wanted = Wanted::new(&visit, tool);
    wanted.origin = visit.origin(&held.parts.headers, Some((&held.bytes, request.id)));
    let passes = request.params.is_continuation || headers_disagree(&held.parts.headers, request, tool);
    let looker = visit.looker_at(visit.started);
    let shape = Shape { id: request.id.into(), has_task: request.params.has_task };
    let admitted = match if passes {
        looker.policy_on(&wanted.at, &wanted.settings)
    } else {
        looker.access(&wanted.at, &wanted.settings)
    } {
        Access::NoRole => match wanted.place(&visit) {
            Ok(_place) => return unknown::unknown_tool(&visit, held, request.id, tool).await,
            Err(refusal) => Err(refusal),
        },
        Access::Disallowed => Err(wanted.refuse(&visit, Refusal::Disallowed)),
        Access::Unready(unready) if access::enforces(&wanted.settings) => {
            Err(wanted.refuse(&visit, Refusal::Unready(unready)))
        }
        Access::Open | Access::Unready(_) if passes => wanted.place(&visit).map(|place| (place, None)),
        Access::Open | Access::Unready(_) => wanted.admit(&visit),
    };
    let admitted = match admitted {
        Ok(admitted) => admitted,
        Err(refusal) => return refused(&visit, &wanted, &refusal, &shape),
    };
    let arguments = request.params.arguments.map(|raw| held.bytes.slice_ref(raw)).unwrap_or_default();
    let waiting = Waiting::new(request.id, wanted.ticket(&visit, admitted, arguments));
    let guard = Guard::over(visit.place(), vec![Expected { id: request.id.into(), call: waiting, is_task: false }]);
    let path = held.path();
    accept::ask_readable(&mut held.parts.headers);
    match visit.forward(held.into_request(), Some(wanted.settings.timeout)).await {
        Ok(response) => {
            let call = Answered { visit: &visit, wanted: &wanted, shape: &shape, path: &path };
            answered(call, response, guard).await
        }
        Err(fault) => failed((&visit, &wanted, &shape), guard, &fault),
    }
}

/// Whether the hints of 2026-07-28 name something else than the body: the backend must refuse such a request, so it gets it,
/// whatever is believed about the tool (MCP.md 2). A name in Base64 form is not compared.
fn headers_disagree(headers: &HeaderMap, request: &Request<'_>, tool: &str) -> bool {
    let says = |name: &str, body: &str| {
        let hint = headers.get(name).and_then(|hint| hint.to_str().ok());
        hint.is_some_and(|hint| hint != body && !hint.starts_with("=?base64?"))
    };
    request.era() == Era::Modern && (says("mcp-name", tool) || says("mcp-method", &request.method))
}

/// Carries a batch (2025-03-26): each call in it is judged, none is refused.
pub(super) async fn batch(visit: Visit, mut held: Held, members: &[Message<'_>]) -> Response<Body> {
    if members.iter().any(|member| is_excluded(&visit, member)) {
        return batch_refused(members);
    }
    let mut expected = Vec::new();
    for member in members {
        let Message::Request(request) = member else { continue };
        let Some(tool) = request.tool().filter(|_| !request.ambiguous) else { continue };
        let wanted = Wanted::new(&visit, tool);
        if let Ok(place) = wanted.place(&visit) {
            let arguments = request.params.arguments.map(|raw| held.bytes.slice_ref(raw)).unwrap_or_default();
            let call = Waiting::new(request.id, wanted.ticket(&visit, (place, None), arguments));
            expected.push(Expected { id: request.id.into(), call, is_task: false });
        }
    }
    let guard = Guard::over(visit.place(), expected);
    let path = held.path();
    accept::ask_readable(&mut held.parts.headers);
    match visit.forward(held.into_request(), visit.head_timeout()).await {
        Ok(response) => visit.observed(response, guard.release(), &path),
        Err(fault) if fault.side == Side::Downstream => gateway_error(&fault),
        Err(fault) => batch_failed(members, guard, &fault),
    }
}

/// Whether a member of a batch calls a tool that the operator's will excludes for this caller, or may call one.
fn is_excluded(visit: &Visit, member: &Message<'_>) -> bool {
    let looker = visit.looker_at(visit.started);
    let excluded = |tool: &str| looker.policy_on(&visit.backend.tool(tool), &looker.settings(tool)) != Access::Open;
    match member {
        Message::Request(request) if request.ambiguous => visit.shared.has_policy(&visit.backend),
        Message::Request(request) => request.tool().is_some_and(excluded),
        Message::Notification(note) if note.method == "tools/call" => visit.shared.has_policy(&visit.backend),
        _ => false,
    }
}

/// A batch is carried as a whole or not at all.
fn batch_refused(members: &[Message<'_>]) -> Response<Body> {
    const WORDS: &str = "nothing of this batch was carried out: it calls a tool that does not exist or is not allowed here; \
         send its requests one by one";
    let requests = members.iter().filter_map(|member| match member {
        Message::Request(request) => Some(reply::error(request.id, INVALID_PARAMS, WORDS, None)),
        _ => None,
    });
    let body = [b"[".as_slice(), &requests.collect::<Vec<_>>().join(b",".as_slice()), b"]"].concat();
    answer::json(StatusCode::OK, body, Reason::Disallowed)
}

fn batch_failed(members: &[Message<'_>], guard: Guard, fault: &Fault) -> Response<Body> {
    let mut judged = Vec::new();
    let mut why = "the backend could not be reached";
    match fault.side {
        Side::Proxy(cause) => {
            guard.given_up(cause);
            why = &fault.detail;
        }
        _ => judged = guard.judge(|| Reading::of_fault(None, fault)),
    }
    let answers = members.iter().filter_map(|member| {
        let Message::Request(request) = member else { return None };
        let call = judged.iter().find(|(id, _)| **id == *request.id);
        Some(match (call, request.tool()) {
            (Some((id, judged)), _) => {
                reply::tool_result(id, &judged.unreachable_words(effect_of(fault)), &judged.facts.json())
            }
            (None, Some(tool)) if matches!(fault.side, Side::Proxy(_)) => {
                let words = given_up_words(tool, why, effect_of(fault));
                reply::tool_result(request.id, &words, &Facts::of_ours().json())
            }
            (None, _) => reply::error(request.id, -32603, &format!("{why}; try again later"), None),
        })
    });
    let all: Vec<Vec<u8>> = answers.collect();
    if all.is_empty() {
        return answer::empty(StatusCode::SERVICE_UNAVAILABLE, reason_of(fault));
    }
    let body = [b"[".as_slice(), &all.join(b",".as_slice()), b"]"].concat();
    answer::json(StatusCode::OK, body, reason_of(fault))
}

/// A call whose answer has begun.
struct Answered<'a> {
    visit: &'a Visit,
    wanted: &'a Wanted,
    shape: &'a Shape,
    path: &'a str,
}

/// How an answer of ours to this call must look.
struct Shape {
    id: Box<str>,
    has_task: bool,
}

fn refused(visit: &Visit, wanted: &Wanted, refusal: &Refusal, shape: &Shape) -> Response<Body> {
    wanted.ended_here(visit, refusal.reason());
    let (facts, words) = refusal.explain(visit, wanted);
    own_answer(visit, shape, &words, &facts, refusal.reason())
}

fn own_answer(visit: &Visit, shape: &Shape, words: &str, facts: &Facts, reason: Reason) -> Response<Body> {
    if let Some(endpoint) = &visit.old_transport {
        let message = reply::tool_result(&shape.id, words, &facts.json());
        if visit.shared.streams.send_to(endpoint, reply::event(&message)) {
            return answer::accepted(reason);
        }
    }
    if shape.has_task {
        answer::task_error(&shape.id, words, facts, reason)
    } else {
        answer::tool_result(&shape.id, words, facts, reason)
    }
}

fn failed((visit, wanted, shape): (&Visit, &Wanted, &Shape), guard: Guard, fault: &Fault) -> Response<Body> {
    let (words, facts) = match fault.side {
        Side::Downstream => return gateway_error(fault),
        Side::Proxy(cause) => {
            guard.given_up(cause);
            (given_up_words(&wanted.at.tool, &fault.detail, effect_of(fault)), Facts::of_ours())
        }
        Side::Upstream => match guard.judge(|| Reading::of_fault(None, fault)).pop() {
            Some((_, judged)) => (judged.unreachable_words(effect_of(fault)), judged.facts),
            // It was cancelled meanwhile; whatever is said now, nobody waits for it.
            None => return gateway_error(fault),
        },
    };
    own_answer(visit, shape, &words, &facts, reason_of(fault))
}

async fn answered(call: Answered<'_>, response: Response<Body>, guard: Guard) -> Response<Body> {
    let Answered { visit, wanted, shape, path } = call;
    let may_be_reshaped = response.status().is_server_error() || response.status() == StatusCode::TOO_MANY_REQUESTS;
    let may_have_left = wanted.settings.policy.session_tool && head_of(&response).format == Format::Json;
    let reshapes =
        || visit.shared.rules.load().table(&visit.caller).rules().iter().any(|rule| rule.then.answer_as_result);
    let readable = media::is_identity(response.headers());
    if !(readable && (may_have_left || may_be_reshaped && reshapes())) {
        return visit.observed(response, guard.release(), path);
    }
    let head = head_of(&response);
    let (parts, body) = response.into_parts();
    match collect(body, HELD_FAILURE).await {
        Err(fault) => failed((visit, wanted, shape), guard, &visit.shared.blame(fault)),
        Ok(Collected::TooLarge(body)) => visit.observed(Response::from_parts(parts, body), guard.release(), path),
        Ok(Collected::Whole(bytes, trailers)) => {
            let judged = guard.judge(|| Reading::of_mcp_body(&head, &bytes)).pop();
            match judged.filter(|(_, judged)| judged.provider_left() || judged.wants_result()) {
                Some((_, judged)) => {
                    let reason = if judged.provider_left() { Reason::Down } else { Reason::Result };
                    own_answer(visit, shape, &judged.failed_words(), &judged.facts, reason)
                }
                None => Response::from_parts(parts, whole(bytes, trailers)),
            }
        }
    }
}

fn effect_of(fault: &Fault) -> Effect {
    if fault.sent { Effect::Unknown } else { Effect::NotCalled }
}

/// Calls that are on their way to the backend. If the downstream side goes away before the head of the answer is there,
/// nobody will ever ask for it.
struct Guard {
    place: Place,
    expected: Vec<Expected>,
}

impl Guard {
    fn over(place: Place, expected: Vec<Expected>) -> Guard {
        if let Some(session) = &place.session {
            for expected in &expected {
                place.shared.inflight.insert(&place.backend.name, session, &expected.call);
            }
        }
        Guard { place, expected }
    }

    /// The answer is coming: from here on its observer holds the calls.
    fn release(mut self) -> Vec<Expected> {
        std::mem::take(&mut self.expected)
    }

    fn judge(mut self, reading: impl Fn() -> Reading) -> Vec<(Box<str>, Judged)> {
        let expected = std::mem::take(&mut self.expected);
        self.forget(&expected);
        expected.into_iter().filter_map(|expected| Some((expected.id, expected.call.judge(reading())?))).collect()
    }

    /// This proxy itself gives the calls up.
    fn given_up(mut self, cause: Cause) {
        let expected = std::mem::take(&mut self.expected);
        self.forget(&expected);
        for expected in expected {
            expected.call.given_up(cause);
        }
    }

    fn forget(&self, calls: &[Expected]) {
        if let Some(session) = &self.place.session {
            for expected in calls {
                self.place.shared.inflight.remove(&self.place.backend.name, session, &expected.id);
            }
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.forget(&self.expected);
        for expected in &self.expected {
            expected.call.abandon();
        }
    }
}
