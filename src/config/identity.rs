//! Where a caller's identity is read from (DESIGN 5).

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use http::HeaderName;
use http::header::{AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION};

use super::jwt::{self, Claim, Jwt};
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
    /// Roles: a list in a claim, or a text with commas or spaces between two.
    pub roles: Vec<IdentitySource>,
    /// Whose identity headers are believed and passed on.
    pub trusted_sources: Vec<Network>,
    /// Which tokens are believed, if claims are read at all.
    pub jwt: Option<Jwt>,
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
    /// A claim of the bearer token in `Authorization`, if the token is verified.
    Jwt(Claim),
}

impl Identity {
    /// Whether identity headers from this peer are believed.
    pub fn trusts(&self, peer: IpAddr) -> bool {
        self.trusted_sources.iter().any(|network| network.contains(peer))
    }

    /// Headers that are not passed on when they come from a peer that is not trusted. `mcp-session-id` and credentials
    /// always pass.
    pub fn identity_headers(&self) -> impl Iterator<Item = &HeaderName> {
        self.sources().filter_map(|source| match source {
            IdentitySource::Header(name) if name != "mcp-session-id" && !self.is_credential(name) => Some(name),
            _ => None,
        })
    }

    /// The claims that any source names.
    pub fn claims(&self) -> impl Iterator<Item = &Claim> {
        self.sources().filter_map(|source| match source {
            IdentitySource::Jwt(claim) => Some(claim),
            _ => None,
        })
    }

    fn sources(&self) -> impl Iterator<Item = &IdentitySource> {
        [&self.session, &self.user, &self.project, &self.tenant, &self.roles].into_iter().flatten()
    }

    fn is_credential(&self, name: &HeaderName) -> bool {
        name == AUTHORIZATION || self.credential_headers().any(|credential| credential == name)
    }

    /// Headers that hold credentials.
    pub fn credential_headers(&self) -> impl Iterator<Item = &HeaderName> {
        self.user.iter().filter_map(|source| match source {
            IdentitySource::Credential(name) => Some(name),
            _ => None,
        })
    }
}

pub(super) fn identity(f: &Fields<'_>, directory: &Path) -> Identity {
    use IdentitySource::{Credential, Header, Static};
    let header = |name: &'static str| Header(HeaderName::from_static(name));
    let fallback = || Static(Arc::from("default"));
    let jwt = f.opt("jwt", JWT, |at| jwt::jwt(at, directory));
    let claim = |name: &'static str| f.has("jwt").then(|| IdentitySource::Jwt(Claim::new(name)));
    let part = |key, doc, default: Vec<IdentitySource>| {
        let read = f.with_default(key, doc, Some(shown(&default)), |at| at.list(source));
        if !f.has("jwt") && read.iter().flatten().any(|source| matches!(source, IdentitySource::Jwt(_))) {
            return f.fail(
                key,
                format!("`{key}` reads a claim, but `identity.jwt` does not say which tokens are believed"),
                |problem| problem.help("`jwt: {jwks: {url: \"https://…\"}, issuer: …, audience: …}`"),
            );
        }
        Some(read.unwrap_or(default))
    };
    let part = |key, doc, default| part(key, doc, default).unwrap_or_default();
    let user = [Some(header("x-user-id")), claim("sub"), Some(Credential(AUTHORIZATION))];
    let roles = [Some(header("x-engine-roles")), claim("roles")];
    Identity {
        session: part("session", "What holds a session.", vec![header("mcp-session-id")]),
        user: part("user", USER, user.into_iter().flatten().collect()),
        project: part("project", PROJECT, vec![header("x-project-id"), fallback()]),
        tenant: part("tenant", TENANT, vec![header("x-tenant-id"), fallback()]),
        roles: part("roles", ROLES, roles.into_iter().flatten().collect()),
        trusted_sources: trusted_sources(f),
        jwt,
    }
}

const JWT: &str = "Which bearer tokens are believed. With it, `{jwt: sub}` is among the sources of `user` \
    and `{jwt: roles}` among those of `roles` where the file does not name any.";
const USER: &str = "Who calls; without any the caller is anonymous.";
const ROLES: &str = "The caller's roles: a list in a claim, or a text with commas or spaces between two.";
const PROJECT: &str = "The caller's project; `default` if no source is present.";
const TENANT: &str = "The caller's tenant; `default` if no source is present.";
const CLAIM: &str =
    "A claim of the verified bearer token: a name such as `sub`, or a JSON pointer such as `/realm/roles`.";
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
            f.opt("header", "A request header.", plain_header).map(IdentitySource::Header),
            f.opt("credential", CREDENTIAL, header).map(IdentitySource::Credential),
            f.opt("static", "Always this.", |at| at.line(NAME_MAX)).map(IdentitySource::Static),
            f.opt("jwt", CLAIM, jwt::claim).map(IdentitySource::Jwt),
        ];
        let given = f.names().filter(|name| !name.starts_with("x-")).count();
        if given != 1 {
            let message = "a source has exactly one of `header`, `credential`, `static` and `jwt`";
            return f.at().fail_with(message, |problem| {
                problem.help("write several sources as items of the list; the first that is present wins")
            });
        }
        sources.into_iter().flatten().next()
    })?
}

/// A header whose value may be kept and shown.
fn plain_header(at: At<'_>) -> Option<HeaderName> {
    let name = header(at)?;
    if [AUTHORIZATION, PROXY_AUTHORIZATION, COOKIE].contains(&name) {
        return at.fail_with(format!("`{name}` holds a secret, which must not become a name"), |problem| {
            problem.help("`{credential: …}` uses a keyed hash of it, `{jwt: sub}` a claim of a verified bearer token")
        });
    }
    Some(name)
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
        IdentitySource::Jwt(claim) => serde_json::json!({"jwt": claim.to_string()}),
    };
    sources.iter().map(one).collect()
}
