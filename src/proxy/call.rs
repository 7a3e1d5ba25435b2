//! `tools/call`: through the gate, to the backend, and back with somebody reading along.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};

use super::access::{self, Access};
use super::answer;
use super::facts::{Effect, Facts, Reason, given_up_words, no_answer};
use super::gate::{Refusal, Wanted};
use super::inflight::Waiting;
use super::mcp::{Held, Posted};
use super::net::{Answered, Body, Cause, Collected, Fault, Side, Whole, at_hand, collect};
use super::observe::{Expected, GRPC_STATUS, Head, Observer, Place};
use super::reading::Reading;
use super::ticket::Judged;
use super::unknown;
use super::visit::{Visit, format_of, gateway_error, head_of, reason_of, whole};
use crate::http::{accept, media};
use crate::mcp::answer::{Glance, glance};
use crate::mcp::request::{Era, Message, Request};
use crate::mcp::{Format, reply};
use crate::rules::is_plain_success;

/// Bytes of an answer that are held where a rule may want it in the result shape.
const HELD_FAILURE: usize = 64 * 1024;

/// JSON-RPC: invalid params.
const INVALID_PARAMS: i64 = -32602;

/// Carries one call.
pub(super) async fn call(visit: &mut Visit, posted: Posted, request: &Request<'_>, tool: &str) -> Answered {
    let wanted = Wanted::of(visit, tool);
    visit.origin = visit.origin_of(posted.headers(), Some((posted.bytes(), request.id)));
    let passes = request.params.is_continuation || headers_disagree(posted.headers(), request, tool);
    let looker = visit.looker_at(visit.started);
    let shape = Shape { id: request.id, has_task: request.params.has_task };
    let admitted = match if passes { looker.policy_on(&wanted.at, &wanted.settings) } else { looker.access_to(&wanted) }
    {
        Access::NoRole => match wanted.place(visit) {
            Ok(_place) => {
                return Box::pin(unknown::unknown_tool(visit, posted.held(), request.id, tool)).await.into();
            }
            Err(refusal) => Err(refusal),
        },
        Access::Disallowed => Err(wanted.refuse(visit, Refusal::Disallowed)),
        Access::Unready(unready) if access::enforces(&wanted.settings) => {
            Err(wanted.refuse(visit, Refusal::Unready(unready)))
        }
        Access::Open | Access::Unready(_) if passes => wanted.place(visit).map(|place| (place, None)),
        Access::Open | Access::Unready(_) => wanted.admit(visit),
    };
    let admitted = match admitted {
        Ok(admitted) => admitted,
        Err(refusal) => return refused(visit, &wanted, &refusal, &shape).into(),
    };
    let arguments = request.params.arguments.map(|raw| posted.bytes().slice_ref(raw)).unwrap_or_default();
    let waiting = Waiting::new(request.id, &visit.place, wanted.ticket(visit, admitted, arguments));
    let guard = Guard::over(&visit.place, vec![Expected { id: None, call: waiting, is_task: false }]);
    let uri = posted.uri().clone();
    match visit.ask_tool(posted, Some(wanted.settings.timeout)).await {
        Ok(answer) => {
            let call = Begun { visit, wanted: &wanted, shape: &shape, path: uri.path() };
            answered(call, answer, guard).await
        }
        Err(fault) => failed((visit, &wanted, &shape), guard, &fault).into(),
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
pub(super) async fn batch(visit: &mut Visit, mut held: Held, members: &[Message<'_>]) -> Response<Body> {
    if members.iter().any(|member| is_excluded(visit, member)) {
        return batch_refused(members);
    }
    let mut expected = Vec::new();
    let parts = visit.parts_of(&held.bytes);
    for (number, member) in members.iter().enumerate() {
        let Message::Request(request) = member else { continue };
        let Some(tool) = request.tool().filter(|_| !request.ambiguous) else { continue };
        let wanted = Wanted::of(visit, tool);
        let part = parts.get(number).copied().unwrap_or_default();
        visit.origin = visit.origin_of(&held.parts.headers, Some((part, request.id)));
        if let Ok(place) = wanted.place(visit) {
            let arguments = request.params.arguments.map(|raw| held.bytes.slice_ref(raw)).unwrap_or_default();
            let call = Waiting::new(request.id, &visit.place, wanted.ticket(visit, (place, None), arguments));
            expected.push(Expected { id: None, call, is_task: false });
        }
    }
    let guard = Guard::over(&visit.place, expected);
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
    let silent = format!("the backend {}", no_answer(fault.kind));
    let mut why = silent.as_str();
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
                reply::tool_result(id, &judged.unreachable_words(fault.kind, effect_of(fault)), &judged.facts.json())
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
#[derive(Clone, Copy)]
struct Begun<'a> {
    visit: &'a Visit,
    wanted: &'a Wanted,
    shape: &'a Shape<'a>,
    path: &'a str,
}

/// How an answer of ours to this call must look.
struct Shape<'a> {
    id: &'a str,
    has_task: bool,
}

fn refused(visit: &Visit, wanted: &Wanted, refusal: &Refusal, shape: &Shape<'_>) -> Response<Body> {
    wanted.ended_here(visit, refusal.reason());
    if let (Refusal::Down(view), None, false) = (refusal, &visit.old_transport, shape.has_task) {
        let message = reply::answer(shape.id, &wanted.refusal(visit, view));
        return answer::json(StatusCode::OK, message, refusal.reason());
    }
    let (facts, words) = refusal.explain(visit, wanted);
    own_answer(visit, shape, &words, &facts, refusal.reason())
}

fn own_answer(visit: &Visit, shape: &Shape<'_>, words: &str, facts: &Facts, reason: Reason) -> Response<Body> {
    if let Some(endpoint) = &visit.old_transport {
        let message = reply::tool_result(shape.id, words, &facts.json());
        if visit.shared.streams.send_to(endpoint, reply::event(&message)) {
            return answer::accepted(reason);
        }
    }
    if shape.has_task {
        answer::task_error(shape.id, words, facts, reason)
    } else {
        answer::tool_result(shape.id, words, facts, reason)
    }
}

fn failed((visit, wanted, shape): (&Visit, &Wanted, &Shape<'_>), guard: Guard, fault: &Fault) -> Response<Body> {
    let (words, facts) = match fault.side {
        Side::Downstream => return gateway_error(fault),
        Side::Proxy(cause) => {
            guard.given_up(cause);
            (given_up_words(&wanted.at.tool, &fault.detail, effect_of(fault)), Facts::of_ours())
        }
        Side::Upstream => match guard.judge(|| Reading::of_fault(None, fault)).pop() {
            Some((_, judged)) => (judged.unreachable_words(fault.kind, effect_of(fault)), judged.facts),
            // It was cancelled meanwhile; whatever is said now, nobody waits for it.
            None => return gateway_error(fault),
        },
    };
    own_answer(visit, shape, &words, &facts, reason_of(fault))
}

async fn answered(call: Begun<'_>, answer: Answered, guard: Guard) -> Answered {
    let response = match answer {
        Answered::Whole(whole) if whole.is_plain(is_plain_json) => {
            let guard = match guard.failed_again(&whole) {
                Ok(()) => return whole.into(),
                Err(guard) => guard,
            };
            let guard = match guard.succeeded(whole.body()) {
                Ok(()) => return whole.into(),
                Err(guard) => guard,
            };
            let head = Head::of(whole.head().status(), whole.head().headers(), Some(whole.clone()));
            return match failed_at_once(call, head, whole.body(), guard) {
                Some(replaced) => replaced.into(),
                None => whole.into(),
            };
        }
        other => other.into_response(),
    };
    answered_in_any_form(call, response, guard).await.into()
}

/// Whether the body under these headers is JSON that can be read, and the headers say nothing of a failure.
fn is_plain_json(headers: &HeaderMap) -> bool {
    media::is_identity(headers) && format_of(headers) == Format::Json && !headers.contains_key(GRPC_STATUS)
}

async fn answered_in_any_form(call: Begun<'_>, response: Response<Body>, guard: Guard) -> Response<Body> {
    let Begun { visit, path, .. } = call;
    let (format, readable) = (format_of(response.headers()), media::is_identity(response.headers()));
    let (parts, body) = response.into_parts();
    let body = match if readable && format == Format::Json { at_hand(body).await } else { Err(body) } {
        Ok(bytes) => {
            let guard = if is_plain_json(&parts.headers) { guard.succeeded(&bytes) } else { Err(guard) };
            let head = || Head::of(parts.status, &parts.headers, None);
            let replaced = guard.err().and_then(|guard| failed_at_once(call, head(), &bytes, guard));
            return replaced.unwrap_or_else(|| Response::from_parts(parts, Body::full(bytes)));
        }
        Err(body) => body,
    };
    let response = visit.bounded(Response::from_parts(parts, body));
    if !(readable && call.may_be_replaced(response.status(), format)) {
        return visit.observed(response, guard.release(), path);
    }
    Box::pin(held_back(call, response, guard)).await
}

/// An answer that is held until it is known whether it may pass.
async fn held_back(call: Begun<'_>, response: Response<Body>, guard: Guard) -> Response<Body> {
    let Begun { visit, wanted, shape, path } = call;
    let head = head_of(&response);
    let (parts, body) = response.into_parts();
    match collect(body, HELD_FAILURE).await {
        Err(fault) => failed((visit, wanted, shape), guard, &visit.shared.blame(fault)),
        Ok(Collected::TooLarge(body)) => visit.observed(Response::from_parts(parts, body), guard.release(), path),
        Ok(Collected::Whole(bytes, trailers)) => match call.replaced(&head, &bytes, guard) {
            Some(replaced) => replaced,
            None => Response::from_parts(parts, whole(bytes, trailers)),
        },
    }
}

/// An answer of which all is here, and which is no plain success. Nobody has to read along with it. Gives what stands in its
/// place, if something does.
fn failed_at_once(call: Begun<'_>, head: Head, bytes: &Bytes, guard: Guard) -> Option<Response<Body>> {
    if call.may_be_replaced(head.status, head.format) && bytes.len() <= HELD_FAILURE {
        return call.replaced(&head, bytes, guard);
    }
    let place = Arc::clone(&call.visit.place);
    Observer::new(place, head, guard.release(), None, call.path).read_whole(bytes);
    None
}

impl Begun<'_> {
    /// Whether an answer of ours may have to stand in place of the backend's.
    fn may_be_replaced(&self, status: StatusCode, format: Format) -> bool {
        let may_be_reshaped = status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS;
        let may_have_left = self.wanted.policy.session_tool && format == Format::Json;
        may_have_left || may_be_reshaped && self.visit.shared.rules.load().table(&self.visit.caller).reshapes()
    }

    /// Judges an answer that was held, and gives what stands in its place, if something does.
    fn replaced(&self, head: &Head, bytes: &[u8], guard: Guard) -> Option<Response<Body>> {
        let (_, judged) = guard.judge(|| Reading::of_mcp_body(head, bytes)).pop()?;
        if !judged.provider_left() && !judged.wants_result() {
            return None;
        }
        let reason = if judged.provider_left() { Reason::Down } else { Reason::Result };
        Some(own_answer(self.visit, self.shape, &judged.failed_words(), &judged.facts, reason))
    }
}

fn effect_of(fault: &Fault) -> Effect {
    if fault.sent { Effect::Unknown } else { Effect::NotCalled }
}

/// Calls that are on their way to the backend. If the downstream side goes away before the head of the answer is there,
/// nobody will ever ask for it.
struct Guard {
    place: Arc<Place>,
    expected: Vec<Expected>,
}

impl Guard {
    fn over(place: &Arc<Place>, expected: Vec<Expected>) -> Guard {
        for expected in &expected {
            place.shared.inflight.insert(&expected.call);
        }
        Guard { place: Arc::clone(place), expected }
    }

    /// Records the one call as a success, if this answer to it says so by its structure and no rule wants to know more.
    fn succeeded(mut self, bytes: &[u8]) -> Result<(), Guard> {
        let says_so = match (self.expected.as_slice(), glance(bytes)) {
            ([expected], Some(Glance::Success(success))) => {
                *expected.id().as_bytes() == *success.id
                    && is_plain_success(bytes, &success)
                    && expected.call.takes_structure()
            }
            _ => false,
        };
        if !says_so {
            return Err(self);
        }
        let expected = std::mem::take(&mut self.expected);
        self.forget(&expected);
        expected.iter().for_each(|expected| expected.call.succeeded());
        Ok(())
    }

    /// Records the one call as a failure, if what is judged of it was judged of another one that got the same answer.
    fn failed_again(mut self, whole: &Whole) -> Result<(), Guard> {
        let [expected] = self.expected.as_slice() else { return Err(self) };
        let Some((judged, now)) = expected.call.judged_before(whole) else { return Err(self) };
        let expected = std::mem::take(&mut self.expected);
        self.forget(&expected);
        if let Some(expected) = expected.into_iter().next() {
            expected.call.failed_again(&judged, now);
        }
        Ok(())
    }

    /// The answer is coming: from here on its observer holds the calls.
    fn release(mut self) -> Vec<Expected> {
        std::mem::take(&mut self.expected)
    }

    fn judge(mut self, reading: impl Fn() -> Reading) -> Vec<(Box<str>, Judged)> {
        let expected = std::mem::take(&mut self.expected);
        self.forget(&expected);
        expected
            .into_iter()
            .filter_map(|expected| {
                let judged = expected.call.judge(reading())?;
                Some((expected.id().into(), judged))
            })
            .collect()
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
        for expected in calls {
            self.place.shared.inflight.forget(&expected.call);
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
