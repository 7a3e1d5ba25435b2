//! One upstream: an MCP server or an HTTP tool API, and how it is spoken to.

use std::num::NonZeroU16;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http::Uri;

use super::access::{self, Lists};
use super::location;
use super::matching::{Match, matching};
use super::route::{Routes, routes};
use super::sections::{DAY, HOUR, MINUTE, SECOND};
use crate::fetch::Location;
use crate::yaml::{At, Fields, Place};

/// Longest name of a backend, in bytes.
const NAME_MAX: usize = 64;
const URL_FORM: &str = "a URL such as `http://127.0.0.1:9000/mcp`";
const NAME_FORM: &str = "1 to 64 of a-z, 0-9, `_`, `.` and `-`";

/// An upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backend {
    /// Its name in health documents, metrics and logs; unique.
    pub name: Arc<str>,
    /// What it speaks.
    pub kind: BackendKind,
    /// Where it is: scheme, authority, and for an MCP server the path of its endpoint. Never with user, query or
    /// fragment.
    pub url: Uri,
    /// Which downstream requests go to it.
    pub matching: Match,
    /// Which `Host` it sees.
    pub host: HostPolicy,
    /// Which headers tell it about downstream.
    pub forwarded: Forwarded,
    /// Which HTTP it is spoken to in.
    pub http: HttpVersion,
    /// How long is waited for what.
    pub timeouts: Timeouts,
    /// Connections kept open.
    pub pool: Pool,
    /// The requests that are tool calls; empty for an MCP server.
    pub routes: Routes,
    /// The OpenAPI document that names further tools; `routes` go before it.
    pub openapi: Option<Location>,
    /// Whether an MCP `ping` confirms that it is back, after the connect.
    pub mcp_ping: bool,
    /// What backs tools for which neither a pattern nor the backend itself says so.
    pub integration: Option<Arc<str>>,
    /// Which of its tools may be listed and called at all.
    pub lists: Lists,
}

impl Backend {
    /// Host and port of its address.
    pub fn address(&self) -> (&str, u16) {
        (self.address_host(), self.port())
    }

    /// The host of its address, without brackets for IPv6.
    pub fn address_host(&self) -> &str {
        self.url.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']')
    }

    /// The port of its address.
    pub fn port(&self) -> u16 {
        self.url.port_u16().unwrap_or(80)
    }
}

/// What a backend speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BackendKind {
    /// MCP over HTTP, in any of its transports.
    Mcp,
    /// Plain HTTP; routes name the tools.
    Http,
}

/// Which `Host` a backend sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum HostPolicy {
    /// The one that downstream sent.
    #[default]
    Preserve,
    /// That of its own address.
    Rewrite,
}

/// Which HTTP a backend is spoken to in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum HttpVersion {
    /// HTTP/1.1.
    #[default]
    Http1,
    /// HTTP/2 without TLS, known beforehand.
    Http2,
}

/// Which headers tell a backend about downstream. All off: it sees what downstream sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Forwarded {
    /// `Via`, on requests and answers.
    pub via: bool,
    /// `X-Forwarded-For`, `-Host` and `-Proto`.
    pub x_forwarded: bool,
    /// `Forwarded` of RFC 7239.
    pub forwarded: bool,
}

/// How long is waited for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For a connection.
    pub connect: Duration,
    /// For the head of the answer to a tool call.
    pub response: Duration,
    /// For the next byte of a stream; `None` for ever. There is no limit on a whole stream.
    pub idle: Option<Duration>,
}

/// Connections kept open for the next call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool {
    /// How long; must be below the backend's own limit (5 s in Node.js).
    pub idle: Duration,
    /// How many.
    pub max_idle: usize,
}

/// Where parts of a backend stand, for what is wrong between backends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marks {
    pub(super) name: Place,
    pub(super) url: Place,
    pub(super) matching: Place,
    pub(super) integration: Place,
}

const KINDS: [(&str, BackendKind); 2] = [("mcp", BackendKind::Mcp), ("http", BackendKind::Http)];
const HOSTS: [(&str, HostPolicy); 2] = [("preserve", HostPolicy::Preserve), ("rewrite", HostPolicy::Rewrite)];

const NAME: &str = "Name in health documents, metrics and logs; unique.";
const KIND: &str = "`mcp`: an MCP server; `http`: an HTTP API whose routes name the tools.";
const URL: &str = "Its address, for `kind: mcp` with the path of the MCP endpoint: `http://127.0.0.1:9000/mcp`.";
const MATCH: &str = "Which downstream requests go to it; left out: all. \
    A request's own host goes before any host, then the longest path prefix.";
const HOST: &str = "`preserve`: the backend sees the `Host` that downstream sent; `rewrite`: that of its own address.";
const ROUTES: &str = "Requests that are tool calls, for `kind: http`; all others pass unjudged.";

const INTEGRATION: &str = "What backs all its tools, unless a tool says otherwise: a name of `integrations`.";

const OPENAPI: &str = "An OpenAPI document (3.0 or 3.1; a path or a URL) whose operations are tools by their `operationId`, \
    for `kind: http`. `routes` go before it.";

pub(super) fn backend(at: At<'_>, directory: &Path) -> Option<(Arc<Backend>, Marks)> {
    at.map(|f| {
        let mut marks = Marks { name: at.place(), url: at.place(), matching: at.place(), integration: at.place() };
        let name = f.need("name", NAME, |at| {
            marks.name = at.place();
            marks.matching = at.place();
            at.parse(NAME_FORM, "^[a-z0-9_.-]{1,64}$", name)
        });
        let kind = f.need("kind", KIND, |at| at.word(&KINDS));
        let url = f.need("url", URL, |at| {
            marks.url = at.place();
            at.parse(URL_FORM, "^http://[^/?#@\\s]+(/[^?#\\s]*)?$", url)
        });
        let matches = f.opt("match", MATCH, |at| {
            marks.matching = at.place();
            at.map(matching)
        });
        let host = f.word("host", HOST, HostPolicy::Preserve, &HOSTS);
        let forwarded = f.section("forwarded", "Headers that tell the backend about downstream.", forwarded);
        let http = http_version(f);
        let timeouts = f.section("timeouts", "How long is waited for what.", timeouts);
        let pool = f.section("pool", "Connections kept open for the next call.", pool);
        let routes = f.opt("routes", ROUTES, routes).unwrap_or_default();
        let openapi = f.opt("openapi", OPENAPI, |at| location::text(at, directory));
        let mcp_ping = f.section("probe", "How it is asked whether it is back.", mcp_ping);
        let integration = f.opt("integration", INTEGRATION, |at| {
            marks.integration = at.place();
            at.line(64)
        });
        let lists = access::lists(f);
        let matching = matches.unwrap_or_default();
        let (name, kind, url) = (name?, kind?, url?);
        let backend = Backend {
            name,
            kind,
            url,
            matching,
            host,
            forwarded,
            http,
            timeouts,
            pool,
            routes,
            openapi,
            mcp_ping,
            integration,
            lists,
        };
        fits_its_kind(f, &backend).map(|()| (Arc::new(backend), marks))
    })?
}

fn mcp_ping(f: &Fields<'_>) -> bool {
    f.flag("mcp_ping", "Send an MCP `ping` after the connect, for `kind: mcp`.", false)
}

fn fits_its_kind(f: &Fields<'_>, backend: &Backend) -> Option<()> {
    match backend.kind {
        BackendKind::Mcp if f.has("routes") => f.fail("routes", "`routes` are for `kind: http`", |problem| {
            problem.help("an MCP server names its tools itself: remove `routes`")
        }),
        BackendKind::Mcp if f.has("openapi") => f.fail("openapi", "`openapi` is for `kind: http`", |problem| {
            problem.help("an MCP server names its tools itself: remove `openapi`")
        }),
        BackendKind::Http if !f.has("routes") && !f.has("openapi") => {
            f.fail("kind", "a backend of `kind: http` needs `routes` or `openapi`", |problem| {
                problem.help("`routes: [{tool: get_item, method: GET, path: \"/v1/items/{id}\"}]`; `[]` judges nothing")
            })
        }
        BackendKind::Http if backend.mcp_ping => f.fail("probe", "`mcp_ping` is for `kind: mcp`", |problem| {
            problem.help("a backend of `kind: http` is asked by a connect: remove `mcp_ping`")
        }),
        BackendKind::Http if backend.url.path() != "/" => {
            f.fail("url", "the `url` of a backend of `kind: http` has no path", |problem| {
                problem.help("paths pass unchanged; name them in `match.path_prefix` and in the routes")
            })
        }
        _ => Some(()),
    }
}

fn name(text: &str) -> Result<Arc<str>, String> {
    let known = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'.' | b'-');
    if (1..=NAME_MAX).contains(&text.len()) && text.bytes().all(known) {
        Ok(Arc::from(text))
    } else {
        Err(String::new())
    }
}

fn url(text: &str) -> Result<Uri, String> {
    let uri: Uri = text.parse().map_err(|_| String::new())?;
    match uri.scheme_str() {
        Some("http") => {}
        Some("https") => return Err("TLS to a backend is not supported yet, use `http`".to_owned()),
        Some("unix") => return Err("unix sockets are not supported yet, use `http`".to_owned()),
        _ => return Err("it starts with `http://`".to_owned()),
    }
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err("leave out user and password, credentials of downstream pass on".to_owned());
    }
    if uri.query().is_some() || text.contains('#') {
        return Err("leave out what follows `?` or `#`".to_owned());
    }
    let authority = uri.authority().ok_or_else(String::new)?;
    let port = authority.as_str().strip_prefix(authority.host()).unwrap_or_default();
    let sound = port.is_empty() || port.strip_prefix(':').is_some_and(|digits| digits.parse::<NonZeroU16>().is_ok());
    match (authority.host().is_empty(), sound) {
        (true, _) => Err(String::new()),
        (_, false) => Err("the port is between 1 and 65535".to_owned()),
        _ => Ok(uri),
    }
}

fn http_version(f: &Fields<'_>) -> HttpVersion {
    let doc = "1: HTTP/1.1; 2: HTTP/2 without TLS, known beforehand (h2c).";
    let version = f.count("http", doc, 1, 1..=2);
    if version == 2 { HttpVersion::Http2 } else { HttpVersion::Http1 }
}

fn forwarded(f: &Fields<'_>) -> Forwarded {
    Forwarded {
        via: f.flag("via", "Add `Via` to requests and answers.", false),
        x_forwarded: f.flag("x_forwarded", "Add `X-Forwarded-For`, `-Host` and `-Proto`.", false),
        forwarded: f.flag("forwarded", "Add `Forwarded` of RFC 7239.", false),
    }
}

fn timeouts(f: &Fields<'_>) -> Timeouts {
    let shortest = Duration::from_millis(10);
    let idle = "For the next byte of a stream, or `off`; there is no limit on a whole stream.";
    let timeouts = Timeouts {
        connect: f.duration("connect", "For a connection.", 5 * SECOND, shortest..=MINUTE),
        response: f.duration("response", "For the head of the answer to a tool call.", 5 * MINUTE, shortest..=HOUR),
        idle: f.duration_or_off("idle", idle, Some(HOUR), SECOND..=DAY),
    };
    if timeouts.connect > timeouts.response {
        let message = "`connect` must not be longer than `response`, which it is a part of";
        f.fail::<()>("connect", message, |problem| problem);
    }
    timeouts
}

fn pool(f: &Fields<'_>) -> Pool {
    let idle = "How long an unused connection is kept; below the backend's own limit, which is 5 s in Node.js.";
    let max_idle = "How many unused connections are kept; 0 opens one for every call.";
    Pool {
        idle: f.duration("idle", idle, 4 * SECOND, Duration::from_millis(100)..=10 * MINUTE),
        max_idle: f.count("max_idle", max_idle, 64, 0..=10_000),
    }
}
