//! What is measured: cases, who runs in each, and the bars.

use std::sync::Arc;

use crate::load::Work;
use crate::peers::Peer;
use crate::requests::Call;

/// How a turn is driven.
#[derive(Clone, Copy, Debug)]
pub enum Drive {
    Closed,
    Open(u32),
    FirstEvents(usize),
}

/// One who takes turns in a case.
#[derive(Clone, Debug)]
pub struct Subject {
    pub name: &'static str,
    pub peer: Peer,
    /// Told apart from others of the same kind: a second nginx is not the first.
    pub instance: &'static str,
    pub work: Work,
}

/// A kind of traffic and those who carry it.
#[derive(Clone, Debug)]
pub struct Case {
    pub id: &'static str,
    pub title: &'static str,
    pub drive: Drive,
    /// All others are compared with the first one.
    pub subjects: Vec<Subject>,
}

/// What a bar is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    Cpu,
    Throughput,
    P50,
}

/// A bar: the ratio of two subjects of one case.
#[derive(Clone, Copy, Debug)]
pub struct Bar {
    pub case: &'static str,
    pub title: &'static str,
    pub metric: Metric,
    pub of: &'static str,
    pub to: &'static str,
    pub must: f64,
}

pub const FULL: Peer = Peer::Toolvane { rules: 874 };

fn work(call: &Call<'_>, connections: usize, status: u16) -> Work {
    Work { requests: Arc::new(vec![call.bytes()]), connections, status }
}

fn subject(name: &'static str, peer: Peer, call: &Call<'_>, connections: usize, status: u16) -> Subject {
    Subject { name, peer, instance: peer.name(), work: work(call, connections, status) }
}

/// nginx, a second nginx as the control, toolvane, and toolvane with judging off: the same process on a path that is none
/// of the MCP endpoint.
fn four(case: &'static str, size: usize, status: u16, connections: usize) -> Vec<Subject> {
    // Of a tool that stays DOWN call after call, only one that is observed is called on.
    let tool = if status == 200 { "tool_1" } else { "tool_5" };
    let call = Call { case, size, tool, ..Call::default() };
    let mut control = subject("nginx (control)", Peer::Nginx, &call, connections, status);
    control.instance = "nginx-control";
    vec![
        subject("nginx", Peer::Nginx, &call, connections, status),
        control,
        subject("toolvane", FULL, &call, connections, status),
        subject("toolvane, judging off", FULL, &Call { path: "/plain", ..call.clone() }, connections, status),
    ]
}

/// The same with another request id in each head, as tracing has it: no head of a connection is the one before.
fn fresh() -> Vec<Subject> {
    let mut all = four("json1k", 500, 200, 64);
    for subject in &mut all {
        let path = if subject.name == "toolvane, judging off" { "/plain" } else { "/mcp" };
        let call = Call { path, ..Call::default() };
        subject.work.requests = Arc::new((0..1_000).map(|number| call.named(number)).collect());
    }
    all
}

fn case(id: &'static str, title: &'static str, drive: Drive, subjects: Vec<Subject>) -> Case {
    Case { id, title, drive, subjects }
}

/// Everything.
pub fn cases(quick: bool) -> Vec<Case> {
    let mut forward = four("json1k", 500, 200, 64);
    if !quick {
        let call = Call::default();
        for peer in [
            Peer::Haproxy,
            Peer::HaproxyJson,
            Peer::NginxLua,
            Peer::Pingora,
            Peer::Envoy,
            Peer::EnvoyJson,
            Peer::EnvoyMcp,
            Peer::Caddy,
        ] {
            forward.push(subject(peer.name(), peer, &call, 64, 200));
        }
    }
    let closed = Drive::Closed;
    let mut all = vec![
        case("forward", "1 KiB JSON, 64 connections", closed, forward),
        case("fresh", "1 KiB JSON, another request id in each head", closed, fresh()),
        case("iserror", "isError: true", closed, four("iserror", 500, 200, 64)),
        case("json64k", "64 KiB JSON", closed, four("json64k", 500, 200, 32)),
        case("sse20", "SSE answer of 20 events", closed, unbuffered("sse20", 64)),
        case("short", "short-circuit of a tool that is DOWN", closed, short()),
        case("open2000", "open loop, 2,000 calls/s", Drive::Open(2000), four("json1k", 500, 200, 32)),
    ];
    if quick {
        return all;
    }
    all.extend([
        case("open5000", "open loop, 5,000 calls/s", Drive::Open(5000), four("json1k", 500, 200, 32)),
        case("json1m", "1 MiB JSON", closed, four("json1m", 500, 200, 8)),
        case("request8k", "8 KiB request", closed, four("json1k", 8192, 200, 64)),
        case("503", "503", closed, four("503", 500, 503, 64)),
        case("slow", "first event of a slow stream, one at a time", Drive::FirstEvents(60), unbuffered("slow", 1)),
        case("list200", "tools/list of 200 tools, 20 annotated", closed, lists()),
    ]);
    all
}

/// The same with nginx that does not wait for more before it passes something on.
fn unbuffered(case: &'static str, connections: usize) -> Vec<Subject> {
    let mut all = four(case, 500, 200, connections);
    for subject in all.iter_mut().filter(|subject| subject.peer == Peer::Nginx) {
        subject.peer = Peer::NginxUnbuffered;
        subject.instance = if subject.instance == "nginx" { "nginx-unbuffered" } else { "nginx-unbuffered-control" };
    }
    all
}

fn short() -> Vec<Subject> {
    let down = Call { case: "outage", tool: "tool_10", ..Call::default() };
    let back = Call { path: "/return", ..Call::default() };
    let mut control = subject("nginx return (control)", Peer::Nginx, &back, 64, 503);
    control.instance = "nginx-control";
    vec![
        subject("nginx return", Peer::Nginx, &back, 64, 503),
        control,
        subject("toolvane", FULL, &down, 64, 200),
        subject("toolvane, forwarding", FULL, &Call::default(), 64, 200),
    ]
}

fn lists() -> Vec<Subject> {
    let list = |path| Arc::new(vec![Call { path, case: "list200", ..Call::default() }.list()]);
    let named = |name, peer, instance, path| Subject {
        name,
        peer,
        instance,
        work: Work { requests: list(path), connections: 32, status: 200 },
    };
    vec![
        named("nginx", Peer::Nginx, "nginx", "/mcp"),
        named("nginx (control)", Peer::Nginx, "nginx-control", "/mcp"),
        named("toolvane", FULL, "toolvane", "/mcp"),
        named("toolvane, judging off", FULL, "toolvane", "/plain"),
    ]
}

/// The bars, in the order of the report.
pub fn bars() -> Vec<Bar> {
    let bar = |case, title, metric, to, must| Bar { case, title, metric, of: "toolvane", to, must };
    use Metric::{Cpu, P50, Throughput};
    vec![
        bar("forward", "CPU per call v nginx, which only forwards", Cpu, "nginx", 1.10),
        bar("forward", "CPU per call v HAProxy", Cpu, "haproxy", 1.0),
        bar("forward", "CPU per call v HAProxy that reads the request", Cpu, "haproxy-json", 0.82),
        bar("forward", "CPU per call v nginx+lua, the same work", Cpu, "nginx+lua", 0.56),
        bar("forward", "CPU per call v Pingora", Cpu, "pingora", 0.32),
        bar("forward", "CPU per call v Envoy", Cpu, "envoy", 0.30),
        bar("forward", "CPU per call v Envoy's MCP filter", Cpu, "envoy-mcp", 0.18),
        bar("forward", "everything on v judging off", Cpu, "toolvane, judging off", 1.10),
        bar("forward", "throughput at 64 connections v nginx", Throughput, "nginx", 0.95),
        bar("open2000", "p50 at 2,000 calls/s v nginx", P50, "nginx", 1.05),
        bar("open5000", "p50 at 5,000 calls/s v nginx", P50, "nginx", 1.05),
        bar("sse20", "SSE answer of 20 events, CPU v nginx", Cpu, "nginx", 1.05),
        bar("slow", "first event of a slow stream v nginx unbuffered", P50, "nginx", 1.10),
        bar("json64k", "64 KiB answer, CPU v nginx", Cpu, "nginx", 1.20),
        bar("json1m", "1 MiB answer, CPU v nginx", Cpu, "nginx", 1.20),
        bar("request8k", "8 KiB request, CPU v nginx", Cpu, "nginx", 1.10),
        bar("iserror", "isError answer, CPU v nginx", Cpu, "nginx", 1.20),
        bar("503", "503 answer, CPU v nginx", Cpu, "nginx", 1.20),
        bar("short", "short-circuit, CPU v nginx return", Cpu, "nginx return", 1.15),
        bar("short", "short-circuit, CPU v own forward path", Cpu, "toolvane, forwarding", 0.65),
        bar("list200", "tools/list of 200 tools, 20 annotated, CPU v unjudged", Cpu, "toolvane, judging off", 2.0),
    ]
}
