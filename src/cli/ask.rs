//! Asking a running toolvane over its admin surface: by address, or by the path of its unix socket.

use std::fmt;
use std::future::Future;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::{TcpStream, UnixStream};

pub use super::args::Form;
use super::{BAD, CONFIG, UNAVAILABLE, USAGE};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// The status of an answer to somebody without a valid token.
const UNAUTHORIZED: u16 = 401;
/// The largest answer, in bytes.
const ANSWER_MAX: usize = 64 << 20;

/// Where a running toolvane is reached, and how its answers are shown.
#[derive(Clone, Debug, Args)]
pub struct Access {
    /// The admin listener: an address, or `unix:` and the path of its socket.
    #[arg(long, env = "TOOLVANE_ADMIN", default_value = "127.0.0.1:9090", value_name = "ADDRESS", global = true)]
    pub admin: String,
    /// The token, where one is needed.
    #[arg(long, env = "TOOLVANE_ADMIN_TOKEN", hide_env_values = true, value_name = "TOKEN", global = true)]
    pub token: Option<String>,
    /// The form of data on standard output.
    #[arg(short, long, value_enum, default_value = "table", global = true)]
    pub output: Form,
}

/// What `--admin` names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At<'a> {
    /// The unix socket at this path.
    Socket(&'a Path),
    /// This host and port.
    Tcp(&'a str),
}

impl At<'_> {
    /// Reads an address: host and port, with or without `http://`, or `unix:` and a path.
    pub(super) fn read(admin: &str) -> Result<At<'_>, AskError> {
        let wrong = || AskError::Address(admin.to_owned());
        if let Some(path) = admin.strip_prefix("unix:") {
            return if path.is_empty() { Err(wrong()) } else { Ok(At::Socket(Path::new(path))) };
        }
        let address = admin.strip_prefix("http://").unwrap_or(admin).trim_end_matches('/');
        let (host, port) = address.rsplit_once(':').ok_or_else(wrong)?;
        let is_v6 = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).is_some();
        let is_name = !host.is_empty() && !host.contains([':', '/', '@', '?', '#', '[', ']']);
        let is_plain = !address.contains(|c: char| c.is_whitespace() || c.is_control());
        if (is_v6 || is_name) && is_plain && port.parse::<u16>().is_ok() { Ok(At::Tcp(address)) } else { Err(wrong()) }
    }
}

/// Why there is no good answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// What was given as the address is none.
    #[error(
        "--admin {0:?} is no address; write a host and a port, such as 127.0.0.1:9090, or unix:/PATH of its socket"
    )]
    Address(String),
    /// The files that were to be read anew are invalid.
    #[error("{0}")]
    Invalid(Refusal),
    /// Nobody is there.
    #[error("nobody answers on {admin}: {why}; is toolvane running, and is `--admin` right?")]
    Unreachable {
        /// Where it was tried.
        admin: String,
        /// The reason.
        why: String,
    },
    /// There is no such tool.
    #[error("no tool is known by the name {0:?}; `toolvane status` shows all that are")]
    Unknown(String),
    /// Somebody is there and says no.
    #[error("{0}")]
    Refused(Refusal),
}

/// A refusal, as the admin surface words it.
#[derive(Debug)]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// The problem document, or null.
    pub problem: Value,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |name: &str| self.problem.get(name).and_then(Value::as_str);
        let title = text("title").unwrap_or("refused");
        write!(f, "{title} ({})", self.status)?;
        if let Some(detail) = text("detail") {
            write!(f, ": {detail}")?;
        }
        if self.status == UNAUTHORIZED {
            let how = "give a token of `admin.tokens` with `--token` or TOOLVANE_ADMIN_TOKEN, or let those on this machine write \
                       without one: `admin.local_writes`";
            write!(f, "; {how}")?;
        }
        Ok(())
    }
}

impl AskError {
    /// The exit code that goes with it.
    pub fn code(&self) -> u8 {
        match self {
            AskError::Unreachable { .. } => UNAVAILABLE,
            AskError::Address(_) => USAGE,
            AskError::Invalid(_) => CONFIG,
            AskError::Refused(_) | AskError::Unknown(_) => BAD,
        }
    }
}

impl Access {
    /// One request and its JSON answer; null where it has none.
    pub(super) async fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, AskError> {
        let answered = tokio::time::timeout(PATIENCE, async {
            let response = self.open(method, path, body).await?;
            let status = response.status();
            let collected = Limited::new(response.into_body(), ANSWER_MAX).collect().await;
            let bytes = collected.map_err(|error| self.unreachable(error.to_string()))?.to_bytes();
            let value = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
            if status.is_success() {
                return Ok(value);
            }
            Err(AskError::Refused(Refusal { status: status.as_u16(), problem: value }))
        });
        answered.await.unwrap_or_else(|_| Err(self.unreachable(format!("no answer within {PATIENCE:?}"))))
    }

    /// One request, and its answer as it comes.
    pub(super) async fn open(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Response<Incoming>, AskError> {
        let at = At::read(&self.admin)?;
        let mut request = Request::builder().method(method).uri(path).header(ACCEPT, "application/json");
        request = request.header(HOST, if let At::Tcp(address) = at { address } else { "localhost" });
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        if body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let bytes = body.map(|body| Bytes::from(body.to_string())).unwrap_or_default();
        let request = request.body(Full::new(bytes)).map_err(|error| self.unreachable(error.to_string()))?;
        match at {
            At::Socket(path) => self.send(UnixStream::connect(path), request).await,
            At::Tcp(address) => self.send(TcpStream::connect(address), request).await,
        }
    }

    async fn send<S>(
        &self,
        connecting: impl Future<Output = io::Result<S>>,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, AskError>
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin + 'static,
    {
        let stream = connecting.await.map_err(|error| self.unreachable(error.to_string()))?;
        let shaken = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = shaken.map_err(|error| self.unreachable(error.to_string()))?;
        tokio::spawn(connection);
        sender.send_request(request).await.map_err(|error| self.unreachable(error.to_string()))
    }

    fn unreachable(&self, why: String) -> AskError {
        AskError::Unreachable { admin: self.admin.clone(), why }
    }
}

/// Runs a command that asks; words go to `words`.
pub(super) fn run(words: &mut impl Write, work: impl Future<Output = Result<u8, AskError>>) -> u8 {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            let _ = writeln!(words, "error: cannot start the runtime: {error}");
            return BAD;
        }
    };
    match runtime.block_on(work) {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(words, "error: {error}");
            error.code()
        }
    }
}

/// A text as one part of a path or a query.
pub(super) fn escaped(text: &str) -> String {
    crate::config::percent_encoded(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_host_with_a_port_or_a_socket_and_nothing_else() {
        for (given, address) in
            [("127.0.0.1:9090", "127.0.0.1:9090"), ("http://toolvane:80/", "toolvane:80"), ("[::1]:9090", "[::1]:9090")]
        {
            assert_eq!(At::read(given).unwrap(), At::Tcp(address));
        }
        assert_eq!(At::read("unix:/run/a.sock").unwrap(), At::Socket(Path::new("/run/a.sock")));
        for wrong in
            ["", "foo", ":9090", "foo:", "foo:65536", "::1:9090", "a b:1", "https://foo:1", "http://foo:1/x", "unix:"]
        {
            let error = At::read(wrong).unwrap_err();
            assert_eq!(error.code(), USAGE, "{wrong:?}");
            assert!(error.to_string().contains("unix:/PATH"), "{error}");
        }
    }
}
