//! The load: closed loop (each connection sends when it has its answer) and open loop (requests are due at fixed moments,
//! and latency counts from when a request was due, so that a stall is not left out of the figures).

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use hdrhistogram::Histogram;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::http::{self, Reader};

/// What is sent: these requests in turn, over so many connections.
#[derive(Clone, Debug)]
pub struct Work {
    pub requests: Arc<Vec<Vec<u8>>>,
    pub connections: usize,
    /// The status that every answer must have.
    pub status: u16,
}

/// What came of it.
#[derive(Debug)]
pub struct Done {
    pub calls: u64,
    pub wall: Duration,
    /// Microseconds.
    pub latency: Histogram<u64>,
    /// Bytes of the last answer's body: it must be the same through every proxy.
    pub body: usize,
}

impl Done {
    pub fn per_second(&self) -> f64 {
        self.calls as f64 / self.wall.as_secs_f64()
    }

    pub fn quantile(&self, q: f64) -> f64 {
        self.latency.value_at_quantile(q) as f64 / 1e3
    }
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(100, 60_000_000_000, 3).expect("bounds are valid")
}

/// No proxy that works takes longer over a call.
const LONGEST: Duration = Duration::from_secs(20);

/// Sends without pause for `time`, after `warm_up` that is not counted; `counted` is called in between.
pub fn closed(
    at: SocketAddr,
    work: &Work,
    warm_up: Duration,
    time: Duration,
    mut counted: impl FnMut(),
) -> Result<Done> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (counting, stop) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let tasks: Vec<_> = (0..work.connections)
            .map(|n| tokio::spawn(connection(at, n, work.clone(), Arc::clone(&counting), Arc::clone(&stop))))
            .collect();
        tokio::time::sleep(warm_up).await;
        counted();
        counting.store(true, Ordering::Relaxed);
        let began = Instant::now();
        tokio::time::sleep(time).await;
        let wall = began.elapsed();
        stop.store(true, Ordering::Relaxed);
        counting.store(false, Ordering::Relaxed);
        counted();
        let mut done = Done { calls: 0, wall, latency: histogram(), body: 0 };
        for task in tasks {
            let ended = tokio::time::timeout(LONGEST, task).await;
            let (latency, body) = ended.context("a call was not answered")???;
            done.calls += latency.len();
            done.body = body;
            done.latency.add(latency)?;
        }
        Ok(done)
    })
}

async fn connection(
    at: SocketAddr,
    n: usize,
    work: Work,
    counting: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
) -> Result<(Histogram<u64>, usize)> {
    let mut socket = TcpStream::connect(at).await?;
    socket.set_nodelay(true)?;
    let (mut reader, mut latency, mut body) = (Reader::default(), histogram(), 0);
    let mut next = n * 7919;
    while !stop.load(Ordering::Relaxed) {
        let request = &work.requests[next % work.requests.len()];
        next += 1;
        let began = Instant::now();
        socket.write_all(request).await?;
        let answer = reader.answer(&mut socket, || {}).await?;
        if answer.status != work.status {
            bail!("answered {} instead of {}", answer.status, work.status);
        }
        body = answer.body;
        if counting.load(Ordering::Relaxed) {
            latency.saturating_record(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX));
        }
    }
    Ok((latency, body))
}

/// Sends `rate` requests a second for `time`, each when it is due or as soon after as its connection is free.
pub fn open(at: SocketAddr, work: &Work, rate: u32, time: Duration, mut counted: impl FnMut()) -> Result<Done> {
    let ready = Arc::new(AtomicUsize::new(0));
    let go = Arc::new(std::sync::OnceLock::new());
    let every = Duration::from_secs_f64(work.connections as f64 / f64::from(rate));
    let threads: Vec<_> = (0..work.connections)
        .map(|n| {
            let (work, ready, go) = (work.clone(), Arc::clone(&ready), Arc::clone(&go));
            std::thread::Builder::new()
                .stack_size(128 * 1024)
                .spawn(move || paced(at, n, &work, every, time, &ready, &go))
        })
        .collect::<Result<_, _>>()?;
    while ready.load(Ordering::Acquire) < work.connections {
        std::thread::sleep(Duration::from_millis(1));
        if threads.iter().any(std::thread::JoinHandle::is_finished) {
            break;
        }
    }
    counted();
    let began = Instant::now();
    let _ = go.set(began + Duration::from_millis(20));
    let mut done = Done { calls: 0, wall: time, latency: histogram(), body: 0 };
    for thread in threads {
        let (latency, body) = thread.join().map_err(|_| anyhow::anyhow!("a load thread panicked"))??;
        done.calls += latency.len();
        done.body = body;
        done.latency.add(latency)?;
    }
    counted();
    Ok(done)
}

fn paced(
    at: SocketAddr,
    n: usize,
    work: &Work,
    every: Duration,
    time: Duration,
    ready: &AtomicUsize,
    go: &std::sync::OnceLock<Instant>,
) -> Result<(Histogram<u64>, usize)> {
    // Sleeps end on time, not up to 50 us late. Where that is not allowed it is the same for every proxy.
    let _ = std::fs::write("/proc/thread-self/timerslack_ns", "1");
    let mut socket = std::net::TcpStream::connect(at)?;
    socket.set_nodelay(true)?;
    let (mut latency, mut buffer, mut body) = (histogram(), vec![0; 64 * 1024], 0);
    exchange(&mut socket, &work.requests[0], &mut buffer)?;
    ready.fetch_add(1, Ordering::AcqRel);
    let start = loop {
        match go.get() {
            Some(start) => break *start,
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    };
    let mut due = start + every.mul_f64(n as f64 / work.connections as f64);
    let mut next = n * 7919;
    while due < start + time {
        if let Some(wait) = due.checked_duration_since(Instant::now()) {
            std::thread::sleep(wait);
        }
        let request = &work.requests[next % work.requests.len()];
        next += 1;
        let (status, length) = exchange(&mut socket, request, &mut buffer)?;
        if status != work.status {
            bail!("answered {status} instead of {}", work.status);
        }
        body = length;
        latency.saturating_record(u64::try_from(due.elapsed().as_nanos()).unwrap_or(u64::MAX));
        due += every;
    }
    Ok((latency, body))
}

/// One request and its answer, which must have a length and fit the buffer.
pub fn exchange(socket: &mut std::net::TcpStream, request: &[u8], buffer: &mut [u8]) -> Result<(u16, usize)> {
    socket.write_all(request)?;
    let mut filled = 0;
    let mut end = None;
    loop {
        let n = socket.read(buffer.get_mut(filled..).unwrap_or_default())?;
        if n == 0 {
            bail!("the proxy closed the connection");
        }
        filled += n;
        let read = &buffer[..filled];
        if end.is_none()
            && let Some(head_end) = memchr::memmem::find(read, b"\r\n\r\n")
        {
            let length = http::content_length(&read[..head_end + 4]).context("an answer without length")?;
            end = Some((head_end + 4 + length, length));
        }
        if let Some((end, length)) = end
            && filled >= end
        {
            let status = std::str::from_utf8(read.get(9..12).unwrap_or_default())?.parse()?;
            return Ok((status, length));
        }
    }
}

/// One stream after the other: the time from the request to the first byte of its body, in microseconds.
pub fn first_events(at: SocketAddr, request: &[u8], streams: usize) -> Result<Done> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut socket = TcpStream::connect(at).await?;
        socket.set_nodelay(true)?;
        let (mut reader, mut latency, mut body) = (Reader::default(), histogram(), 0);
        let began = Instant::now();
        for n in 0..=streams {
            let sent = Instant::now();
            socket.write_all(request).await?;
            let mut first = None;
            body = reader.answer(&mut socket, || first = Some(sent.elapsed())).await?.body;
            if let Some(first) = first.filter(|_| n > 0) {
                latency.saturating_record(u64::try_from(first.as_nanos()).unwrap_or(u64::MAX));
            }
        }
        Ok(Done { calls: latency.len(), wall: began.elapsed(), latency, body })
    })
}
