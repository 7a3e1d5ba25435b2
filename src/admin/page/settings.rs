//! The view of what is in force: the configuration, the last reload, overrides.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use super::show;
use super::tools::link;
use super::view::Frame;
use super::words::Moment;
use crate::admin::Admin;
use crate::admin::reload::LastReload;
use crate::admin::target::Who;

/// A decision that stands.
struct Standing {
    tool: String,
    link: String,
    scope: String,
    force: String,
    reason: String,
    by: String,
    until: Moment,
}

/// The last reload, or the start.
struct Reloaded {
    when: Moment,
    /// The report, where it was refused.
    refused: Option<String>,
    needs_restart: String,
}

#[derive(Template)]
#[template(path = "config.html")]
struct All {
    frame: Frame,
    text: String,
    started_as: String,
    in_force: String,
    last: Option<Reloaded>,
    standing: Vec<Standing>,
    documents: usize,
    store: String,
}

/// `GET /config`.
pub(super) async fn all(State(admin): State<Arc<Admin>>, who: Who) -> Response {
    let now = admin.clock.now();
    let overrides = admin.registry.overrides(now);
    let standing = overrides.iter().map(|forced| {
        let (key, decision) = (&forced.key, &forced.decision);
        Standing {
            tool: format!("{} of {}", key.tool_name, key.backend),
            link: link(&key.backend, &key.tool_name),
            scope: [key.scope.as_str(), key.scope_id.as_deref().unwrap_or_default()].join(" "),
            force: format!("{:?}", decision.force).to_uppercase(),
            reason: decision.reason.clone(),
            by: decision.by.clone(),
            until: Moment::new(decision.until, now.wall),
        }
    });
    let (in_force, last) = admin.reload.last();
    let last = last.map(|LastReload { at, result, needs_restart }| Reloaded {
        when: Moment::new(at, now.wall),
        refused: result.err(),
        needs_restart: needs_restart.join(", "),
    });
    let store = match &admin.store {
        None => "memory only: health is lost at a restart".to_owned(),
        Some(_) => "a file: health outlives a restart".to_owned(),
    };
    let view = All {
        frame: Frame::new((&admin, &who), "Config", "/config", now),
        text: admin.config.shown.to_string(),
        started_as: admin.config_hash.clone(),
        in_force,
        last,
        standing: standing.collect(),
        documents: admin.registry.size(),
        store,
    };
    show(StatusCode::OK, &view)
}
