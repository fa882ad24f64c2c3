//! Folders of the store with copies of files, each made for one restore or one call, and deleted when they are old.

use std::collections::HashSet;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tiller_protocol::Time;

use crate::error::{Result, at};
use crate::objects::id::Sort;
use crate::objects::object::Entry;
use crate::shadow::Shadow;

/// A folder is deleted when it is older and another one is made.
const AGE: Duration = Duration::from_secs(30 * 24 * 3600);
/// The folder of a store with the copies of restores.
const FOLDER: &str = "kept";

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

/// Writes these states of files to a new folder of the store.
pub(super) fn keep_apart(shadow: &Shadow, files: &[(PathBuf, Entry)]) -> Result<Option<CopiesApart>> {
    if files.is_empty() {
        return Ok(None);
    }
    let all = shadow.place.dir.join(FOLDER);
    let folder = kept_folder(&all, shadow.clock.now()).map_err(at(&all))?;
    for (path, entry) in files {
        let copy = folder.join(path);
        let data = shadow.objects.read(&entry.id, Sort::Content)?;
        shadow.steps.at("keep apart").and_then(|()| write(&copy, &data)).map_err(at(&copy))?;
    }
    Ok(Some(CopiesApart { folder, paths: files.iter().map(|(path, _)| path.clone()).collect() }))
}

fn write(copy: &Path, data: &[u8]) -> io::Result<()> {
    let new = || OpenOptions::new().write(true).create_new(true).mode(0o600).open(copy);
    let mut file = match new() {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            let folder = copy.parent().unwrap_or(copy);
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            new()?
        }
        made => made?,
    };
    file.write_all(data)
}

/// Makes a folder of its own in `all`, and deletes those that are older than 30 days.
///
/// # Errors
/// When it cannot be made.
pub fn kept_folder(all: &Path, now: Time) -> io::Result<PathBuf> {
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
