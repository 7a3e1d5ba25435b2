//! A process under test: started, asked for its CPU time and memory, ended.

use std::fs;
use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// A process and its children; killed when dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
}

/// CPU time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cpu {
    pub user: Duration,
    pub system: Duration,
    /// From the scheduler's accounts, in nanoseconds where the others are in ticks of 10 ms.
    pub total: Duration,
}

impl Process {
    /// Starts a command with its output in `log`.
    pub fn start(mut command: Command, log: &Path) -> Result<Process> {
        let out = fs::File::create(log)?;
        let err = out.try_clone()?;
        let named = format!("{command:?}");
        let child = command.stdin(Stdio::null()).stdout(out).stderr(err).spawn().with_context(|| named)?;
        Ok(Process { child })
    }

    /// Waits until somebody accepts at `at`.
    pub fn wait_for(&mut self, at: SocketAddr, limit: Duration) -> Result<()> {
        let began = Instant::now();
        while TcpStream::connect(at).is_err() {
            if let Some(status) = self.child.try_wait()? {
                bail!("it ended at once: {status}");
            }
            if began.elapsed() > limit {
                bail!("nobody listens on {at} after {limit:?}");
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    /// The process and all its descendants.
    fn tree(&self) -> Vec<u32> {
        let mut all = vec![self.child.id()];
        let mut at = 0;
        while let Some(&pid) = all.get(at) {
            at += 1;
            for task in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
                let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
                all.extend(children.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
            }
        }
        all
    }

    /// CPU time until now, of the process and its descendants.
    pub fn cpu(&self) -> Cpu {
        let mut sum = Cpu::default();
        for pid in self.tree() {
            for task in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
                let schedstat = fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
                let ran = schedstat.split_whitespace().next().and_then(|ns| ns.parse().ok());
                sum.total += Duration::from_nanos(ran.unwrap_or(0));
            }
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
            let ticks = |at: usize| fields.get(at).and_then(|t| t.parse::<u64>().ok()).unwrap_or(0);
            sum.user += Duration::from_millis(10 * ticks(11));
            sum.system += Duration::from_millis(10 * ticks(12));
        }
        sum
    }

    /// Proportional set size in KiB.
    pub fn pss(&self) -> u64 {
        let of = |pid: u32| {
            let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
            let line = rollup.lines().find(|line| line.starts_with("Pss:")).unwrap_or_default();
            line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0)
        };
        self.tree().into_iter().map(of).sum()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Each by its own id, a master before its workers: it would start new ones.
        for pid in self.tree() {
            let _ = Command::new("kill").args(["-KILL", &pid.to_string()]).stderr(Stdio::null()).status();
        }
        let _ = self.child.wait();
    }
}

/// A port that was free a moment ago.
pub fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// Fetches `path` and drops the answer, as a scraper does.
pub fn scrape(at: SocketAddr) -> Result<()> {
    let mut socket = TcpStream::connect(at)?;
    socket.write_all(b"GET /metrics HTTP/1.1\r\nhost: bench\r\nconnection: close\r\n\r\n")?;
    std::io::copy(&mut socket, &mut std::io::sink())?;
    Ok(())
}
