//! Asking a running process over its admin listener, with nothing but a socket.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use serde_json::Value;

use super::{BAD, UNAVAILABLE, USAGE};

/// How long each step may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// The largest answer that is read, in bytes.
const LONGEST: u64 = 64 * 1024 * 1024;

/// A question that came to nothing: what to say, and the exit code.
#[derive(Debug)]
pub struct Failed {
    /// In words.
    pub words: String,
    /// The exit code.
    pub code: u8,
}

/// Reads a path of the admin listener at `admin` (host and port, with or without `http://`) as JSON. Of `query` those that have
/// a value are sent.
///
/// # Errors
/// Nobody answers, or the answer is not one of success; in words, with the exit code.
pub fn get(admin: &str, path: &str, query: &[(&str, Option<&str>)]) -> Result<Value, Failed> {
    let address = admin.trim_start_matches("http://").trim_end_matches('/');
    let pairs: Vec<String> =
        query.iter().filter_map(|(name, value)| value.map(|value| format!("{name}={}", encoded(value)))).collect();
    let target = if pairs.is_empty() { path.to_owned() } else { format!("{path}?{}", pairs.join("&")) };
    let answer = exchange(address, &target).map_err(|error| unanswered(admin, address, &error))?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
    let status = head.lines().next().unwrap_or_default();
    let body: Option<Value> = serde_json::from_str(body).ok();
    match body {
        Some(body) if status.starts_with("HTTP/1.1 200") => Ok(body),
        body => {
            let detail =
                body.as_ref().and_then(|body| body["detail"].as_str()).unwrap_or("this is no toolvane").to_owned();
            Err(Failed { words: format!("{address} answered {status}: {detail}"), code: BAD })
        }
    }
}

fn unanswered(admin: &str, address: &str, error: &io::Error) -> Failed {
    if error.kind() == ErrorKind::InvalidInput {
        return Failed { words: format!("--admin {admin:?} is no address such as 127.0.0.1:9090"), code: USAGE };
    }
    let words = format!("nobody answers on {address}: {error}; is toolvane running, and is this its admin listener?");
    Failed { words, code: UNAVAILABLE }
}

fn exchange(address: &str, target: &str) -> io::Result<String> {
    let unknown = || io::Error::new(ErrorKind::NotFound, "no such address");
    let resolved = address.to_socket_addrs()?.next().ok_or_else(unknown)?;
    let mut stream = TcpStream::connect_timeout(&resolved, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    // HTTP/1.0: the answer is not chunked, and ends with the connection.
    let request = format!("GET {target} HTTP/1.0\r\nhost: {address}\r\naccept: application/json\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.take(LONGEST).read_to_string(&mut answer)?;
    Ok(answer.replacen("HTTP/1.0", "HTTP/1.1", 1))
}

fn encoded(value: &str) -> String {
    let mut out = String::new();
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(answer: &'static str) -> (Result<Value, Failed>, String) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 1024];
            let read = stream.read(&mut request).unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
            String::from_utf8_lossy(&request[..read]).into_owned()
        });
        let answer = get(&format!("http://{address}/"), "/v1/manifest", &[("user", Some("a&b é")), ("session", None)]);
        (answer, server.join().unwrap())
    }

    #[test]
    fn what_is_given_is_asked_for_and_the_answer_is_json() {
        let (answer, request) = asked("HTTP/1.0 200 OK\r\ncontent-type: application/json\r\n\r\n{\"tools\":[]}");
        assert_eq!(answer.unwrap()["tools"], serde_json::json!([]));
        assert!(request.starts_with("GET /v1/manifest?user=a%26b%20%C3%A9 HTTP/1.0\r\n"), "{request}");
    }

    #[test]
    fn a_refusal_says_why_and_a_stranger_is_told_from_nobody() {
        let refused = asked("HTTP/1.1 404 Not Found\r\n\r\n{\"detail\":\"no such thing\"}").0.unwrap_err();
        assert!(refused.words.contains("404") && refused.words.contains("no such thing"), "{}", refused.words);
        assert_eq!(refused.code, BAD);
        assert_eq!(asked("HTTP/1.1 200 OK\r\n\r\n<html>").0.unwrap_err().code, BAD);
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        assert_eq!(get(&free, "/", &[]).unwrap_err().code, UNAVAILABLE);
        assert_eq!(get("foo", "/", &[]).unwrap_err().code, USAGE);
    }
}
