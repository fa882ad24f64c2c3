//! Writes the files of a state into a folder that is removed when it is dropped.

use std::io::Write;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use tiller_protocol::{Notice, NoticeKind};
use tiller_snapshot::{Entry, Id, Kind, SnapshotError};

use crate::files::Keeper;

/// Files that are written per request to the thread of the snapshots, so that other requests get their turn.
const PART: usize = 200;

/// Limits of what is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScratchLimits {
    pub files: usize,
    pub bytes: u64,
}

impl Default for ScratchLimits {
    fn default() -> Self {
        Self { files: 20_000, bytes: 512 << 20 }
    }
}

/// A folder that is removed with this value.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// An empty folder that only its owner can enter.
    ///
    /// # Errors
    /// When it cannot be made, or exists already.
    pub fn new(path: PathBuf) -> std::io::Result<Self> {
        if let Some(above) = path.parent() {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(above)?;
        }
        std::fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }

    /// Path of the folder.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::warn!(%error, path = %self.0.display(), "a scratch folder could not be removed");
        }
    }
}

/// Writes a state into a folder.
///
/// # Errors
/// When the tree is too large, or it cannot be read or written.
pub async fn lay_out(keeper: &Keeper, state: Id, into: &Path, most: ScratchLimits) -> Result<(), Notice> {
    let mut all = keeper.run(move |s| s.files(state)).await.map_err(|e| e.notice())?;
    let too_large = |what: String| {
        Notice::new(NoticeKind::User, format!("the files are too large to copy twice: {what}"))
            .hint("Open each branch and run the command there.")
    };
    if all.len() > most.files {
        return Err(too_large(format!("{} files; the limit is {}", all.len(), most.files)));
    }
    let ids: Vec<Id> = all.iter().filter(|(_, e)| e.kind == Kind::File).map(|(_, e)| e.id).collect();
    let size = move |s: &mut tiller_snapshot::Shadow| {
        ids.iter().try_fold(0u64, |sum, id| Ok::<_, SnapshotError>(sum.saturating_add(s.size(*id)?)))
    };
    let bytes = keeper.run(size).await.map_err(|e| e.notice())?;
    if bytes > most.bytes {
        return Err(too_large(format!("{} MB; the limit is {} MB", bytes >> 20, most.bytes >> 20)));
    }
    // Symbolic links are written last, so that nothing is written through one.
    all.sort_by_key(|(_, e)| e.kind == Kind::Link);
    for part in all.chunks(PART) {
        let (part, into) = (part.to_vec(), into.to_path_buf());
        let write = move |s: &mut tiller_snapshot::Shadow| {
            for (path, entry) in &part {
                let at = into.join(path);
                let content = if entry.kind == Kind::Folder { Vec::new() } else { s.content(entry.id)? };
                put(&at, *entry, content)
                    .map_err(|e| SnapshotError::Io { path: at, detail: e.to_string() })?;
            }
            Ok(())
        };
        keeper.run(write).await.map_err(|e| e.notice())?;
    }
    Ok(())
}

fn put(at: &Path, entry: Entry, content: Vec<u8>) -> std::io::Result<()> {
    let folder = if entry.kind == Kind::Folder { Some(at) } else { at.parent() };
    if let Some(folder) = folder {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    match entry.kind {
        Kind::Link => std::os::unix::fs::symlink(std::ffi::OsString::from_vec(content), at),
        Kind::File => {
            // Permissions of the owner only; the folder above is closed to others anyway.
            let mode = 0o600 | (entry.mode & 0o100);
            std::fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(at)?.write_all(&content)
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tiller_protocol::SystemClock;
    use tiller_snapshot::Limits;

    use super::*;
    use crate::files::SnapshotOptions;

    #[tokio::test]
    async fn a_tree_that_is_too_large_is_refused_before_anything_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let work = root.join("work");
        std::fs::create_dir_all(work.join("sub")).unwrap();
        for (name, size) in [("a", 1 << 20), ("b", 1 << 20), ("sub/c", 10)] {
            std::fs::write(work.join(name), vec![b'x'; size]).unwrap();
        }
        let place = SnapshotOptions {
            workspace: work,
            store: root.join("kept"),
            limits: Limits::default(),
            quota: 1 << 30,
            ask: true,
        };
        let keeper = Keeper::new(place, Arc::new(SystemClock::default()));
        let state = keeper.run(|s| s.snapshot()).await.unwrap().id;
        let count = keeper.run(move |s| s.files(state)).await.unwrap().len();
        let bytes = (2 << 20) + 10;
        let lay = async |name: &str, files, bytes| {
            let into = root.join(name);
            std::fs::create_dir(&into).unwrap();
            let done = lay_out(&keeper, state, &into, ScratchLimits { files, bytes }).await;
            (done, std::fs::read_dir(&into).unwrap().count())
        };
        let (many, there) = lay("many", count - 1, bytes).await;
        let many = many.unwrap_err();
        assert!(many.message.contains(&format!("{count} files; the limit is {}", count - 1)), "{many:?}");
        assert!(there == 0 && many.hints[0].contains("Open each branch"), "{many:?}");
        let (large, there) = lay("large", count, bytes - 1).await;
        assert!(large.unwrap_err().message.contains("2 MB; the limit is 2 MB") && there == 0);
        let (fits, there) = lay("fits", count, bytes).await;
        assert_eq!((fits, there), (Ok(()), 3));
        assert_eq!(std::fs::read(root.join("fits/sub/c")).unwrap(), b"xxxxxxxxxx");
    }
}
