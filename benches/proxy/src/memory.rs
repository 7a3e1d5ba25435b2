//! What a proxy takes while nothing or little happens: memory when idle, per idle connection, per open stream; and how soon
//! it answers after its start.

use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::Serialize;

use crate::load;
use crate::peers::{Peer, Places};
use crate::plan::FULL;
use crate::requests::Call;
use crate::stats::median;

const CONNECTIONS: usize = 5000;
const STARTS: usize = 11;

/// What was found out about one proxy.
#[derive(Clone, Debug, Serialize)]
pub struct Memory {
    pub name: String,
    /// From the start of the process to the end of the first answer, in milliseconds.
    pub start_ms: f64,
    /// MiB.
    pub idle: f64,
    /// KiB each.
    pub per_connection: f64,
    pub per_stream: f64,
}

pub fn measure(places: &Places) -> Vec<Result<Memory>> {
    // No rules beside the bundled ones and no documents: what the program itself takes.
    let peers = [Peer::Nginx, Peer::Haproxy, Peer::Pingora, Peer::Envoy, Peer::Caddy, Peer::Toolvane { rules: 0 }];
    let mut all: Vec<_> = peers.into_iter().map(|peer| one(places, peer, peer.name())).collect();
    all.push(one(places, FULL, "toolvane, 1,000 rules"));
    all
}

fn one(places: &Places, peer: Peer, name: &str) -> Result<Memory> {
    let one = || -> Result<Memory> {
        let start_ms = start_ms(places, peer)?;
        let (idle, per_connection) = each(places, peer, "memory-connections", &Call::default().bytes(), false)?;
        let open = Call { case: "open", ..Call::default() }.bytes();
        let (_, per_stream) = each(places, peer, "memory-streams", &open, true)?;
        Ok(Memory { name: name.to_owned(), start_ms, idle, per_connection, per_stream })
    };
    one().with_context(|| format!("{name} (memory)"))
}

fn start_ms(places: &Places, peer: Peer) -> Result<f64> {
    let request = Call::default().bytes();
    let mut times = Vec::new();
    for n in 0..STARTS {
        // A state file of its own each time: a start is that of a new process on a new machine.
        let began = Instant::now();
        let running = peer.start(places, &format!("start-{}-{n}", peer.name()))?;
        let mut buffer = vec![0; 64 * 1024];
        let mut socket = TcpStream::connect(running.at)?;
        load::exchange(&mut socket, &request, &mut buffer)?;
        times.push(began.elapsed().as_secs_f64() * 1e3);
    }
    Ok(median(&times).median)
}

/// MiB when idle, and KiB for each of many connections that had one answer, or the beginning of one.
fn each(places: &Places, peer: Peer, id: &str, request: &[u8], streams: bool) -> Result<(f64, f64)> {
    let running = peer.start(places, &format!("{id}-{}", peer.name()))?;
    let process = &running.process;
    std::thread::sleep(Duration::from_millis(500));
    let before = process.pss();
    let mut held = Vec::with_capacity(CONNECTIONS);
    for _ in 0..CONNECTIONS {
        held.push(begin(running.at, request, streams)?);
    }
    std::thread::sleep(Duration::from_millis(1500));
    let after = process.pss();
    drop(held);
    Ok((before as f64 / 1024.0, after.saturating_sub(before) as f64 / CONNECTIONS as f64))
}

fn begin(at: SocketAddr, request: &[u8], stream: bool) -> Result<TcpStream> {
    let mut socket = TcpStream::connect(at)?;
    socket.set_read_timeout(Some(Duration::from_secs(10)))?;
    let mut buffer = vec![0; 16 * 1024];
    if !stream {
        load::exchange(&mut socket, request, &mut buffer)?;
        return Ok(socket);
    }
    std::io::Write::write_all(&mut socket, request)?;
    let mut filled = 0;
    while !buffer.get(..filled).unwrap_or_default().windows(8).any(|text| text == b"progress") {
        let n = socket.read(buffer.get_mut(filled..).unwrap_or_default())?;
        if n == 0 {
            bail!("the stream ended");
        }
        filled += n;
    }
    Ok(socket)
}
