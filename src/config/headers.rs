//! Header fields whose values are secrets: of probes, and of exports.

use std::path::Path;

use http::{HeaderMap, HeaderName, HeaderValue};

use super::Config;
use super::admin::{SecretSource, secret};
use crate::yaml::At;

/// Header fields, and where the secrets in them are read from.
pub type SecretHeaders = Vec<(HeaderName, SecretSource)>;

impl Config {
    /// The header fields with their secrets.
    ///
    /// # Errors
    /// Which one cannot be read.
    pub fn read_headers(&self, headers: &SecretHeaders) -> Result<HeaderMap, String> {
        let mut read = HeaderMap::new();
        for (name, source) in headers {
            let text = source.read(&self.environment).map_err(|why| format!("cannot read {source}: {why}"))?;
            let mut value = HeaderValue::from_str(&text).map_err(|_| format!("{source} holds no header value"))?;
            value.set_sensitive(true);
            read.insert(name.clone(), value);
        }
        Ok(read)
    }
}

pub(super) fn secret_headers(at: At<'_>, directory: &Path) -> Option<SecretHeaders> {
    let all = at.every_entry(|name, at| {
        let header: Option<HeaderName> = name.parse().ok();
        let header = header.or_else(|| at.fail_key("this is no name of a header field", |problem| problem));
        let secret = secret(at, directory);
        Some((header?, secret?))
    })?;
    Some(all.into_iter().map(|(_, pair)| pair).collect())
}
