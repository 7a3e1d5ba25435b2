//! A kill at any instant: the file always opens, and everything acknowledged is there.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use toolvane::health::Backing;
use toolvane::store::Opened;

use super::support::{Place, block_on, document, open};

const ROUNDS: u64 = if cfg!(feature = "verify") { 200 } else { 20 };
const BATCH: u64 = 8;
const TOOLS: u64 = 200;

/// Each round, a child writes numbered versions and prints what was acknowledged; it is killed after a random number of
/// acknowledgements, from none (while it may still create or repair the file) to some hundreds.
#[test]
fn kill_9_loses_nothing_acknowledged_and_the_file_always_opens() {
    let place = Place::new();
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut acked: HashMap<u64, u64> = HashMap::new();
    let mut acks = 0;
    for round in 0..ROUNDS {
        let stop_after = random.usize(0..300);
        for line in killed_child(&place, stop_after, random.u64(0..3_000)) {
            let (tool, version) = line.split_once(' ').expect("a tool and a version");
            let (tool, version): (u64, u64) = (tool.parse().unwrap(), version.parse().unwrap());
            let newest = acked.entry(tool).or_default();
            *newest = version.max(*newest);
            acks += 1;
        }
        let (store, opened) = open(&place.path).unwrap();
        assert!(matches!(opened, Opened::Existing | Opened::Fresh), "round {round}: {opened:?}");
        let found: HashMap<String, u64> = store.load_all().into_iter().map(|d| (d.key.tool_name, d.version)).collect();
        for (tool, version) in &acked {
            let found = found.get(&tool.to_string());
            assert!(
                found.is_some_and(|found| found >= version),
                "round {round}: {tool} has {found:?}, acked {version}"
            );
        }
    }
    println!("{ROUNDS} kills, {acks} documents acknowledged, none lost");
    assert!(acks > ROUNDS, "too few acknowledgements to say anything: {acks}");
    assert_eq!(place.others(), Vec::<String>::new());
}

/// What the child acknowledged before it was killed, each line `<tool> <version>`.
fn killed_child(place: &Place, stop_after: usize, spins: u64) -> Vec<String> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "store::kill::child_that_writes_until_killed", "--ignored", "--nocapture"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    writeln!(child.stdin.take().unwrap(), "{}", place.path.display()).unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut acked = Vec::new();
    let mut take = |line: String| acked.extend(line.strip_prefix("acked ").map(str::to_owned));
    // The first line says that the child runs; from there on a kill may hit anything.
    for line in lines.by_ref().map(Result::unwrap).skip_while(|line| line != "writing").take(stop_after) {
        take(line);
    }
    // A random moment after the last line read: no clock needed.
    (0..spins * 100).for_each(|_| std::hint::spin_loop());
    child.kill().unwrap();
    // What it printed before it died was acknowledged too. The last line may be cut.
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    rest.into_iter().filter(|line| line.ends_with('.')).for_each(&mut take);
    child.wait().unwrap();
    acked.iter().map(|line| line.trim_end_matches('.').to_owned()).collect()
}

#[test]
#[ignore = "the child process of the test above"]
fn child_that_writes_until_killed() {
    let mut path = String::new();
    std::io::stdin().read_line(&mut path).unwrap();
    let mut out = std::io::stdout().lock();
    writeln!(out, "\nwriting").unwrap();
    let (store, _) = open(&PathBuf::from(path.trim())).unwrap();
    let newest = store.load_all().iter().map(|document| document.version).max().unwrap_or(0);
    for version in newest + 1.. {
        let tools: Vec<u64> = (0..BATCH).map(|n| (version * BATCH + n) % TOOLS).collect();
        // Evidence that nobody waits for goes along, as in life.
        store.write(document(&format!("evidence-{}", version % 1_000), version));
        block_on(store.commit(tools.iter().map(|tool| document(&tool.to_string(), version)).collect())).unwrap();
        let acked: String = tools.iter().map(|tool| format!("acked {tool} {version}.\n")).collect();
        out.write_all(acked.as_bytes()).unwrap();
    }
}
