//! `tools/list`: the backend's answer with what is known put beside the tools, or the last good copy (DESIGN 9 and 10).

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use http::{Response, StatusCode, header};

use super::access::{self, Access, Looker};
use super::answer;
use super::asked::Page;
use super::catalogue;
use super::facts::Reason;
use super::manifest::{self, Appears, Rewriting};
use super::mcp::Held;
use super::net::{Body, Collected, Fault, collect};
use super::visit::{Visit, head_of, reason_of, whole};
use crate::health::document::WHOLE_BACKEND;
use crate::health::{Status, StatusReason};
use crate::http::{accept, media};
use crate::mcp::request::Request;
use crate::mcp::{Format, list as pages, reply};
use crate::telemetry::ListResult;
use crate::telemetry::events::ListHandled;

/// Carries a request for a page of the tool list.
pub(super) async fn list(visit: &Visit, mut held: Held, request: &Request<'_>) -> Response<Body> {
    let cursor = request.params.cursor.as_deref();
    if is_down(visit)
        && let Some(copy) = last_good(visit, cursor, request.id)
    {
        return copy;
    }
    if let Some(endpoint) = &visit.old_transport {
        let (caller, profile) = (Arc::clone(&visit.caller), visit.profile.clone());
        let cursor = cursor.map(str::to_owned);
        visit.shared.streams.ask(endpoint, Page { id: request.id.into(), cursor, caller, profile });
    }
    let path = held.path();
    accept::ask_identity(&mut held.parts.headers);
    let response = match visit.forward(held.into_request(), visit.head_timeout()).await {
        Ok(response) => response,
        Err(fault) => return instead(visit, cursor, request.id, &fault),
    };
    let accepted = response.status() == StatusCode::ACCEPTED;
    if !response.status().is_success() || accepted || !media::is_identity(response.headers()) {
        return visit.observed(response, Vec::new(), &path);
    }
    let format = head_of(&response).format;
    let (mut parts, body) = response.into_parts();
    match collect(body, visit.shared.config.limits.list).await {
        Err(fault) => instead(visit, cursor, request.id, &visit.shared.blame(fault)),
        Ok(Collected::TooLarge(body)) => {
            visit.looker().handled(ListResult::TooLarge);
            Response::from_parts(parts, body)
        }
        Ok(Collected::Whole(bytes, trailers)) => {
            let annotated = visit.looker().page(cursor, &bytes, format);
            if let Some(annotated) = &annotated
                && parts.headers.contains_key(header::CONTENT_LENGTH)
            {
                parts.headers.insert(header::CONTENT_LENGTH, annotated.len().into());
            }
            Response::from_parts(parts, whole(annotated.unwrap_or(bytes), trailers))
        }
    }
}

fn is_down(visit: &Visit) -> bool {
    let view = visit.shared.registry.lookup(&visit.caller, &visit.backend.tool(WHOLE_BACKEND), visit.started);
    view.status == Status::Down && !view.retesting && access::shows(visit.shared.config.mode, &view)
}

/// What a caller gets in place of a page that did not arrive: his last good copy, or an error that leaves his session alive.
fn instead(visit: &Visit, cursor: Option<&str>, id: &str, fault: &Fault) -> Response<Body> {
    last_good(visit, cursor, id).unwrap_or_else(|| {
        let words = format!("the tool list did not arrive ({fault}); try again later");
        answer::rpc_error(StatusCode::OK, id, &words, reason_of(fault))
    })
}

/// The page as the backend gave it last, with what is known by now.
fn last_good(visit: &Visit, cursor: Option<&str>, id: &str) -> Option<Response<Body>> {
    let reader = visit.looker();
    let page = visit.shared.lists.page(&visit.backend.name, &visit.caller, cursor, id)?;
    let page = reader.annotate(&page, Format::Json).into_owned();
    reader.handled(ListResult::LastGood);
    if let Some(endpoint) = &visit.old_transport
        && visit.shared.streams.send_to(endpoint, reply::event(&page))
    {
        return Some(answer::accepted(Reason::Down));
    }
    Some(answer::json(StatusCode::OK, page, Reason::Down))
}

impl Looker<'_> {
    /// Remembers a page that the backend gave; gives it as the caller sees it, if that is something else.
    pub(super) fn page(self, cursor: Option<&str>, body: &[u8], format: Format) -> Option<Bytes> {
        if let Some(page) = pages::page(body, format) {
            for tool in &page.tools {
                let settings = self.shared.config.tools.settings(&self.backend.name, &tool.name);
                let tried = settings.safe_probe && settings.sample.is_none();
                if self.shared.declared.note(self.backend.tool(&tool.name), tool, tried) {
                    self.backend.declared_roles();
                }
            }
            let tools = &self.shared.config.tools;
            let is_session_tool = |tool: &str| tools.is_session_tool(tool);
            self.shared.lists.keep(&self.backend.name, self.caller, (cursor, page), is_session_tool);
        }
        let annotated = match self.annotate(body, format) {
            Cow::Owned(annotated) if annotated != body => Some(Bytes::from(annotated)),
            _ => None,
        };
        self.handled(if annotated.is_some() { ListResult::Annotated } else { ListResult::Unchanged });
        annotated
    }

    fn annotate<'b>(self, body: &'b [u8], format: Format) -> Cow<'b, [u8]> {
        let annotate = self.shared.config.manifest.annotate;
        let rewriting = Rewriting { format, annotate, private: self.depends_on_the_caller(), now: self.now };
        let mut seen = Vec::new();
        let rewritten = manifest::rewrite(body, rewriting, |tool| {
            let appears = self.appears(tool);
            seen.extend(reason(&appears).map(|reason| (tool.to_owned(), reason)));
            appears
        });
        let seen = seen.iter().map(|(tool, reason)| (tool.as_str(), *reason));
        let new = self.shared.shown.note(&self.backend.name, seen);
        catalogue::tell_operator(self.shared, self.backend, &new);
        rewritten
    }

    fn appears(self, tool: &str) -> Appears {
        let at = self.backend.tool(tool);
        let settings = self.settings(tool);
        match self.access(&at, &settings) {
            Access::NoRole | Access::Disallowed => Appears::Never,
            Access::Unready(unready) if !access::enforces(&settings) => Appears::Observed(Some(unready.reason)),
            Access::Unready(unready) if self.hides_unready(tool) => Appears::NotYet(unready),
            Access::Unready(unready) => Appears::Unready(unready),
            Access::Open => {
                let view = self.shared.registry.lookup(self.caller, &at, self.now);
                match access::shows(settings.policy.mode, &view) {
                    true => Appears::Healthy(view),
                    false => Appears::Observed(None),
                }
            }
        }
    }

    pub(super) fn handled(self, result: ListResult) {
        self.shared.telemetry.emit(ListHandled { backend: &self.backend.name, result });
    }
}

/// For which reason the tool is not set up, or none; `None` where that did not matter.
fn reason(appears: &Appears) -> Option<Option<StatusReason>> {
    match appears {
        Appears::NotYet(unready) | Appears::Unready(unready) => Some(Some(unready.reason)),
        Appears::Healthy(_) => Some(None),
        Appears::Observed(reason) => Some(*reason),
        Appears::Never => None,
    }
}
