//! `toolvane healthcheck`: asks a running process whether it is ready. Needs nothing but the binary, so it works in an
//! image that holds nothing else.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::ask::At;
use super::{BAD, FINE, UNAVAILABLE};

/// How long each step may take.
const PATIENCE: Duration = Duration::from_secs(3);

/// Asks `admin` (host and port, with or without `http://`, or `unix:` and a path); gives the exit code.
pub fn healthcheck(admin: &str, words: &mut impl Write) -> u8 {
    let at = match At::read(admin) {
        Ok(at) => at,
        Err(error) => {
            let _ = writeln!(words, "error: {error}");
            return error.code();
        }
    };
    match ask(at) {
        Ok(status) if status.starts_with("HTTP/1.1 200") => FINE,
        Ok(status) => {
            let _ = writeln!(words, "not ready: {status}");
            BAD
        }
        Err(error) => {
            let _ = writeln!(
                words,
                "nobody answers on {admin}: {error}; is toolvane running, and is this its admin listener?"
            );
            UNAVAILABLE
        }
    }
}

fn ask(at: At<'_>) -> std::io::Result<String> {
    let address = match at {
        At::Socket(path) => {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            return exchange(stream, "localhost");
        }
        At::Tcp(address) => address,
    };
    let unknown = || std::io::Error::new(std::io::ErrorKind::NotFound, "no such address");
    let resolved = address.to_socket_addrs()?.next().ok_or_else(unknown)?;
    let stream = TcpStream::connect_timeout(&resolved, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    exchange(stream, address)
}

/// Sends the question and reads the first line of the answer.
fn exchange(mut stream: impl Read + Write, host: &str) -> std::io::Result<String> {
    // At once: whoever answers the first bytes and hangs up would break off the rest.
    let request = format!("GET /readyz HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut head = [0; 256];
    let read = stream.read(&mut head)?;
    let text = String::from_utf8_lossy(head.get(..read).unwrap_or_default()).into_owned();
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::USAGE;
    use super::*;

    fn served(answer: &'static str) -> (u8, String) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 1024]);
            stream.write_all(answer.as_bytes()).unwrap();
        });
        let mut words = Vec::new();
        let code = healthcheck(&address, &mut words);
        server.join().unwrap();
        (code, String::from_utf8(words).unwrap())
    }

    #[test]
    fn a_ready_process_is_fine_and_a_draining_one_is_not() {
        assert_eq!(served("HTTP/1.1 200 OK\r\n\r\nok\n"), (FINE, String::new()));
        let (code, words) = served("HTTP/1.1 503 Service Unavailable\r\n\r\ndraining\n");
        assert_eq!(code, BAD);
        assert!(words.contains("503"), "{words}");
    }

    #[test]
    fn a_process_behind_a_unix_socket_is_asked_too() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("admin.sock");
        let admin = format!("unix:{}", path.display());
        let mut words = Vec::new();
        assert_eq!(healthcheck(&admin, &mut words), UNAVAILABLE);
        assert!(String::from_utf8(words).unwrap().contains(&admin));
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 1024]);
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nok\n").unwrap();
        });
        assert_eq!(healthcheck(&admin, &mut Vec::new()), FINE);
        server.join().unwrap();
    }

    #[test]
    fn what_is_no_address_is_wrong_usage() {
        assert_eq!(healthcheck("foo", &mut Vec::new()), USAGE);
    }

    #[test]
    fn nobody_there_is_told_apart_from_not_ready() {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let mut words = Vec::new();
        assert_eq!(healthcheck(&free, &mut words), UNAVAILABLE);
        assert!(String::from_utf8(words).unwrap().contains("nobody answers"));
    }
}
