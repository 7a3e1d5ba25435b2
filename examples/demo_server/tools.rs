//! The tools of the demo server. Each shows one way in which tools of the real world behave.

use std::borrow::Cow;
use std::time::Duration;

use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::tool::{InputResponses as Answers, RequestState, ToolCallContext};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientResult, ContentBlock, ElicitRequest,
    ElicitRequestParams, Implementation, InputRequest, InputRequests, InputRequiredResult, ListToolsResult,
    PaginatedRequestParams, ProgressNotificationParam, ServerCapabilities, ServerConfig, ServerRequest,
    SubscriptionFilter, Tool,
};
use rmcp::schemars::JsonSchema;
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler, tool, tool_router};
use serde::Deserialize;
use serde_json::json;

use crate::backstage::Backstage;

/// Tools per page of `tools/list`, few enough that there is more than one page.
const PAGE: usize = 6;
/// Longest that `slow` waits, in milliseconds.
const LONGEST_DELAY_MS: u64 = 60_000;

/// The MCP side of the demo server; clones share the backstage.
#[derive(Clone, Debug)]
pub(crate) struct DemoServer {
    backstage: Backstage,
    router: ToolRouter<Self>,
}

type Answer = Result<CallToolResponse, ErrorData>;

fn text(words: impl Into<String>) -> Answer {
    Ok(CallToolResult::success(vec![ContentBlock::text(words.into())]).into())
}

fn failure(words: impl Into<String>) -> Answer {
    Ok(CallToolResult::error(vec![ContentBlock::text(words.into())]).into())
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Echo {
    /// What to say back.
    text: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Slow {
    /// How long to wait before answering, in milliseconds.
    delay_ms: u64,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Flaky {
    /// The first so many of every `of` calls fail.
    #[serde(default = "one")]
    fail: u64,
    /// Length of the pattern.
    #[serde(default = "two")]
    of: u64,
    /// Fail with a tool error (`true`) or with JSON-RPC -32603.
    #[serde(default)]
    tool_error: bool,
}

fn one() -> u64 {
    1
}

fn two() -> u64 {
    2
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Class {
    Economy,
    Business,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Seats {
    /// How many seats, 1 to 9.
    seats: u8,
    /// Which class.
    class: Class,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Progress {
    /// How many steps to report.
    steps: u32,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct ReadFile {
    /// Path on the client's machine.
    path: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Fetch {
    /// Address of the page; hosts that begin with `down.` do not answer.
    url: String,
}

#[tool_router]
impl DemoServer {
    /// A server that reports to this backstage.
    pub(crate) fn new(backstage: Backstage) -> Self {
        Self { backstage, router: Self::tool_router() }
    }

    #[tool(description = "Say the text back", annotations(read_only_hint = true))]
    async fn echo(&self, Parameters(Echo { text: words }): Parameters<Echo>) -> Answer {
        text(words)
    }

    #[tool(description = "Wait, then answer", annotations(read_only_hint = true))]
    async fn slow(&self, Parameters(slow): Parameters<Slow>, context: RequestContext<RoleServer>) -> Answer {
        let delay = Duration::from_millis(slow.delay_ms.min(LONGEST_DELAY_MS));
        tokio::select! {
            () = tokio::time::sleep(delay) => text(format!("waited {} ms", delay.as_millis())),
            () = context.ct.cancelled() => {
                self.backstage.cancelled("slow");
                failure("cancelled")
            }
        }
    }

    #[tool(description = "Fail some of the calls in a fixed pattern")]
    async fn flaky(&self, Parameters(flaky): Parameters<Flaky>) -> Answer {
        if self.backstage.next_flaky() % flaky.of.max(1) >= flaky.fail {
            return text("this one worked");
        }
        if flaky.tool_error {
            failure("502 Bad Gateway from the search cluster")
        } else {
            Err(ErrorData::internal_error("search cluster lost a shard", None))
        }
    }

    #[tool(description = "Always fail inside")]
    async fn broken(&self) -> Answer {
        Err(ErrorData::internal_error("cannot open the index: corrupt header", None))
    }

    #[tool(description = "Always be over its quota")]
    async fn rate_limited(&self) -> Answer {
        failure("Rate limit exceeded: 60 requests per minute. Please try again in 20 s.")
    }

    #[tool(description = "Read reports; alice lacks the permission")]
    async fn needs_permission(&self, context: RequestContext<RoleServer>) -> Answer {
        match user(&context) {
            "alice" => failure("403 Forbidden: user alice lacks the permission reports:read"),
            somebody => text(format!("{somebody} may read 3 reports")),
        }
    }

    #[tool(description = "Read mail; alice's token has expired")]
    async fn expired_token(&self, context: RequestContext<RoleServer>) -> Answer {
        match user(&context) {
            "alice" => {
                failure("401 Unauthorized: {\"error\":\"expired_token\",\"message\":\"The access token expired\"}")
            }
            somebody => text(format!("{somebody} has 2 new messages")),
        }
    }

    #[tool(description = "Book seats; wrong arguments are refused by the schema")]
    async fn bad_arguments(&self, Parameters(Seats { seats, class }): Parameters<Seats>) -> Answer {
        if !(1..=9).contains(&seats) {
            return failure(format!("Input validation error: seats must be between 1 and 9, got {seats}"));
        }
        text(format!("booked {seats} seats, {class:?}"))
    }

    #[tool(description = "Report progress, then answer")]
    async fn progress(
        &self,
        Parameters(Progress { steps }): Parameters<Progress>,
        context: RequestContext<RoleServer>,
    ) -> Answer {
        let steps = steps.min(1_000);
        if let Some(token) = context.meta.get_progress_token() {
            for step in 1..=steps {
                let note = ProgressNotificationParam::new(token.clone(), f64::from(step)).with_total(f64::from(steps));
                // A client that left is no reason to stop: the call is still one call.
                let _ = context.peer.notify_progress(note).await;
            }
        }
        text(format!("{steps} steps done"))
    }

    #[tool(description = "Ask the user for a name while the call is open")]
    async fn ask(
        &self,
        RequestState(state): RequestState,
        Answers(answers): Answers,
        context: RequestContext<RoleServer>,
    ) -> Answer {
        let question = question().map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        let stateless = context.protocol_version().is_some_and(|version| version.as_str() >= "2026-07-28");
        let name = if !stateless {
            let request = ServerRequest::ElicitRequest(ElicitRequest::new(question));
            match context.peer.send_request(request).await {
                Ok(ClientResult::ElicitResult(answer)) => {
                    answer.content.and_then(|content| content.get("name")?.as_str().map(str::to_owned))
                }
                Ok(_) => None,
                Err(error) => return failure(format!("the client could not be asked: {error}")),
            }
        } else if state.is_none() {
            let mut requests = InputRequests::new();
            requests.insert("who".to_owned(), InputRequest::Elicitation(ElicitRequest::new(question)));
            return Ok(InputRequiredResult::new(Some(requests), Some("asked".to_owned())).into());
        } else {
            let answer = answers.as_ref().and_then(|all| all.get("who"));
            answer.and_then(|answer| answer.pointer("/content/name")?.as_str().map(str::to_owned))
        };
        text(format!("hello {}", name.unwrap_or_else(|| "nobody".to_owned())))
    }

    #[tool(description = "Read a file on the client's machine, through the provider that serves this session")]
    async fn client_file_read(
        &self,
        Parameters(ReadFile { path }): Parameters<ReadFile>,
        context: RequestContext<RoleServer>,
    ) -> Answer {
        if self.backstage.has_departed(session(&context)) {
            // What the SDK says of a tool that it does not know: the provider took its tool along.
            return Err(ErrorData::invalid_params("tool not found", None));
        }
        text(format!("contents of {path}"))
    }

    #[tool(description = "Let the provider of client_file_read leave this session")]
    async fn provider_leave(&self, context: RequestContext<RoleServer>) -> Answer {
        self.backstage.set_departed(session(&context), true);
        text("the provider has left")
    }

    #[tool(description = "Let the provider of client_file_read come back to this session")]
    async fn provider_return(&self, context: RequestContext<RoleServer>) -> Answer {
        self.backstage.set_departed(session(&context), false);
        text("the provider is back")
    }

    #[tool(description = "Fetch a page", annotations(read_only_hint = true))]
    async fn fetch_url(&self, Parameters(Fetch { url }): Parameters<Fetch>) -> Answer {
        let host = url.split("://").nth(1).unwrap_or(&url).split('/').next().unwrap_or_default().to_owned();
        if host.starts_with("down.") {
            return failure(format!("fetch failed: connect ECONNREFUSED {host}:443"));
        }
        text(format!("200 OK from {host}"))
    }
}

fn question() -> Result<ElicitRequestParams, serde_json::Error> {
    Ok(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: "What is your name?".to_owned(),
        requested_schema: serde_json::from_value(json!({
            "type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"],
        }))?,
    })
}

fn header<'a>(context: &'a RequestContext<RoleServer>, name: &str) -> Option<&'a str> {
    context.extensions.get::<http::request::Parts>()?.headers.get(name)?.to_str().ok()
}

fn user(context: &RequestContext<RoleServer>) -> &str {
    header(context, "x-user-id").unwrap_or("somebody")
}

/// The session of the call; without sessions, its user.
fn session(context: &RequestContext<RoleServer>) -> &str {
    header(context, "mcp-session-id").unwrap_or_else(|| user(context))
}

impl ServerHandler for DemoServer {
    fn get_info(&self) -> ServerConfig {
        let mut info =
            ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build());
        info.server_info = Implementation::new("toolvane-demo", env!("CARGO_PKG_VERSION"));
        info
    }

    async fn call_tool(&self, request: CallToolRequestParams, context: RequestContext<RoleServer>) -> Answer {
        self.router.call(ToolCallContext::new(self, request, context)).await
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let cursor = request.and_then(|page| page.cursor);
        let start = cursor.map_or(Some(0), |cursor| cursor.parse::<usize>().ok());
        let tools = self.router.list_all();
        let Some(rest) = start.and_then(|start| tools.get(start..)) else {
            return Err(ErrorData::invalid_params("no such cursor", None));
        };
        let page: Vec<Tool> = rest.iter().take(PAGE).cloned().collect();
        let mut result = ListToolsResult::with_all_items(page);
        let end = tools.len() - rest.len() + result.tools.len();
        result.next_cursor = (end < tools.len()).then(|| end.to_string());
        Ok(result)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.router.get(name).cloned()
    }

    /// Its own list never changes; who asks to be told hears from whoever stands in between and knows more.
    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [rmcp::model::ProtocolVersion]> {
        Cow::Borrowed(rmcp::model::ProtocolVersion::KNOWN_VERSIONS)
    }
}
