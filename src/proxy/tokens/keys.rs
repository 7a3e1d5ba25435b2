//! The public keys of an issuer (JWKS, RFC 7517): the ones that can verify a signature, and which of them a token means.

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey};
use serde_json::Value;

/// Most keys of one set that are used.
const KEYS_MAX: usize = 100;
/// Most keys that are tried for a token that names none.
const TRIED_MAX: usize = 4;

/// The usable keys of one document.
#[derive(Debug, Default)]
pub(in crate::proxy) struct Keys {
    keys: Vec<Key>,
}

#[derive(Debug)]
struct Key {
    id: Option<Box<str>>,
    /// The one algorithm that it is for, if the issuer says so.
    algorithm: Option<Algorithm>,
    /// Of the curve, where the algorithm does not fix it.
    curve: Option<Algorithm>,
    key: DecodingKey,
}

/// The keys that a token may be signed with.
pub(super) enum Candidates<'k> {
    /// These, at least one.
    Some(Vec<&'k DecodingKey>),
    /// There is no key of that name.
    Unknown,
    /// The key of that name is for something else.
    Unfit,
}

impl Keys {
    /// Reads a key set. Keys that cannot verify a signature (symmetric ones, those for encryption, unknown kinds) are
    /// left out.
    ///
    /// # Errors
    /// If the text is no key set at all.
    pub(in crate::proxy) fn read(text: &str) -> Result<Keys, String> {
        let set: Value = serde_json::from_str(text)
            .map_err(|error| format!("not valid JSON at line {}, column {}", error.line(), error.column()))?;
        let list = set.get("keys").and_then(Value::as_array).ok_or("no key set: it has no list `keys`")?;
        Ok(Keys { keys: list.iter().filter_map(Key::read).take(KEYS_MAX).collect() })
    }

    /// How many there are.
    pub(in crate::proxy) fn len(&self) -> usize {
        self.keys.len()
    }

    /// The keys that a token with this header may be signed with.
    pub(super) fn candidates(&self, id: Option<&str>, algorithm: Algorithm) -> Candidates<'_> {
        let named = self.keys.iter().filter(|key| id.is_none() || key.id.as_deref() == id);
        let fit: Vec<_> = named.clone().filter(|key| key.fits(algorithm)).take(TRIED_MAX).map(|key| &key.key).collect();
        match (fit.is_empty(), named.count()) {
            (false, _) => Candidates::Some(fit),
            (true, 0) => Candidates::Unknown,
            (true, _) => Candidates::Unfit,
        }
    }
}

impl Key {
    fn read(json: &Value) -> Option<Key> {
        let jwk: Jwk = serde_json::from_value(json.clone()).ok()?;
        let common = &jwk.common;
        let for_signing = common.public_key_use.as_ref().is_none_or(|it| *it == PublicKeyUse::Signature)
            && common.key_operations.as_ref().is_none_or(|list| list.contains(&KeyOperations::Verify));
        let algorithm = match common.key_algorithm {
            Some(named) => Some(named.to_string().parse().ok()?),
            None => None,
        };
        let curve = match &jwk.algorithm {
            AlgorithmParameters::EllipticCurve(parameters) => match parameters.curve {
                EllipticCurve::P256 => Some(Algorithm::ES256),
                EllipticCurve::P384 => Some(Algorithm::ES384),
                _ => return None,
            },
            AlgorithmParameters::RSA(_) | AlgorithmParameters::OctetKeyPair(_) => None,
            _ => return None,
        };
        let key = DecodingKey::from_jwk(&jwk).ok()?;
        (for_signing && key.family() != AlgorithmFamily::Hmac).then(|| Key {
            id: common.key_id.as_deref().map(Box::from),
            algorithm,
            curve,
            key,
        })
    }

    fn fits(&self, algorithm: Algorithm) -> bool {
        self.key.family() == algorithm.family()
            && self.algorithm.is_none_or(|only| only == algorithm)
            && self.curve.is_none_or(|only| only == algorithm)
    }
}
