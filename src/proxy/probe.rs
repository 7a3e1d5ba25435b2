//! Trying a tool in no caller's name (DESIGN 12 and 13): only one that the configuration calls SAFE_PROBE, with its sample input,
//! which the configuration or the examples of its schema give, and the credentials that the configuration holds. A try counts
//! as no call; any answer to it proves that the backend lives.

use std::sync::Arc;
use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderName, HeaderValue, USER_AGENT};
use http::{HeaderMap, Method, Request, Response};
use http_body_util::BodyExt;
use serde_json::{Map, Value, json};

use super::net::{Body, Fault};
use super::reading::Reading;
use super::shared::{Backend, Shared};
use super::visit::head_of;
use crate::config::{BackendKind, ToolSettings, percent_encoded as escaped};
use crate::health::{Key, ProbeAs, ProbeTarget, Prober, ToolRef, Tried};
use crate::mcp::Format;
use crate::mcp::answer::{Answer, Kind, Reader, Seen};
use crate::rules::{self, Classification, Exchange, Scope};

use super::Proxy;

/// How long one step of a try may take.
const PATIENCE: Duration = Duration::from_secs(15);
/// How much of an answer is read, in bytes.
const ANSWER_MAX: usize = 1 << 20;
/// What marks our own requests for whoever looks at the backend's side.
const MARK: HeaderName = HeaderName::from_static("x-toolvane-probe");
const AGENT: HeaderValue = HeaderValue::from_static(concat!("toolvane-probe/", env!("CARGO_PKG_VERSION")));

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
/// The revision that is offered to a server with sessions, and the one without them.
const OFFERED: &str = "2025-11-25";
const STATELESS: &str = "2026-07-28";

impl Prober for Proxy {
    fn probe(&self, at: &ToolRef, who: &ProbeAs) -> crate::health::Later<Tried> {
        let (shared, at, who) = (Arc::clone(self.shared()), at.clone(), who.clone());
        Box::pin(async move { probe(&shared, &at, &who).await })
    }
}

/// Tries the tool of an entry that is DOWN; one that works is let through to its next real call.
pub(super) async fn probe_down(shared: &Arc<Shared>, target: &ProbeTarget) {
    let at =
        ToolRef { backend: Arc::from(target.key.backend.as_str()), tool: Arc::from(target.key.tool_name.as_str()) };
    let who = match (target.key.scope, target.key.scope_id.as_deref()) {
        (Scope::User, Some(user)) => ProbeAs::User(Arc::from(user)),
        _ => ProbeAs::System,
    };
    if probe(shared, &at, &who).await == Tried::Works {
        shared.registry.probe_succeeded(target, shared.clock.now());
        super::effects::list_changed(shared, &at.backend);
    }
}

/// Whether a tool may be tried at all.
pub(super) fn is_safe(shared: &Shared, key: &Key) -> bool {
    let settings = shared.config.tools.settings(&key.backend, &key.tool_name);
    let at = || ToolRef { backend: Arc::from(key.backend.as_str()), tool: Arc::from(key.tool_name.as_str()) };
    settings.safe_probe && sample(shared, &at(), &settings).is_some()
}

/// What a tool is called with: what the configuration says, or the examples of its own schema.
fn sample(shared: &Shared, at: &ToolRef, settings: &ToolSettings) -> Option<Arc<Map<String, Value>>> {
    settings.sample.clone().or_else(|| shared.declared.of(at)?.sample.clone())
}

async fn probe(shared: &Arc<Shared>, at: &ToolRef, who: &ProbeAs) -> Tried {
    let impossible = |why: String| Tried::Impossible(why);
    let Some(backend) = shared.backends.iter().find(|backend| backend.name == at.backend) else {
        return impossible(format!("there is no backend {:?}", &*at.backend));
    };
    let settings = shared.config.tools.settings(&at.backend, &at.tool);
    if !settings.safe_probe {
        return impossible(format!("{} is no SAFE_PROBE (`tools.<pattern>.safety`)", at.tool));
    }
    let Some(sample) = sample(shared, at, &settings) else {
        return impossible(format!(
            "{} has no sample input: set `tools.<pattern>.sample`; its schema gives no examples, or no list was seen yet",
            at.tool
        ));
    };
    let credentials = match who {
        ProbeAs::System => shared.config.probes.system.clone(),
        ProbeAs::User(user) => match shared.config.probes.users.get(user) {
            Some(credentials) => credentials.clone(),
            None => return impossible(format!("there are no credentials to try as {user:?} (`probes.users`)")),
        },
    };
    let headers = match shared.config.read_headers(&credentials) {
        Ok(headers) => headers,
        Err(why) => return impossible(why),
    };
    let errand = Errand { shared, backend, at, sample: &sample, headers, settings: &settings };
    let started = shared.clock.now();
    let read = match backend.config.kind {
        BackendKind::Mcp => errand.call_mcp().await,
        BackendKind::Http => errand.call_http().await,
    };
    match read {
        Err(Failed::Impossible(why)) => impossible(why),
        Err(Failed::Fault(fault)) => errand.judge(Reading::of_fault(None, &fault)),
        Ok(reading) => {
            shared.registry.answered(&at.backend, started, shared.clock.now());
            errand.judge(reading)
        }
    }
}

enum Failed {
    Impossible(String),
    Fault(Fault),
}

impl From<Fault> for Failed {
    fn from(fault: Fault) -> Failed {
        Failed::Fault(fault)
    }
}

/// One try.
struct Errand<'a> {
    shared: &'a Shared,
    backend: &'a Backend,
    at: &'a ToolRef,
    sample: &'a Map<String, Value>,
    headers: HeaderMap,
    settings: &'a ToolSettings,
}

impl Errand<'_> {
    fn judge(&self, reading: Reading) -> Tried {
        let mut exchange = Exchange {
            backend: Arc::clone(&self.at.backend),
            tool: Arc::clone(&self.at.tool),
            kind: self.backend.kind(),
            now: self.shared.clock.now(),
            credentialed: !self.headers.is_empty(),
            backend_host: Some(Arc::clone(&self.backend.host)),
            session_tool: self.settings.policy.session_tool,
            ..Exchange::default()
        };
        let rules = self.shared.rules.load();
        reading.fill(&mut exchange, |exchange| rules.base.reads_success_body(exchange));
        let verdict = rules.base.judge(&exchange);
        match (verdict.kind, verdict.finding) {
            (rules::Kind::Success, _) => Tried::Works,
            (_, Some(finding)) => Tried::Fails {
                signature: finding.signature,
                classification: finding.classification,
                text: super::ticket::said(&exchange),
            },
            (_, None) => Tried::Fails {
                signature: Arc::from("protocol"),
                classification: Classification::Unclear,
                text: super::ticket::said(&exchange),
            },
        }
    }

    /// A whole session for one call; without one where the server knows none.
    async fn call_mcp(&self) -> Result<Reading, Failed> {
        let offer = json!({
            "protocolVersion": OFFERED, "capabilities": {},
            "clientInfo": {"name": "toolvane-probe", "version": env!("CARGO_PKG_VERSION")},
        });
        let (response, answer) = self.rpc("initialize", Some(1), offer, HeaderMap::new()).await?;
        let version = match answer.map(|answer| answer.kind) {
            Some(Kind::Result(outcome)) => outcome.protocol_version.unwrap_or_else(|| OFFERED.to_owned()),
            _ => return self.call_stateless().await,
        };
        let mut session = HeaderMap::new();
        session.extend(response.headers.get(SESSION).cloned().map(|id| (SESSION, id)));
        session.extend(HeaderValue::from_str(&version).ok().map(|version| (VERSION, version)));
        self.rpc("notifications/initialized", None, json!({}), session.clone()).await?;
        let params = json!({"name": &*self.at.tool, "arguments": self.sample});
        let (head, answer) = self.rpc("tools/call", Some(2), params, session.clone()).await?;
        if session.contains_key(SESSION) {
            // A session that cannot be ended ends by itself.
            let _ =
                self.send(self.request(Method::DELETE, self.backend.config.url.path(), &session, Body::empty())).await;
        }
        Ok(reading(&head, answer))
    }

    async fn call_stateless(&self) -> Result<Reading, Failed> {
        let mut headers = HeaderMap::new();
        headers.insert(VERSION, HeaderValue::from_static(STATELESS));
        headers.insert(METHOD, HeaderValue::from_static("tools/call"));
        headers.extend(HeaderValue::from_str(&self.at.tool).ok().map(|name| (NAME, name)));
        let params = json!({
            "name": &*self.at.tool, "arguments": self.sample,
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": STATELESS,
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": {"name": "toolvane-probe", "version": env!("CARGO_PKG_VERSION")},
            },
        });
        let (head, answer) = self.rpc("tools/call", Some(2), params, headers).await?;
        Ok(reading(&head, answer))
    }

    /// One message and the answer to it, if one is due.
    async fn rpc(
        &self,
        method: &str,
        id: Option<u32>,
        params: Value,
        headers: HeaderMap,
    ) -> Result<(super::observe::Head, Option<Box<Answer>>), Failed> {
        let mut message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        if let (Some(id), Some(members)) = (id, message.as_object_mut()) {
            members.insert("id".to_owned(), json!(id));
        }
        let body = Body::full(message.to_string().into_bytes());
        let request = self.request(Method::POST, self.backend.config.url.path(), &headers, body);
        let response = self.send(request).await?;
        let head = head_of(&response);
        let answer = match id {
            Some(id) => within(read(response, &head.format, id)).await?,
            None => None,
        };
        Ok((head, answer))
    }

    async fn call_http(&self) -> Result<Reading, Failed> {
        let route = self.backend.config.routes.iter().find(|route| route.tool == self.at.tool);
        let route = route.ok_or_else(|| Failed::Impossible(format!("no route names {}", self.at.tool)))?;
        let (path, rest) = route.path.filled(self.sample).map_err(Failed::Impossible)?;
        let bodiless = matches!(route.method, Method::GET | Method::HEAD | Method::DELETE);
        let (target, body) = if bodiless {
            (with_query(&path, &rest), Body::empty())
        } else {
            (path, Body::full(Value::Object(rest).to_string().into_bytes()))
        };
        let response = self.send(self.request(route.method.clone(), &target, &HeaderMap::new(), body)).await?;
        let head = head_of(&response);
        let bytes = within(bounded(response.into_body())).await?;
        Ok(Reading::of_http(&head, String::from_utf8_lossy(&bytes).into_owned(), None))
    }

    fn request(&self, method: Method, target: &str, headers: &HeaderMap, body: Body) -> Request<Body> {
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = target.parse().unwrap_or_default();
        let all = request.headers_mut();
        let host = format!("{}:{}", self.backend.config.address_host(), self.backend.config.port());
        all.extend(HeaderValue::from_str(&host).ok().map(|host| (HOST, host)));
        all.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        all.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        all.insert(USER_AGENT, AGENT);
        all.insert(MARK, HeaderValue::from_static("1"));
        for (name, value) in self.headers.iter().chain(headers.iter()) {
            all.insert(name.clone(), value.clone());
        }
        request
    }

    async fn send(&self, request: Request<Body>) -> Result<Response<Body>, Fault> {
        self.backend.upstream.probe_exchange(request, PATIENCE).await
    }
}

fn reading(head: &super::observe::Head, answer: Option<Box<Answer>>) -> Reading {
    match answer {
        Some(answer) => Reading::of_answer(head, *answer),
        None => Reading::of_mcp_body(head, b""),
    }
}

async fn within<T>(step: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
    match tokio::time::timeout(PATIENCE, step).await {
        Ok(done) => done,
        Err(_) => Err(Fault::upstream(rules::TransportFault::Timeout, true, format!("no answer within {PATIENCE:?}"))),
    }
}

/// The answer with this id, wherever in the body it stands.
async fn read(response: Response<Body>, format: &Format, id: u32) -> Result<Option<Box<Answer>>, Fault> {
    let id = id.to_string();
    let mut reader = Reader::new(*format, ANSWER_MAX);
    let mut body = response.into_body();
    let mut found = None;
    let mut total = 0;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        total += data.len();
        reader.push(&data, |seen| found = found.take().or_else(|| answer_to(seen, &id)));
        if found.is_some() || total > ANSWER_MAX {
            return Ok(found);
        }
    }
    reader.finish(|seen| found = found.take().or_else(|| answer_to(seen, &id)));
    Ok(found)
}

fn answer_to(seen: Seen, id: &str) -> Option<Box<Answer>> {
    match seen {
        Seen::Answer(answer) if answer.id.as_deref() == Some(id) => Some(answer),
        _ => None,
    }
}

async fn bounded(mut body: Body) -> Result<Vec<u8>, Fault> {
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            bytes.extend_from_slice(data.get(..data.len().min(ANSWER_MAX - bytes.len())).unwrap_or_default());
        }
        if bytes.len() >= ANSWER_MAX {
            break;
        }
    }
    Ok(bytes)
}

fn with_query(path: &str, rest: &Map<String, Value>) -> String {
    let pairs: Vec<String> = rest
        .iter()
        .map(|(name, value)| {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            format!("{}={}", escaped(name), escaped(&text))
        })
        .collect();
    if pairs.is_empty() { path.to_owned() } else { format!("{path}?{}", pairs.join("&")) }
}
