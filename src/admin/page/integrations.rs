//! The view of what backs tools, with the tools that it unlocks.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use super::show;
use super::tools::link;
use super::view::Frame;
use super::words::{Moment, Pill};
use crate::admin::Admin;
use crate::admin::integrations::{Shown, all as every};
use crate::admin::target::Who;
use crate::clock::Wall;
use crate::readiness::CredentialShown;

/// A tool that an integration unlocks.
struct Unlocked {
    name: String,
    link: String,
}

/// A credential that an integration needs.
struct Needed {
    place: String,
    pill: Pill,
}

/// One integration.
struct Backing {
    id: String,
    pill: Pill,
    since: Option<Moment>,
    detail: String,
    has_probe: bool,
    last: Option<Moment>,
    next: Option<Moment>,
    hint: String,
    needed: Vec<Needed>,
    patterns: String,
    unlocked: Vec<Unlocked>,
}

#[derive(Template)]
#[template(path = "integrations.html")]
struct All {
    frame: Frame,
    backings: Vec<Backing>,
}

/// `GET /integrations`.
pub(super) async fn all(State(admin): State<Arc<Admin>>, who: Who) -> Response {
    let now = admin.clock.now();
    let backings = every(&admin).into_iter().map(|shown| backing(shown, now.wall)).collect();
    show(StatusCode::OK, &All { frame: Frame::new((&admin, &who), "Integrations", "/integrations", now), backings })
}

fn backing(shown: Shown, now: Wall) -> Backing {
    let Shown { integration: of, tools } = shown;
    let needed = |credential: &CredentialShown| Needed {
        place: credential.place.clone(),
        pill: Pill::new(credential.state.as_str()),
    };
    let last = [of.last_result.map(str::to_owned), of.detail.clone()];
    Backing {
        id: of.id.to_string(),
        pill: Pill::new(of.state),
        since: Moment::maybe(of.since, now),
        detail: last.into_iter().flatten().collect::<Vec<_>>().join(": "),
        has_probe: of.has_probe,
        last: Moment::maybe(of.last_probe_at, now),
        next: Moment::maybe(of.next_probe_at, now),
        hint: of.setup_hint.as_deref().unwrap_or_default().to_owned(),
        needed: of.credentials.iter().map(needed).collect(),
        patterns: of.patterns.join(", "),
        unlocked: tools
            .iter()
            .map(|tool| Unlocked { name: tool.tool.to_string(), link: link(&tool.backend, &tool.tool) })
            .collect(),
    }
}
