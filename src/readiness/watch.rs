//! Whether credentials are there, and noticing when that changes. Files are looked at on a thread of their own turn, never by
//! a reader: readers see what was found last.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use arc_swap::ArcSwap;
use serde::Serialize;

use super::env_file;
use super::secret::FILE_MAX;
use crate::config::{Credential, Environment};

/// Whether a credential is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Presence {
    /// It is there and more than blanks.
    Present,
    /// It is not there, or nothing but blanks.
    Absent,
    /// Its place cannot be looked at, which is never held against a tool.
    Unreadable,
}

impl Presence {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Presence::Present => "present",
            Presence::Absent => "missing",
            Presence::Unreadable => "unreadable",
        }
    }
}

/// What tells one version of a file from the next, a replaced symbolic link of a mounted secret included.
type Stamp = (u64, u64, u64, i64, i64, i64);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    Gone,
    Unreadable,
    File { stamp: Stamp, blank: bool, keys: Option<BTreeSet<String>> },
}

/// All places of credentials.
#[derive(Debug)]
pub(super) struct Watch {
    environment: Environment,
    /// The files, and whether their keys matter.
    files: BTreeMap<PathBuf, bool>,
    seen: ArcSwap<HashMap<PathBuf, Seen>>,
}

impl Watch {
    /// Looks at all places once.
    pub(super) fn new<'a>(
        environment: Environment,
        places: impl Iterator<Item = &'a Credential>,
        others: impl Iterator<Item = &'a PathBuf>,
    ) -> Watch {
        let mut files: BTreeMap<PathBuf, bool> = others.map(|path| (path.clone(), false)).collect();
        for place in places {
            if let Some(path) = place.file() {
                let keys = matches!(place, Credential::EnvFile(..));
                *files.entry(path.to_owned()).or_default() |= keys;
            }
        }
        let watch = Watch { environment, files, seen: ArcSwap::default() };
        watch.look();
        watch
    }

    pub(super) fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Whether there is a file to look at.
    pub(super) fn has_files(&self) -> bool {
        !self.files.is_empty()
    }

    /// Looks at all files and gives those that are not what they were. Touches the disk.
    pub(super) fn look(&self) -> BTreeSet<PathBuf> {
        let before = self.seen.load();
        let mut now = HashMap::new();
        for (path, keys) in &self.files {
            now.insert(path.clone(), see(path, *keys, before.get(path)));
        }
        let changed = now.iter().filter(|(path, seen)| before.get(*path) != Some(seen));
        let changed: BTreeSet<PathBuf> = changed.map(|(path, _)| path.clone()).collect();
        if !changed.is_empty() {
            self.seen.store(now.into());
        }
        changed
    }

    /// Whether a credential is there, as far as was seen last.
    pub(super) fn presence(&self, place: &Credential) -> Presence {
        let of = |there: bool| if there { Presence::Present } else { Presence::Absent };
        let (path, key) = match place {
            Credential::Env(name) => return of(self.environment.has(name)),
            Credential::File(path) => (path, None),
            Credential::EnvFile(path, key) => (path, Some(key)),
        };
        match (self.seen.load().get(path), key) {
            (Some(Seen::File { blank, .. }), None) => of(!blank),
            (Some(Seen::File { keys: Some(keys), .. }), Some(key)) => of(keys.contains(&**key)),
            (Some(Seen::File { keys: None, .. }) | Some(Seen::Unreadable) | None, _) => Presence::Unreadable,
            (Some(Seen::Gone), _) => Presence::Absent,
        }
    }
}

fn see(path: &Path, keys: bool, before: Option<&Seen>) -> Seen {
    let about = match fs::metadata(path) {
        Ok(about) => about,
        Err(error) if error.kind() == ErrorKind::NotFound => return Seen::Gone,
        Err(_) => return Seen::Unreadable,
    };
    let stamp =
        (about.dev(), about.ino(), about.len(), about.mtime(), about.mtime_nsec(), about.ctime() ^ about.ctime_nsec());
    if let Some(known @ Seen::File { stamp: before, .. }) = before
        && *before == stamp
    {
        return known.clone();
    }
    let blank = !about.is_file() || is_blank(path, about.len());
    Seen::File { stamp, blank, keys: if keys { names(path) } else { None } }
}

/// Whether a file holds nothing but blanks. One that cannot be read is held against nobody.
fn is_blank(path: &Path, length: u64) -> bool {
    let blanks = || {
        let mut bytes = Vec::new();
        fs::File::open(path)?.take(FILE_MAX).read_to_end(&mut bytes)?;
        Ok::<_, std::io::Error>(bytes.iter().all(u8::is_ascii_whitespace))
    };
    length == 0 || (length <= FILE_MAX && blanks().unwrap_or(false))
}

/// The keys of an env file that have a value.
fn names(path: &Path) -> Option<BTreeSet<String>> {
    let mut text = String::new();
    fs::File::open(path).ok()?.take(FILE_MAX).read_to_string(&mut text).ok()?;
    Some(env_file::parse(&text).into_iter().filter(|(_, value)| !value.trim().is_empty()).map(|(key, _)| key).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch(places: &[Credential]) -> Watch {
        Watch::new(Environment::default(), places.iter(), std::iter::empty())
    }

    #[test]
    fn a_file_that_appears_changes_or_goes_is_noticed_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let place = Credential::File(path.clone());
        let watch = watch(std::slice::from_ref(&place));
        let changed = || watch.look().len();
        assert_eq!((changed(), watch.presence(&place)), (0, Presence::Absent));
        fs::write(&path, "").unwrap();
        assert_eq!((changed(), watch.presence(&place)), (1, Presence::Absent));
        fs::write(&path, " \t\r\n").unwrap();
        assert_eq!((changed(), watch.presence(&place)), (1, Presence::Absent));
        fs::write(&path, "k").unwrap();
        assert_eq!((changed(), changed(), watch.presence(&place)), (1, 0, Presence::Present));
        fs::write(folder.path().join("other"), "K").unwrap();
        fs::rename(folder.path().join("other"), &path).unwrap();
        assert_eq!((changed(), watch.presence(&place)), (1, Presence::Present));
        fs::remove_file(&path).unwrap();
        assert_eq!((changed(), watch.presence(&place)), (1, Presence::Absent));
    }

    #[test]
    fn a_key_of_an_env_file_is_there_if_it_has_a_value() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".env");
        let places = ["A", "B", "C"].map(|key| Credential::EnvFile(path.clone(), key.into()));
        let watch = watch(&places);
        let presence = || places.each_ref().map(|place| watch.presence(place));
        assert_eq!(presence(), [Presence::Absent; 3]);
        fs::write(&path, "A=1\nB=\nC=' '\n").unwrap();
        watch.look();
        assert_eq!(presence(), [Presence::Present, Presence::Absent, Presence::Absent]);
        fs::write(&path, [0xff]).unwrap();
        watch.look();
        assert_eq!(presence(), [Presence::Unreadable; 3]);
    }
}
