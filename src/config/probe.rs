//! How an integration is asked whether it is set up: a request, what its answers mean, and how it is reached.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, Method};

use super::credential::{Template, secret, template};
use super::sections::{MINUTE, SECOND, path};
use crate::glob::Glob;
use crate::yaml::{At, Fields, Kind, Value};

/// Header fields that carry credentials: their values must be references.
const SECRET_HEADERS: [&str; 5] = ["authorization", "proxy-authorization", "cookie", "x-api-key", "api-key"];

/// One question to the service behind an integration.
#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    /// The exchange of a refresh token for an access token that goes before.
    pub oauth: Option<Oauth>,
    /// The request; `None` where the exchange alone is the question.
    pub request: Option<ProbeRequest>,
    /// What answers mean.
    pub meaning: Meaning,
    /// For the whole probe, the exchange included.
    pub timeout: Duration,
    /// How TLS is spoken.
    pub tls: ProbeTls,
    /// A proxy to go through; `None` goes directly, whatever the environment says.
    pub proxy: Option<Template>,
}

/// The request of a probe.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbeRequest {
    /// Its method.
    pub method: Method,
    /// Its URL.
    pub url: Template,
    /// Its header fields.
    pub headers: Vec<(HeaderName, Template)>,
    /// Its body.
    pub body: Option<Template>,
}

/// A refresh-token exchange (RFC 6749, 6).
#[derive(Clone, Debug, PartialEq)]
pub struct Oauth {
    /// The token endpoint.
    pub token_url: Template,
    /// The client.
    pub client_id: Template,
    /// Its secret; public clients have none.
    pub client_secret: Option<Template>,
    /// The refresh token.
    pub refresh_token: Template,
    /// The scope to ask for; left out: that of the refresh token.
    pub scope: Option<Arc<str>>,
}

/// What the answers of a probe mean. Conditions on the body go before those on the status alone; among equals the order is
/// that of the fields. What none of them names is an error.
#[derive(Clone, Debug, PartialEq)]
pub struct Meaning {
    /// The integration is not set up.
    pub unconfigured: Vec<Condition>,
    /// Its credentials are refused.
    pub auth_failed: Vec<Condition>,
    /// A blip.
    pub transient: Vec<Condition>,
    /// It is set up.
    pub ok: Vec<Condition>,
}

/// What an answer must be like.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// Its status lies within.
    Status(Statuses),
    /// There was none, for this reason.
    Fault(ProbeFault),
    /// Its JSON body is like this.
    Body {
        /// One of these statuses; empty: any.
        status: Vec<Statuses>,
        /// Pointers into the body and what must stand there, all of them.
        json: Vec<(Box<str>, Wanted)>,
    },
}

/// A run of HTTP statuses, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statuses(pub u16, pub u16);

/// Why a probe got no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProbeFault {
    /// Not in time.
    Timeout,
    /// No connection, or it broke.
    Connect,
}

/// What must stand at a JSON pointer.
#[derive(Clone, Debug, PartialEq)]
pub enum Wanted {
    /// Anything but null.
    Present,
    /// A text, number or truth value that fits one of these.
    OneOf(Vec<Glob>),
}

/// How TLS is spoken to a service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProbeTls {
    /// Authorities to trust in place of the system's, in PEM.
    pub ca_file: Option<PathBuf>,
    /// Our own certificate with its key, in PEM.
    pub client_file: Option<PathBuf>,
    /// Whether any certificate is taken.
    pub insecure: bool,
}

const REQUEST: &str = "Method and URL, such as `GET https://api.example/v1/me`. May hold references.";
const HEADERS: &str = "Header fields. Values of credential headers must be references such as `Bearer ${env:TOKEN}`.";
const OAUTH: &str = "Exchange a refresh token first; its access token is `${oauth:access_token}`, and goes out as \
    `authorization: Bearer` unless `headers` say otherwise. Not for services that give a new refresh token each time.";
const PROXY: &str = "URL of an HTTP proxy, with references; left out: directly, whatever the environment says.";
const MEANS: &str = "A status, `5xx`, `timeout`, `connect`, or `{status: …, json: {/pointer: value}}`; a list of them.";

pub(super) fn probe(at: At<'_>, directory: &Path) -> Option<Probe> {
    at.map(|f| {
        let oauth = f.opt("oauth", OAUTH, |at| at.map(|f| oauth(f, directory))?);
        let request = f.opt("request", REQUEST, |at| request(at, directory));
        let headers = f.opt("headers", HEADERS, |at| headers(at, directory)).unwrap_or_default();
        let body = f.opt("body", "The body, with references.", |at| template(at, directory));
        let timeout = f.duration("timeout", "For the whole probe.", 15 * SECOND, Duration::from_millis(10)..=MINUTE);
        let meaning = meaning(f);
        let tls = f.section("tls", "How TLS is spoken.", |f| tls(f, directory));
        let proxy = f.opt("proxy", PROXY, |at| template(at, directory));
        if !f.has("request") && !f.has("oauth") {
            let message = "a probe needs `request`, `oauth` or both";
            return f.at().fail_with(message, |problem| problem.help("`request: GET https://api.example/v1/me`"));
        }
        let request = request.map(|(method, url)| ProbeRequest { method, url, headers, body });
        let uses_token = request.as_ref().is_some_and(ProbeRequest::needs_token);
        if uses_token && !f.has("oauth") {
            let message = "`${oauth:access_token}` needs `oauth`, which says where the token comes from";
            return f.at().fail(message);
        }
        let request = request.map(|request| request.bearing(oauth.is_some() && !uses_token));
        Some(Probe { oauth, request, meaning, timeout, tls, proxy })
    })?
}

impl ProbeRequest {
    fn needs_token(&self) -> bool {
        let texts = self.headers.iter().map(|(_, value)| value).chain([&self.url]).chain(self.body.as_ref());
        texts.into_iter().any(Template::needs_token)
    }

    fn bearing(mut self, wanted: bool) -> ProbeRequest {
        if wanted && self.headers.iter().all(|(name, _)| name != http::header::AUTHORIZATION) {
            self.headers.push((http::header::AUTHORIZATION, Template::bearer()));
        }
        self
    }
}

fn oauth(f: &Fields<'_>, directory: &Path) -> Option<Oauth> {
    let token_url = f.need("token_url", "The token endpoint.", |at| url(at, directory));
    let client_id = f.need("client_id", "The client.", |at| template(at, directory));
    let client_secret = f.opt("client_secret", "A reference to its secret.", |at| secret(at, directory));
    let refresh_token = f.need("refresh_token", "A reference to the refresh token.", |at| secret(at, directory));
    let scope = f.opt("scope", "The scope to ask for; left out: that of the refresh token.", |at| at.line(1024));
    Some(Oauth { token_url: token_url?, client_id: client_id?, client_secret, refresh_token: refresh_token?, scope })
}

fn url(at: At<'_>, directory: &Path) -> Option<Template> {
    at.parse("a URL such as `https://api.example/token`", "^(https?://|\\$\\{)", |text| {
        if text.starts_with("http://") || text.starts_with("https://") || text.starts_with("${") {
            Template::parse(text, directory)
        } else {
            Err(String::new())
        }
    })
}

fn request(at: At<'_>, directory: &Path) -> Option<(Method, Template)> {
    at.parse("a method and a URL such as `GET https://api.example/v1/me`", "^[A-Z]+ +(https?://|\\$\\{)", |text| {
        let (method, url) = text.split_once(' ').ok_or_else(String::new)?;
        let url = url.trim();
        let known = url.starts_with("http://") || url.starts_with("https://") || url.starts_with("${");
        let upper = method.bytes().all(|byte| byte.is_ascii_uppercase());
        match method.parse() {
            Ok(method) if known && upper => Ok((method, Template::parse(url, directory)?)),
            _ => Err(String::new()),
        }
    })
}

fn headers(at: At<'_>, directory: &Path) -> Option<Vec<(HeaderName, Template)>> {
    let all = at.every_entry(|name, at| {
        let Ok(header) = HeaderName::try_from(&**name) else {
            return at.fail_key("this is not the name of a header field", |problem| problem);
        };
        let is_secret = SECRET_HEADERS.contains(&header.as_str());
        let value = if is_secret { secret(at, directory) } else { template(at, directory) };
        value.map(|value| (header, value))
    })?;
    Some(all.into_iter().map(|(_, header)| header).collect())
}

fn meaning(f: &Fields<'_>) -> Meaning {
    let one = |from, to| Condition::Status(Statuses(from, to));
    let transient = vec![
        one(408, 408),
        one(425, 425),
        one(429, 429),
        one(500, 599),
        Condition::Fault(ProbeFault::Timeout),
        Condition::Fault(ProbeFault::Connect),
    ];
    let ok = format!("It is set up. {MEANS}");
    Meaning {
        ok: conditions(f, "ok", &ok, (serde_json::json!(["2xx"]), vec![one(200, 299)])),
        unconfigured: conditions(f, "unconfigured", "It is not set up.", (serde_json::json!([]), Vec::new())),
        auth_failed: conditions(
            f,
            "auth_failed",
            "Its credentials are refused.",
            (serde_json::json!([401, 403]), vec![one(401, 401), one(403, 403)]),
        ),
        transient: conditions(
            f,
            "transient",
            "A blip: what was believed stays; a refusal that nothing confirms for two lifetimes (`ttl`) is forgotten.",
            (serde_json::json!([408, 425, 429, "5xx", "timeout", "connect"]), transient),
        ),
    }
}

fn conditions(
    f: &Fields<'_>,
    key: &'static str,
    doc: &str,
    (shown, default): (serde_json::Value, Vec<Condition>),
) -> Vec<Condition> {
    f.with_default(key, doc, Some(shown), |at| at.list(condition)).unwrap_or(default)
}

fn condition(at: At<'_>) -> Option<Condition> {
    at.by_kind(
        Kind::Map,
        |at| at.map(body)?,
        |at| {
            at.by_kind(
                Kind::Number,
                |at| number(at).map(Condition::Status),
                |at| {
                    at.parse(
                        "a status, `5xx`, `timeout` or `connect`",
                        "^([1-5]xx|timeout|connect)$",
                        |text| match text {
                            "timeout" => Ok(Condition::Fault(ProbeFault::Timeout)),
                            "connect" => Ok(Condition::Fault(ProbeFault::Connect)),
                            text => hundred(text).map(Condition::Status),
                        },
                    )
                },
            )
        },
    )
}

fn body(f: &Fields<'_>) -> Option<Condition> {
    let status = f.opt("status", "Statuses; left out: any.", |at| at.one_or_list(statuses)).unwrap_or_default();
    let json = f.need("json", "JSON pointers with a value (globs), or `true` for anything but null.", pointers)?;
    Some(Condition::Body { status, json })
}

fn statuses(at: At<'_>) -> Option<Statuses> {
    at.by_kind(Kind::Number, number, |at| at.parse("a status or `5xx`", "^[1-5]xx$", hundred))
}

fn number(at: At<'_>) -> Option<Statuses> {
    let status = u16::try_from(at.int(100..=599)?).ok()?;
    Some(Statuses(status, status))
}

fn hundred(text: &str) -> Result<Statuses, String> {
    match text.strip_suffix("xx").and_then(|digit| digit.parse::<u16>().ok()) {
        Some(digit @ 1..=5) => Ok(Statuses(digit * 100, digit * 100 + 99)),
        _ => Err(String::new()),
    }
}

fn pointers(at: At<'_>) -> Option<Vec<(Box<str>, Wanted)>> {
    let all = at.every_entry(|pointer, at| {
        if pointer.len() > 1024 || !(pointer.is_empty() || pointer.starts_with('/')) {
            return at.fail_key("a JSON pointer starts with `/`, such as `/error/code`", |problem| problem);
        }
        wanted(at)
    })?;
    Some(all.into_iter().map(|(pointer, wanted)| (Box::from(&*pointer), wanted)).collect())
}

fn wanted(at: At<'_>) -> Option<Wanted> {
    at.by_kind(
        Kind::Bool,
        |at| if at.bool()? { Some(Wanted::Present) } else { Glob::new("false").ok().map(|no| Wanted::OneOf(vec![no])) },
        |at| at.one_or_list(scalar).map(Wanted::OneOf),
    )
}

/// A value as text: `false` and `7` stand for what JSON writes so.
fn scalar(at: At<'_>) -> Option<Glob> {
    let as_text = |at: At<'_>| {
        let text = match at.value()? {
            Value::Bool(value) => value.to_string(),
            Value::Int(value) => value.to_string(),
            _ => return at.wrong("a text, a whole number, `true` or `false`"),
        };
        Glob::new(&text).ok()
    };
    at.by_kind(
        Kind::Bool,
        |at| at.bool().and_then(|_| as_text(at)),
        |at| at.by_kind(Kind::Number, |at| at.int(i64::MIN..=i64::MAX).and_then(|_| as_text(at)), |at| at.glob()),
    )
}

fn tls(f: &Fields<'_>, directory: &Path) -> ProbeTls {
    ProbeTls {
        ca_file: f.opt("ca_file", "Authorities to trust in place of the system's, in PEM.", |at| path(at, directory)),
        client_file: f.opt("client_file", "Our certificate with its key, in PEM.", |at| path(at, directory)),
        insecure: f.flag("insecure", "Take any certificate: for trying things out, never for real.", false),
    }
}

impl Statuses {
    /// Whether the status lies within.
    pub fn contains(self, status: u16) -> bool {
        (self.0..=self.1).contains(&status)
    }
}
