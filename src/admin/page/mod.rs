//! The status page (DESIGN 15): views made on the server, which need no script, and a small script that keeps them live.
//!
//! - `view`: what every view has around it. `words`: times, statuses and days as views show them.
//! - `tools`, `rules`, `explain`, `integrations`, `events`, `settings`: one view each, with its template of the same name.
//! - `session`: signing in with a browser, where that is needed.
//! - `style.css`, `live.js`, `icon.svg`: served from here too; nothing comes from anywhere else.
//!
//! All text is escaped by the templates (askama), and the policy of each answer lets nothing run but `live.js`.

mod events;
mod explain;
mod integrations;
mod rules;
mod session;
mod settings;
mod tools;
mod view;
mod words;

use std::collections::BTreeMap;
use std::sync::Arc;

use askama::Template;
use axum::extract::rejection::FormRejection;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, LOCATION, ORIGIN, SET_COOKIE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Form, Router};

use super::audit::{self, Changed};
use super::guard::{self, Entrance};
use super::principal::Principal;
use super::query::Path;
use super::routes::{Route, anybody, page};
use super::{Admin, refuse};

pub use session::Sessions;
use view::Frame;

/// What a browser may do with an answer: show it, run `live.js`, ask us, send forms to us.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// How the audit log names signing in.
const LOGIN: &str = "POST /login";

/// The paths of the page.
pub(super) const PAGES: &[Route] = &[
    page("GET", "/"),
    page("GET", "/tools/{backend}/{tool}"),
    page("GET", "/integrations"),
    page("GET", "/rules"),
    page("GET", "/explain"),
    page("POST", "/explain"),
    page("GET", "/events"),
    page("GET", "/config"),
    page("POST", "/logout"),
    anybody("GET", "/page/{file}"),
    anybody("POST", "/login"),
];

/// The routes of the page.
pub(super) fn router(body: usize) -> Router<Arc<Admin>> {
    Router::new()
        .route("/", get(tools::all))
        .route("/tools/{backend}/{tool}", get(tools::one))
        .route("/integrations", get(integrations::all))
        .route("/rules", get(rules::all))
        .route("/explain", get(explain::form).post(explain::answer))
        .route("/events", get(events::all))
        .route("/config", get(settings::all))
        .route("/login", post(login))
        .route("/logout", post(logout))
        .route("/page/{file}", get(file))
        .layer(DefaultBodyLimit::max(body))
}

/// What a form holds.
type Filled = Result<Form<BTreeMap<String, String>>, FormRejection>;

/// A view as an answer.
fn show(status: StatusCode, view: &impl Template) -> Response {
    match view.render() {
        Ok(html) => {
            let headers = [
                (CONTENT_TYPE, "text/html; charset=utf-8"),
                (CACHE_CONTROL, "no-store"),
                (HeaderName::from_static("content-security-policy"), POLICY),
                (HeaderName::from_static("x-content-type-options"), "nosniff"),
                (HeaderName::from_static("referrer-policy"), "same-origin"),
                (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
            ];
            (status, headers, html).into_response()
        }
        Err(_) => {
            refuse(StatusCode::INTERNAL_SERVER_ERROR, "the page cannot be written", "this is a mistake of toolvane")
        }
    }
}

/// Signing in.
#[derive(Debug, Template)]
#[template(path = "login.html")]
struct Login {
    frame: Frame,
    next: String,
    wrong: bool,
}

/// Whether a refused request is a browser's for a view, which gets the form to sign in rather than a problem document.
pub(super) fn wants_to_sign_in(method: &Method, uri: &Uri) -> bool {
    *method == Method::GET && PAGES.iter().any(|page| super::routes::fits(page.path, uri.path()))
}

/// The form to sign in, in the place of the view that was asked for.
pub(super) fn sign_in(admin: &Admin, uri: &Uri) -> Response {
    let next = uri.path_and_query().map_or("/", |next| next.as_str()).to_owned();
    show(StatusCode::UNAUTHORIZED, &Login { frame: Frame::stranger(admin), next, wrong: false })
}

/// `POST /login`: a token for a cookie. Addressed and guarded like every write, and told to the audit log.
async fn login(
    State(admin): State<Arc<Admin>>,
    Extension(entrance): Extension<Entrance>,
    (method, uri, headers): (Method, Uri, HeaderMap),
    filled: Filled,
) -> Response {
    if let Err(refusal) = guard::at_the_door(&admin, entrance, &headers, (&method, &uri)) {
        return *refusal;
    }
    let Form(filled) = match filled {
        Ok(filled) => filled,
        Err(rejection) => return unreadable(&rejection),
    };
    let text = |name: &str| filled.get(name).map(|value| value.trim()).unwrap_or_default();
    let next = own_path(text("next"));
    let Some(who) = admin.tokens.owner(text("token")) else {
        let nobody = Principal::new(guard::NOBODY, &[]);
        audit::record(&admin, &nobody, LOGIN, "no such token", (false, Changed::default()));
        let frame = Frame::stranger(&admin);
        return show(StatusCode::UNAUTHORIZED, &Login { frame, next: next.to_owned(), wrong: true });
    };
    audit::record(&admin, who, LOGIN, "signed in", (true, Changed::default()));
    let over_tls = headers.get(ORIGIN).is_some_and(|origin| origin.as_bytes().starts_with(b"https://"));
    elsewhere(next, &admin.sessions.begin(who, admin.clock.now().wall, over_tls))
}

/// `POST /logout`.
async fn logout(State(admin): State<Arc<Admin>>) -> Response {
    elsewhere("/", &admin.sessions.end())
}

fn elsewhere(to: &str, cookie: &str) -> Response {
    let mut response = StatusCode::SEE_OTHER.into_response();
    for (name, value) in [(LOCATION, to), (SET_COOKIE, cookie)] {
        if let Ok(value) = HeaderValue::from_str(value) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// A path of ours: what begins with two slashes would lead to another host.
fn own_path(next: &str) -> &str {
    let path = next.split('?').next().unwrap_or_default();
    let ours = PAGES.iter().any(|page| page.method == "GET" && super::routes::fits(page.path, path));
    if ours && !next.contains(['\\', '\r', '\n']) { next } else { "/" }
}

/// A text as a part of a query.
fn part(text: &str) -> String {
    crate::config::percent_encoded(text)
}

fn unreadable(rejection: &FormRejection) -> Response {
    refuse(rejection.status(), "the form cannot be read", rejection.body_text())
}

const FILES: [(&str, &str, &str); 3] = [
    ("style.css", "text/css; charset=utf-8", include_str!("style.css")),
    ("live.js", "text/javascript; charset=utf-8", include_str!("live.js")),
    ("icon.svg", "image/svg+xml", include_str!("icon.svg")),
];

/// `GET /page/{file}`.
async fn file(Path(wanted): Path<String>, request: Request) -> Response {
    let Some((name, kind, text)) = FILES.into_iter().find(|(name, ..)| *name == wanted) else {
        let detail = format!("there are {}", FILES.map(|(name, ..)| name).join(", "));
        return refuse(StatusCode::NOT_FOUND, "no such file", detail);
    };
    let tag = format!("\"{}\"", version(name));
    let known = HeaderValue::from_str(&tag).is_ok_and(|tag| super::target::is_known(request.headers(), &tag));
    let headers = [
        (CONTENT_TYPE, kind),
        (CACHE_CONTROL, "no-cache"),
        (ETAG, tag.as_str()),
        (HeaderName::from_static("content-security-policy"), POLICY),
        (HeaderName::from_static("x-content-type-options"), "nosniff"),
    ];
    if known { (StatusCode::NOT_MODIFIED, headers).into_response() } else { (headers, text).into_response() }
}

/// What a file holds, in a few letters.
fn version(name: &str) -> String {
    let text = FILES.into_iter().find(|(known, ..)| *known == name).map_or("", |(_, _, text)| text);
    blake3::hash(text.as_bytes()).to_hex().chars().take(16).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_signing_in_one_is_led_to_a_view_of_ours_and_nowhere_else() {
        for fine in ["/", "/rules?q=a", "/tools/demo/a%2Fb"] {
            assert_eq!(own_path(fine), fine);
        }
        for foreign in ["", "//evil.example/", "https://evil.example/", "/\\evil", "/v1/health", "/rules\r\nx: y"] {
            assert_eq!(own_path(foreign), "/", "{foreign:?}");
        }
    }

    #[test]
    fn the_files_reach_for_nothing_outside() {
        for (name, _, text) in FILES {
            let text = text.replace("http://www.w3.org/2000/svg", "");
            assert!(!text.contains("http:") && !text.contains("https:") && !text.contains("@import"), "{name}");
        }
    }
}
