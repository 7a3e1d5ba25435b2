//! A disk that refuses: memory goes on, the trouble is reported, and what waited is written once it is over.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{Resource, Rlimit, geteuid, getrlimit, setrlimit};
use toolvane::health::Backing;
use toolvane::store::{CommitError, Opened, Report};

use super::support::{Place, block_on, document, key, open, open_reporting, wait_for};

/// Runs in a thread that is nobody in particular, so that permissions hold even where the tests run as root.
fn without_privileges<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let thread = std::thread::spawn(|| {
        if geteuid().is_root() {
            rustix::thread::set_thread_uid(rustix::process::Uid::from_raw(65_534)).unwrap();
        }
        work()
    });
    thread.join().unwrap()
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_read_only_file_is_read_and_what_changes_meanwhile_is_written_when_it_opens_up() {
    let place = Place::new();
    block_on(place.open().0.commit(vec![document("before", 1)])).unwrap();
    set_mode(&place.path, 0o444);
    set_mode(place.directory.path(), 0o555);

    let path = place.path.clone();
    let (store, opened, reports) = without_privileges(move || open_reporting(&path));
    let Opened::Unwritable { why } = opened else { panic!("{opened:?}") };
    assert!(why.contains("Permission denied"), "{why}");
    assert_eq!(store.load_all(), vec![document("before", 1)]);
    assert_eq!(store.install_key(), super::support::FRESH_KEY);

    store.write(document("meanwhile", 1));
    assert_eq!(store.read(&key("meanwhile")), Some(document("meanwhile", 1)));
    assert_eq!(store.read(&key("before")), Some(document("before", 1)));
    let refused = block_on(store.commit(vec![document("acked", 1)]));
    assert!(matches!(refused, Err(CommitError::NotStored { .. })), "{refused:?}");
    assert!(store.stats().failing_since.is_some());

    set_mode(&place.path, 0o666);
    block_on(store.flush()).unwrap();
    wait_for(&reports, |report| matches!(report, Report::Recovered { .. }).then_some(()));
    assert_eq!(store.stats().failing_since, None);
    drop(store);
    set_mode(place.directory.path(), 0o755);
    assert_eq!(place.open().0.load_all().len(), 3);
}

#[test]
fn a_directory_that_cannot_be_written_gives_a_store_that_lives_in_memory() {
    let place = Place::new();
    set_mode(place.directory.path(), 0o555);
    let path = place.path.clone();
    let (store, opened, reports) = without_privileges(move || open_reporting(&path));
    assert!(matches!(&opened, Opened::Unwritable { why } if why.contains("Permission denied")), "{opened:?}");
    store.write(document("a", 1));
    wait_for(&reports, |report| matches!(report, Report::CommitFailed { queued: 1, .. }).then_some(()));
    set_mode(place.directory.path(), 0o777);
    block_on(store.flush()).unwrap();
    assert_eq!(store.read(&key("a")), Some(document("a", 1)));
}

#[test]
fn a_bad_file_that_cannot_be_set_aside_is_left_alone() {
    let place = Place::new();
    fs::write(&place.path, "precious").unwrap();
    set_mode(&place.path, 0o666);
    set_mode(place.directory.path(), 0o555);
    let path = place.path.clone();
    let (store, opened, _) = without_privileges(move || open_reporting(&path));
    assert!(matches!(&opened, Opened::Unwritable { why } if why.contains("set aside")), "{opened:?}");
    assert!(block_on(store.commit(vec![document("a", 1)])).is_err());
    drop(store);
    assert_eq!(fs::read_to_string(&place.path).unwrap(), "precious");
}

#[test]
fn a_path_that_is_a_directory_is_said_so() {
    let place = Place::new();
    fs::create_dir(&place.path).unwrap();
    let (_, opened) = place.open();
    assert!(matches!(&opened, Opened::Unwritable { why } if why.contains("directory")), "{opened:?}");
}

/// The disk fills up in a child process whose files may not grow beyond a limit that it lifts later. Only a shell can
/// have the signal ignored that would kill it, hence the detour.
#[test]
fn a_full_disk_costs_nothing_that_was_acknowledged_and_heals() {
    let place = Place::new();
    let exe = std::env::current_exe().unwrap();
    let mut child = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -S -f 4000; exec \"$0\" \"$@\""])
        .arg(exe)
        .args(["--exact", "store::disk::child_on_a_full_disk", "--ignored", "--nocapture"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    writeln!(child.stdin.take().unwrap(), "{}", place.path.display()).unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let said: Vec<String> = lines.filter(|line| line.starts_with("child: ")).collect();
    assert!(child.wait().unwrap().success(), "{said:#?}");
    println!("{said:#?}");
    let acked = said.iter().filter(|line| line.starts_with("child: acked")).count();
    assert!(acked > 0);
    assert_eq!(place.open().0.load_all().len(), 3_000);
    assert_eq!(place.others(), Vec::<String>::new());
}

#[test]
#[ignore = "the child process of the test above"]
fn child_on_a_full_disk() {
    let mut path = String::new();
    std::io::stdin().read_line(&mut path).unwrap();
    let (store, opened, reports) = open_reporting(&PathBuf::from(path.trim()));
    assert_eq!(opened, Opened::Fresh);
    let mut refused = Vec::new();
    for batch in 0..30_u64 {
        let documents = (0..100).map(|n| document(&format!("{batch}-{n}"), n)).collect();
        match block_on(store.commit(documents)) {
            Ok(()) => println!("child: acked {batch}"),
            Err(error) => refused.push(error),
        }
    }
    assert!(!refused.is_empty(), "the limit was never reached");
    let ways: std::collections::HashSet<String> = refused.iter().map(ToString::to_string).collect();
    println!("child: refused {} times: {ways:?}", refused.len());
    wait_for(&reports, |report| matches!(report, Report::CommitFailed { .. }).then_some(()));
    assert!(store.read(&key("0-0")).is_some() && store.read(&key("29-99")).is_some());

    let hard = getrlimit(Resource::Fsize).maximum;
    setrlimit(Resource::Fsize, Rlimit { current: hard, maximum: hard }).unwrap();
    block_on(store.flush()).unwrap();
    wait_for(&reports, |report| matches!(report, Report::Recovered { .. }).then_some(()));
    println!("child: {:?}", store.stats());
}

#[test]
fn a_full_queue_is_counted_and_refuses_commits() {
    let place = Place::new();
    fs::create_dir(&place.path).unwrap();
    let settings = toolvane::store::Settings { queue_max: 10, ..super::support::settings(&place.path) };
    let (store, _) = toolvane::store::Store::open(settings).unwrap();
    (0..25).for_each(|n| {
        let _ = store.write(document(&n.to_string(), n));
    });
    assert_eq!((store.stats().dropped, store.stats().queued), (15, 10));
    let refused = block_on(store.commit(vec![document("one more", 1)]));
    assert!(matches!(refused, Err(CommitError::QueueFull { queued: 10 })), "{refused:?}");
    assert!(open(&place.path).is_ok(), "a store that could not open its file holds no lock");
}
