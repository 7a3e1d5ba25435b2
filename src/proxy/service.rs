//! The order in which a request passes the proxy: route, identify, then by what the backend speaks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, StatusCode, Uri, header};

use super::access;
use super::answer;
use super::catalogue::{self, Entry, Hidden};
use super::confirm;
use super::desk::{Desk, Desks};
use super::documents;
use super::effects;
use super::facts::Reason;
use super::net::{Answered, Body, ConnInfo, OnTunnelEnd, Repeated, Service};
use super::observe::Place;
use super::route::{self, Route};
use super::shared::{Parts, RuleSet, Shared};
use super::visit::Visit;
use super::{http_tool, mcp};
use crate::config::BackendKind;
use crate::health::document::WHOLE_BACKEND;
use crate::health::{Caller, Diagnoser, Effect, Filter, Status};
use crate::rules::{Scope, Table};
use crate::store::OutcomeFile;
use crate::telemetry::RequestKind;
use crate::telemetry::events::IdentityHeaderDropped;

/// The proxy. Clones are the same proxy.
#[derive(Clone, Debug)]
pub struct Proxy {
    desks: Arc<Desks>,
}

impl Proxy {
    /// A proxy in front of the configured backends. Nothing is connected yet.
    pub fn new(parts: Parts) -> Proxy {
        Proxy { desks: Arc::new(Desks::new(Arc::new(Shared::new(parts)))) }
    }

    /// Judges by these rules from now on. A call that is being judged ends under those it began with.
    pub fn replace_rules(&self, rules: RuleSet) {
        self.shared().rules.store(Arc::new(rules));
    }

    /// The rules in force.
    pub fn rules(&self) -> Arc<RuleSet> {
        self.shared().rules.load_full()
    }

    /// The rules that judge this caller's calls.
    pub fn rules_of(&self, caller: &Caller) -> Arc<Table> {
        Arc::clone(self.shared().rules.load().table(caller))
    }

    /// Records what calls come to from now on. A second file is not taken.
    pub fn record_to(&self, file: OutcomeFile) {
        let _ = self.shared().outcomes.set(file);
    }

    /// How many outcomes that were to be recorded could not be.
    pub fn outcomes_left_out(&self) -> u64 {
        self.shared().outcomes.get().map_or(0, OutcomeFile::left_out)
    }

    /// Carries one request. There is always an answer: the backend's, or one that says why there is none.
    pub fn handle(&self, request: Request<Body>, conn: ConnInfo) -> impl Future<Output = Response<Body>> + use<> {
        carry(self.desks.here(), request, conn)
    }

    /// Probes backends that are DOWN until the process ends.
    pub async fn probe_forever(self) {
        confirm::probe_forever(self.shared().clone()).await;
    }

    /// Reads the documents that lie in files (keys, OpenAPI), so that they hold from the first request on.
    pub async fn read_files(&self) {
        documents::read_files(self.shared()).await;
    }

    /// Keeps keys and OpenAPI documents up to date until the process ends.
    pub async fn keep_documents_forever(self) {
        documents::keep_forever(self.shared().clone()).await;
    }

    /// Asks for all these documents to be read anew, in the background and at most every 10 s: for a reload.
    pub fn refresh_documents(&self) {
        documents::refresh(self.shared());
    }

    /// Whom to ask for diagnoses. The first one counts.
    pub fn diagnose_with(&self, diagnoser: Arc<dyn Diagnoser>) {
        let _ = self.shared().diagnoser.set(diagnoser);
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        self.desks.shared()
    }

    /// Acts on what somebody else's write did to health: counts and tells it, and lets clients know of changed lists.
    pub fn act(&self, effects: Vec<Effect>) {
        effects::act(self.shared(), effects);
    }

    /// A random number in [0, 1), for jitter.
    pub fn draw(&self) -> f64 {
        (self.shared().random)()
    }

    /// Every tool that is known by name: from routes, and from the lists that callers got. Sorted, each with its backend.
    pub fn tools(&self) -> Vec<(Arc<str>, String)> {
        let mut tools = self.shared().lists.tools();
        for backend in &self.shared().backends {
            tools.extend(backend.routes.load().iter().map(|route| (Arc::clone(&backend.name), route.tool.to_string())));
        }
        tools.into_iter().collect()
    }

    /// Something may be set up now that was not, or the other way round: the operator reads which tools stand otherwise, and
    /// clients that saw them otherwise are told that the list has changed.
    pub fn readiness_changed(&self) {
        catalogue::readiness_changed(self.shared());
    }

    /// Every tool that is known by name, as this caller would see it; also those that something is held against, which no
    /// list may have named since the start.
    pub fn catalogue(&self, caller: &Caller, profile: Option<&str>) -> Vec<Entry> {
        let mut tools: BTreeSet<(Arc<str>, String)> = self.tools().into_iter().collect();
        let now = self.shared().clock.now();
        // Scope by scope: there may be a document for each of many users, and none of them is looked at.
        for scope in [Scope::Project, Scope::Tenant, Scope::Global] {
            for status in [Status::Degraded, Status::Down] {
                let filter = Filter { scope: Some(scope), status: Some(status), ..Filter::default() };
                let keys = self.shared().registry.documents(&filter, now).into_iter().map(|document| document.key);
                let of_tools = keys.filter(|key| key.tool_name != WHOLE_BACKEND);
                tools.extend(of_tools.map(|key| (Arc::from(key.backend), key.tool_name)));
            }
        }
        catalogue::catalogue(self.shared(), tools.into_iter().collect(), caller, profile)
    }

    /// How many known tools nobody is shown, by backend and reason.
    pub fn hidden(&self) -> BTreeMap<(Arc<str>, Hidden), u64> {
        catalogue::hidden(self.shared(), self.tools())
    }

    /// The names of all backends.
    pub fn backends(&self) -> Vec<Arc<str>> {
        self.shared().backends.iter().map(|backend| Arc::clone(&backend.name)).collect()
    }

    /// Gives up what is in flight, since the process ends: every call that can still be answered is, in a shape that its
    /// caller understands.
    pub fn cut(&self) {
        self.shared().cut();
    }

    /// How many calls that [`cut`](Proxy::cut) gave up.
    pub fn cut_off(&self) -> u64 {
        self.shared().cut_off()
    }

    /// Calls in flight.
    pub fn in_flight(&self) -> usize {
        self.shared().calls.in_flight()
    }
}

impl Service for Proxy {
    type Route = Route;

    fn answer(&self, request: Request<Body>, conn: ConnInfo) -> impl Future<Output = Response<Body>> + Send + 'static {
        self.handle(request, conn)
    }

    fn route(&self, head: &Request<()>, conn: &ConnInfo) -> Option<Route> {
        Route::of(&self.desks.here(), head, conn)
    }

    fn answer_repeated(
        &self,
        request: Repeated<Route>,
        body: Bytes,
    ) -> impl Future<Output = Answered> + Send + 'static {
        route::carry_repeated(request, body)
    }
}

/// Carries one request at the desk of a worker.
pub(super) async fn carry(shared: Arc<Desk>, mut request: Request<Body>, conn: ConnInfo) -> Response<Body> {
    let Some(backend) = shared.backend_for(host_of(&request), request.uri().path()) else {
        return answer::problem(
            StatusCode::MISDIRECTED_REQUEST,
            "no backend for this request",
            "none of `backends[].match` fits the host and path of this request",
            Reason::Unreachable,
        );
    };
    let started = shared.clock.now();
    let trusted = shared.config.identity.trusts(conn.peer.ip());
    let caller = shared.caller(request.headers(), trusted, started);
    let profile = access::profile(&shared, request.headers_mut(), trusted);
    for header in shared.identifier.strip_untrusted(request.headers_mut(), trusted) {
        shared.telemetry.emit(IdentityHeaderDropped { header: header.as_str() });
    }
    let (backend, session) = (Arc::clone(backend), caller.session.clone());
    let place = Arc::new(Place { shared, backend, session });
    let mut visit = Visit { place, caller, origin: None, profile, conn, started, old_transport: None };
    if request.headers().contains_key(header::UPGRADE)
        && let Some(session) = visit.session.clone()
    {
        request.extensions_mut().insert(on_tunnel_end(&visit, session));
    }
    if visit.backend.config.kind == BackendKind::Http {
        return Box::pin(http_tool::handle(visit, request)).await;
    }
    visit.old_transport = visit.shared.streams.session_of(target_of(request.uri()));
    if visit.old_transport.is_some() || visit.backend.is_endpoint(request.uri().path()) {
        return mcp::handle(&mut visit, request).await;
    }
    visit.backend.metrics.request(RequestKind::Passthrough);
    Box::pin(visit.pass(request)).await
}

/// An upgraded connection that belongs to a session: when it closes, the tools that the session provides are gone with it
/// (DESIGN 8, System events).
fn on_tunnel_end(visit: &Visit, session: Arc<str>) -> OnTunnelEnd {
    let (shared, backend, caller) = (Arc::clone(&visit.shared), Arc::clone(&visit.backend), Arc::clone(&visit.caller));
    OnTunnelEnd(Arc::new(move || {
        let tools: Vec<_> =
            shared.lists.session_tools(&backend.name, &session).iter().map(|tool| backend.tool(tool)).collect();
        let done = shared.registry.session_closed(&caller, &tools, shared.clock.now(), &mut || (shared.random)());
        effects::act(shared.shared(), done);
    }))
}

/// The path of a request, with its query.
pub(super) fn target_of(uri: &Uri) -> &str {
    uri.path_and_query().map_or("/", |target| target.as_str())
}

pub(super) fn host_of<B>(request: &Request<B>) -> Option<&str> {
    let authority = request.uri().authority().map(|authority| authority.as_str());
    authority.or_else(|| request.headers().get(header::HOST).and_then(|host| host.to_str().ok()))
}
