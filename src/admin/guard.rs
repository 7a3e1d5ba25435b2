//! The door of the admin surface: is the request addressed to us, does it come from where it may, who asks, and may he. Every
//! write is told to the audit log, carried out or not.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, HOST, HeaderName, ORIGIN, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use axum::{Extension, http::Uri};

use super::audit::{self, Changed};
use super::principal::Principal;
use super::{Admin, page, refuse, routes};
use crate::config::{LocalWrites, Role};

/// How a request reached us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entrance {
    /// Over the unix socket: whoever may open it.
    Socket,
    /// Over a loopback address.
    Loopback,
    /// Over any other address.
    Network,
}

/// Who asks where nobody said so.
pub(super) const LOCAL: &str = "local";
pub(super) const NOBODY: &str = "nobody";

/// Lets a request in, or answers it.
pub(super) async fn guard(
    State(admin): State<Arc<Admin>>,
    Extension(entrance): Extension<Entrance>,
    mut request: Request,
    next: Next,
) -> Response {
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let Some(role) = routes::role(&method, uri.path()) else { return next.run(request).await };
    let asked = ask(&admin, entrance, &request, role);
    let who = match &asked {
        Ok(who) => who.clone(),
        Err((who, _)) => who.clone(),
    };
    let refused = asked.is_err();
    let mut response = match asked {
        Err((_, refusal)) if refusal.status() == StatusCode::UNAUTHORIZED && page::wants_to_sign_in(&method, &uri) => {
            page::sign_in(&admin, &uri)
        }
        Ok(who) => {
            request.extensions_mut().insert(who);
            next.run(request).await
        }
        Err((_, refusal)) => *refusal,
    };
    let changed: Option<Changed> = response.extensions_mut().remove();
    // Whoever is refused at the door is told of, whatever he wanted to send.
    let matters = routes::is_write(&method, uri.path()) || refused && !routes::is_read(&method);
    if matters && changed.as_ref().is_none_or(|changed| !changed.silent) {
        audit::tell(&admin, &who, (&method, &uri), response.status(), changed);
    }
    response
}

type Refused = (Principal, Box<Response>);

/// Who asks, if he may.
fn ask(admin: &Admin, entrance: Entrance, request: &Request, role: Role) -> Result<Principal, Refused> {
    let nobody = || Principal::new(NOBODY, &[]);
    let headers = request.headers();
    at_the_door(admin, entrance, headers, (request.method(), request.uri())).map_err(|refusal| (nobody(), refusal))?;
    let who = identify(admin, entrance, headers).map_err(|refusal| (nobody(), refusal))?;
    if who.may(role) {
        return Ok(who);
    }
    let refusal = if &*who.name == NOBODY || &*who.name == LOCAL {
        unauthorized(format!(
            "this takes a token with the role `{}`: `Authorization: Bearer …` (`admin.tokens`)",
            role.as_str()
        ))
    } else {
        let detail = format!("the token `{}` does not have the role `{}`", who.name, role.as_str());
        Box::new(refuse(StatusCode::FORBIDDEN, "not allowed", detail))
    };
    Err((who, refusal))
}

/// Whether a request is addressed to us and comes from where it may, whoever sends it.
pub(super) fn at_the_door(
    admin: &Admin,
    entrance: Entrance,
    headers: &HeaderMap,
    (method, uri): (&Method, &Uri),
) -> Result<(), Box<Response>> {
    addressed_to_us(admin, entrance, headers, uri)?;
    from_where_it_may(admin, headers, method)
}

fn identify(admin: &Admin, entrance: Entrance, headers: &HeaderMap) -> Result<Principal, Box<Response>> {
    if let Some(given) = headers.get(AUTHORIZATION) {
        let token = given.to_str().ok().and_then(|given| {
            let (scheme, token) = given.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
        });
        let owner = token.and_then(|token| admin.tokens.owner(token)).cloned();
        return owner.ok_or_else(|| unauthorized("`Authorization` holds no token that toolvane knows".to_owned()));
    }
    let writes = match (entrance, admin.access.local_writes) {
        (Entrance::Network, _) => {
            let reader = admin.sessions.reader(headers, &admin.tokens, admin.clock.now().wall);
            return Ok(reader.unwrap_or_else(|| Principal::new(NOBODY, &[])));
        }
        (Entrance::Socket, LocalWrites::Socket | LocalWrites::Loopback) => true,
        (Entrance::Loopback, LocalWrites::Loopback) => true,
        _ => false,
    };
    Ok(Principal::new(LOCAL, if writes { &[Role::Operator] } else { &[Role::Reader] }))
}

fn unauthorized(detail: String) -> Box<Response> {
    let mut response = refuse(StatusCode::UNAUTHORIZED, "no valid token", detail);
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"toolvane admin\""));
    Box::new(response)
}

/// A page of a stranger whose name was made to resolve to our address still says that name in `Host`.
fn addressed_to_us(admin: &Admin, entrance: Entrance, headers: &HeaderMap, uri: &Uri) -> Result<(), Box<Response>> {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).or_else(|| uri.authority().map(|it| it.as_str()));
    let Some(name) = host.map(host_name) else {
        if entrance == Entrance::Socket {
            return Ok(());
        }
        return Err(Box::new(refuse(StatusCode::BAD_REQUEST, "bad request", "`Host` is missing")));
    };
    let known = admin.access.hosts.iter().any(|host| host.eq_ignore_ascii_case(name));
    if known || entrance == Entrance::Socket || name.eq_ignore_ascii_case("localhost") || is_address(name) {
        return Ok(());
    }
    let detail =
        "the name in `Host` is not one of ours: use an address or `localhost`, or add the name to `admin.hosts`";
    Err(Box::new(refuse(StatusCode::MISDIRECTED_REQUEST, "wrong host", detail)))
}

fn host_name(authority: &str) -> &str {
    match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(rest),
        None => authority.rsplit_once(':').map_or(authority, |(name, _)| name),
    }
}

fn is_address(name: &str) -> bool {
    name.parse::<IpAddr>().is_ok()
}

/// A browser says where a request comes from; whoever is no browser does not.
fn from_where_it_may(admin: &Admin, headers: &HeaderMap, method: &Method) -> Result<(), Box<Response>> {
    const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let foreign = match (headers.get(ORIGIN), text(ORIGIN)) {
        (None, _) => !routes::is_read(method) && matches!(text(SITE), Some("cross-site" | "same-site")),
        (Some(_), None) => true,
        (Some(_), Some(origin)) => {
            let own = text(HOST).is_some_and(|host| origin.split_once("://").is_some_and(|(_, from)| from == host));
            !own && !admin.access.origins.iter().any(|known| known.eq_ignore_ascii_case(origin))
        }
    };
    if foreign {
        let detail = "this comes from a page of another origin; add it to `admin.origins` if it may";
        return Err(Box::new(refuse(StatusCode::FORBIDDEN, "foreign origin", detail)));
    }
    Ok(())
}
