//! One token against the keys and the rules of the configuration. Pure: the time is an argument.

use std::sync::Arc;

use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Validation, decode, decode_header};
use serde_json::Value;

use super::keys::{Candidates, Keys};
use crate::clock::{Wall, millis};
use crate::config::{Claim, Jwt};

/// Longest identity that is taken from a claim, in bytes; a longer one counts as absent.
const LONGEST: usize = 256;
/// Most roles of one claim.
const MOST_ROLES: usize = 64;

/// What a verified token says, as far as anybody asks.
#[derive(Debug)]
pub(in crate::proxy) struct Verified {
    claims: Vec<(Claim, Taken)>,
    /// From then on it is expired.
    pub(super) until: Wall,
}

/// One claim: as a name and as a list of roles.
#[derive(Debug, Default)]
struct Taken {
    name: Option<Arc<str>>,
    roles: Option<Vec<Arc<str>>>,
}

/// Why a token gives no identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    TooLarge,
    Malformed,
    Algorithm,
    UnknownKey,
    Signature,
    Issuer,
    Audience,
    Expired,
    NotYetValid,
}

impl Refused {
    /// The word for it in metrics and logs.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Refused::TooLarge => "too_large",
            Refused::Malformed => "malformed",
            Refused::Algorithm => "algorithm",
            Refused::UnknownKey => "unknown_key",
            Refused::Signature => "signature",
            Refused::Issuer => "issuer",
            Refused::Audience => "audience",
            Refused::Expired => "expired",
            Refused::NotYetValid => "not_yet_valid",
        }
    }
}

impl Verified {
    /// A claim as the name of something.
    pub(in crate::proxy) fn name(&self, claim: &Claim) -> Option<Arc<str>> {
        self.taken(claim)?.name.clone()
    }

    /// A claim as roles.
    pub(in crate::proxy) fn roles(&self, claim: &Claim) -> Option<Vec<Arc<str>>> {
        self.taken(claim)?.roles.clone()
    }

    /// What it takes in memory, roughly, in bytes.
    pub(super) fn weight(&self) -> usize {
        let one = |taken: &Taken| {
            let roles = taken.roles.iter().flatten().map(|role| role.len() + 32).sum::<usize>();
            roles + taken.name.as_ref().map_or(0, |name| name.len()) + 96
        };
        self.claims.iter().map(|(_, taken)| one(taken)).sum::<usize>() + 96
    }

    fn taken(&self, claim: &Claim) -> Option<&Taken> {
        self.claims.iter().find(|(known, _)| known == claim).map(|(_, taken)| taken)
    }
}

/// Verifies a token and takes the `wanted` claims out of it.
pub(super) fn verify(token: &str, keys: &Keys, rules: &Jwt, wanted: &[Claim], now: Wall) -> Result<Verified, Refused> {
    let header = decode_header(token).map_err(|_| Refused::Malformed)?;
    if !rules.algorithms.contains(&header.alg) {
        return Err(Refused::Algorithm);
    }
    let candidates = match keys.candidates(header.kid.as_deref(), header.alg) {
        Candidates::Some(keys) => keys,
        Candidates::Unknown => return Err(Refused::UnknownKey),
        Candidates::Unfit => return Err(Refused::Algorithm),
    };
    let mut validation = Validation::new(header.alg);
    validation.set_issuer(&rules.issuers);
    validation.set_audience(&rules.audiences);
    validation.set_required_spec_claims(&["exp", "iss", "aud"]);
    // The library asks the machine's clock; ours is injected, see `times`.
    validation.validate_exp = false;
    validation.validate_nbf = false;
    let mut refused = Refused::Signature;
    for key in candidates {
        match decode::<Value>(token, key, &validation) {
            Ok(data) => return times(&data.claims, rules, now).map(|until| Verified::of(&data.claims, wanted, until)),
            Err(error) => refused = reason(error.kind()),
        }
        if refused != Refused::Signature {
            break;
        }
    }
    Err(refused)
}

fn reason(kind: &ErrorKind) -> Refused {
    match kind {
        ErrorKind::InvalidSignature => Refused::Signature,
        ErrorKind::InvalidIssuer => Refused::Issuer,
        ErrorKind::InvalidAudience => Refused::Audience,
        ErrorKind::MissingRequiredClaim(claim) if claim == "iss" => Refused::Issuer,
        ErrorKind::MissingRequiredClaim(claim) if claim == "aud" => Refused::Audience,
        ErrorKind::MissingRequiredClaim(claim) if claim == "exp" => Refused::Expired,
        ErrorKind::InvalidAlgorithm => Refused::Algorithm,
        _ => Refused::Malformed,
    }
}

/// Until when the token holds. A token without an end is not believed: nobody could take it back.
fn times(claims: &Value, rules: &Jwt, now: Wall) -> Result<Wall, Refused> {
    let leeway = i64::try_from(millis(rules.leeway)).unwrap_or(i64::MAX);
    let until = claims.get("exp").and_then(numeric_date).ok_or(Refused::Expired)?.plus_millis(leeway);
    if until <= now {
        return Err(Refused::Expired);
    }
    let Some(not_before) = claims.get("nbf").filter(|value| !value.is_null()) else { return Ok(until) };
    let not_before = numeric_date(not_before).ok_or(Refused::Malformed)?;
    if not_before > now.plus_millis(leeway) { Err(Refused::NotYetValid) } else { Ok(until) }
}

/// Seconds since 1970, fractions allowed (RFC 7519, 2).
fn numeric_date(value: &Value) -> Option<Wall> {
    let millis = value.as_f64()? * 1000.0;
    #[expect(clippy::cast_possible_truncation, reason = "the cast saturates, and what is no number is not finite")]
    millis.is_finite().then_some(Wall(millis as i64))
}

impl Verified {
    fn of(claims: &Value, wanted: &[Claim], until: Wall) -> Verified {
        let taken = |claim: &Claim| {
            let value = claim.of(claims);
            (claim.clone(), Taken { name: value.and_then(name), roles: value.and_then(roles) })
        };
        Verified { claims: wanted.iter().map(taken).collect(), until }
    }
}

/// A text or a whole number, as a name.
fn name(value: &Value) -> Option<Arc<str>> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) if number.is_i64() || number.is_u64() => number.to_string(),
        _ => return None,
    };
    sound(&text).then(|| Arc::from(text))
}

fn sound(text: &str) -> bool {
    !text.is_empty() && text.len() <= LONGEST && !text.chars().any(char::is_control)
}

/// A list of texts, or one text with commas or spaces between two roles.
fn roles(value: &Value) -> Option<Vec<Arc<str>>> {
    match value {
        Value::Array(items) => {
            let texts = items.iter().filter_map(Value::as_str).map(str::trim);
            Some(texts.filter(|text| sound(text)).take(MOST_ROLES).map(Arc::from).collect())
        }
        Value::String(text) => Some(split_roles(text)),
        _ => None,
    }
}

/// Roles written in one text.
pub(in crate::proxy) fn split_roles(text: &str) -> Vec<Arc<str>> {
    let parts = text.split(|c: char| c == ',' || c.is_whitespace());
    parts.filter(|role| sound(role)).take(MOST_ROLES).map(Arc::from).collect()
}
