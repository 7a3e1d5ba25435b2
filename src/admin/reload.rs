//! `POST /v1/reload`: reads configuration and rules again.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;

use super::{Admin, refuse};
use crate::clock::Wall;

/// Reads configuration and rules again and puts them in force, or keeps what is.
pub trait Reload: Send + Sync {
    /// Reads files: may block.
    ///
    /// # Errors
    /// The report of every problem, with file, line and caret; what was in force still is.
    fn reload(&self) -> Result<Applied, String>;

    /// The name of what is in force, and the last attempt to change it.
    fn last(&self) -> (String, Option<LastReload>);
}

/// The last attempt to read anew, asked for or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastReload {
    /// When.
    pub at: Wall,
    /// Every problem with its place, a line each, where it was refused.
    pub result: Result<(), String>,
    /// Keys that have changed since the start and take effect at a restart.
    pub needs_restart: Vec<String>,
}

/// What a reload put in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Applied {
    /// The name of what is in force, as in the log and in `toolvane_config_info`.
    pub hash: String,
    /// Whether that is something else than before.
    pub changed: bool,
    /// Keys of the configuration file that have changed since the start and take effect at a restart.
    pub needs_restart: Vec<String>,
}

/// `POST /v1/reload`: reads configuration and rules again and says what is in force, or 422 with the report.
pub(super) async fn reload(State(admin): State<Arc<Admin>>) -> Response {
    let reload = Arc::clone(&admin.reload);
    match tokio::task::spawn_blocking(move || reload.reload()).await {
        Ok(Ok(applied)) => Json(applied).into_response(),
        Ok(Err(report)) => refuse(StatusCode::UNPROCESSABLE_ENTITY, "the old rules stay in force", report),
        Err(_) => refuse(StatusCode::INTERNAL_SERVER_ERROR, "the reload failed", "this is a mistake of toolvane"),
    }
}
