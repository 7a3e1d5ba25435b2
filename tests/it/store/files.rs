//! Files that are not as they should be are reported and set aside, never overwritten, and a new one is started.

use std::fs;
use std::path::Path;

use redb::{Database, ReadableDatabase, TableDefinition};
use toolvane::store::{OpenError, Opened};

use super::support::{Place, block_on, document, open};

const META: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("meta");
const DOCUMENTS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("documents");

fn a_good_file(path: &Path) {
    let (store, _) = open(path).unwrap();
    block_on(store.commit((0..200).map(|n| document(&n.to_string(), n)).collect())).unwrap();
}

fn change_meta(path: &Path, key: &str, value: Option<&[u8]>) {
    let db = Database::open(path).unwrap();
    let transaction = db.begin_write().unwrap();
    {
        let mut meta = transaction.open_table(META).unwrap();
        match value {
            Some(value) => drop(meta.insert(key, value).unwrap()),
            None => drop(meta.remove(key).unwrap()),
        }
    }
    transaction.commit().unwrap();
}

/// Makes a bad file at a path; what is said about it.
type Case = (&'static str, fn(&Path), &'static str);

const BAD: &[Case] = &[
    ("text", |path| fs::write(path, "hello, I am no database\n").unwrap(), "is not a redb file"),
    ("zeroes", |path| fs::write(path, [0; 100_000]).unwrap(), "is not a redb file"),
    ("one byte", |path| fs::write(path, "r").unwrap(), "is not a redb file"),
    ("magic number alone", |path| fs::write(path, b"redb\x1A\x0A\xA9\x0D\x0A").unwrap(), ""),
    (
        "magic number and garbage",
        |path| fs::write(path, [b"redb\x1A\x0A\xA9\x0D\x0A".as_slice(), &[0xA5; 90_000]].concat()).unwrap(),
        "",
    ),
    (
        "cut in half",
        |path| {
            a_good_file(path);
            let whole = fs::metadata(path).unwrap().len();
            fs::OpenOptions::new().write(true).open(path).unwrap().set_len(whole / 2).unwrap();
        },
        "",
    ),
    (
        "cut to its header",
        |path| {
            a_good_file(path);
            fs::OpenOptions::new().write(true).open(path).unwrap().set_len(4096).unwrap();
        },
        "",
    ),
    (
        "garbage in the middle",
        |path| {
            a_good_file(path);
            let mut bytes = fs::read(path).unwrap();
            let quarter = bytes.len() / 4;
            bytes[8192..quarter * 3].fill(0x5A);
            fs::write(path, bytes).unwrap();
        },
        "",
    ),
    (
        "a redb file of another program",
        |path| {
            let db = Database::create(path).unwrap();
            let transaction = db.begin_write().unwrap();
            transaction.open_table(TableDefinition::<u64, u64>::new("theirs")).unwrap().insert(1, 2).unwrap();
            transaction.commit().unwrap();
        },
        "of another program, with tables [\"theirs\"]",
    ),
    (
        "tables of our names but other types",
        |path| {
            let db = Database::create(path).unwrap();
            let transaction = db.begin_write().unwrap();
            transaction.open_table(TableDefinition::<u64, u64>::new("meta")).unwrap();
            transaction.open_table(DOCUMENTS).unwrap();
            transaction.commit().unwrap();
        },
        "not ours",
    ),
    (
        "a file of a newer version",
        |path| {
            a_good_file(path);
            change_meta(path, "format", Some(b"toolvane 2"));
        },
        "has format \"toolvane 2\", this version reads \"toolvane 1\"",
    ),
    (
        "a value of a newer version",
        |path| {
            a_good_file(path);
            let db = Database::open(path).unwrap();
            let transaction = db.begin_write().unwrap();
            transaction.open_table(DOCUMENTS).unwrap().insert(b"k".as_slice(), b"\x02{}".as_slice()).unwrap();
            transaction.commit().unwrap();
        },
        "holds a document of format 2, this version reads 1",
    ),
    (
        "no install key",
        |path| {
            a_good_file(path);
            change_meta(path, "install_key", None);
        },
        "holds no install key",
    ),
];

#[test]
fn bad_files_are_set_aside_untouched_and_a_new_one_is_started() {
    for (name, make, said) in BAD {
        let place = Place::new();
        make(&place.path);
        let (store, opened) = place.open();
        let Opened::Quarantined { to, why } = opened else { panic!("{name}: {opened:?}") };
        println!("{name}: {why}");
        assert!(why.contains(said), "{name}: {why:?} should say {said:?}");
        assert_eq!(to, place.directory.path().join("state.redb.corrupt-20260302T100000000Z"), "{name}");
        block_on(store.commit(vec![document("a", 1)])).unwrap();
        drop(store);
        let (store, opened) = place.open();
        assert_eq!((opened, store.load_all()), (Opened::Existing, vec![document("a", 1)]), "{name}");
        assert_eq!(place.others().len(), 1, "{name}: {:?}", place.others());
    }
    assert_eq!(BAD.len(), 13);
}

#[test]
fn a_file_that_no_redb_has_touched_is_set_aside_byte_for_byte() {
    let place = Place::new();
    for content in ["first", "second"] {
        fs::remove_file(&place.path).ok();
        fs::write(&place.path, content).unwrap();
        let (_, opened) = place.open();
        let Opened::Quarantined { to, .. } = opened else { panic!("{opened:?}") };
        assert_eq!(fs::read_to_string(to).unwrap(), content);
    }
    assert_eq!(
        place.others(),
        ["state.redb.corrupt-20260302T100000000Z", "state.redb.corrupt-20260302T100000000Z-2"],
        "the second of one moment must not replace the first"
    );
}

#[test]
fn a_newer_versions_file_can_be_put_back_with_nothing_lost() {
    let place = Place::new();
    a_good_file(&place.path);
    change_meta(&place.path, "format", Some(b"toolvane 2"));
    let (_, opened) = place.open();
    let Opened::Quarantined { to, .. } = opened else { panic!("{opened:?}") };
    change_meta(&to, "format", Some(b"toolvane 1"));
    assert_eq!(open(&to).unwrap().0.load_all().len(), 200);
}

#[test]
fn one_garbled_document_costs_only_itself() {
    let place = Place::new();
    a_good_file(&place.path);
    {
        let db = Database::open(&place.path).unwrap();
        let transaction = db.begin_write().unwrap();
        transaction.open_table(DOCUMENTS).unwrap().insert(b"k".as_slice(), b"\x01{\"tenantId\":".as_slice()).unwrap();
        transaction.commit().unwrap();
    }
    let (store, opened) = place.open();
    assert_eq!((opened, store.load_all().len(), store.stats().unreadable), (Opened::Existing, 200, 1));
    drop(store);
    let db = Database::open(&place.path).unwrap();
    assert!(db.begin_read().unwrap().open_table(DOCUMENTS).unwrap().get(b"k".as_slice()).unwrap().is_some());
}

#[test]
fn an_empty_file_and_a_missing_directory_are_a_fresh_start() {
    let place = Place::new();
    fs::write(&place.path, "").unwrap();
    assert_eq!(place.open().1, Opened::Fresh);
    let deep = place.directory.path().join("not/yet/there/state.redb");
    assert_eq!(open(&deep).unwrap().1, Opened::Fresh);
}

#[test]
fn what_a_kill_during_creation_left_behind_is_no_obstacle() {
    let place = Place::new();
    fs::write(place.directory.path().join("state.redb.new"), [0; 5000]).unwrap();
    assert_eq!(place.open().1, Opened::Fresh);
    assert_eq!(place.others(), Vec::<String>::new());
}

#[test]
fn a_file_in_use_is_a_clear_error_and_stays_unharmed() {
    let place = Place::new();
    let (first, _) = place.open();
    let second = open(&place.path).err();
    assert_eq!(second, Some(OpenError::InUse { path: place.path.clone() }));
    let said = second.unwrap().to_string();
    assert!(said.contains("in use by another process") && said.contains("store.path"), "{said}");
    block_on(first.commit(vec![document("a", 1)])).unwrap();
    drop(first);
    assert_eq!(place.open().0.load_all(), vec![document("a", 1)]);
}

#[test]
fn what_is_no_regular_file_stays_where_it_is() {
    let place = Place::new();
    let _socket = std::os::unix::net::UnixListener::bind(&place.path).unwrap();
    let (_store, opened) = place.open();
    assert!(matches!(&opened, Opened::Unwritable { why } if why.contains("engine: memory")), "{opened:?}");
    assert!(!fs::metadata(&place.path).unwrap().is_file());
}
