//! Where a caller's identity is read from (DESIGN 5).

use std::net::IpAddr;
use std::sync::Arc;

use http::HeaderName;

use super::network::Network;
use crate::yaml::{At, Fields};

/// Longest identity written into the file, in bytes.
const NAME_MAX: usize = 128;

/// Where each part of a caller is looked for; of each list the first source that is present wins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// MCP session, or what stands for it.
    pub session: Vec<IdentitySource>,
    /// User; without any the caller is anonymous.
    pub user: Vec<IdentitySource>,
    /// Project; `default` if no source is present.
    pub project: Vec<IdentitySource>,
    /// Tenant; `default` if no source is present.
    pub tenant: Vec<IdentitySource>,
    /// Roles, a comma between two.
    pub roles: Vec<IdentitySource>,
    /// Whose identity headers are believed and passed on.
    pub trusted_sources: Vec<Network>,
}

/// One place where a part of the identity may stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdentitySource {
    /// The value of a request header.
    Header(HeaderName),
    /// A keyed hash of a request header that holds a credential; the credential itself is never kept.
    Credential(HeaderName),
    /// Always this.
    Static(Arc<str>),
}

impl Identity {
    /// Whether identity headers from this peer are believed.
    pub fn trusts(&self, peer: IpAddr) -> bool {
        self.trusted_sources.iter().any(|network| network.contains(peer))
    }

    /// Headers that are not passed on when they come from a peer that is not trusted. `mcp-session-id` and credentials
    /// always pass.
    pub fn identity_headers(&self) -> impl Iterator<Item = &HeaderName> {
        [&self.session, &self.user, &self.project, &self.tenant, &self.roles].into_iter().flatten().filter_map(
            |source| match source {
                IdentitySource::Header(name) if name != "mcp-session-id" => Some(name),
                _ => None,
            },
        )
    }

    /// Headers that hold credentials.
    pub fn credential_headers(&self) -> impl Iterator<Item = &HeaderName> {
        self.user.iter().filter_map(|source| match source {
            IdentitySource::Credential(name) => Some(name),
            _ => None,
        })
    }
}

pub(super) fn identity(f: &Fields<'_>) -> Identity {
    use IdentitySource::{Credential, Header, Static};
    let header = |name: &'static str| Header(HeaderName::from_static(name));
    let fallback = || Static(Arc::from("default"));
    let part = |key, doc, default: Vec<IdentitySource>| {
        f.with_default(key, doc, Some(shown(&default)), |at| at.list(source)).unwrap_or(default)
    };
    let user = vec![header("x-user-id"), Credential(http::header::AUTHORIZATION)];
    Identity {
        session: part("session", "What holds a session.", vec![header("mcp-session-id")]),
        user: part("user", "Who calls; without any the caller is anonymous.", user),
        project: part("project", PROJECT, vec![header("x-project-id"), fallback()]),
        tenant: part("tenant", TENANT, vec![header("x-tenant-id"), fallback()]),
        roles: part("roles", "The caller's roles, a comma between two.", vec![header("x-engine-roles")]),
        trusted_sources: trusted_sources(f),
    }
}

const PROJECT: &str = "The caller's project; `default` if no source is present.";
const TENANT: &str = "The caller's tenant; `default` if no source is present.";
const CREDENTIAL: &str = "A request header with a credential, of which only a keyed hash is used.";

fn trusted_sources(f: &Fields<'_>) -> Vec<Network> {
    let default = vec![Network::LOOPBACK_V4, Network::LOOPBACK_V6];
    let shown = default.iter().map(ToString::to_string).collect::<Vec<_>>().into();
    let doc = "Networks whose identity headers are believed; from elsewhere they are neither believed nor passed on.";
    let what = "a network such as `10.0.0.0/8` or an address";
    let network = |at: At<'_>| at.parse(what, "^[0-9a-fA-F.:]+(/[0-9]{1,3})?$", str::parse);
    f.with_default("trusted_sources", doc, Some(shown), |at| at.list(network)).unwrap_or(default)
}

fn source(at: At<'_>) -> Option<IdentitySource> {
    at.map(|f| {
        let sources = [
            f.opt("header", "A request header.", header).map(IdentitySource::Header),
            f.opt("credential", CREDENTIAL, header).map(IdentitySource::Credential),
            f.opt("static", "Always this.", |at| at.line(NAME_MAX)).map(IdentitySource::Static),
        ];
        if f.has("jwt") {
            return f.opt("jwt", "", jwt);
        }
        let given = f.names().filter(|name| !name.starts_with("x-")).count();
        if given != 1 {
            let message = "a source has exactly one of `header`, `credential` and `static`";
            return f.at().fail_with(message, |problem| {
                problem.help("write several sources as items of the list; the first that is present wins")
            });
        }
        sources.into_iter().flatten().next()
    })?
}

fn jwt(at: At<'_>) -> Option<IdentitySource> {
    at.fail_with("claims of a JWT are not supported yet", |problem| {
        problem.help("let whatever verifies the token put the claim into a header, and name that with `header`")
    })
}

fn header(at: At<'_>) -> Option<HeaderName> {
    at.parse("the name of a header such as `x-user-id`", "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$", |text| {
        HeaderName::try_from(text).map_err(|_| String::new())
    })
}

fn shown(sources: &[IdentitySource]) -> serde_json::Value {
    let one = |source: &IdentitySource| match source {
        IdentitySource::Header(name) => serde_json::json!({"header": name.as_str()}),
        IdentitySource::Credential(name) => serde_json::json!({"credential": name.as_str()}),
        IdentitySource::Static(text) => serde_json::json!({"static": &**text}),
    };
    sources.iter().map(one).collect()
}
