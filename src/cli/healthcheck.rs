//! `toolvane healthcheck`: asks a running process whether it is ready. Needs nothing but the binary, so it works in an
//! image that holds nothing else.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use super::{BAD, FINE, UNAVAILABLE, USAGE};

/// How long each step may take.
const PATIENCE: Duration = Duration::from_secs(3);

/// Asks `admin` (host and port, with or without `http://`); gives the exit code.
pub fn healthcheck(admin: &str, words: &mut impl Write) -> u8 {
    let address = admin.trim_start_matches("http://").trim_end_matches('/');
    match ask(address) {
        Ok(status) if status.starts_with("HTTP/1.1 200") => FINE,
        Ok(status) => {
            let _ = writeln!(words, "not ready: {status}");
            BAD
        }
        Err(error) if error.kind() == ErrorKind::InvalidInput => {
            let _ = writeln!(words, "--admin {admin:?} is no address such as 127.0.0.1:9090");
            USAGE
        }
        Err(error) => {
            let _ = writeln!(
                words,
                "nobody answers on {address}: {error}; is toolvane running, and is this its admin listener?"
            );
            UNAVAILABLE
        }
    }
}

fn ask(address: &str) -> std::io::Result<String> {
    let unknown = || std::io::Error::new(std::io::ErrorKind::NotFound, "no such address");
    let resolved = address.to_socket_addrs()?.next().ok_or_else(unknown)?;
    let mut stream = TcpStream::connect_timeout(&resolved, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    // At once: whoever answers the first bytes and hangs up would break off the rest.
    let request = format!("GET /readyz HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut head = [0; 256];
    let read = stream.read(&mut head)?;
    let text = String::from_utf8_lossy(head.get(..read).unwrap_or_default()).into_owned();
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
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
