//! The files of a state, written into a folder of their own. They are removed when it is dropped.

use std::io::Write;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use tiller_protocol::{Notice, NoticeKind};
use tiller_snapshot::{Entry, Id, Kind, SnapshotError};

use crate::files::Keeper;

/// More files, or more bytes, are not written.
const FILES: usize = 20_000;
const BYTES: u64 = 512 << 20;
/// Files that are written at once, so that others who need the snapshots need not wait for all of them.
const PART: usize = 200;

/// A folder that goes with this value.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// An empty folder that only its owner can enter.
    ///
    /// # Errors
    /// When it cannot be made, or is there.
    pub fn new(path: PathBuf) -> std::io::Result<Self> {
        if let Some(above) = path.parent() {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(above)?;
        }
        std::fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::warn!(%error, path = %self.0.display(), "a scratch folder stays behind");
        }
    }
}

/// Writes a state into a folder.
///
/// # Errors
/// When the tree is too large, or it cannot be read or written.
pub async fn lay_out(keeper: &Keeper, state: Id, into: &Path) -> Result<(), Notice> {
    let mut all = keeper.run(move |s| s.files(state)).await.map_err(|e| e.notice())?;
    let too_large = |what: String| {
        Notice::new(NoticeKind::User, format!("the tree is too large to be written twice: {what}"))
            .hint("Go to each branch and run the command there.")
    };
    if all.len() > FILES {
        return Err(too_large(format!("{} files, and {FILES} is the most", all.len())));
    }
    let ids: Vec<Id> = all.iter().filter(|(_, e)| e.kind == Kind::File).map(|(_, e)| e.id).collect();
    let size = move |s: &mut tiller_snapshot::Shadow| {
        ids.iter().try_fold(0u64, |sum, id| Ok::<_, SnapshotError>(sum.saturating_add(s.size(*id)?)))
    };
    let bytes = keeper.run(size).await.map_err(|e| e.notice())?;
    if bytes > BYTES {
        return Err(too_large(format!("{} MB, and {} MB is the most", bytes >> 20, BYTES >> 20)));
    }
    // Links last: nothing is written through one.
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
            // What its owner may; the folder above is closed to others anyway.
            let mode = 0o600 | (entry.mode & 0o100);
            std::fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(at)?.write_all(&content)
        }
        _ => Ok(()),
    }
}
