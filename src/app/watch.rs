//! Notices that files of configuration and rules have changed, by looking at them every second.
//!
//! Looking costs one `stat` a file and sees what notifications of the kernel miss or tell in pieces: network and overlay
//! file systems, the `..data` swap of a mounted ConfigMap (a link far above the file changes, not the file), files that an
//! editor replaces, directories of tenants that did not exist.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::reload::Reloader;

/// How often the files are looked at.
const EVERY: Duration = Duration::from_secs(1);

/// How a set of files looked at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen(Vec<(PathBuf, Option<Look>)>);

/// Device, inode, size and time of change of a file, behind every link on its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Look {
    device: u64,
    inode: u64,
    size: u64,
    changed: (i64, i64),
    modified: (i64, i64),
}

impl Seen {
    pub(super) fn of(paths: impl Iterator<Item = PathBuf>) -> Seen {
        let looked = paths.map(|path| {
            let look = look(&path);
            (path, look)
        });
        Seen(looked.collect())
    }
}

fn look(path: &std::path::Path) -> Option<Look> {
    let data = fs::metadata(path).ok()?;
    Some(Look {
        device: data.dev(),
        inode: data.ino(),
        size: data.size(),
        changed: (data.ctime(), data.ctime_nsec()),
        modified: (data.mtime(), data.mtime_nsec()),
    })
}

/// Reloads whenever the files have changed and then stayed as they are from one look to the next: a file that is being
/// written is not read. Never ends.
pub(super) async fn watch(reloader: Arc<Reloader>) {
    let (mut read, mut before) = (Seen::default(), Seen::default());
    loop {
        let reader = Arc::clone(&reloader);
        // Looking and reading may block on a slow disk.
        let work = tokio::task::spawn_blocking(move || {
            let now = reader.look();
            if now != read && now == before {
                reader.follow();
                return (now.clone(), now);
            }
            (read, now)
        });
        let Ok(looked) = work.await else { return };
        (read, before) = looked;
        tokio::time::sleep(EVERY).await;
    }
}
