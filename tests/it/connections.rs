//! What a scrape says of connections.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use http::{Request, Response};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use toolvane::clock::SystemClock;
use toolvane::proxy::Counted;
use toolvane::proxy::net::{
    Body, Bound, ConnInfo, Drain, ForwardPolicy, Limits, Passage, Upstream, UpstreamSettings, Watch, serve,
};
use toolvane::rules::TransportFault;
use toolvane::telemetry::{Sample, Settings, Telemetry};

use crate::program::{Program, config, exchange};
use crate::support::{Backend, DONE, GET, Raw, within};

/// The value of one series.
fn value(program: &Program, family: &str, labels: &str) -> u64 {
    value_in(program.counts(family).iter().map(String::as_str), family, labels)
}

fn value_in<'a>(lines: impl Iterator<Item = &'a str>, family: &str, labels: &str) -> u64 {
    let series = format!("{family}{{{labels}}} ");
    let mut found = lines.filter_map(|line| Some(line.strip_prefix(&series)?.parse().unwrap()));
    found.next().unwrap_or_default()
}

#[test]
fn connections_of_callers_and_to_the_backend_are_counted() {
    let program = Program::start(&config(""), |_| {});
    let held: Vec<TcpStream> = (0..3)
        .map(|_| {
            let mut caller = TcpStream::connect(program.listen).unwrap();
            caller.write_all(b"GET /t HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
            caller.read_exact(&mut [0; 12]).unwrap();
            caller
        })
        .collect();
    assert_eq!(value(&program, "toolvane_downstream_connections", "listener=\"proxy\""), 3);
    assert_eq!(value(&program, "toolvane_downstream_connections_accepted_total", "listener=\"proxy\""), 3);
    assert!(value(&program, "toolvane_downstream_connections_accepted_total", "listener=\"admin\"") > 0);
    let opened = value(&program, "toolvane_upstream_connections_opened_total", "backend=\"b\"");
    assert_eq!(opened, 3, "this backend closes each");
    drop(held);
}

/// Counts, and tells a test once it has.
#[derive(Debug)]
struct Told {
    counted: Arc<dyn Watch>,
    closed: UnboundedSender<()>,
}

impl Told {
    fn of(counted: Arc<dyn Watch>) -> (Arc<dyn Watch>, UnboundedReceiver<()>) {
        let (closed, heard) = unbounded_channel();
        (Arc::new(Told { counted, closed }), heard)
    }
}

impl Watch for Told {
    fn opened(&self) {
        self.counted.opened();
    }

    fn closed(&self) {
        self.counted.closed();
        let _ = self.closed.send(());
    }

    fn failed(&self, fault: TransportFault) {
        self.counted.failed(fault);
    }
}

#[tokio::test]
async fn a_connection_that_is_closed_counts_no_more() {
    let settings = Settings { version: "1".to_owned(), revision: "unknown".to_owned(), tools_max: 10 };
    let telemetry = Arc::new(Telemetry::new(&settings));
    let (callers, mut caller_gone) = Told::of(Counted::downstream(&telemetry, "proxy"));
    let (backends, mut backend_gone) = Told::of(Counted::upstream(&telemetry, &Arc::from("b")));
    let backend = Backend::start().await;
    let settings = UpstreamSettings::new(backend.address.ip().to_string(), backend.address.port());
    let upstream = Upstream::watched(settings, Arc::new(SystemClock), Some(backends));
    let bound = Bound::bind("127.0.0.1:0".parse().unwrap()).await.unwrap().watched(callers);
    let address = bound.address();
    let service = move |request: Request<Body>, conn: ConnInfo| {
        let upstream = upstream.clone();
        async move {
            let passage = Passage { policy: &ForwardPolicy::default(), conn: &conn, head_timeout: None };
            upstream
                .forward(request, passage)
                .await
                .unwrap_or_else(|fault| Response::new(Body::full(fault.to_string())))
        }
    };
    let (_drain, signal) = Drain::new();
    tokio::spawn(serve(vec![bound], service, Limits::default(), signal));
    let open = || {
        let text = String::from_utf8(telemetry.render(None, Sample::default()).unwrap().body).unwrap();
        [("downstream", "listener=\"proxy\""), ("upstream", "backend=\"b\"")]
            .map(|(side, labels)| value_in(text.lines(), &format!("toolvane_{side}_connections"), labels))
    };

    let mut caller = Raw::new(tokio::net::TcpStream::connect(address).await.unwrap());
    caller.send(GET).await;
    let mut first = backend.accept().await;
    first.read_head().await;
    first.send(DONE).await;
    assert_eq!(caller.read_head().await, DONE);
    assert_eq!(open(), [1, 1]);
    drop(first);
    within("the backend's end to be seen", backend_gone.recv()).await.unwrap();
    assert_eq!(open(), [1, 0]);
    drop(caller);
    within("the caller's end to be seen", caller_gone.recv()).await.unwrap();
    assert_eq!(open(), [0, 0]);
}

#[test]
fn a_connection_that_cannot_be_opened_is_counted_by_its_reason() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let text = config("");
    let url = text.lines().find(|line| line.trim_start().starts_with("url:")).unwrap().to_owned();
    let program = Program::start(&text.replace(&url, &format!("    url: http://{nobody}")), |_| {});
    assert_eq!(exchange(program.listen, "GET /t HTTP/1.1\r\nhost: localhost\r\n", "").0, 502);
    let labels = "backend=\"b\",reason=\"connect-refused\"";
    assert!(value(&program, "toolvane_upstream_connect_failures_total", labels) >= 1);
    assert_eq!(value(&program, "toolvane_upstream_connections_opened_total", "backend=\"b\""), 0);
}
