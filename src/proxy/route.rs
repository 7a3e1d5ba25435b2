//! Plain calls whose head comes again and again over one connection: who calls, which backend is asked and how its head goes
//! there follow from the head alone and are found out once.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};

use super::access;
use super::desk::Desk;
use super::mcp::{self, Posted};
use super::net::{Answered, ConnInfo, Fault, OutgoingHead, Passage, Repeated};
use super::observe::Place;
use super::service::{carry, host_of, target_of};
use super::visit::{Visit, gateway_error};
use crate::config::BackendKind;
use crate::health::Caller;
use crate::http::{accept, media};
use crate::telemetry::RequestKind;

/// What holds for every request with the same head that comes over the same connection.
#[derive(Debug)]
pub struct Route {
    place: Arc<Place>,
    caller: Arc<Caller>,
    profile: Option<Arc<str>>,
    conn: ConnInfo,
    /// It goes to an MCP endpoint; anything else passes unread.
    is_message: bool,
    /// The head of a call, as it goes to the backend.
    outgoing: OutgoingHead,
}

impl Route {
    /// `None` where there is more to it than a message that passes as it came, or where something other than the head counts:
    /// the time, for a token.
    pub(super) fn of(shared: &Arc<Desk>, head: &Request<()>, conn: &ConnInfo) -> Option<Route> {
        let backend = shared.backend_for(host_of(head), head.uri().path())?;
        let is_posted = head.method() == Method::POST && media::is_identity(head.headers());
        if !is_posted || backend.config.kind != BackendKind::Mcp || shared.identifier.tokens().is_some() {
            return None;
        }
        let is_message = backend.is_endpoint(head.uri().path());
        let trusted = shared.config.identity.trusts(conn.peer.ip());
        let profile_header = shared.config.access.profile_header.as_ref();
        if !trusted && profile_header.is_some_and(|name| head.headers().contains_key(name)) {
            return None;
        }
        let caller = shared.caller(head.headers(), trusted, shared.clock.now());
        let mut outgoing = head.clone();
        let profile = access::profile(shared, outgoing.headers_mut(), trusted);
        if !shared.identifier.strip_untrusted(outgoing.headers_mut(), trusted).is_empty() {
            return None;
        }
        if is_message {
            accept::ask_readable(outgoing.headers_mut());
        }
        let outgoing = backend.upstream.outgoing(outgoing, &backend.policy, conn)?;
        let (backend, session) = (Arc::clone(backend), caller.session.clone());
        let place = Arc::new(Place { shared: Arc::clone(shared), backend, session });
        Some(Route { place, caller, profile, conn: conn.clone(), is_message, outgoing })
    }
}

impl Visit {
    /// Passes on a request whose head came before, as its route says.
    pub(super) async fn forward_repeated(
        &self,
        request: &Repeated<Route>,
        body: Bytes,
        head_timeout: Option<Duration>,
    ) -> Result<Answered, Fault> {
        let passage = Passage { policy: &self.backend.policy, conn: &self.conn, head_timeout };
        let forwarding = self.backend.upstream.forward_repeated(&request.route().outgoing, body, passage);
        forwarding.await.map_err(|fault| self.shared.blame(fault))
    }
}

/// Carries a request whose head came before.
pub(super) async fn carry_repeated(request: Repeated<Route>, body: Bytes) -> Answered {
    let Route { place, caller, profile, conn, is_message, .. } = request.route();
    let shared = &place.shared;
    let is_old_transport = shared.streams.session_of(target_of(request.head().uri())).is_some();
    if is_old_transport || body.len() > shared.config.limits.body_peek {
        return Box::pin(carry(Arc::clone(shared), request.with_body(body), conn.clone())).await.into();
    }
    let mut visit = Visit {
        place: Arc::clone(place),
        caller: Arc::clone(caller),
        origin: None,
        profile: profile.clone(),
        conn: conn.clone(),
        started: shared.clock.now(),
        old_transport: None,
    };
    if *is_message {
        return mcp::read(&mut visit, Posted::Repeated(request, body)).await;
    }
    visit.backend.metrics.request(RequestKind::Passthrough);
    match visit.forward_repeated(&request, body, visit.head_timeout()).await {
        Ok(Answered::Response(response)) => visit.bounded(*response).into(),
        Ok(whole) => whole,
        Err(fault) => gateway_error(&fault).into(),
    }
}
