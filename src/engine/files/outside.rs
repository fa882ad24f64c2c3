//! Files that a tool writes and no checkpoint covers: those outside of the workspace, and those inside that a snapshot
//! passes over (on another disk, in a bare repository). A copy of each is kept before the call, beside the snapshots.

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use tiller_protocol::Time;
use tiller_snapshot::{NAMED_BYTES, Shadow, Snapshot, SnapshotError, State, kept_folder};

use crate::files::restore::back::shown;

/// The folder, in the folder of the snapshots.
const FOLDER: &str = "outside";

/// Why no checkpoint covers a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Uncovered {
    /// It is outside the workspace.
    Outside,
    /// Snapshots pass over it.
    Inside,
}

/// A file as it was before a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OldFile {
    pub(crate) path: PathBuf,
    pub(crate) copy: PathBuf,
    place: Uncovered,
}

impl OldFile {
    /// The sentence about it in the call's result.
    pub(crate) fn sentence(&self) -> String {
        let why = match self.place {
            Uncovered::Outside => "outside the workspace",
            Uncovered::Inside => "not covered by checkpoints",
        };
        format!(
            "[{} is {why}, so undo does not restore it. Its previous content is kept for 30 days in {}]",
            shown(&self.path),
            self.copy.display()
        )
    }
}

/// Returns those of `paths` that exist and are not in the state `before`.
///
/// # Errors
/// When that state cannot be read.
pub(super) fn uncovered(
    shadow: &Shadow,
    before: &Snapshot,
    paths: &[PathBuf],
) -> Result<Vec<(PathBuf, Uncovered)>, SnapshotError> {
    let mut out = Vec::new();
    for path in paths {
        let Ok(meta) = path.metadata() else { continue };
        let (kept, place) = match shadow.relative(path) {
            None => (false, Uncovered::Outside),
            // No tool changes a larger one.
            Some(_) if meta.len() > NAMED_BYTES => (true, Uncovered::Inside),
            Some(name) => (matches!(shadow.state(before.id, &name)?, State::Is(_)), Uncovered::Inside),
        };
        if !kept && meta.is_file() {
            out.push((path.clone(), place));
        }
    }
    Ok(out)
}

/// Copies files to the folder `store`.
///
/// # Errors
/// When one of them cannot be copied; then the call cannot be undone.
pub(super) fn keep(
    store: &Path,
    files: Vec<(PathBuf, Uncovered)>,
    now: Time,
) -> Result<Vec<OldFile>, SnapshotError> {
    let mut out = Vec::new();
    let mut folder = None;
    for (path, place) in files {
        let fail =
            |e: io::Error| SnapshotError::Io { path: path.clone(), detail: format!("no copy was made: {e}") };
        let folder = match &folder {
            Some(folder) => folder,
            None => folder.insert(kept_folder(&store.join(FOLDER), now).map_err(fail)?),
        };
        let copy = folder.join(out.len().to_string()).join(path.file_name().unwrap_or_default());
        copy_to(&path, &copy).map_err(fail)?;
        out.push(OldFile { path, copy, place });
    }
    Ok(out)
}

/// Copies a file, by sharing its blocks where the file system can. The copy is on the disk before this returns.
fn copy_to(path: &Path, copy: &Path) -> io::Result<()> {
    if let Some(folder) = copy.parent() {
        DirBuilder::new().mode(0o700).create(folder)?;
    }
    let mut from = tiller_fs::beneath::file(path)?;
    let mut to = OpenOptions::new().write(true).create_new(true).mode(0o600).open(copy)?;
    io::copy(&mut from, &mut to)?;
    to.sync_all()
}
