//! Calls of HTTP tools, which routes name (DESIGN 3 and 9). Their bodies stream on; only failures are read along.

use bytes::Bytes;
use http::{Request, Response, StatusCode};

use super::access::{self, Access};
use super::answer;
use super::facts::{Effect, Facts, given_up_words};
use super::gate::{Refusal, Wanted};
use super::net::{Body, Cause, Fault, Side};
use super::observe_http::HttpObserver;
use super::reading::Reading;
use super::ticket::Ticket;
use super::visit::{Visit, gateway_error, head_of, reason_of};
use crate::rules::{TextCollector, TransportFault};
use crate::telemetry::RequestKind;

/// Carries a request to an HTTP backend. What no route names passes unjudged.
pub(super) async fn handle(mut visit: Visit, request: Request<Body>) -> Response<Body> {
    let Some(tool) = visit.backend.routes.load().tool(request.method(), request.uri().path()).cloned() else {
        visit.backend.metrics.request(RequestKind::Passthrough);
        return visit.pass(request).await;
    };
    visit.backend.metrics.request(RequestKind::ToolCall);
    let wanted = Wanted::of(&visit, &tool);
    visit.origin = visit.origin_of(request.headers(), None);
    let admitted = match visit.looker_at(visit.started).access_to(&wanted) {
        Access::NoRole => return not_found(),
        Access::Disallowed => Err(wanted.refuse(&visit, Refusal::Disallowed)),
        Access::Unready(unready) if access::enforces(&wanted.settings) => {
            Err(wanted.refuse(&visit, Refusal::Unready(unready)))
        }
        Access::Open | Access::Unready(_) => wanted.admit(&visit),
    };
    let admitted = match admitted {
        Ok(admitted) => admitted,
        Err(refusal) => return refused(&visit, &wanted, &refusal),
    };
    let ticket = wanted.ticket(&visit, admitted, Bytes::new());
    match visit.forward(request, Some(wanted.settings.timeout)).await {
        Ok(response) if response.status() == StatusCode::SWITCHING_PROTOCOLS => {
            ticket.neutral();
            response
        }
        Ok(response) => {
            let head = head_of(&response);
            let text = ticket.reads_body(&head).then(|| TextCollector::new(visit.shared.config.limits.failure_text));
            response.map(|body| body.observed(HttpObserver::new(ticket, head, text)))
        }
        Err(fault) => failed(ticket, &tool, &fault),
    }
}

fn failed(ticket: Ticket, tool: &str, fault: &Fault) -> Response<Body> {
    let effect = if fault.sent { Effect::Unknown } else { Effect::NotCalled };
    let (status, words, facts) = match fault.side {
        Side::Downstream => return gateway_error(fault),
        Side::Proxy(cause) => {
            let status = match cause {
                Cause::Limit => StatusCode::BAD_GATEWAY,
                Cause::Drain => StatusCode::SERVICE_UNAVAILABLE,
            };
            ticket.given_up(cause);
            (status, given_up_words(tool, &fault.detail, effect), Facts::of_ours())
        }
        Side::Upstream => {
            let status = match fault.kind {
                TransportFault::Timeout => StatusCode::GATEWAY_TIMEOUT,
                _ => StatusCode::BAD_GATEWAY,
            };
            let judged = ticket.judge(Reading::of_fault(None, fault));
            (status, judged.unreachable_words(fault.kind, effect), judged.facts)
        }
    };
    answer::http_tool(status, words, &facts, reason_of(fault))
}

fn refused(visit: &Visit, wanted: &Wanted, refusal: &Refusal) -> Response<Body> {
    wanted.ended_here(visit, refusal.reason());
    let (facts, words) = refusal.explain(visit, wanted);
    let status = match refusal {
        Refusal::Down(_) | Refusal::Unready(_) => StatusCode::SERVICE_UNAVAILABLE,
        Refusal::Limit(_) => StatusCode::TOO_MANY_REQUESTS,
        Refusal::Disallowed => StatusCode::FORBIDDEN,
    };
    answer::http_tool(status, words, &facts, refusal.reason())
}

/// For a caller without the role there is no such tool; what answers is as bare as a path that does not exist.
fn not_found() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}
