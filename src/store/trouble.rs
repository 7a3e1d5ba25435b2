//! What can go wrong with the file, sorted by what to do about it.

use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Why the file cannot be used now.
#[derive(Debug)]
pub(super) enum Refusal {
    /// Another process holds it.
    InUse,
    /// Its content is wrong; it may be set aside.
    Bad(String),
    /// The system refuses: rights, space, a broken disk. Its content may be fine.
    Unusable(String),
}

impl Refusal {
    pub(super) fn into_reason(self) -> String {
        match self {
            Refusal::InUse => "the file is in use by another process".to_owned(),
            Refusal::Bad(why) => format!("the file {why}"),
            Refusal::Unusable(why) => why,
        }
    }
}

/// A refusal of the system, in words.
pub(super) fn unusable(what: &str, path: &Path, error: &std::io::Error) -> Refusal {
    Refusal::Unusable(format!("cannot {what} {}: {error}", path.display()))
}

/// What can go wrong between us and redb.
pub(super) enum Trouble {
    /// Ours to say: the content is not what we write.
    Content(String),
    Redb(redb::Error),
}

impl<E: Into<redb::Error>> From<E> for Trouble {
    fn from(error: E) -> Trouble {
        Trouble::Redb(error.into())
    }
}

/// Runs work on redb and sorts what goes wrong. redb promises errors for damaged files that it checks, and admits to
/// panics for others; those count as damage too.
pub(super) fn guarded<T>(work: impl FnOnce() -> Result<T, Trouble>) -> Result<T, Refusal> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(Trouble::Content(why))) => Err(Refusal::Bad(why)),
        Ok(Err(Trouble::Redb(error))) => Err(sort(error)),
        Err(_) => Err(Refusal::Bad("is damaged in a way that redb does not handle".to_owned())),
    }
}

fn sort(error: redb::Error) -> Refusal {
    use redb::Error;
    match error {
        Error::DatabaseAlreadyOpen | Error::LockProtocolMismatch => Refusal::InUse,
        Error::Io(ref io) => match io.kind() {
            ErrorKind::InvalidData => Refusal::Bad("is not a redb file".to_owned()),
            ErrorKind::UnexpectedEof => Refusal::Bad("is cut short".to_owned()),
            _ => Refusal::Unusable(error.to_string()),
        },
        Error::Corrupted(_)
        | Error::UpgradeRequired(_)
        | Error::TableTypeMismatch { .. }
        | Error::TableIsMultimap(_)
        | Error::TableDoesNotExist(_)
        | Error::TypeDefinitionChanged { .. } => Refusal::Bad(format!("is damaged or not ours: {error}")),
        other => Refusal::Unusable(other.to_string()),
    }
}
