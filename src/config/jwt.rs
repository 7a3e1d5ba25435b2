//! Which identity tokens are believed (DESIGN 5): `identity.jwt`, and the claims that sources name.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jsonwebtoken::Algorithm;
use serde_json::Value;

use super::location::url_or_file;
use super::sections::{DAY, MINUTE, SECOND};
use crate::fetch::Location;
use crate::yaml::{At, Fields};

/// Longest name of an issuer, audience or claim, in bytes.
const NAME_MAX: usize = 512;

/// Tokens that are believed: signed by one of these keys, by this issuer, for this audience.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Jwt {
    /// Where the issuer publishes its public keys (JWKS, RFC 7517).
    pub jwks: Location,
    /// Any of these must be the token's `iss`; at least one.
    pub issuers: Vec<Arc<str>>,
    /// Any of these must be in the token's `aud`; at least one.
    pub audiences: Vec<Arc<str>>,
    /// By how much the clocks of issuer and toolvane may differ.
    pub leeway: Duration,
    /// Signature algorithms that are accepted; at least one, never `none` and never a symmetric one.
    pub algorithms: Vec<Algorithm>,
    /// How often keys are read anew from a URL; a file is watched.
    pub refresh: Duration,
}

/// A claim of a token: by its name, or by a JSON pointer if it starts with `/`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Claim(Arc<str>);

impl Claim {
    /// A claim by name (`sub`, `https://example.com/roles`) or pointer (`/realm_access/roles`).
    pub fn new(text: impl Into<Arc<str>>) -> Claim {
        Claim(text.into())
    }

    /// Its value in the claims of a token.
    pub fn of<'a>(&self, claims: &'a Value) -> Option<&'a Value> {
        if self.0.starts_with('/') { claims.pointer(&self.0) } else { claims.get(&*self.0) }
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

const JWKS: &str = "Where the issuer's public keys are (JWKS).";
const ISSUER: &str = "The `iss` of tokens that are believed; a text or a list of them.";
const AUDIENCE: &str = "What `aud` of a token must name; a text or a list of which one is enough.";
const LEEWAY: &str = "By how much the clocks of the issuer and of this machine may differ.";
const ALGORITHMS: &str = "Signature algorithms that are accepted. Symmetric ones are none: a public key is no secret.";
const REFRESH: &str = "How often keys are read anew from a URL. A token with an unknown key asks for it sooner, \
    at most every 10 s.";

/// All asymmetric algorithms that can be verified.
const ALGORITHM_WORDS: [(&str, Algorithm); 9] = [
    ("RS256", Algorithm::RS256),
    ("RS384", Algorithm::RS384),
    ("RS512", Algorithm::RS512),
    ("PS256", Algorithm::PS256),
    ("PS384", Algorithm::PS384),
    ("PS512", Algorithm::PS512),
    ("ES256", Algorithm::ES256),
    ("ES384", Algorithm::ES384),
    ("EdDSA", Algorithm::EdDSA),
];
const DEFAULT_ALGORITHMS: [Algorithm; 3] = [Algorithm::RS256, Algorithm::ES256, Algorithm::EdDSA];

pub(super) fn jwt(at: At<'_>, directory: &Path) -> Option<Jwt> {
    at.map(|f| {
        let jwks = f.need("jwks", JWKS, |at| url_or_file(at, directory));
        let issuers = f.need("issuer", ISSUER, names);
        let audiences = f.need("audience", AUDIENCE, names);
        let leeway = f.duration("leeway", LEEWAY, MINUTE, Duration::ZERO..=10 * MINUTE);
        let algorithms = algorithms(f);
        let refresh = f.duration("refresh", REFRESH, 10 * MINUTE, 10 * SECOND..=DAY);
        Some(Jwt { jwks: jwks?, issuers: issuers?, audiences: audiences?, leeway, algorithms, refresh })
    })?
}

fn algorithms(f: &Fields<'_>) -> Vec<Algorithm> {
    let shown = serde_json::json!(["RS256", "ES256", "EdDSA"]);
    let read = f.with_default("algorithms", ALGORITHMS, Some(shown), |at| {
        let list = at.list(|at| at.word(&ALGORITHM_WORDS))?;
        if list.is_empty() { at.fail("`algorithms` needs at least one") } else { Some(list) }
    });
    read.unwrap_or_else(|| DEFAULT_ALGORITHMS.to_vec())
}

fn names(at: At<'_>) -> Option<Vec<Arc<str>>> {
    let list = at.one_or_list(|at| at.line(NAME_MAX))?;
    if list.is_empty() { at.fail(format!("{} needs at least one", at.name())) } else { Some(list) }
}

/// `{jwt: …}` of an identity source.
pub(super) fn claim(at: At<'_>) -> Option<Claim> {
    at.line(NAME_MAX).map(Claim::new)
}
