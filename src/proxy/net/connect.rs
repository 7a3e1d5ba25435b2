//! Opening a TCP connection to a backend, within a time limit.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::net::{TcpStream, lookup_host};

use super::fault::Fault;
use crate::rules::TransportFault;

/// Connects to the first address of `host` that accepts. `limit` bounds all of it, the name's resolution included.
pub(super) async fn dial(host: &str, port: u16, limit: Duration) -> Result<TcpStream, Fault> {
    match tokio::time::timeout(limit, attempt(host, port)).await {
        Ok(result) => result,
        Err(_) => Err(Fault::upstream(
            TransportFault::Timeout,
            false,
            format!("no connection to {host}:{port} within {limit:?} (connect_timeout)"),
        )),
    }
}

async fn attempt(host: &str, port: u16) -> Result<TcpStream, Fault> {
    let mut last = None;
    for address in resolve(host, port).await? {
        match TcpStream::connect(address).await {
            Ok(stream) => {
                // Without it a multi-write answer meets Nagle's algorithm and delayed acknowledgements.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Err(error) => last = Some((address, error)),
        }
    }
    Err(match last {
        Some((address, error)) => {
            Fault::upstream(connect_kind(&error), false, format!("connecting to {address}: {}", error.kind()))
        }
        None => Fault::upstream(TransportFault::Dns, false, format!("{host} resolves to no address")),
    })
}

async fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>, Fault> {
    let literal = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
    if let Ok(ip) = literal.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(ip, port)]);
    }
    match lookup_host((host, port)).await {
        Ok(addresses) => Ok(addresses.collect()),
        Err(error) => Err(Fault::upstream(TransportFault::Dns, false, format!("resolving {host}: {error}"))),
    }
}

fn connect_kind(error: &io::Error) -> TransportFault {
    match error.kind() {
        io::ErrorKind::TimedOut => TransportFault::Timeout,
        io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted => TransportFault::Reset,
        // Refused, no route, network down: nobody answers at that address.
        _ => TransportFault::ConnectRefused,
    }
}
