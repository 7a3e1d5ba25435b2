//! What a scrape says of connections.

use std::net::{TcpListener, TcpStream};

use crate::program::{Program, config, exchange};

/// The value of one series.
fn value(program: &Program, family: &str, labels: &str) -> u64 {
    let series = format!("{family}{{{labels}}} ");
    let found = program.counts(family).into_iter().find_map(|line| Some(line.strip_prefix(&series)?.parse().unwrap()));
    found.unwrap_or_default()
}

fn until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..10_000 {
        if holds() {
            return;
        }
        std::thread::yield_now();
    }
    panic!("gave up waiting until {what}");
}

#[test]
fn connections_of_callers_and_to_the_backend_are_counted_while_they_are_open() {
    let program = Program::start(&config(""), |_| {});
    let held: Vec<TcpStream> = (0..3).map(|_| TcpStream::connect(program.listen).unwrap()).collect();
    until("three callers are connected", || {
        value(&program, "toolvane_downstream_connections", "listener=\"proxy\"") == 3
    });
    assert_eq!(value(&program, "toolvane_downstream_connections_accepted_total", "listener=\"proxy\""), 3);
    assert!(value(&program, "toolvane_downstream_connections_accepted_total", "listener=\"admin\"") > 0);
    drop(held);
    until("they are gone", || value(&program, "toolvane_downstream_connections", "listener=\"proxy\"") == 0);

    for _ in 0..2 {
        assert_eq!(exchange(program.listen, "GET /t HTTP/1.1\r\nhost: localhost\r\n", "").0, 503);
    }
    assert_eq!(
        value(&program, "toolvane_upstream_connections_opened_total", "backend=\"b\""),
        2,
        "this backend closes each"
    );
    until("the backend has closed them", || value(&program, "toolvane_upstream_connections", "backend=\"b\"") == 0);
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
