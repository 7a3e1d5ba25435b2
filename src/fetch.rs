//! Documents that others publish (keys of an issuer, an OpenAPI document), from a file or a URL: bounded in size and time,
//! read in the background and never on the path of a call.

use std::fmt;
use std::io::{self, Read};
use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

/// For the connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// For the whole document.
const TIMEOUT: Duration = Duration::from_secs(15);

/// Where a document is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Location {
    /// An `http:` or `https:` URL without user and fragment.
    Url(http::Uri),
    /// A file.
    File(PathBuf),
}

/// Why a document could not be read. The texts name no part of the document and no query.
#[derive(Debug, Error)]
pub enum Trouble {
    /// The file cannot be read.
    #[error("cannot read the file: {0}")]
    File(#[from] io::Error),
    /// No answer came, or it broke off.
    #[error("no complete answer: {0}")]
    Network(String),
    /// An answer without the document.
    #[error("answered with status {0}, which is not 200; redirects are not followed")]
    Status(u16),
    /// More bytes than the bound.
    #[error("larger than {0} bytes")]
    TooLarge(usize),
    /// Not UTF-8.
    #[error("not UTF-8")]
    Encoding,
}

impl Location {
    /// Reads the whole text, of at most `most` bytes. A redirect is an error: the operator named the place that is
    /// trusted.
    ///
    /// # Errors
    /// Why there is no text.
    pub async fn read(&self, most: usize) -> Result<String, Trouble> {
        let bytes = match self {
            Location::File(path) => {
                let path = path.clone();
                let read = tokio::task::spawn_blocking(move || read_file(&path, most)).await;
                read.map_err(|_| Trouble::Network("the reader was stopped".to_owned()))??
            }
            Location::Url(url) => fetch(url, most).await?,
        };
        String::from_utf8(bytes).map_err(|_| Trouble::Encoding)
    }
}

/// Without the query, which may hold a secret.
impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::File(path) => write!(f, "{}", path.display()),
            Location::Url(url) => {
                let authority = url.authority().map_or("", |authority| authority.as_str());
                write!(f, "{}://{authority}{}", url.scheme_str().unwrap_or("http"), url.path())
            }
        }
    }
}

fn read_file(path: &std::path::Path, most: usize) -> Result<Vec<u8>, Trouble> {
    let mut bytes = Vec::new();
    let bound = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    std::fs::File::open(path)?.take(bound).read_to_end(&mut bytes)?;
    if bytes.len() > most { Err(Trouble::TooLarge(most)) } else { Ok(bytes) }
}

async fn fetch(url: &http::Uri, most: usize) -> Result<Vec<u8>, Trouble> {
    let mut response = client(url)?.get(url.to_string()).header("accept", ACCEPT).send().await.map_err(network)?;
    if response.status() != http::StatusCode::OK {
        return Err(Trouble::Status(response.status().as_u16()));
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(network)? {
        if bytes.len() + chunk.len() > most {
            return Err(Trouble::TooLarge(most));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

const ACCEPT: &str = "application/json, application/yaml;q=0.9, */*;q=0.5";

/// A client for one document: documents are read minutes apart, so no connection is kept.
fn client(url: &http::Uri) -> Result<reqwest::Client, Trouble> {
    let builder = reqwest::Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .timeout(TIMEOUT)
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .no_proxy()
        .pool_max_idle_per_host(0)
        .user_agent(concat!("toolvane/", env!("CARGO_PKG_VERSION")));
    // An image without CA certificates must still reach what is next to it.
    let builder = if url.scheme_str() == Some("https") { builder } else { builder.tls_certs_only([]) };
    builder.build().map_err(network)
}

/// The innermost reason says what happened; the outer ones repeat the URL.
fn network(error: reqwest::Error) -> Trouble {
    let error = error.without_url();
    let mut reason: &dyn std::error::Error = &error;
    while let Some(inner) = reason.source() {
        reason = inner;
    }
    Trouble::Network(reason.to_string().chars().take(200).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    /// Answers one request with these bytes.
    async fn served(answer: &str) -> Location {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/keys?token=hunter2", listener.local_addr().unwrap());
        let answer = answer.to_owned();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 4096]).await.unwrap();
            stream.write_all(answer.as_bytes()).await.unwrap();
        });
        Location::Url(url.parse().unwrap())
    }

    #[tokio::test]
    async fn a_document_is_read_whole_and_nothing_longer_than_the_bound() {
        let ten = "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n0123456789";
        assert_eq!(served(ten).await.read(10).await.unwrap(), "0123456789");
        assert!(matches!(served(ten).await.read(9).await, Err(Trouble::TooLarge(9))));
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, "0123456789").unwrap();
        let file = Location::File(file.path().to_owned());
        assert!(matches!(file.read(9).await, Err(Trouble::TooLarge(9))));
    }

    #[tokio::test]
    async fn what_is_not_the_document_itself_is_an_error_that_tells_no_secret() {
        for (answer, says) in [
            ("HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n", "status 302"),
            ("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n01234", "no complete answer"),
            ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n\u{e9}", ""),
        ] {
            let place = served(answer).await;
            let read = place.read(100).await.map_err(|trouble| trouble.to_string());
            match read {
                Ok(text) => assert_eq!((text.as_str(), says), ("\u{e9}", "")),
                Err(words) => {
                    assert!(words.contains(says) && !says.is_empty(), "{words}");
                    assert!(!words.contains("hunter2"), "{words}");
                }
            }
            assert!(!place.to_string().contains("hunter2"), "{place}");
        }
    }
}
