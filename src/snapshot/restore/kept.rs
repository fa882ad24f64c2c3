//! Folders of the store with copies of files, each made for one restore or one call, and deleted when they are old.

use std::collections::{BTreeSet, HashSet};
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;
use tiller_protocol::Time;

use crate::error::{Result, SnapshotError, at};
use crate::objects::flush;
use crate::objects::id::Sort;
use crate::objects::object::Entry;
use crate::scan::disk;
use crate::shadow::Shadow;

/// A folder is deleted when it is older, and another one is made or the store is collected.
const AGE: Duration = Duration::from_secs(30 * 24 * 3600);
/// The folder of a store with the copies of restores.
const FOLDER: &str = "kept";
/// The folder of a store with the copies of files that no snapshot covers.
const OUTSIDE: &str = "outside";

/// Copies of files that a restore has replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopiesApart {
    /// Holds each file under its path in the workspace.
    pub folder: PathBuf,
    pub paths: Vec<PathBuf>,
}

impl CopiesApart {
    /// Leaves the copies of the files that have changed, if there are any.
    pub(super) fn only(mut self, changed: &HashSet<&PathBuf>) -> Option<Self> {
        let all = self.paths.len();
        self.paths.retain(|path| changed.contains(path));
        if self.paths.is_empty() && all > 0 {
            // What stays costs space until it is old.
            let _ = fs::remove_dir_all(&self.folder);
            return None;
        }
        Some(self)
    }
}

/// The folder of this name with copies.
pub(super) fn folder(shadow: &Shadow, name: &str) -> PathBuf {
    shadow.place.dir.join(FOLDER).join(name)
}

/// Names the copies in the error of a restore, which the next one finishes.
pub(super) fn named(error: SnapshotError, copies: Option<&CopiesApart>) -> SnapshotError {
    match (error, copies) {
        (SnapshotError::Io { path, detail }, Some(copies)) if copies.folder.is_dir() => {
            let folder = copies.folder.display();
            let detail = format!(
                "{detail}; what you may have changed before the restore is kept for 30 days in {folder}"
            );
            SnapshotError::Io { path, detail }
        }
        (error, _) => error,
    }
}

/// Writes these states of files to a new folder of the store. They are on the disk before this returns.
pub(super) fn keep_apart(shadow: &Shadow, files: &[(PathBuf, Entry)]) -> Result<Option<CopiesApart>> {
    if files.is_empty() {
        return Ok(None);
    }
    let all = shadow.place.dir.join(FOLDER);
    let folder = kept_folder(&all, shadow.clock.now()).map_err(at(&all))?;
    if let Err(error) = write_all(shadow, &folder, files) {
        let _ = fs::remove_dir_all(&folder);
        return Err(error);
    }
    Ok(Some(CopiesApart { folder, paths: files.iter().map(|(path, _)| path.clone()).collect() }))
}

fn write_all(shadow: &Shadow, folder: &Path, files: &[(PathBuf, Entry)]) -> Result<()> {
    let durable = shadow.steps.durable();
    let (mut open, mut unnameable) = (Vec::new(), Vec::new());
    let mut parents = BTreeSet::from([PathBuf::new()]);
    let mut put = |open: &mut Vec<OwnedFd>, name: &Path, entry: &Entry| -> Result<io::Result<()>> {
        let copy = folder.join(name);
        let data = shadow.objects.read(&entry.id, Sort::Content)?;
        shadow.steps.at("keep apart").map_err(at(&copy))?;
        let file = match write(&copy, &data) {
            Err(e) if is_of_name(&e) => return Ok(Err(e)),
            other => other.map_err(at(&copy))?,
        };
        if durable {
            open.push(file.into());
            parents.extend(name.ancestors().skip(1).map(Path::to_owned));
        }
        if open.len() >= flush::TOGETHER {
            flush::files(open).map_err(at(&copy))?;
        }
        Ok(Ok(()))
    };
    for (path, entry) in files {
        if put(&mut open, path, entry)?.is_err() {
            unnameable.push(entry);
        }
    }
    let mut number = 1_u32;
    for entry in unnameable {
        while folder.join(number.to_string()).symlink_metadata().is_ok() {
            number += 1;
        }
        let name = PathBuf::from(number.to_string());
        put(&mut open, &name, entry)?.map_err(at(folder.join(&name)))?;
    }
    flush::files(&mut open).map_err(at(folder))?;
    if durable {
        let root = disk::open_root(folder).map_err(at(folder))?;
        let parents = parents.iter().map(|path| path.as_os_str().as_bytes()).collect();
        flush::folders(root.as_fd(), parents).map_err(at(folder))?;
        let all = folder.parent().unwrap_or(folder);
        fs::File::open(all).and_then(|dir| dir.sync_all()).map_err(at(all))?;
    }
    Ok(())
}

/// True where a file cannot have this name here: the path in the store is longer than that in the workspace, and its file system is
/// another one.
fn is_of_name(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NAMETOOLONG | Errno::INVAL | Errno::ILSEQ))
}

fn write(copy: &Path, data: &[u8]) -> io::Result<fs::File> {
    let new = || OpenOptions::new().write(true).create_new(true).mode(0o600).open(copy);
    let mut file = match new() {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            let folder = copy.parent().unwrap_or(copy);
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            new()?
        }
        made => made?,
    };
    file.write_all(data)?;
    Ok(file)
}

/// Deletes the folders with copies in this store that are older than 30 days; then, while all are larger than `quota` bytes, the
/// oldest. Those of the last hours stay.
pub(crate) fn collect(store: &Path, now: Time, quota: u64, grace: i64) {
    let mut all = Vec::new();
    for parent in [FOLDER, OUTSIDE].map(|name| store.join(name)) {
        drop_old(&parent, now);
        all.extend(folders(&parent));
    }
    all.sort();
    let mut sizes: Vec<(i64, PathBuf, u64)> =
        all.into_iter().map(|(made, folder)| (made, folder.clone(), size(&folder))).collect();
    let mut used: u64 = sizes.iter().map(|(.., size)| size).sum();
    sizes.retain(|(made, ..)| *made <= now.millis() - grace);
    for (_, folder, size) in sizes {
        if used <= quota {
            break;
        }
        if fs::remove_dir_all(folder).is_ok() {
            used -= size;
        }
    }
}

/// The folders in `all`, with when they were made.
fn folders(all: &Path) -> Vec<(i64, PathBuf)> {
    let Ok(items) = fs::read_dir(all) else { return Vec::new() };
    let made = |item: &fs::DirEntry| item.file_name().to_str()?.split('-').next()?.parse::<i64>().ok();
    items.flatten().filter_map(|item| Some((made(&item)?, item.path()))).collect()
}

fn drop_old(all: &Path, now: Time) {
    let oldest = now.millis().saturating_sub(i64::try_from(AGE.as_millis()).unwrap_or(i64::MAX));
    for (_, folder) in folders(all).into_iter().filter(|(made, _)| *made < oldest) {
        let _ = fs::remove_dir_all(folder);
    }
}

/// Bytes of the files below a folder.
fn size(folder: &Path) -> u64 {
    let Ok(items) = fs::read_dir(folder) else { return 0 };
    let bytes = |item: fs::DirEntry| match item.metadata() {
        Ok(meta) if meta.is_dir() => size(&item.path()),
        Ok(meta) => meta.len(),
        Err(_) => 0,
    };
    items.flatten().map(bytes).sum()
}

/// Makes a folder of its own in `all`, and deletes those that are older than 30 days.
///
/// # Errors
/// When it cannot be made.
pub fn kept_folder(all: &Path, now: Time) -> io::Result<PathBuf> {
    DirBuilder::new().recursive(true).mode(0o700).create(all)?;
    drop_old(all, now);
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
