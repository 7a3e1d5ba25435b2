//! What tools are called with: one flat object, made of the parts that their requests take as path, query and body.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::super::body::{Clear, Lifecycle, Refusal, Statement};
use super::super::refuse;
use super::super::target::Named;
use crate::clock::Wall;
use crate::rules::Scope;

/// Arguments of a call.
pub(super) type Arguments = Map<String, Value>;

/// Which document is meant.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Place {
    /// The name of the tool, or `*` for its whole backend.
    tool: String,
    /// Who is affected. Write as narrow as the evidence allows: USER if one user is concerned, PROJECT if all callers are.
    /// TENANT and GLOBAL take the role `operator`.
    scope: Scope,
    /// Which session, user, project or tenant; `default` is the project of callers that name none. Left out for GLOBAL.
    scope_id: Option<String>,
    /// The backend of the tool. Needed only where several backends may have it.
    backend: Option<String>,
    /// The tenant. Needed only where documents of several tenants fit.
    tenant: Option<String>,
}

impl Place {
    /// The document, if it can be one.
    pub(super) fn named(self) -> Result<Named, Refusal> {
        let Place { tool, scope, scope_id, backend, tenant } = self;
        Named { scope, scope_id, tool, backend, tenant }.checked()
    }
}

/// What the writer has seen.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Seen {
    /// The `version` of the document that you decided upon: nothing is written if it is another one by now.
    pub(super) version: Option<u64>,
}

/// A tool, and who calls it.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Whose {
    /// The name of the tool.
    tool: String,
    /// Its backend. Needed only where several backends may have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    backend: Option<String>,
    /// The caller's session.
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    /// The caller's user. Left out, only what concerns everybody in the project is seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    /// The caller's project, `default` if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<String>,
    /// The caller's tenant, `default` if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<String>,
}

impl Whose {
    /// The same as parameters of a query.
    pub(super) fn parameters(&self) -> BTreeMap<String, String> {
        serde_json::to_value(self).and_then(serde_json::from_value).unwrap_or_default()
    }
}

/// Why a tool is taken to work again.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Recovery {
    /// Why, in at most 512 bytes. Needed unless there is a `code`.
    reason: Option<String>,
    /// A lifecycle event of the provider, such as `started`.
    code: Option<Lifecycle>,
    /// When it began, for events that are told late.
    since: Option<Wall>,
    /// Which hand of the token's owner: the name of an engine, of a person.
    by: Option<String>,
}

impl From<Recovery> for Statement {
    fn from(said: Recovery) -> Statement {
        let Recovery { reason, code, since, by } = said;
        Statement { reason, code, since, by, ..Statement::default() }
    }
}

/// Cooldowns that are to be removed.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Cooled {
    /// Why, in at most 512 bytes.
    reason: String,
    /// Only those of this kind of failure.
    error_signature: Option<String>,
    /// Only those of this user.
    user_id: Option<String>,
}

impl From<Cooled> for Clear {
    fn from(said: Cooled) -> Clear {
        let Cooled { reason, error_signature, user_id } = said;
        Clear { reason: Some(reason), cooldowns_only: true, error_signature, user_id }
    }
}

/// Why everything is forgotten.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Forgotten {
    /// Why, in at most 512 bytes.
    reason: String,
}

impl From<Forgotten> for Clear {
    fn from(said: Forgotten) -> Clear {
        Clear { reason: Some(said.reason), ..Clear::default() }
    }
}

/// Nothing more.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

/// A tool that is to be tried.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Candidate {
    /// The name of the tool. It must be SAFE_PROBE.
    pub(super) tool: String,
    /// Its backend. Needed only where several backends may have it.
    pub(super) backend: Option<String>,
}

/// As whom a tool is tried.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct As {
    /// The user, whose credentials for probes the configuration holds.
    pub(super) user: String,
}

/// One part of the arguments; what belongs to it is taken out of them.
pub(super) fn part<T: DeserializeOwned + JsonSchema>(arguments: &mut Arguments) -> Result<T, Refusal> {
    let (own, rest) = std::mem::take(arguments).into_iter().partition(|(name, _)| properties::<T>().contains(name));
    *arguments = rest;
    read(own)
}

/// The last part: what is left must belong to it.
pub(super) fn rest<T: DeserializeOwned>(arguments: Arguments) -> Result<T, Refusal> {
    read(arguments)
}

fn read<T: DeserializeOwned>(arguments: Arguments) -> Result<T, Refusal> {
    crate::json::of_value(Value::Object(arguments)).map_err(|error| {
        let detail = format!("{error}; the tool's input schema says what it takes");
        Box::new(refuse(StatusCode::BAD_REQUEST, "bad arguments", detail))
    })
}

fn properties<T: JsonSchema>() -> Vec<String> {
    let schema = schema::<T>();
    let named = schema.get("properties").and_then(Value::as_object);
    named.map(|named| named.keys().cloned().collect()).unwrap_or_default()
}

/// The schema of one part, whole.
pub(super) fn schema<T: JsonSchema>() -> Schema {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    settings.into_generator().into_root_schema_for::<T>()
}

/// The schema of arguments that are made of these parts.
pub(super) fn joined(parts: &[fn() -> Schema]) -> Arguments {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for part in parts {
        let schema = part();
        properties.extend(schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default());
        required.extend(schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default());
    }
    let all = json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
    all.as_object().cloned().unwrap_or_default()
}
