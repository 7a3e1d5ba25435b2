//! Bearer tokens as identity (DESIGN 5): a token that verifies against the issuer's keys says who calls; any other says
//! nothing. Verified tokens are remembered until they expire or the keys change, so that a signature is checked once.
//! Nothing here waits for the network: a token whose key is not known gives no identity until the key has been read.

mod keys;
#[cfg(test)]
mod tests;
mod verify;

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use moka::sync::Cache;

use super::documents::{Kind, Watched};
use crate::clock::Now;
use crate::config::{Claim, Identity, Jwt};
use crate::telemetry::Telemetry;
use crate::telemetry::events::TokenRefused;

use keys::Keys;
pub(super) use verify::{Verified, split_roles};

use verify::{Refused, verify};

/// Longest token that is looked at, in bytes.
const TOKEN_MAX: usize = 8 * 1024;
/// Verified tokens that are remembered, in bytes.
const REMEMBERED: u64 = 16 << 20;

/// What is believed about bearer tokens.
pub(super) struct Tokens {
    rules: Jwt,
    wanted: Vec<Claim>,
    keys: ArcSwap<Keys>,
    verified: Cache<[u8; 32], Remembered>,
    document: Watched,
    telemetry: Arc<Telemetry>,
}

#[derive(Clone)]
struct Remembered {
    /// Verified by these; others may not know the key any more.
    keys: Arc<Keys>,
    token: Arc<Verified>,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").field("rules", &self.rules).finish_non_exhaustive()
    }
}

impl Tokens {
    /// `None` if no source of the configuration reads a claim.
    pub(super) fn new(identity: &Identity, telemetry: &Arc<Telemetry>) -> Option<Arc<Tokens>> {
        let rules = identity.jwt.clone()?;
        let mut wanted: Vec<Claim> = Vec::new();
        for claim in identity.claims() {
            if !wanted.contains(claim) {
                wanted.push(claim.clone());
            }
        }
        let weigh = |_: &[u8; 32], kept: &Remembered| u32::try_from(kept.token.weight()).unwrap_or(u32::MAX);
        (!wanted.is_empty()).then(|| {
            Arc::new(Tokens {
                document: Watched::new(rules.jwks.clone(), Kind::Jwks { refresh: rules.refresh }),
                rules,
                wanted,
                keys: ArcSwap::default(),
                verified: Cache::builder().max_capacity(REMEMBERED).weigher(weigh).build(),
                telemetry: Arc::clone(telemetry),
            })
        })
    }

    /// The document that holds the keys.
    pub(super) fn document(&self) -> &Watched {
        &self.document
    }

    /// Takes over what was read; gives the number of keys.
    pub(super) fn accept(&self, text: &str) -> Result<usize, String> {
        let keys = Keys::read(text)?;
        let count = keys.len();
        self.keys.store(Arc::new(keys));
        self.verified.invalidate_all();
        Ok(count)
    }

    /// What the bearer token of a request says, if it can be believed.
    pub(super) fn of(&self, headers: &HeaderMap, now: Now) -> Option<Arc<Verified>> {
        let token = bearer(headers)?;
        let keys = self.keys.load_full();
        let hash = *blake3::hash(token.as_bytes()).as_bytes();
        if let Some(known) = self.verified.get(&hash).filter(|known| Arc::ptr_eq(&known.keys, &keys)) {
            return (known.token.until > now.wall).then_some(known.token);
        }
        match self.verify(token, &keys, now) {
            Ok(token) => {
                let token = Arc::new(token);
                self.verified.insert(hash, Remembered { keys, token: Arc::clone(&token) });
                Some(token)
            }
            Err(refused) => {
                if refused == Refused::UnknownKey {
                    self.document.ask();
                }
                self.telemetry.emit(TokenRefused { reason: refused.as_str() });
                None
            }
        }
    }

    fn verify(&self, token: &str, keys: &Keys, now: Now) -> Result<Verified, Refused> {
        if token.len() > TOKEN_MAX {
            return Err(Refused::TooLarge);
        }
        verify(token, keys, &self.rules, &self.wanted, now.wall)
    }
}

/// How many keys of a key set (JWKS) can verify tokens.
///
/// # Errors
/// Why the text is no key set.
pub fn count_keys(text: &str) -> Result<usize, String> {
    Keys::read(text).map(|keys| keys.len())
}

/// The token of the one `Authorization: Bearer`, if it has the three parts of a JWT. Opaque tokens are nobody's mistake.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut all = headers.get_all(AUTHORIZATION).iter();
    let (value, None) = (all.next()?.to_str().ok()?, all.next()) else { return None };
    let (scheme, token) = value.trim().split_once(' ')?;
    let token = token.trim();
    let parts = token.bytes().filter(|byte| *byte == b'.').count();
    (scheme.eq_ignore_ascii_case("bearer") && parts == 2).then_some(token)
}
