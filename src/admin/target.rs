//! Which document a write means: what the path says, and what the query adds where that names more than one.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::http::header::{IF_MATCH, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::body::{Refusal, unfit};
use super::principal::Principal;
use super::query::{self, Parameters};
use super::routes::APART;
use super::{Admin, refuse};
use crate::config::Role;
use crate::health::document::ANY_BACKEND;
use crate::health::{Filter, Key};
use crate::rules::Scope;

/// The word for GLOBAL's scope id in a path.
pub(super) const NO_ID: &str = "-";
/// Longest session, user, project, tenant or tool, in bytes.
const NAME_MAX: usize = 256;

/// A document as a path names it.
#[derive(Clone, Debug)]
pub(super) struct Named {
    pub(super) scope: Scope,
    pub(super) scope_id: Option<String>,
    pub(super) tool: String,
    pub(super) backend: Option<String>,
    pub(super) tenant: Option<String>,
}

impl Named {
    /// What `{scope}/{scopeId}/{tool}?backend=&tenant=` names.
    pub(super) fn read(
        (level, scope_id, tool): (String, String, String),
        given: BTreeMap<String, String>,
    ) -> Result<Named, Refusal> {
        let given = Parameters::checked(given, APART)?;
        let scope = query::scope(&level)?;
        let scope_id = (scope_id != NO_ID).then_some(scope_id);
        let text = |name| given.text(name).map(str::to_owned);
        Named { scope, scope_id, tool, backend: text("backend"), tenant: text("tenant") }.checked()
    }

    /// The same for what a body or a query names.
    pub(super) fn checked(mut self) -> Result<Named, Refusal> {
        if self.scope == Scope::Global {
            if self.scope_id.is_some() {
                return Err(unfit("GLOBAL has no scope id: it is `-` in a path and left out of a body".to_owned()));
            }
            self.tenant = None;
        } else if self.scope_id.is_none() {
            return Err(unfit(format!("{} needs a `scopeId` (`--id` of the commands)", self.scope)));
        }
        let bad = |text: &str| text.is_empty() || text.len() > NAME_MAX || text.chars().any(char::is_control);
        let named = [Some(&self.tool), self.scope_id.as_ref(), self.backend.as_ref(), self.tenant.as_ref()];
        if named.into_iter().flatten().any(|text| bad(text)) {
            return Err(unfit(format!("names have 1 to {NAME_MAX} bytes without control characters")));
        }
        if self.scope == Scope::Tenant {
            self.tenant.clone_from(&self.scope_id);
        }
        Ok(self)
    }

    /// The key that is meant: of the only document that fits, or of one that could be.
    pub(super) fn key(&self, admin: &Admin) -> Result<Key, Refusal> {
        let mut found = self.existing(admin);
        match (found.pop(), found.is_empty()) {
            (Some(key), true) => Ok(key),
            (None, _) => Ok(Key {
                tenant_id: (self.scope != Scope::Global)
                    .then(|| self.tenant.clone().unwrap_or_else(|| "default".to_owned())),
                scope: self.scope,
                scope_id: self.scope_id.clone(),
                backend: self.backend_of(admin)?,
                tool_name: self.tool.clone(),
            }),
            (Some(key), false) => {
                found.push(key);
                Err(Box::new(several(&found)))
            }
        }
    }

    /// The keys in memory that fit.
    pub(super) fn existing(&self, admin: &Admin) -> Vec<Key> {
        let filter = Filter {
            scope: Some(self.scope),
            scope_id: self.scope_id.clone(),
            tenant_id: self.tenant.clone(),
            backend: self.backend.clone(),
            tool_name: Some(self.tool.clone()),
            ..Filter::default()
        };
        admin.registry.keys(&filter)
    }

    fn backend_of(&self, admin: &Admin) -> Result<String, Refusal> {
        if self.scope == Scope::Global && self.backend.as_deref() == Some(ANY_BACKEND) {
            return Ok(ANY_BACKEND.to_owned());
        }
        super::health::backend_of(admin, self.backend.as_deref(), &self.tool).map(|backend| backend.to_string())
    }

    /// Whether this hand reaches so wide: engines write for sessions, users and projects, operators for all (DESIGN 13).
    pub(super) fn within_reach_of(&self, who: &Principal) -> Result<(), Refusal> {
        if self.scope <= Scope::Project || who.may(Role::Operator) {
            return Ok(());
        }
        let detail =
            format!("{} takes the role `operator`; `{}` writes SESSION, USER and PROJECT", self.scope, who.name);
        Err(Box::new(refuse(StatusCode::FORBIDDEN, "too wide", detail)))
    }
}

/// Several documents fit.
pub(super) fn several(keys: &[Key]) -> Response {
    let body = json!({
        "type": "about:blank", "title": "more than one document", "status": 409,
        "detail": "add `backend` or `tenant` to tell them apart", "documents": keys,
    });
    let kind = [(axum::http::header::CONTENT_TYPE, "application/problem+json")];
    (StatusCode::CONFLICT, kind, Json(body)).into_response()
}

/// The version that the writer has seen, if he says so.
pub(super) fn expected(headers: &HeaderMap) -> Result<Option<u64>, Refusal> {
    let Some(given) = headers.get(IF_MATCH) else { return Ok(None) };
    let version = given.to_str().ok().and_then(|text| text.trim().strip_prefix('"')?.strip_suffix('"')?.parse().ok());
    let bad = || query::bad("`If-Match` must be an `ETag` of this document, such as `\"12\"`".to_owned());
    version.map(Some).ok_or_else(bad)
}

/// Whether the reader has this version already, by `If-None-Match`.
pub(super) fn is_known(headers: &HeaderMap, tag: &HeaderValue) -> bool {
    let given = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let mut given = given.flat_map(|value| value.split(',')).map(str::trim);
    given.any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known).as_bytes() == tag.as_bytes())
}

/// A scope, scope id and so on, as a query names them for an override.
pub(super) fn of_query(given: &Parameters) -> Result<Named, Refusal> {
    let text = |name| given.text(name).map(str::to_owned);
    let scope = given.scope()?.ok_or_else(|| query::bad("parameter \"scope\" is missing".to_owned()))?;
    let tool = given.need("tool")?.to_owned();
    Named { scope, scope_id: text("scopeId"), tool, backend: text("backend"), tenant: text("tenant") }.checked()
}

/// Who asks, as the guard found out.
pub(super) type Who = axum::Extension<Principal>;

/// The shared state.
pub(super) type Shared = axum::extract::State<Arc<Admin>>;
