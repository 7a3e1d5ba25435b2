//! The HTTP client of one probe. Each probe has its own: it shall find out how things are now, with the certificates and the
//! proxy of now, and not over a connection of five minutes ago.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, Identity, Proxy};

use super::secret::Secret;
use crate::config::ProbeTls;

/// The largest certificate file, in bytes.
const PEM_MAX: u64 = 1024 * 1024;
const NAME: &str = concat!("toolvane/", env!("CARGO_PKG_VERSION"));

/// Makes the client. Reads certificate files: not for the threads that serve.
///
/// # Errors
/// What cannot be used, in our own words.
pub(super) fn client(tls: &ProbeTls, proxy: Option<&Secret>, speaks_tls: bool) -> Result<Client, &'static str> {
    // A redirect would carry credentials to where nobody sent them.
    let mut builder = Client::builder().user_agent(NAME).redirect(Policy::none()).no_proxy().pool_max_idle_per_host(0);
    if let Some(proxy) = proxy {
        builder = builder.proxy(Proxy::all(proxy.reveal()).map_err(|_| "`proxy` is no URL")?);
    }
    if let Some(path) = &tls.ca_file {
        let pem = read(path).ok_or("`tls.ca_file` cannot be read")?;
        builder = builder.tls_certs_only(Certificate::from_pem_bundle(&pem).map_err(|_| "`tls.ca_file` is no PEM")?);
    } else if !speaks_tls {
        // The system's authorities take a while to load and may not be there at all.
        builder = builder.tls_certs_only([]);
    }
    if let Some(path) = &tls.client_file {
        let pem = read(path).ok_or("`tls.client_file` cannot be read")?;
        builder = builder.identity(Identity::from_pem(&pem).map_err(|_| "`tls.client_file` is no PEM with a key")?);
    }
    if tls.insecure {
        builder = builder.tls_danger_accept_invalid_certs(true);
    }
    builder.build().map_err(|_| match (&tls.ca_file, &tls.client_file) {
        (None, None) => "the HTTP client cannot be made; are there certificate authorities on this machine?",
        (Some(_), None) => "`tls.ca_file` holds no certificate that can be used",
        (_, Some(_)) => "`tls.client_file` or `tls.ca_file` holds nothing that can be used",
    })
}

fn read(path: &Path) -> Option<Vec<u8>> {
    let mut pem = Vec::new();
    File::open(path).ok()?.take(PEM_MAX).read_to_end(&mut pem).ok()?;
    Some(pem)
}
