//! The recording of outcomes (`record` in the configuration): one JSON line a judged call, redacted, in a file of bounded size.
//!
//! Writing is done by a thread of its own. A call never waits for it: if the thread falls behind, outcomes are left out and
//! counted. When the file has reached half of its bound it becomes `<file>.1`, in place of the one before, and a new one is
//! begun; so the newest half of the bound is always there.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use crate::clock::{Now, millis};
use crate::health::{Caller, Recorded, RecordedCaller};
use crate::rules::{Exchange, Verdict};

/// So many outcomes wait for the writer at most; each holds the text of its failure.
const QUEUE: usize = 128;
/// Only the owner reads what callers were told.
const MODE: u32 = 0o600;

/// One judged call.
#[derive(Debug)]
pub struct Judged {
    /// What it came to.
    pub exchange: Exchange,
    /// What the rules said.
    pub verdict: Verdict,
    /// Who called.
    pub caller: Arc<Caller>,
    /// How long it took.
    pub took: Duration,
    /// When it ended.
    pub now: Now,
}

/// A file that outcomes are recorded in. Clones share it.
#[derive(Clone, Debug)]
pub struct OutcomeFile {
    queue: SyncSender<Judged>,
    left_out: Arc<AtomicU64>,
}

impl OutcomeFile {
    /// Opens a file to append to, and starts its writer, which ends when the last clone is dropped. Sessions and users are
    /// written as hashes under `key`.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn open(path: &Path, max_bytes: u64, key: [u8; 32]) -> io::Result<OutcomeFile> {
        let mut writer = Writer::open(path, max_bytes)?;
        let (queue, waiting) = sync_channel(QUEUE);
        let left_out = Arc::new(AtomicU64::new(0));
        let lost = Arc::clone(&left_out);
        let work = move || run(&waiting, &mut writer, &key, &lost);
        std::thread::Builder::new().name("outcomes".to_owned()).spawn(work)?;
        Ok(OutcomeFile { queue, left_out })
    }

    /// Hands an outcome to the writer; leaves it out if too many wait.
    pub fn record(&self, judged: Judged) {
        if self.queue.try_send(judged).is_err() {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many outcomes were not written, since the writer fell behind or the disk refused them.
    pub fn left_out(&self) -> u64 {
        self.left_out.load(Ordering::Relaxed)
    }
}

fn run(waiting: &Receiver<Judged>, writer: &mut Writer, key: &[u8; 32], left_out: &AtomicU64) {
    while let Ok(judged) = waiting.recv() {
        let line = serde_json::to_vec(&recorded(&judged, key)).map_err(io::Error::other);
        if line.and_then(|line| writer.append(line)).is_err() {
            left_out.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn recorded(judged: &Judged, key: &[u8; 32]) -> Recorded {
    let hash = |id: &str| blake3::keyed_hash(key, id.as_bytes()).to_hex().chars().take(16).collect();
    Recorded {
        at: judged.now.wall,
        took_ms: millis(judged.took),
        caller: RecordedCaller::of(&judged.caller, hash),
        outcome: (&judged.exchange).into(),
        verdict: judged.verdict.clone(),
    }
}

struct Writer {
    path: PathBuf,
    file: File,
    size: u64,
    half: u64,
}

impl Writer {
    fn open(path: &Path, max_bytes: u64) -> io::Result<Writer> {
        let file = append_to(path)?;
        let size = file.metadata()?.len();
        Ok(Writer { path: path.to_owned(), file, size, half: max_bytes / 2 })
    }

    fn append(&mut self, mut line: Vec<u8>) -> io::Result<()> {
        line.push(b'\n');
        let len = u64::try_from(line.len()).unwrap_or(u64::MAX);
        if len > self.half {
            return Err(io::Error::other("the line is longer than the file may be"));
        }
        if self.size.saturating_add(len) > self.half {
            let mut old = self.path.clone().into_os_string();
            old.push(".1");
            fs::rename(&self.path, old)?;
            self.file = append_to(&self.path)?;
            self.size = 0;
        }
        self.file.write_all(&line)?;
        self.size += len;
        Ok(())
    }
}

fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(MODE).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{Answer, BackendKind};

    fn judged(text: &str) -> Judged {
        let caller = Caller {
            session: None,
            user: Some("alice@example.com".into()),
            project: "p".into(),
            tenant: "t".into(),
            roles: Vec::new(),
            credential: None,
        };
        let exchange = Exchange {
            kind: BackendKind::Http,
            answer: Answer::None,
            status: Some(500),
            text: text.to_owned(),
            ..Exchange::default()
        };
        Judged {
            exchange,
            verdict: Verdict::NEUTRAL,
            caller: Arc::new(caller),
            took: Duration::ZERO,
            now: Now::default(),
        }
    }

    fn written(writer: &mut Writer, judged: &Judged) -> io::Result<()> {
        writer.append(serde_json::to_vec(&recorded(judged, &[7; 32])).unwrap())
    }

    #[test]
    fn the_newest_half_of_the_bound_is_always_there_and_the_whole_never_above_it() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("outcomes.jsonl");
        let mut writer = Writer::open(&path, 4_000).unwrap();
        for number in 0..50 {
            written(&mut writer, &judged(&format!("failure {number}"))).unwrap();
        }
        let (new, old) =
            (fs::read_to_string(&path).unwrap(), fs::read_to_string(home.path().join("outcomes.jsonl.1")).unwrap());
        assert!(new.len() + old.len() <= 4_000 && new.len() + old.len() > 2_000, "{} {}", new.len(), old.len());
        assert!(new.lines().last().unwrap().contains("failure 49"));
        assert!(written(&mut writer, &judged(&"long ".repeat(2_000))).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), new, "a line that does not fit leaves the file as it is");
    }

    #[test]
    fn nobody_is_named_and_the_owner_alone_reads() {
        use std::os::unix::fs::PermissionsExt;
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("outcomes.jsonl");
        let file = OutcomeFile::open(&path, 1 << 20, [7; 32]).unwrap();
        file.record(judged("mail bob@example.com, password=hunter2x"));
        drop(file);
        let text = loop {
            let text = fs::read_to_string(&path).unwrap();
            if text.ends_with('\n') {
                break text;
            }
            std::thread::yield_now();
        };
        for secret in ["alice", "bob", "hunter2x"] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
