//! What is believed and what is not, with an issuer whose keys the test holds.

use std::path::Path;
use std::time::Duration;

use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::clock::{Tick, Wall};
use crate::config::Config;
use crate::telemetry;
use crate::yaml::Source;

const NOW: Now = Now { tick: Tick(1_000_000), wall: Wall(1_772_460_120_000) };
const NOW_SECONDS: i64 = NOW.wall.0 / 1000;

/// A key with its name.
struct Signer {
    algorithm: Algorithm,
    id: &'static str,
    key: EncodingKey,
}

impl Signer {
    fn new(algorithm: Algorithm, id: &'static str) -> Signer {
        use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
        use aws_lc_rs::rand::SystemRandom;
        use aws_lc_rs::signature::{self, EcdsaKeyPair, Ed25519KeyPair};
        let random = SystemRandom::new();
        let key = match algorithm {
            Algorithm::ES256 | Algorithm::ES384 => {
                let curve = if algorithm == Algorithm::ES256 {
                    &signature::ECDSA_P256_SHA256_FIXED_SIGNING
                } else {
                    &signature::ECDSA_P384_SHA384_FIXED_SIGNING
                };
                EncodingKey::from_ec_der(EcdsaKeyPair::generate_pkcs8(curve, &random).unwrap().as_ref())
            }
            Algorithm::EdDSA => EncodingKey::from_ed_der(Ed25519KeyPair::generate_pkcs8v1(&random).unwrap().as_ref()),
            _ => {
                let pair = aws_lc_rs::rsa::KeyPair::generate(aws_lc_rs::rsa::KeySize::Rsa2048).unwrap();
                let der: Pkcs8V1Der<'static> = pair.as_der().unwrap();
                // What PKCS 8 wraps around the key itself takes 26 bytes at this size.
                EncodingKey::from_rsa_der(&der.as_ref()[26..])
            }
        };
        Signer { algorithm, id, key }
    }

    fn public(&self) -> Value {
        let mut jwk = serde_json::to_value(Jwk::from_encoding_key(&self.key, self.algorithm).unwrap()).unwrap();
        jwk["kid"] = json!(self.id);
        jwk["use"] = json!("sig");
        jwk
    }

    fn sign(&self, claims: &Value) -> String {
        encode(&Header { kid: Some(self.id.to_owned()), ..Header::new(self.algorithm) }, claims, &self.key).unwrap()
    }
}

fn key_set(signers: &[&Signer]) -> String {
    json!({"keys": signers.iter().map(|signer| signer.public()).collect::<Vec<_>>()}).to_string()
}

fn claims(change: &Value) -> Value {
    let mut claims = json!({
        "iss": "https://issuer.example", "aud": "tools", "sub": "alice", "exp": NOW_SECONDS + 300,
        "roles": ["reader", "writer"], "realm": {"roles": "a, b c"}, "org": 42,
    });
    for (name, value) in change.as_object().unwrap() {
        if value.is_null() {
            claims.as_object_mut().unwrap().remove(name);
        } else {
            claims[name] = value.clone();
        }
    }
    claims
}

fn tokens(more: &str, keys: &str) -> Arc<Tokens> {
    let text = format!(
        "backends: [{{name: a, kind: mcp, url: 'http://h'}}]\nidentity:\n  jwt: {{jwks: {{file: k}}, issuer: https://issuer.example, audience: [tools, other]{more}}}\n  \
         project: [{{jwt: org}}]\n  tenant: [{{jwt: /realm/roles}}]\n"
    );
    let config = Config::read(&Arc::new(Source::new("t.yaml", text)), Path::new("")).unwrap();
    let settings = telemetry::Settings { version: String::new(), revision: String::new(), tools_max: 1 };
    let tokens = Tokens::new(&config.identity, &Arc::new(Telemetry::new(&settings))).unwrap();
    tokens.accept(keys).unwrap();
    tokens
}

fn headers(token: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(AUTHORIZATION, format!("Bearer {token}").parse().unwrap());
    headers
}

fn user(tokens: &Tokens, token: &str, now: Now) -> Option<Arc<str>> {
    tokens.of(&headers(token), now)?.name(&Claim::new("sub"))
}

fn refusal(tokens: &Tokens, token: &str) -> Refused {
    assert!(tokens.of(&headers(token), NOW).is_none());
    tokens.verify(token, &tokens.keys.load(), NOW).unwrap_err()
}

/// Base64url without padding.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().fold(0u32, |bits, byte| (bits << 8) | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for index in 0..=chunk.len() {
            out.push(char::from(LETTERS[(bits >> (18 - 6 * index)) as usize & 63]));
        }
    }
    out
}

fn unsigned(header: &Value, claims: &Value, signature: &[u8]) -> String {
    format!("{}.{}.{}", base64(header.to_string().as_bytes()), base64(claims.to_string().as_bytes()), base64(signature))
}

#[test]
fn a_token_of_the_issuer_names_its_user_whatever_the_algorithm() {
    use Algorithm::{ES256, ES384, EdDSA, PS256, RS256, RS512};
    for algorithm in [RS256, RS512, PS256, ES256, ES384, EdDSA] {
        let signer = Signer::new(algorithm, "k1");
        let tokens = tokens(&format!(", algorithms: [{algorithm:?}]"), &key_set(&[&signer]));
        assert_eq!(user(&tokens, &signer.sign(&claims(&json!({}))), NOW).as_deref(), Some("alice"), "{algorithm:?}");
    }
}

#[test]
fn claims_are_read_by_name_and_pointer_and_within_bounds() {
    let signer = Signer::new(Algorithm::EdDSA, "k1");
    let tokens = tokens("", &key_set(&[&signer]));
    let verified = |change| tokens.of(&headers(&signer.sign(&claims(&change))), NOW).unwrap();
    let whole = verified(json!({}));
    assert_eq!(whole.name(&Claim::new("org")).as_deref(), Some("42"));
    assert_eq!(whole.roles(&Claim::new("roles")).unwrap(), ["reader".into(), "writer".into()]);
    assert_eq!(whole.roles(&Claim::new("/realm/roles")).unwrap(), ["a".into(), "b".into(), "c".into()]);
    assert_eq!(whole.name(&Claim::new("iss")), None, "no source asks for it");
    for odd in [json!("x".repeat(257)), json!(""), json!("a\nb"), json!(["alice"]), json!(true), json!(1.5), json!({})]
    {
        assert_eq!(verified(json!({"org": odd})).name(&Claim::new("org")), None, "{odd}");
    }
    let many: Vec<String> = (0..200).map(|n| format!("r{n}")).collect();
    assert_eq!(verified(json!({"roles": many})).roles(&Claim::new("roles")).unwrap().len(), 64);
    assert_eq!(verified(json!({"roles": [1, "a", null]})).roles(&Claim::new("roles")).unwrap(), ["a".into()]);
    assert_eq!(verified(json!({"roles": 7})).roles(&Claim::new("roles")), None);
}

#[test]
fn a_token_that_cannot_be_believed_gives_no_identity() {
    let (rsa, other) = (Signer::new(Algorithm::RS256, "k1"), Signer::new(Algorithm::RS256, "k2"));
    let stranger = Signer { id: "k1", ..Signer::new(Algorithm::RS256, "") };
    let nameless = Signer { id: "k3", ..Signer::new(Algorithm::RS256, "") };
    let tokens = tokens("", &key_set(&[&rsa, &other]));
    let good = claims(&json!({}));
    let none = unsigned(&json!({"alg": "none", "typ": "JWT"}), &good, b"");
    let modulus = rsa.public()["n"].as_str().unwrap().to_owned();
    let confused = |secret: &[u8]| {
        let header = Header { kid: Some("k1".to_owned()), ..Header::new(Algorithm::HS256) };
        encode(&header, &good, &EncodingKey::from_secret(secret).unwrap()).unwrap()
    };
    let key_of_another = Signer { algorithm: Algorithm::RS256, id: "k2", key: rsa.key.clone() };
    let critical = json!({"alg": "RS256", "kid": "k1", "crit": ["x"], "x": 1});
    for (name, token, why) in [
        ("alg none", none.clone(), Refused::Malformed),
        ("alg NONE with a signature", unsigned(&json!({"alg": "NoNe", "kid": "k1"}), &good, b"x"), Refused::Malformed),
        ("no alg", unsigned(&json!({"kid": "k1"}), &good, b"x"), Refused::Malformed),
        ("wrong key", stranger.sign(&good), Refused::Signature),
        ("name of another key", key_of_another.sign(&good), Refused::Signature),
        ("unknown key", nameless.sign(&good), Refused::UnknownKey),
        ("HS256 with the public modulus", confused(modulus.as_bytes()), Refused::Algorithm),
        ("HS256 with the public key", confused(rsa.public().to_string().as_bytes()), Refused::Algorithm),
        (
            "an algorithm that is not allowed",
            unsigned(&json!({"alg": "RS384", "kid": "k1"}), &good, b"x"),
            Refused::Algorithm,
        ),
        (
            "an algorithm of another family",
            unsigned(&json!({"alg": "ES256", "kid": "k1"}), &good, &[1; 64]),
            Refused::Algorithm,
        ),
        ("a header that must be understood", unsigned(&critical, &good, b"x"), Refused::Malformed),
        ("wrong issuer", rsa.sign(&claims(&json!({"iss": "https://evil.example"}))), Refused::Issuer),
        ("no issuer", rsa.sign(&claims(&json!({"iss": null}))), Refused::Issuer),
        ("wrong audience", rsa.sign(&claims(&json!({"aud": ["payments"]}))), Refused::Audience),
        ("no audience", rsa.sign(&claims(&json!({"aud": null}))), Refused::Audience),
        ("expired", rsa.sign(&claims(&json!({"exp": NOW_SECONDS - 60}))), Refused::Expired),
        ("no end", rsa.sign(&claims(&json!({"exp": null}))), Refused::Expired),
        ("an end that is a text", rsa.sign(&claims(&json!({"exp": "tomorrow"}))), Refused::Expired),
        ("not yet valid", rsa.sign(&claims(&json!({"nbf": NOW_SECONDS + 61}))), Refused::NotYetValid),
        ("a beginning that is a text", rsa.sign(&claims(&json!({"nbf": "now"}))), Refused::Malformed),
        ("huge", rsa.sign(&claims(&json!({"pad": "x".repeat(10_000)}))), Refused::TooLarge),
        ("empty parts", "..".to_owned(), Refused::Malformed),
        ("no signature", rsa.sign(&good).rsplit_once('.').unwrap().0.to_owned() + ".", Refused::Signature),
    ] {
        assert_eq!(refusal(&tokens, &token), why, "{name}");
    }
    assert_eq!(user(&tokens, &rsa.sign(&good), NOW).as_deref(), Some("alice"), "the keys are fine");
}

#[test]
fn only_one_bearer_token_in_the_header_of_its_own_is_looked_at() {
    let signer = Signer::new(Algorithm::EdDSA, "k1");
    let tokens = tokens("", &key_set(&[&signer]));
    let token = signer.sign(&claims(&json!({})));
    for (values, known) in [
        (vec![format!("bearer  {token} ")], true),
        (vec![format!("Basic {token}")], false),
        (vec![token.clone()], false),
        (vec![format!("Bearer {token}"), format!("Bearer {token}")], false),
        (vec!["Bearer sk-opaque-and-fine".to_owned()], false),
        (vec![format!("Bearer {token}.{token}")], false),
        (vec![], false),
    ] {
        let mut headers = HeaderMap::new();
        for value in &values {
            headers.append(AUTHORIZATION, value.parse().unwrap());
        }
        assert_eq!(tokens.of(&headers, NOW).is_some(), known, "{values:?}");
    }
}

#[test]
fn a_token_holds_to_its_end_and_the_leeway_and_no_longer_though_it_is_remembered() {
    let signer = Signer::new(Algorithm::EdDSA, "k1");
    let tokens = tokens(", leeway: 10s", &key_set(&[&signer]));
    let token = signer.sign(&claims(&json!({"exp": NOW_SECONDS + 5, "nbf": NOW_SECONDS + 10})));
    for (after, known) in [(0, true), (14, true), (15, false), (1_000, false)] {
        let now = NOW.after(Duration::from_secs(after));
        assert_eq!(user(&tokens, &token, now).is_some(), known, "after {after} s");
    }
    assert_eq!(user(&tokens, &token, Now { wall: NOW.wall.plus_millis(-1), ..NOW }).as_deref(), Some("alice"));
}

#[test]
fn a_key_that_is_taken_back_takes_its_tokens_along() {
    let (old, new) = (Signer::new(Algorithm::ES256, "old"), Signer::new(Algorithm::ES256, "new"));
    let tokens = tokens("", &key_set(&[&old]));
    let (of_old, of_new) = (old.sign(&claims(&json!({}))), new.sign(&claims(&json!({"sub": "bob"}))));
    assert_eq!(user(&tokens, &of_old, NOW).as_deref(), Some("alice"));
    assert_eq!(user(&tokens, &of_new, NOW), None);
    tokens.accept(&key_set(&[&old, &new])).unwrap();
    assert_eq!(user(&tokens, &of_old, NOW).as_deref(), Some("alice"));
    assert_eq!(user(&tokens, &of_new, NOW).as_deref(), Some("bob"));
    assert!(tokens.accept("<html>").is_err());
    assert_eq!(user(&tokens, &of_new, NOW).as_deref(), Some("bob"), "what is no key set changes nothing");
    tokens.accept(&key_set(&[&new])).unwrap();
    assert_eq!(user(&tokens, &of_old, NOW), None);
    assert_eq!(user(&tokens, &of_new, NOW).as_deref(), Some("bob"));
}

#[test]
fn keys_that_cannot_verify_are_left_out_and_a_token_without_a_name_tries_those_that_fit() {
    let (rsa, curve, other) =
        (Signer::new(Algorithm::RS256, "r"), Signer::new(Algorithm::ES256, "e"), Signer::new(Algorithm::ES256, "f"));
    let mut encrypting = rsa.public();
    encrypting["use"] = json!("enc");
    let set = json!({"keys": [
        {"kty": "oct", "k": "c2VjcmV0", "kid": "s", "alg": "HS256"}, {"kty": "new"}, 7, encrypting,
        {"kty": "RSA", "n": "!", "e": "AQAB"}, curve.public(), other.public(),
    ]});
    let tokens = tokens("", &set.to_string());
    assert_eq!(tokens.keys.load().len(), 2);
    let nameless = |signer: &Signer| encode(&Header::new(signer.algorithm), &claims(&json!({})), &signer.key).unwrap();
    assert!(user(&tokens, &nameless(&curve), NOW).is_some() && user(&tokens, &nameless(&other), NOW).is_some());
    assert_eq!(refusal(&tokens, &nameless(&rsa)), Refused::Algorithm);
    assert_eq!(refusal(&tokens, &nameless(&Signer::new(Algorithm::ES256, ""))), Refused::Signature);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_whatever_make_a_token(parts in "[ -~]{0,80}\\.[ -~]{0,200}\\.[ -~]{0,80}", raw in any::<Vec<u8>>()) {
        thread_local! { static TOKENS: Arc<Tokens> = tokens("", &key_set(&[&Signer::new(Algorithm::EdDSA, "k1")])); }
        TOKENS.with(|tokens| {
            assert!(tokens.of(&headers(&parts), NOW).is_none());
            let text = String::from_utf8_lossy(&raw).into_owned();
            assert!(tokens.verify(&text, &tokens.keys.load(), NOW).is_err());
            for part in [0, 1, 2] {
                let mut three = ["eyJhbGciOiJFZERTQSJ9".to_owned(), base64(b"{}"), base64(&[1; 64])];
                three[part] = base64(&raw);
                assert!(tokens.of(&headers(&three.join(".")), NOW).is_none());
            }
        });
    }

    #[test]
    fn one_changed_letter_spoils_a_token(at in any::<prop::sample::Index>(), letter in "[A-Za-z0-9._-]") {
        thread_local! {
            static ISSUED: (Arc<Tokens>, String) = {
                let signer = Signer::new(Algorithm::EdDSA, "k1");
                (tokens("", &key_set(&[&signer])), signer.sign(&claims(&json!({}))))
            };
        }
        ISSUED.with(|(tokens, token)| {
            let at = at.index(token.len());
            let mut changed = token.clone();
            changed.replace_range(at..=at, &letter);
            let known = user(tokens, &changed, NOW);
            assert_eq!(known.is_some(), changed == *token, "{changed}");
        });
    }
}
