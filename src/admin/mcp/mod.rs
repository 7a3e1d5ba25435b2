//! `/mcp`: the admin surface as an MCP server (DESIGN 14), for engines that are models and for hosts that speak nothing else.
//!
//! It comes in through the same door as every request. Each tool is listed for its role alone and ends in the function that
//! answers its request under `/v1`, so that both check, write and say the same. No session is kept: nothing is remembered
//! between two calls, and a process that starts anew is not missed.
//!
//! - `tools`: which tools there are, with their roles and schemas. `arguments`: reading what they are called with.

mod arguments;
mod tools;

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_TYPE, HOST};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use http_body_util::{BodyExt, Collected, Limited};
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};

use super::audit::{self, Changed};
use super::principal::Principal;
use super::target::{Shared, Who};
use super::{Admin, refuse};
use crate::config::Role;
use crate::rules::bounded;
use tools::{TOOLS, Tool};

const INSTRUCTIONS: &str = "toolvane believes of every tool whether it is usable, for whom, and until when. Look a tool up \
    before you judge it. What you write is believed by everybody it concerns: say why, and until when.";
/// How much of what a call was aimed at goes to the audit log, in bytes.
const AIM_MAX: usize = 512;

/// One message of MCP; what it may do is up to the tool that it calls.
pub(super) async fn mcp(State(admin): Shared, who: Who, mut request: Request) -> Response {
    // Whoever comes over the unix socket need not say to whom he speaks, but the SDK wants to hear it.
    request.headers_mut().entry(HOST).or_insert(HeaderValue::from_static("localhost"));
    let (head, body) = request.into_parts();
    let is_json = head.headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    let Ok(bytes) = Limited::new(body, admin.access.body).collect().await.map(Collected::to_bytes) else {
        let detail = format!("the body has more than {} bytes, or broke off", admin.access.body);
        return refuse(StatusCode::PAYLOAD_TOO_LARGE, "too large", detail);
    };
    if let Err(error) = serde_json::from_slice::<Value>(&bytes) {
        return malformed(-32700, &format!("Parse error: the body is not JSON: {error}"));
    }
    let request = Request::from_parts(head, Body::from(bytes));
    // The door has looked at `Host` and `Origin`.
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(admin.access.body)
        .disable_allowed_hosts();
    let server = move || Ok(Server { admin: Arc::clone(&admin), who: who.0.clone() });
    let service = StreamableHttpService::new(server, Arc::<NeverSessionManager>::default(), config);
    let response = service.handle(request).await.map(Body::new).into_response();
    // So the SDK answers JSON that is no message, in plain text.
    if is_json && response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE {
        return malformed(-32600, "Invalid Request: the body is JSON, but no JSON-RPC message of MCP");
    }
    response
}

/// The answer to what is no message.
fn malformed(code: i32, message: &str) -> Response {
    let error = json!({"jsonrpc": "2.0", "id": null, "error": {"code": code, "message": message}});
    (StatusCode::BAD_REQUEST, Json(error)).into_response()
}

/// The server, as one principal sees it.
struct Server {
    admin: Arc<Admin>,
    who: Principal,
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("toolvane", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let own = TOOLS.iter().filter(|tool| self.who.may(tool.role));
        Ok(ListToolsResult::with_all_items(own.map(Tool::listed).collect()).with_cache_scope(CacheScope::Private))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = TOOLS.iter().find(|tool| *tool.name == *request.name) else {
            let names: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
            let said = format!("there is no such tool; there are {}", names.join(", "));
            return Err(ErrorData::invalid_params(said, None));
        };
        let arguments = request.arguments.unwrap_or_default();
        let aim = format!("MCP {} {}", tool.name, Value::Object(arguments.clone()));
        let mut response = if self.who.may(tool.role) {
            tool.run(&self.admin, &self.who, arguments).await
        } else {
            let detail = format!("`{}` does not have the role `{}`", self.who.name, tool.role.as_str());
            refuse(StatusCode::FORBIDDEN, "not allowed", detail)
        };
        if tool.role != Role::Reader {
            let changed: Changed = response.extensions_mut().remove().unwrap_or_default();
            let outcome = format!("HTTP {}", response.status().as_u16());
            let done = (response.status().is_success(), changed);
            audit::record(&self.admin, &self.who, &bounded(&aim, AIM_MAX), &outcome, done);
        }
        Ok(result(response).await.into())
    }

    fn get_tool(&self, name: &str) -> Option<rmcp::model::Tool> {
        TOOLS.iter().find(|tool| *tool.name == *name).map(Tool::listed)
    }
}

/// The answer of a request as the result of a tool: a problem becomes an error that the model can read.
async fn result(response: Response) -> CallToolResult {
    let (head, body) = response.into_parts();
    let is_problem = head.headers.get(CONTENT_TYPE).is_some_and(|kind| kind == "application/problem+json");
    let bytes = body.collect().await.map(Collected::to_bytes).unwrap_or_default();
    let value: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    if !is_problem {
        return CallToolResult::structured(value);
    }
    let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
    let mut said = format!("{}: {}", text("title"), text("detail"));
    if let Some(documents) = value.get("documents") {
        said.push_str(&format!(" {documents}"));
    }
    CallToolResult::error(vec![ContentBlock::text(said)])
}
