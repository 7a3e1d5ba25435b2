//! Requests to engines and receivers of notifications: signed, bounded, without redirects.

use std::time::Duration;

use aws_lc_rs::hmac;
use bytes::{Bytes, BytesMut};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

use crate::clock::Wall;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// The largest answer, in bytes.
const ANSWER_MAX: usize = 256 * 1024;

/// The header that a signature stands in: `t=<unix seconds>,v1=<hex HMAC-SHA256 of "<t>.<body>">`.
const SIGNATURE: HeaderName = HeaderName::from_static("x-toolvane-signature");

/// A key that bodies are signed with.
#[derive(Clone)]
pub struct Signer(hmac::Key);

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Signer(secret)")
    }
}

impl Signer {
    /// A signer with a shared secret.
    pub fn new(secret: &str) -> Signer {
        Signer(hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()))
    }

    /// The value of the header for a body that is sent now. The time in it lets a receiver refuse what is old.
    pub fn sign(&self, body: &[u8], now: Wall) -> String {
        let seconds = now.unix_seconds();
        let mut context = hmac::Context::with_key(&self.0);
        context.update(format!("{seconds}.").as_bytes());
        context.update(body);
        let tag: String = context.sign().as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        format!("t={seconds},v1={tag}")
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// Nobody answered in time.
    #[error("no answer: {0}")]
    Unreachable(String),
    /// It is too large to be one.
    #[error("the answer has more than {ANSWER_MAX} bytes")]
    TooLarge,
}

/// A client for JSON over HTTP. Clones share connections.
#[derive(Clone, Debug)]
pub struct Client(reqwest::Client);

impl Client {
    /// A client that trusts what the system trusts.
    ///
    /// # Errors
    /// If TLS cannot be set up.
    pub fn new() -> Result<Client, String> {
        let builder = reqwest::Client::builder()
            .timeout(PATIENCE)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("toolvane/", env!("CARGO_PKG_VERSION")));
        builder.build().map(Client).map_err(|error| error.to_string())
    }

    /// Posts JSON, and gives status and body of the answer.
    ///
    /// # Errors
    /// If none comes, or one that is too large.
    pub async fn post(&self, url: &str, headers: HeaderMap, body: Vec<u8>) -> Result<(u16, Bytes), CallError> {
        // The reason may name the address, but never what was sent.
        let unreachable = |error: reqwest::Error| CallError::Unreachable(error.without_url().to_string());
        let request = self.0.post(url).headers(headers).header(CONTENT_TYPE, "application/json").body(body);
        let mut response = request.send().await.map_err(unreachable)?;
        let status = response.status().as_u16();
        let mut read = BytesMut::new();
        while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
            if read.len() + chunk.len() > ANSWER_MAX {
                return Err(CallError::TooLarge);
            }
            read.extend_from_slice(&chunk);
        }
        Ok((status, read.freeze()))
    }
}

/// The header with the signature of a body, if it is to be signed.
pub(super) fn signed(signer: Option<&Signer>, body: &[u8], now: Wall) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let value = signer.and_then(|signer| HeaderValue::from_str(&signer.sign(body, now)).ok());
    headers.extend(value.map(|value| (SIGNATURE, value)));
    headers
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The digest was made with `printf '1772460120.{}' | openssl dgst -sha256 -hmac secret`.
    #[test]
    fn a_signature_is_what_others_compute() {
        let signed = Signer::new("secret").sign(b"{}", Wall(1_772_460_120_500));
        assert_eq!(signed, "t=1772460120,v1=6338032e4b487010d60bcb6644d2f136be360ffb3c5ca887d283a144b55ab392");
    }
}
