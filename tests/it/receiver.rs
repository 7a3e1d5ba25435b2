//! Whoever takes posts: a collector, an engine, somebody who is notified.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{Receiver, channel};

/// A request that came.
#[derive(Debug)]
pub(crate) struct Posted {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Posted {
    pub(crate) fn path(&self) -> &str {
        self.head.split(' ').nth(1).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut fields = self.head.lines().filter_map(|line| line.split_once(": "));
        fields.find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub(crate) fn text(&self) -> String {
        format!("{}{}", self.head, String::from_utf8_lossy(&self.body))
    }
}

/// Answers each request with this status, and hands out what came.
pub(crate) fn receiver(status: &'static str) -> (SocketAddr, Receiver<Posted>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, posts) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") && stream.read_line(&mut head).is_ok_and(|read| read > 0) {}
            let mut posted = Posted { head, body: Vec::new() };
            let length = posted.header("content-length").map_or(0, |length| length.parse().unwrap());
            posted.body.resize(length, 0);
            stream.read_exact(&mut posted.body).unwrap();
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            stream.get_mut().write_all(answer.as_bytes()).unwrap();
            let _ = sender.send(posted);
        }
    });
    (address, posts)
}
