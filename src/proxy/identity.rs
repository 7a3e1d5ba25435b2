//! Who calls (DESIGN 5): from the headers of one request to a [`Caller`].

use std::cell::OnceCell;
use std::sync::Arc;

use http::HeaderMap;
use http::header::{AUTHORIZATION, HeaderName, HeaderValue};

use super::tokens::{Tokens, Verified, split_roles};
use crate::clock::Now;
use crate::config::{Identity, IdentitySource};
use crate::health::{Caller, CredentialHash};

/// Longest identity that is taken from a header, in bytes; a longer one counts as absent.
const LONGEST: usize = 256;

/// Longest key of a caller that is remembered, in bytes.
const KEY_MAX: usize = 2_048;

/// Tells callers by the configured sources.
#[derive(Clone)]
pub(super) struct Identifier {
    sources: Identity,
    tokens: Option<Arc<Tokens>>,
    key: [u8; 32],
    default: Arc<str>,
}

impl std::fmt::Debug for Identifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identifier").field("sources", &self.sources).finish_non_exhaustive()
    }
}

impl Identifier {
    /// Reads from these sources; `key` is the random key of this installation, so that hashes mean nothing elsewhere.
    /// `tokens` knows what bearer tokens say, if any source reads a claim.
    pub(super) fn new(sources: Identity, tokens: Option<Arc<Tokens>>, key: [u8; 32]) -> Identifier {
        Identifier { sources, tokens, key, default: Arc::from("default") }
    }

    /// Who verifies bearer tokens, if any source reads a claim.
    pub(super) fn tokens(&self) -> Option<&Arc<Tokens>> {
        self.tokens.as_ref()
    }

    /// All of these headers that the caller is told by: who sends the same ones from as trusted a source is the same. `None`
    /// where time counts too, as it does for tokens, or where they are long.
    pub(super) fn key(&self, headers: &HeaderMap, trusted: bool) -> Option<Vec<u8>> {
        if self.tokens.is_some() {
            return None;
        }
        let mut key = Vec::with_capacity(128);
        key.push(u8::from(trusted));
        let mut put = |value: Option<&[u8]>| {
            let length = value.map_or(u16::MAX, |value| u16::try_from(value.len()).unwrap_or(u16::MAX - 1));
            key.extend_from_slice(&length.to_le_bytes());
            key.extend_from_slice(value.unwrap_or_default());
        };
        let bytes = |hash: CredentialHash| hash.0.to_le_bytes();
        let credential = self.named_credential(headers);
        put(credential.map(|(_, hash)| bytes(hash)).as_ref().map(<[u8; 8]>::as_slice));
        let of_names = [&self.sources.session, &self.sources.user, &self.sources.project, &self.sources.tenant];
        for source in of_names.into_iter().chain([&self.sources.roles]).flatten() {
            match source {
                IdentitySource::Header(name) => put(headers.get(name).map(HeaderValue::as_bytes)),
                IdentitySource::Credential(name) => {
                    let known = credential.filter(|(known, _)| *known == name).map(|(_, hash)| hash);
                    let hash = known.or_else(|| hash(headers, name, &self.key));
                    put(hash.map(bytes).as_ref().map(<[u8; 8]>::as_slice));
                }
                IdentitySource::Static(_) | IdentitySource::Jwt(_) => {}
            }
        }
        (key.len() <= KEY_MAX).then_some(key)
    }

    /// The caller of a request with these headers, from a source that is trusted or not.
    pub(super) fn caller(&self, headers: &HeaderMap, trusted: bool, now: Now) -> Caller {
        let token = Token { tokens: self.tokens.as_deref(), now, read: OnceCell::new() };
        let view = View { headers, trusted, key: &self.key, token };
        let or_default = |sources| view.first(sources).unwrap_or_else(|| Arc::clone(&self.default));
        Caller {
            session: view.first(&self.sources.session),
            user: view.first(&self.sources.user),
            project: or_default(&self.sources.project),
            tenant: or_default(&self.sources.tenant),
            roles: view.roles(&self.sources.roles).unwrap_or_default(),
            credential: self.credential(headers),
        }
    }

    /// Takes out the identity headers of a source that is not trusted and gives their names (DESIGN 5).
    pub(super) fn strip_untrusted(&self, headers: &mut HeaderMap, trusted: bool) -> Vec<&HeaderName> {
        if trusted {
            return Vec::new();
        }
        self.sources.identity_headers().filter(|name| headers.remove(*name).is_some()).collect()
    }

    fn credential(&self, headers: &HeaderMap) -> Option<CredentialHash> {
        self.named_credential(headers).map(|(_, hash)| hash)
    }

    /// The credential with the name of its header.
    fn named_credential(&self, headers: &HeaderMap) -> Option<(&HeaderName, CredentialHash)> {
        let mut names = self.sources.credential_headers().chain(std::iter::once(&AUTHORIZATION));
        names.find_map(|name| Some((name, hash(headers, name, &self.key)?)))
    }
}

struct View<'a> {
    headers: &'a HeaderMap,
    trusted: bool,
    key: &'a [u8; 32],
    token: Token<'a>,
}

/// The request's bearer token, looked at when a claim is asked for.
struct Token<'a> {
    tokens: Option<&'a Tokens>,
    now: Now,
    read: OnceCell<Option<Arc<Verified>>>,
}

impl Token<'_> {
    fn verified(&self, headers: &HeaderMap) -> Option<&Verified> {
        self.read.get_or_init(|| self.tokens?.of(headers, self.now)).as_deref()
    }
}

impl View<'_> {
    fn first(&self, sources: &[IdentitySource]) -> Option<Arc<str>> {
        sources.iter().find_map(|source| self.name(source))
    }

    fn roles(&self, sources: &[IdentitySource]) -> Option<Vec<Arc<str>>> {
        sources.iter().find_map(|source| match source {
            IdentitySource::Jwt(claim) => self.token.verified(self.headers)?.roles(claim),
            other => self.name(other).map(|roles| split_roles(&roles)),
        })
    }

    fn name(&self, source: &IdentitySource) -> Option<Arc<str>> {
        match source {
            IdentitySource::Jwt(claim) => self.token.verified(self.headers)?.name(claim),
            IdentitySource::Static(value) => Some(Arc::clone(value)),
            IdentitySource::Credential(name) => hash(self.headers, name, self.key).map(|hash| hash.to_string().into()),
            IdentitySource::Header(name) if self.trusted || name == "mcp-session-id" => {
                let value = self.headers.get(name)?.to_str().ok()?.trim();
                (!value.is_empty() && value.len() <= LONGEST).then(|| Arc::from(value))
            }
            IdentitySource::Header(_) => None,
        }
    }
}

fn hash(headers: &HeaderMap, name: &HeaderName, key: &[u8; 32]) -> Option<CredentialHash> {
    let value = headers.get(name)?;
    let digest = blake3::keyed_hash(key, value.as_bytes());
    let (first, _) = digest.as_bytes().split_first_chunk::<8>()?;
    Some(CredentialHash(u64::from_be_bytes(*first)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEAR: bool = true;
    const NOW: Now = Now { tick: crate::clock::Tick(0), wall: crate::clock::Wall(0) };
    const FAR: bool = false;

    fn identifier() -> Identifier {
        let header = |name| IdentitySource::Header(HeaderName::from_static(name));
        let sources = Identity {
            session: vec![header("mcp-session-id")],
            user: vec![header("x-user-id"), IdentitySource::Credential(AUTHORIZATION)],
            project: vec![header("x-project-id"), IdentitySource::Static("default".into())],
            tenant: vec![header("x-tenant-id")],
            roles: vec![header("x-engine-roles")],
            trusted_sources: vec![crate::config::Network::LOOPBACK_V4],
            jwt: None,
        };
        Identifier::new(sources, None, [7; 32])
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap())).collect()
    }

    #[test]
    fn the_first_source_that_is_present_names_the_caller() {
        let caller = identifier().caller(
            &headers(&[
                ("x-user-id", "alice"),
                ("authorization", "Bearer t"),
                ("mcp-session-id", "s1"),
                ("x-engine-roles", "a, b"),
            ]),
            NEAR,
            NOW,
        );
        assert_eq!(caller.user.as_deref(), Some("alice"));
        assert_eq!(caller.session.as_deref(), Some("s1"));
        assert_eq!((&*caller.project, &*caller.tenant), ("default", "default"));
        assert_eq!(caller.roles, ["a".into(), "b".into()]);
        assert!(caller.credential.is_some());
    }

    #[test]
    fn a_credential_names_a_user_without_being_kept() {
        let of = |token: &str| identifier().caller(&headers(&[("authorization", token)]), NEAR, NOW).user.unwrap();
        assert_eq!(of("Bearer secret").len(), 16);
        assert_eq!(of("Bearer secret"), of("Bearer secret"));
        assert_ne!(of("Bearer secret"), of("Bearer other"));
        let elsewhere = Identifier { key: [8; 32], ..identifier() };
        assert_ne!(
            elsewhere.caller(&headers(&[("authorization", "Bearer secret")]), NEAR, NOW).user.unwrap(),
            of("Bearer secret")
        );
    }

    #[test]
    fn from_elsewhere_identity_headers_are_neither_believed_nor_passed_on() {
        let mut sent = headers(&[
            ("x-user-id", "alice"),
            ("x-engine-roles", "admin"),
            ("mcp-session-id", "s1"),
            ("authorization", "x"),
        ]);
        let caller = identifier().caller(&sent, FAR, NOW);
        assert_eq!(caller.user.as_deref().map(str::len), Some(16), "named by the credential alone");
        assert!(caller.roles.is_empty());
        assert_eq!(caller.session.as_deref(), Some("s1"));
        assert_eq!(identifier().strip_untrusted(&mut sent, FAR).len(), 2);
        assert_eq!(sent.len(), 2, "session id and credential always pass");
        assert!(identifier().strip_untrusted(&mut headers(&[("x-user-id", "alice")]), NEAR).is_empty());
    }

    #[test]
    fn an_identity_without_end_or_without_text_counts_as_absent() {
        let long = "x".repeat(LONGEST + 1);
        for value in [long.as_str(), " ", ""] {
            assert_eq!(identifier().caller(&headers(&[("x-user-id", value)]), NEAR, NOW).user, None);
        }
    }

    #[test]
    fn who_sends_the_same_is_the_same_caller_and_nobody_else_is() {
        let identifier = identifier();
        let sent: &[&[(&'static str, &str)]] = &[
            &[("x-user-id", "alice"), ("mcp-session-id", "s1")],
            &[("x-user-id", "alice"), ("mcp-session-id", "s2")],
            &[("x-user-id", "alices"), ("mcp-session-id", "1")],
            &[("x-user-id", "alice"), ("x-project-id", "s1")],
            &[("x-user-id", "alice"), ("x-tenant-id", "s1")],
            &[("x-user-id", "alice"), ("x-engine-roles", "s1")],
            &[("x-user-id", "alice"), ("authorization", "a")],
            &[("x-user-id", "alice"), ("authorization", "b")],
            &[("authorization", "b")],
            &[("x-user-id", "")],
            &[],
        ];
        let mut keys = Vec::new();
        for (sent, trusted) in sent.iter().flat_map(|sent| [(sent, NEAR), (sent, FAR)]) {
            let mut headers = headers(sent);
            let key = identifier.key(&headers, trusted).unwrap();
            assert!(!keys.contains(&key), "{sent:?}, trusted: {trusted}");
            headers.insert("x-else", "1".parse().unwrap());
            assert_eq!(identifier.key(&headers, trusted).as_ref(), Some(&key));
            keys.push(key);
        }
        let long = "x".repeat(KEY_MAX);
        assert_eq!(identifier.key(&headers(&[("x-user-id", &long)]), NEAR), None);
    }
}
