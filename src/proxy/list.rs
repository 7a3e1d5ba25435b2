//! `tools/list`: the backend's answer with what is known put beside the tools, or the last good copy (DESIGN 9 and 10).

use bytes::Bytes;
use http::{Response, StatusCode, header};

use super::answer;
use super::facts::Reason;
use super::manifest;
use super::mcp::Held;
use super::net::{Body, Collected, Fault, collect};
use super::visit::{Visit, head_of, whole};
use crate::health::document::WHOLE_BACKEND;
use crate::health::{Mode, Status};
use crate::http::{accept, media};
use crate::mcp::request::Request;
use crate::mcp::{Format, list as pages};
use crate::telemetry::ListResult;
use crate::telemetry::events::ListHandled;

/// Carries a request for a page of the tool list.
pub(super) async fn list(visit: Visit, mut held: Held, request: &Request<'_>) -> Response<Body> {
    let cursor = request.params.cursor.as_deref();
    if is_down(&visit)
        && let Some(copy) = last_good(&visit, cursor, request.id)
    {
        return copy;
    }
    let path = held.path();
    accept::ask_identity(&mut held.parts.headers);
    let response = match visit.forward(held.into_request(), visit.head_timeout()).await {
        Ok(response) => response,
        Err(fault) => return instead(&visit, cursor, request.id, &fault),
    };
    if !response.status().is_success() || !media::is_identity(response.headers()) {
        return visit.observed(response, Vec::new(), &path);
    }
    let format = head_of(&response).format;
    let (mut parts, body) = response.into_parts();
    match collect(body, visit.shared.config.limits.list).await {
        Err(fault) => instead(&visit, cursor, request.id, &fault),
        Ok(Collected::TooLarge(body)) => {
            handled(&visit, ListResult::TooLarge);
            Response::from_parts(parts, body)
        }
        Ok(Collected::Whole(bytes, trailers)) => {
            remember(&visit, &bytes, format, cursor);
            let annotated = annotate(&visit, &bytes, format);
            let result = if annotated == bytes { ListResult::Unchanged } else { ListResult::Annotated };
            handled(&visit, result);
            if result == ListResult::Annotated && parts.headers.contains_key(header::CONTENT_LENGTH) {
                parts.headers.insert(header::CONTENT_LENGTH, annotated.len().into());
            }
            Response::from_parts(parts, whole(annotated, trailers))
        }
    }
}

fn is_down(visit: &Visit) -> bool {
    let view = visit.shared.registry.lookup(&visit.caller, &visit.backend.tool(WHOLE_BACKEND), visit.started);
    view.status == Status::Down && !view.retesting && visit.shared.config.mode == Mode::Enforce
}

/// What a caller gets in place of a page that did not arrive: his last good copy, or an error that leaves his session alive.
fn instead(visit: &Visit, cursor: Option<&str>, id: &str, fault: &Fault) -> Response<Body> {
    last_good(visit, cursor, id).unwrap_or_else(|| {
        let words = format!("the tool list did not arrive ({fault}); try again later");
        answer::rpc_error(StatusCode::OK, id, &words, Reason::Unreachable)
    })
}

/// The page as the backend gave it last, with what is known by now.
fn last_good(visit: &Visit, cursor: Option<&str>, id: &str) -> Option<Response<Body>> {
    let page = visit.shared.lists.page(&visit.backend.name, &visit.caller, cursor, id)?;
    let annotated = annotate(visit, &page, Format::Json);
    handled(visit, ListResult::LastGood);
    Some(answer::json(StatusCode::OK, annotated.to_vec(), Reason::Down))
}

fn remember(visit: &Visit, body: &[u8], format: Format, cursor: Option<&str>) {
    if let Some(page) = pages::page(body, format) {
        let tools = &visit.shared.config.tools;
        visit.shared.lists.keep(&visit.backend.name, &visit.caller, (cursor, page), |tool| tools.is_session_tool(tool));
    }
}

fn annotate(visit: &Visit, body: &[u8], format: Format) -> Bytes {
    let now = visit.shared.clock.now();
    let how = visit.shared.config.manifest.annotate;
    let view = |tool: &str| visit.shared.registry.lookup(&visit.caller, &visit.backend.tool(tool), now);
    Bytes::from(manifest::annotate(body, format, how, now, view).into_owned())
}

fn handled(visit: &Visit, result: ListResult) {
    visit.shared.telemetry.emit(ListHandled { backend: &visit.backend.name, result });
}
