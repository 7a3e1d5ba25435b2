//! `POST /v1/reload`: reads configuration and rules again.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::{Admin, refuse};

/// Reads configuration and rules again and puts them in force, or keeps what is.
pub trait Reload: Send + Sync {
    /// Reads files: may block.
    ///
    /// # Errors
    /// The report of every problem, with file, line and caret; what was in force still is.
    fn reload(&self) -> Result<Applied, String>;
}

/// What a reload put in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Applied {
    /// The name of what is in force, as in the log and in `toolvane_config_info`.
    pub hash: String,
    /// Whether that is something else than before.
    pub changed: bool,
    /// Keys of the configuration file that have changed since the start and take effect at a restart.
    pub needs_restart: Vec<String>,
}

/// `POST /v1/reload`: reads configuration and rules again and says what is in force, or 422 with the report; from loopback only.
pub(super) async fn reload(State(admin): State<Arc<Admin>>, headers: HeaderMap) -> Response {
    if !admin.writable || !is_ours(&headers) {
        let detail = "a reload is asked for from this machine, over a loopback listener, and not by a web page";
        return refuse(StatusCode::FORBIDDEN, "not from there", detail);
    }
    let reload = Arc::clone(&admin.reload);
    match tokio::task::spawn_blocking(move || reload.reload()).await {
        Ok(Ok(applied)) => Json(applied).into_response(),
        Ok(Err(report)) => refuse(StatusCode::UNPROCESSABLE_ENTITY, "the old rules stay in force", report),
        Err(_) => refuse(StatusCode::INTERNAL_SERVER_ERROR, "the reload failed", "this is a mistake of toolvane"),
    }
}

/// Whether a request names this machine as its host, and no other site as where it comes from: a page that a browser on this
/// machine shows can reach loopback too.
fn is_ours(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).map(|value: &axum::http::HeaderValue| value.to_str().unwrap_or_default());
    text(HOST).is_some_and(is_loopback)
        && text(ORIGIN).is_none_or(|origin| {
            origin.parse::<Uri>().ok().and_then(|uri| uri.authority().map(|host| is_loopback(host.as_str())))
                == Some(true)
        })
}

fn is_loopback(authority: &str) -> bool {
    let host = match authority.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        None => authority.rsplit_once(':').map_or(authority, |(host, _)| host),
    };
    host.eq_ignore_ascii_case("localhost") || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_asks_for_a_reload_and_no_web_page() {
        for (host, origin, allowed) in [
            (Some("127.0.0.1:9090"), None, true),
            (Some("localhost:9090"), None, true),
            (Some("[::1]:9090"), None, true),
            (Some("localhost"), Some("http://localhost:9090"), true),
            (Some("127.0.0.1:9090"), Some("https://evil.example"), false),
            (Some("127.0.0.1:9090"), Some("null"), false),
            (Some("evil.example:9090"), None, false),
            (Some("127.0.0.1.evil.example"), None, false),
            (None, None, false),
        ] {
            let mut headers = HeaderMap::new();
            host.map(|host| headers.insert(HOST, host.parse().unwrap()));
            origin.map(|origin| headers.insert(ORIGIN, origin.parse().unwrap()));
            assert_eq!(is_ours(&headers), allowed, "{host:?} {origin:?}");
        }
    }
}
