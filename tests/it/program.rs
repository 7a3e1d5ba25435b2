//! A running toolvane in front of a backend that fails, its log, and its listeners.

use std::cell::RefCell;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use serde_json::Value;
use tempfile::TempDir;

use crate::wire::PATIENCE;

/// A backend that answers 503 to everything.
pub(crate) fn backend() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let mut line = String::new();
            while stream.read_line(&mut line).is_ok_and(|read| read > 2) {
                line.clear();
            }
            let answer = "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 7\r\nconnection: close\r\n\r\nsandbox";
            let _ = stream.get_mut().write_all(answer.as_bytes());
        }
    });
    address
}

/// A running toolvane in a directory of its own, and its log.
pub(crate) struct Program {
    pub(crate) child: Child,
    pub(crate) listen: SocketAddr,
    pub(crate) admin: SocketAddr,
    log: Receiver<Value>,
    /// What was taken from the log so far, and from standard error.
    seen: RefCell<String>,
    home: TempDir,
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A rule for the backend's answer.
pub(crate) fn rules(signature: &str) -> String {
    format!(
        "patterns:\n  - id: http-503\n    match: {{httpStatus: 503, bodyContains: sandbox}}\n    signature: {signature}\n    \
         classification: USER_INPUT\n"
    )
}

pub(crate) fn config(rules: &str) -> String {
    format!(
        "listen: 127.0.0.1:0\nadmin: {{listen: \"127.0.0.1:0\", local_writes: loopback}}\nstore: {{engine: memory}}\n\
         backends:\n  - name: b\n    kind: http\n    url: http://{}\n    routes: [{{tool: t, method: GET, path: /t}}]\n{rules}",
        backend()
    )
}

impl Program {
    pub(crate) fn start(config: &str, lay_out: impl Fn(&Path)) -> Program {
        let home = tempfile::tempdir().unwrap();
        lay_out(home.path());
        fs::write(home.path().join("toolvane.yaml"), config).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_toolvane"))
            .args(["run", "-c", "toolvane.yaml"])
            .current_dir(home.path())
            .env_clear()
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let seen = RefCell::new(String::new());
        let mut words = BufReader::new(child.stderr.take().unwrap());
        let mut address = |start: &str| {
            let mut line = String::new();
            words.read_line(&mut line).unwrap();
            seen.borrow_mut().push_str(&line);
            line.trim().strip_prefix(start).unwrap_or_else(|| panic!("{line:?}")).parse().unwrap()
        };
        let (listen, admin) = (address("listening on http://"), address("admin on http://"));
        let (sender, log) = channel();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let more = sender.clone();
        std::thread::spawn(move || {
            words.lines().map_while(Result::ok).try_for_each(|line| more.send(Value::from(line)))
        });
        std::thread::spawn(move || {
            lines.map_while(Result::ok).try_for_each(|line| sender.send(serde_json::from_str(&line).unwrap()))
        });
        let program = Program { child, listen, admin, log, seen, home };
        program.logged("toolvane serves");
        program
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// Puts a file in place as a careful editor does: all at once.
    pub(crate) fn swap(&self, name: &str, text: &str) {
        fs::write(self.path("new"), text).unwrap();
        fs::rename(self.path("new"), self.path(name)).unwrap();
    }

    /// Waits for a line of the log.
    pub(crate) fn logged(&self, message: &str) -> Value {
        loop {
            let line = self.log.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("gave up waiting for {message:?}"));
            self.seen.borrow_mut().push_str(&line.to_string());
            if line["message"] == message {
                return line;
            }
        }
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// Ends the process; gives all that it has said.
    pub(crate) fn end(&self) -> String {
        let id = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw).unwrap();
        rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
        let mut said = self.seen.borrow().clone();
        while let Ok(line) = self.log.recv_timeout(PATIENCE) {
            said.push_str(&line.to_string());
        }
        said
    }

    /// The rule's signature that the next call is judged by.
    pub(crate) fn judged_by(&self) -> String {
        self.judged_for("default")
    }

    pub(crate) fn judged_for(&self, tenant: &str) -> String {
        let before = self.counts("toolvane_failures_total");
        let (status, _) =
            exchange(self.listen, &format!("GET /t HTTP/1.1\r\nhost: localhost\r\nx-tenant-id: {tenant}\r\n"), "");
        assert_eq!(status, 503);
        let after = self.counts("toolvane_failures_total");
        let risen = after.iter().find(|line| !before.contains(line)).unwrap_or_else(|| panic!("{after:?}"));
        risen.split("signature=\"").nth(1).unwrap().split('"').next().unwrap().to_owned()
    }

    pub(crate) fn counts(&self, family: &str) -> Vec<String> {
        let (_, text) = exchange(self.admin, "GET /metrics HTTP/1.1\r\nhost: localhost\r\naccept: text/plain\r\n", "");
        text.lines().filter(|line| line.starts_with(family)).map(str::to_owned).collect()
    }

    pub(crate) fn reloads(&self, result: &str) -> u64 {
        let all = self.counts("toolvane_config_reloads_total");
        let line = all.iter().find(|line| line.contains(result));
        line.map_or(0, |line| line.rsplit(' ').next().unwrap().parse().unwrap())
    }

    pub(crate) fn ask_for_reload(&self, more: &str) -> (u16, Value) {
        let (status, body) = exchange(self.admin, &format!("POST /v1/reload HTTP/1.1\r\n{more}"), "");
        (status, serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error} in {body:?}")))
    }
}

pub(crate) fn exchange(address: SocketAddr, head: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "{head}connection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    (status, answer.split_once("\r\n\r\n").unwrap().1.to_owned())
}
