//! Files that a tool writes and no checkpoint covers: those outside of the workspace, and those inside that a snapshot
//! passes over (on another disk, in a bare repository). A copy of each is kept before the call, beside the snapshots.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tiller_protocol::Time;
use tiller_snapshot::{NAMED_BYTES, Shadow, Snapshot, SnapshotError, State};

use crate::files::restore::back::shown;

/// A copy is deleted when it is older and another one is made.
const AGE: Duration = Duration::from_secs(30 * 24 * 3600);
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
            None => folder.insert(new_folder(&store.join(FOLDER), now).map_err(fail)?),
        };
        let copy = folder.join(out.len().to_string()).join(path.file_name().unwrap_or_default());
        copy_to(&path, &copy).map_err(fail)?;
        out.push(OldFile { path, copy, place });
    }
    Ok(out)
}

/// A folder of its own for one call. Folders of old calls are deleted.
fn new_folder(all: &Path, now: Time) -> io::Result<PathBuf> {
    DirBuilder::new().recursive(true).mode(0o700).create(all)?;
    let oldest = now.millis().saturating_sub(i64::try_from(AGE.as_millis()).unwrap_or(i64::MAX));
    for item in fs::read_dir(all)?.flatten() {
        let made = item.file_name().to_str().and_then(|n| n.split('-').next()?.parse::<i64>().ok());
        if made.is_some_and(|made| made < oldest) {
            let _ = fs::remove_dir_all(item.path());
        }
    }
    for n in 0..1000 {
        let folder = all.join(format!("{}-{n}", now.millis()));
        match DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => return Ok(folder),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
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
