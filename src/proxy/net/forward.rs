//! Carrying a request to the backend and its answer back: what changes in the heads, and nothing else (DESIGN 3).

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Request, Response, StatusCode, Uri, Version, request, uri};
use http_body::Body as _;
use hyper::upgrade::OnUpgrade;

use super::body::Body;
use super::conn::ConnInfo;
use super::fault::Fault;
use super::interim::Relay;
use super::plain::{Call, Outgoing};
use super::service::Answered;
use super::upgrade::tunnel;
use super::upstream::{HttpVersion, Upstream};
use crate::http::{forwarded, hop};
use crate::rules::TransportFault;

const HTTP2_SETTINGS: HeaderName = HeaderName::from_static("http2-settings");

/// Which `Host` a backend sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum HostPolicy {
    /// The dispatcher's.
    #[default]
    Preserve,
    /// The backend's own address, as configured.
    Rewrite,
}

/// What this proxy says about itself. By default nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardPolicy {
    /// Which `Host` the backend sees.
    pub host: HostPolicy,
    /// Append to `Via`, in both directions.
    pub via: bool,
    /// Append to `X-Forwarded-For`, set `X-Forwarded-Host` and `X-Forwarded-Proto`.
    pub x_forwarded: bool,
    /// Append to `Forwarded`.
    pub forwarded: bool,
    /// How long an upgraded connection may carry nothing. Default 1 h.
    pub tunnel_idle: Duration,
}

impl Default for ForwardPolicy {
    fn default() -> ForwardPolicy {
        ForwardPolicy {
            host: HostPolicy::Preserve,
            via: false,
            x_forwarded: false,
            forwarded: false,
            tunnel_idle: Duration::from_secs(3600),
        }
    }
}

/// Put among the extensions of a request: called once, when the connection that the request was upgraded to has ended.
#[derive(Clone)]
pub struct OnTunnelEnd(pub Arc<dyn Fn() + Send + Sync>);

impl fmt::Debug for OnTunnelEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnTunnelEnd")
    }
}

/// The head of requests as it goes to a backend, but for the length of the body.
#[derive(Debug)]
pub(in crate::proxy) struct OutgoingHead(Outgoing);

/// The circumstances of one request.
#[derive(Clone, Copy, Debug)]
pub struct Passage<'a> {
    /// What is said about this proxy.
    pub policy: &'a ForwardPolicy,
    /// Where the request came from.
    pub conn: &'a ConnInfo,
    /// How long the head of the answer may take; `None` for streams.
    pub head_timeout: Option<Duration>,
}

impl Upstream {
    /// Sends `request` as it came, but for what belongs to the connection, and gives the answer likewise. Its body streams
    /// in both directions. An accepted upgrade is joined to the dispatcher's connection; the answer is then its 101.
    ///
    /// The target is the path and query of `request`'s URI; `Expect: 100-continue` is kept only while the body is still
    /// the dispatcher's own. Dropping the future or the answer's body ends the stream at the backend at once.
    ///
    /// # Errors
    /// The fault, with `sent` telling whether the backend may have seen the request. It is never sent twice.
    pub async fn forward(&self, request: Request<Body>, passage: Passage<'_>) -> Result<Response<Body>, Fault> {
        let (mut parts, body) = request.into_parts();
        let received = parts.version;
        let downstream = parts.extensions.remove::<OnUpgrade>();
        let on_end = parts.extensions.remove::<OnTunnelEnd>();
        let wanted = match (&downstream, self.settings().http) {
            (Some(_), HttpVersion::One) => hop::upgrade(&parts.headers),
            _ => None,
        };
        self.rewrite(&mut parts, &body, passage, wanted.clone())?;
        let mut response = self.carry(Request::from_parts(parts, body), received, passage).await?;
        // A proxy answers in its own version (RFC 9110, 6.2).
        *response.version_mut() = Version::HTTP_11;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            finish_response(response.headers_mut(), passage.policy, received)?;
            return Ok(response);
        }
        let (Some(downstream), Some(_), Some(agreed)) = (downstream, wanted, hop::upgrade(response.headers())) else {
            return Err(Fault::upstream(TransportFault::Protocol, true, "the backend switched protocols unasked"));
        };
        let upstream = hyper::upgrade::on(&mut response);
        let idle = passage.policy.tunnel_idle;
        passage.conn.link.tunnels.carry(tunnel(downstream, upstream, idle), move || {
            if let Some(OnTunnelEnd(tell)) = on_end {
                tell();
            }
        });
        hop::strip(response.headers_mut());
        hop::set_upgrade(response.headers_mut(), agreed);
        Ok(response)
    }

    /// The head of plain requests that goes to the backend for this one as it came over this connection, whatever length it
    /// states; `None` where the backend cannot be asked by such.
    pub(in crate::proxy) fn outgoing(
        &self,
        head: Request<()>,
        policy: &ForwardPolicy,
        conn: &ConnInfo,
    ) -> Option<OutgoingHead> {
        if self.settings().http != HttpVersion::One || !conn.link.plain {
            return None;
        }
        let (mut parts, ()) = head.into_parts();
        let passage = Passage { policy, conn, head_timeout: None };
        self.rewrite(&mut parts, &Body::empty(), passage, None).ok()?;
        Outgoing::of(parts).map(OutgoingHead)
    }

    /// [`forward`](Upstream::forward) for a request whose head was made by [`outgoing`](Upstream::outgoing), with the same
    /// policy and for the same connection.
    ///
    /// # Errors
    /// As those of `forward`.
    pub(in crate::proxy) async fn forward_repeated(
        &self,
        OutgoingHead(head): &OutgoingHead,
        body: Bytes,
        passage: Passage<'_>,
    ) -> Result<Answered, Fault> {
        let finish = |headers: &mut HeaderMap| finish_response(headers, passage.policy, Version::HTTP_11);
        let call = Call::repeated(head, body, passage.head_timeout, passage.conn.link.turn.clone());
        match self.send_plain(call, Some(&finish)).await? {
            whole @ Answered::Whole(_) => Ok(whole),
            Answered::Response(mut response) => {
                *response.version_mut() = Version::HTTP_11;
                finish(response.headers_mut())?;
                Ok(Answered::Response(response))
            }
        }
    }

    /// Sends what is ready to be sent, by the way that fits it.
    async fn carry(
        &self,
        request: Request<Body>,
        received: Version,
        passage: Passage<'_>,
    ) -> Result<Response<Body>, Fault> {
        let (link, one) = (&passage.conn.link, self.settings().http == HttpVersion::One);
        if let Some(length) = request.body().size_hint().exact().filter(|_| link.plain && one) {
            let call = Call::new(request, length, passage.head_timeout, link.turn.clone());
            return self.send_plain(call, None).await.map(Answered::into_response);
        }
        let relay = match &link.turn {
            // An HTTP/1.0 dispatcher knows no interim answers (RFC 9110, 15.2).
            Some(turn) if received == Version::HTTP_11 && one => {
                // The connection's own task polls this.
                let waker = poll_fn(|cx| Poll::Ready(cx.waker().clone())).await;
                Some(Relay::of(Arc::clone(turn), waker))
            }
            _ => None,
        };
        Box::pin(self.send(request, passage.head_timeout, relay)).await
    }

    fn rewrite(
        &self,
        parts: &mut request::Parts,
        body: &Body,
        passage: Passage<'_>,
        upgrade: Option<HeaderValue>,
    ) -> Result<(), Fault> {
        let received = parts.version;
        let host = self.host(parts, passage.policy.host);
        let asked = asked_host(parts);
        hop::strip(&mut parts.headers);
        parts.headers.remove(HTTP2_SETTINGS);
        if let Some(protocol) = upgrade {
            hop::set_upgrade(&mut parts.headers, protocol);
        }
        if !body.is_downstream() || self.settings().http == HttpVersion::Two {
            parts.headers.remove(header::EXPECT);
        }
        let (policy, peer) = (passage.policy, passage.conn.peer);
        if policy.via {
            forwarded::add_via(&mut parts.headers, received);
        }
        if policy.x_forwarded {
            forwarded::add_x_forwarded(&mut parts.headers, peer, asked.as_ref());
        }
        if policy.forwarded {
            forwarded::add_forwarded(&mut parts.headers, peer, asked.as_ref());
        }
        match self.settings().http {
            HttpVersion::One => to_h1(parts, host),
            HttpVersion::Two => to_h2(parts, host.as_ref()),
        }
    }

    fn host(&self, parts: &request::Parts, policy: HostPolicy) -> Option<HeaderValue> {
        match policy {
            HostPolicy::Preserve => asked_host(parts).or_else(|| self.own_host()),
            HostPolicy::Rewrite => self.own_host(),
        }
    }

    fn own_host(&self) -> Option<HeaderValue> {
        let settings = self.settings();
        let host = if settings.host.contains(':') && !settings.host.starts_with('[') {
            format!("[{}]", settings.host)
        } else {
            settings.host.clone()
        };
        let text = if settings.port == 80 { host } else { format!("{host}:{}", settings.port) };
        HeaderValue::from_str(&text).ok()
    }
}

/// The host that the dispatcher asked for: that of an absolute target, or of `:authority`, goes before the field
/// (RFC 9112, 3.2.2).
fn asked_host(parts: &request::Parts) -> Option<HeaderValue> {
    match parts.uri.authority() {
        // Whatever stands before an `@` is no host (RFC 9110, 4.2.4).
        Some(authority) => {
            let host = authority.as_str().rsplit('@').next().unwrap_or_default();
            HeaderValue::from_str(host).ok()
        }
        None => parts.headers.get(header::HOST).cloned(),
    }
}

fn to_h1(parts: &mut request::Parts, host: Option<HeaderValue>) -> Result<(), Fault> {
    if parts.version == Version::HTTP_2 {
        join_cookies(&mut parts.headers);
    }
    if let Some(host) = host
        && parts.headers.get(header::HOST) != Some(&host)
    {
        parts.headers.insert(header::HOST, host);
    }
    if parts.headers.contains_key(header::TE) {
        parts.headers.append(header::CONNECTION, HeaderValue::from_static("te"));
    }
    if parts.uri.authority().is_some() {
        parts.uri = origin_form(&parts.uri)?;
    }
    parts.version = Version::HTTP_11;
    Ok(())
}

fn to_h2(parts: &mut request::Parts, host: Option<&HeaderValue>) -> Result<(), Fault> {
    parts.headers.remove(header::HOST);
    let unusable = |_| Fault::downstream(TransportFault::Protocol, "the request's host or target is not valid");
    let authority = host.map(HeaderValue::as_bytes).unwrap_or_default();
    let mut target = uri::Parts::default();
    target.scheme = Some(uri::Scheme::HTTP);
    target.authority = Some(uri::Authority::try_from(authority).map_err(unusable)?);
    target.path_and_query = Some(match parts.uri.path_and_query() {
        Some(path) => path.clone(),
        None => uri::PathAndQuery::from_static("/"),
    });
    parts.uri = Uri::from_parts(target)
        .map_err(|_| Fault::downstream(TransportFault::Protocol, "the request's target is not valid"))?;
    parts.version = Version::HTTP_2;
    Ok(())
}

fn origin_form(uri: &Uri) -> Result<Uri, Fault> {
    let path = uri.path_and_query().cloned().unwrap_or_else(|| uri::PathAndQuery::from_static("/"));
    let mut target = uri::Parts::default();
    target.path_and_query = Some(path);
    Uri::from_parts(target)
        .map_err(|_| Fault::downstream(TransportFault::Protocol, "the request's target is not valid"))
}

/// HTTP/2 splits `Cookie` for compression; HTTP/1.1 allows one field only (RFC 9113, 8.2.3).
fn join_cookies(headers: &mut HeaderMap) {
    let crumbs: Vec<&[u8]> = headers.get_all(header::COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if crumbs.len() > 1
        && let Ok(whole) = HeaderValue::from_bytes(&crumbs.join(&b"; "[..]))
    {
        headers.insert(header::COOKIE, whole);
    }
}

fn finish_response(headers: &mut HeaderMap, policy: &ForwardPolicy, received: Version) -> Result<(), Fault> {
    if headers.contains_key(header::TRANSFER_ENCODING) {
        if hop::tokens(headers, &header::TRANSFER_ENCODING).any(|t| !t.eq_ignore_ascii_case("chunked")) {
            return Err(Fault::upstream(
                TransportFault::Protocol,
                true,
                "the backend used a transfer coding nobody asked for",
            ));
        }
        // The chunks are what counts (RFC 9112, 6.3); a length beside them would cut the answer off.
        headers.remove(header::CONTENT_LENGTH);
    }
    hop::strip(headers);
    if policy.via {
        forwarded::add_via(headers, received);
    }
    Ok(())
}
