//! The file itself: opening it, telling ours from others, setting a bad one aside, reading and writing it.
//!
//! A file is only ever created under `<file>.new` and renamed once it is complete, so that neither a kill nor a full disk
//! leaves half a file under the real name. A bad file is renamed, never overwritten and never deleted.

use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use redb::{
    Database, Durability, ReadOnlyDatabase, ReadTransaction, ReadableDatabase, ReadableTable, TableDefinition,
    TableHandle,
};

use super::queue::{Change, Changes, Place};
use super::record::{self, FORMAT};
use super::report::{Opened, Report, ReportSink};
use super::trouble::{Refusal, Trouble, guarded, unusable};
use super::{InstallKey, Settings};
use crate::clock::Wall;
use crate::health::{Document, Key};

const DOCUMENTS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("documents");
/// What other parts of the program keep, under names of their own. Absent in files of older versions.
const RECORDS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("records");
const META: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("meta");
const META_FORMAT: &str = "format";
const META_INSTALL_KEY: &str = "install_key";
const APPLICATION: &str = "toolvane";
/// redb's page cache. The documents live in our own memory, so a small one does.
const CACHE_BYTES: usize = 8 * 1024 * 1024;

/// An open file.
pub(super) enum File {
    ReadWrite(Database, InstallKey),
    /// As long as it cannot be written: what it holds can at least be read.
    ReadOnly(ReadOnlyDatabase, InstallKey),
}

/// Opens the file for writing, creates it, or sets a bad one aside and creates it.
pub(super) fn open(settings: &Settings) -> Result<(File, Opened), Refusal> {
    let path = &settings.path;
    if is_absent(path) {
        return Ok((create(settings)?, Opened::Fresh));
    }
    if fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        let why = "is no regular file and stays as it is; to keep no state at all set `store: {engine: memory}`";
        return Err(Refusal::Unusable(format!("{} {why}", path.display())));
    }
    match open_existing(path, &settings.report) {
        Err(Refusal::Bad(why)) => {
            let to = set_aside(path, settings.clock.now().wall)?;
            Ok((create(settings)?, Opened::Quarantined { to, why }))
        }
        opened => Ok((opened?, Opened::Existing)),
    }
}

/// Opens an existing file that cannot be written, to read what it holds.
pub(super) fn open_read_only(path: &Path) -> Option<File> {
    let opened = guarded(|| {
        let db = redb::Builder::new().set_cache_size(CACHE_BYTES).open_read_only(path)?;
        let install_key = inspect(&db.begin_read()?)?;
        Ok(File::ReadOnly(db, install_key))
    });
    opened.ok()
}

/// An empty file counts as none: it is what `touch` or a container's volume leaves behind.
fn is_absent(path: &Path) -> bool {
    match fs::metadata(path) {
        Ok(found) => found.is_file() && found.len() == 0,
        Err(error) => error.kind() == ErrorKind::NotFound,
    }
}

fn open_existing(path: &Path, report: &ReportSink) -> Result<File, Refusal> {
    let report = report.clone();
    guarded(move || {
        let mut builder = redb::Builder::new();
        builder.set_cache_size(CACHE_BYTES).set_check_integrity_on_open(true).set_repair_callback(move |repair| {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a percentage, clamped")]
            let percent = (repair.progress() * 100.0).clamp(0.0, 99.0) as u8;
            report(Report::Repairing { percent });
        });
        let db = builder.open(path)?;
        let install_key = inspect(&db.begin_read()?)?;
        Ok(File::ReadWrite(db, install_key))
    })
}

fn create(settings: &Settings) -> Result<File, Refusal> {
    let path = &settings.path;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(parent).map_err(|error| unusable("create directory", parent, &error))?;
    let new = with_suffix(path, ".new");
    let db = match create_complete(&new, settings.fresh_key) {
        Err(Refusal::Bad(_)) => {
            // Left half done by a kill. It was never under the real name, so nothing is lost with it.
            fs::remove_file(&new).map_err(|error| unusable("remove", &new, &error))?;
            create_complete(&new, settings.fresh_key)
        }
        created => created,
    };
    let db = db.inspect_err(|refusal| {
        if matches!(refusal, Refusal::Unusable(_)) {
            // Best effort: half a file on a full disk helps nobody, and the next attempt handles a leftover.
            let _ = fs::remove_file(&new);
        }
    })?;
    // While we hold `.new` nobody else can be between here and the rename, so the real name cannot appear in between.
    if !is_absent(path) {
        let _ = fs::remove_file(&new);
        return Err(Refusal::InUse);
    }
    fs::rename(&new, path).map_err(|error| unusable("rename the new state file to", path, &error))?;
    sync_directory(parent);
    Ok(File::ReadWrite(db, settings.fresh_key))
}

fn create_complete(new: &Path, install_key: InstallKey) -> Result<Database, Refusal> {
    guarded(|| {
        // It holds a key and names users: nobody else's to read.
        fs::OpenOptions::new().create(true).append(true).mode(0o600).open(new)?;
        let db = redb::Builder::new().set_cache_size(CACHE_BYTES).create(new)?;
        let mut transaction = db.begin_write()?;
        transaction.set_durability(Durability::Immediate)?;
        {
            transaction.open_table(DOCUMENTS)?;
            let mut meta = transaction.open_table(META)?;
            meta.insert(META_FORMAT, format!("{APPLICATION} {FORMAT}").as_bytes())?;
            meta.insert(META_INSTALL_KEY, install_key.0.as_slice())?;
        }
        transaction.commit()?;
        Ok(db)
    })
}

/// Checks that the file is ours, of our format in every value, and returns its install key.
fn inspect(transaction: &ReadTransaction) -> Result<InstallKey, Trouble> {
    let tables: Vec<String> = transaction.list_tables()?.map(|table| table.name().to_owned()).collect();
    if !tables.iter().any(|name| name == META.name()) || !tables.iter().any(|name| name == DOCUMENTS.name()) {
        return Err(Trouble::Content(format!("is a redb file of another program, with tables {tables:?}")));
    }
    let meta = transaction.open_table(META)?;
    let ours = format!("{APPLICATION} {FORMAT}");
    let format = meta.get(META_FORMAT)?.map(|value| String::from_utf8_lossy(value.value()).into_owned());
    if format.as_deref() != Some(&ours) {
        let found = format.unwrap_or_else(|| "none".to_owned());
        return Err(Trouble::Content(format!("has format {found:?}, this version reads {ours:?}")));
    }
    let install_key = meta.get(META_INSTALL_KEY)?.and_then(|value| value.value().try_into().ok()).map(InstallKey);
    for entry in transaction.open_table(DOCUMENTS)?.iter()? {
        let (_, value) = entry?;
        if let Some(&other) = value.value().first().filter(|&&byte| byte != FORMAT) {
            return Err(Trouble::Content(format!("holds a document of format {other}, this version reads {FORMAT}")));
        }
    }
    install_key.ok_or_else(|| Trouble::Content("holds no install key of 32 bytes".to_owned()))
}

/// Renames a bad file to the first free `<file>.corrupt-<time>`.
fn set_aside(path: &Path, now: Wall) -> Result<PathBuf, Refusal> {
    let held = fs::File::open(path).map_err(|error| unusable("open", path, &error))?;
    if matches!(held.try_lock(), Err(fs::TryLockError::WouldBlock)) {
        return Err(Refusal::InUse);
    }
    // Another process may have set it aside and started a new one since we looked: then that one holds the new one.
    let still_there = held.metadata().and_then(|held| Ok((held.ino(), held.dev()) == inode(path)?));
    if !still_there.map_err(|error| unusable("look at", path, &error))? {
        return Err(Refusal::InUse);
    }
    let stamp: String = now.to_string().chars().filter(char::is_ascii_alphanumeric).collect();
    let names = (1..=1000).map(|n| if n == 1 { String::new() } else { format!("-{n}") });
    let free = names
        .map(|suffix| with_suffix(path, &format!(".corrupt-{stamp}{suffix}")))
        .find(|name| fs::symlink_metadata(name).is_err_and(|error| error.kind() == ErrorKind::NotFound));
    let to = free.ok_or_else(|| Refusal::Unusable(format!("no free name {}.corrupt-{stamp}-N", path.display())))?;
    fs::rename(path, &to).map_err(|error| unusable("set aside the bad state file as", &to, &error))?;
    Ok(to)
}

fn inode(path: &Path) -> std::io::Result<(u64, u64)> {
    let found = fs::metadata(path)?;
    Ok((found.ino(), found.dev()))
}

/// Makes the rename outlast a power cut. Some file systems cannot; the data itself is safe either way.
fn sync_directory(directory: &Path) {
    let _ = fs::File::open(directory).and_then(|directory| directory.sync_all());
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            File::ReadWrite(..) => "ReadWrite",
            File::ReadOnly(..) => "ReadOnly",
        })
    }
}

impl File {
    pub(super) fn install_key(&self) -> InstallKey {
        match self {
            File::ReadWrite(_, key) | File::ReadOnly(_, key) => *key,
        }
    }

    /// Writes all changes in one transaction that is on disk when this returns. Returns what could not be encoded.
    pub(super) fn apply(&self, changes: &Changes) -> Result<Vec<String>, Refusal> {
        let File::ReadWrite(db, _) = self else {
            return Err(Refusal::Unusable("the file is open for reading only".to_owned()));
        };
        guarded(|| {
            let mut unwritable = Vec::new();
            let mut transaction = db.begin_write()?;
            transaction.set_durability(Durability::Immediate)?;
            {
                let mut table = transaction.open_table(DOCUMENTS)?;
                let mut records = transaction.open_table(RECORDS)?;
                for (place, change) in changes {
                    let key = match place {
                        Place::Document(key) => record::key_bytes(key),
                        Place::Record(name) => {
                            match change {
                                Change::Keep(bytes) => drop(records.insert(name.as_str(), bytes.as_slice())?),
                                Change::Put(_) | Change::Delete => drop(records.remove(name.as_str())?),
                            }
                            continue;
                        }
                    };
                    match change {
                        Change::Keep(_) | Change::Delete => drop(table.remove(key.as_slice())?),
                        Change::Put(document) => match record::encode(document) {
                            Ok(value) => drop(table.insert(key.as_slice(), value.as_slice())?),
                            Err(error) => unwritable.push(error.to_string()),
                        },
                    }
                }
            }
            transaction.commit()?;
            Ok(unwritable)
        })
    }

    /// The document under a key, `Ok(None)` if there is none.
    pub(super) fn get(&self, key: &Key) -> Result<Option<Document>, String> {
        let value = guarded(|| {
            let table = self.begin_read()?.open_table(DOCUMENTS)?;
            Ok(table.get(record::key_bytes(key).as_slice())?.map(|value| record::decode(value.value())))
        });
        value.map_err(Refusal::into_reason)?.transpose().map_err(|error| error.to_string())
    }

    /// Every document, and why some could not be read.
    pub(super) fn all(&self) -> Result<(Vec<Document>, Vec<String>), String> {
        let read = guarded(|| {
            let (mut documents, mut unreadable) = (Vec::new(), Vec::new());
            for entry in self.begin_read()?.open_table(DOCUMENTS)?.iter()? {
                let (_, value) = entry?;
                match record::decode(value.value()) {
                    Ok(document) => documents.push(document),
                    Err(error) => unreadable.push(error.to_string()),
                }
            }
            Ok((documents, unreadable))
        });
        read.map_err(Refusal::into_reason)
    }

    /// The records whose names begin so, in the order of their names.
    pub(super) fn records(&self, prefix: &str) -> Result<Vec<(String, Vec<u8>)>, String> {
        let read = guarded(|| {
            let table = match self.begin_read()?.open_table(RECORDS) {
                Err(redb::TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
                opened => opened?,
            };
            let mut found = Vec::new();
            for entry in table.range(prefix..)? {
                let (name, bytes) = entry?;
                if !name.value().starts_with(prefix) {
                    break;
                }
                found.push((name.value().to_owned(), bytes.value().to_vec()));
            }
            Ok(found)
        });
        read.map_err(Refusal::into_reason)
    }

    fn begin_read(&self) -> Result<ReadTransaction, redb::TransactionError> {
        match self {
            File::ReadWrite(db, _) => db.begin_read(),
            File::ReadOnly(db, _) => db.begin_read(),
        }
    }
}
