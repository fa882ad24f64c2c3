//! A planned change on disk: under a lock, compared with what the plan was made for, old or new and never half.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;
use tiller_fs::lock::{LockError, LockFile};

use super::plan::{FileChange, WholeChange, existing};
use super::tree::Tree;
use super::{Editor, Plan, leftovers};
use crate::files::{ReadFailure, read_inside};

/// How long another process may hold the lock.
const WAIT: Duration = Duration::from_secs(20);
/// Files, folders and links of a skill that a version keeps at most.
pub(super) const ENTRIES: usize = 1_000;
/// Bytes of a file that a version keeps at most.
pub(super) const LARGEST: u64 = 16 << 20;

impl Editor {
    /// Makes a planned change, and keeps the state that it replaces. `by`: who makes it, for the list of versions.
    /// Returns a sentence without a full stop. Blocks.
    ///
    /// # Errors
    /// A sentence without a full stop: the skill has changed since the plan was made, or it cannot be written.
    pub fn apply(&self, plan: &Plan, by: &str) -> Result<String, String> {
        let place = self.place(plan.scope)?;
        let wrong = |e: io::Error| format!("the skill cannot be written: {e}");
        private_folder(place).map_err(wrong)?;
        private_folder(&self.0.versions).map_err(wrong)?;
        let _lock = lock(&self.0.versions.join("lock"))?;
        leftovers::remove(place, &plan.folder, &self.scope_folder(plan.scope)?);
        let existed = existing(&plan.folder)?;
        if let Some(whole) = &plan.whole {
            let as_planned = |folder: &Path, tree: &Tree| Tree::read(folder).map(|now| now == *tree);
            let after = whole.after.as_ref().map_or(Ok(true), |(folder, tree)| as_planned(folder, tree));
            if !as_planned(&plan.folder, &whole.before).map_err(wrong)? || !after.map_err(wrong)? {
                return Err(format!("the skill `{}` has changed meanwhile", plan.name));
            }
        }
        for change in plan.files.iter().filter(|_| plan.whole.is_none()) {
            let now = match read_inside(&plan.folder, &change.path) {
                Ok(bytes) => Some(bytes),
                Err(ReadFailure::Missing) => None,
                Err(ReadFailure::Refused(why)) => return Err(format!("`{}` {why}", change.path)),
            };
            if now != change.old {
                return Err(format!("`{}` of the skill `{}` has changed meanwhile", change.path, plan.name));
            }
        }
        self.keep(plan, by)?;
        self.write(plan, place).map_err(wrong)?;
        let done = match plan.action {
            "create" => "created",
            "delete" => "deleted",
            "restore" => "restored",
            _ => "changed",
        };
        let kept = if existed { "; the version before is kept" } else { "" };
        Ok(format!("the skill `{}` is {done} ({}){kept}", plan.name, plan.folder.display()))
    }

    fn write(&self, plan: &Plan, place: &Path) -> io::Result<()> {
        let beside = place.join(leftovers::beside(&plan.name));
        let there = fs::symlink_metadata(&plan.folder).is_ok();
        match (&plan.whole, plan.files.as_slice()) {
            (Some(WholeChange { after: None, .. }), _) => {
                if there {
                    self.step();
                    fs::rename(&plan.folder, &beside)?;
                    sync(place)?;
                    self.step();
                    fs::remove_dir_all(&beside)?;
                }
            }
            // One file of a skill: replaced in place.
            (None, [one]) if there => self.replace(&plan.folder, one)?,
            (whole, files) => {
                DirBuilder::new().mode(0o700).create(&beside)?;
                match whole.as_ref().and_then(|whole| whole.after.as_ref()) {
                    Some((after, tree)) => {
                        self.step();
                        copy(after, &beside)?;
                        // What was read again is what was compared.
                        if !tree.is_copied(&Tree::read(&beside)?) {
                            fs::remove_dir_all(&beside)?;
                            return Err(io::Error::other("its files changed while they were copied"));
                        }
                    }
                    None => {
                        if there {
                            copy(&plan.folder, &beside)?;
                        }
                        for change in files {
                            self.replace(&beside, change)?;
                        }
                    }
                }
                self.step();
                let replaced = match there {
                    true => Some(self.exchange(&beside, &plan.folder)?),
                    false => {
                        fs::rename(&beside, &plan.folder)?;
                        None
                    }
                };
                sync(place)?;
                self.step();
                if let Some(replaced) = replaced {
                    fs::remove_dir_all(&replaced)?;
                }
            }
        }
        sync(place)
    }

    /// Writes or removes one file below a folder.
    fn replace(&self, folder: &Path, change: &FileChange) -> io::Result<()> {
        let path = folder.join(&change.path);
        self.step();
        let Some(content) = &change.new else {
            return fs::remove_file(&path);
        };
        let parent = path.parent().unwrap_or(folder);
        private_folder(parent)?;
        let beside = parent.join(leftovers::inside());
        write_new(&beside, content)?;
        // A script can be run, and stays one that can be run.
        if let Ok(old) = fs::symlink_metadata(&path) {
            fs::set_permissions(&beside, old.permissions())?;
        } else if content.starts_with(b"#!") {
            fs::set_permissions(&beside, fs::Permissions::from_mode(0o700))?;
        }
        self.step();
        fs::rename(&beside, &path)?;
        sync(parent)
    }

    /// Puts a folder in the place of another one: in one step where the file system can. Returns where the other one is now.
    fn exchange(&self, new: &Path, old: &Path) -> io::Result<PathBuf> {
        match swap(new, old) {
            Ok(()) => return Ok(new.to_owned()),
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
            Err(e) => return Err(e.into()),
        }
        // Between the two steps there is no skill of this name: a process that ends here leaves it to the next change, which
        // puts it back.
        let aside = new.with_extension("old");
        fs::rename(old, &aside)?;
        self.step();
        if let Err(e) = fs::rename(new, old) {
            fs::rename(&aside, old)?;
            return Err(e);
        }
        Ok(aside)
    }
}

/// A folder that only the user may read, with those above it.
fn private_folder(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Holds the lock until it is dropped.
fn lock(path: &Path) -> Result<LockFile, String> {
    LockFile::acquire(path, WAIT).map_err(|error| match error {
        LockError::Held => "another process is writing skills; try again later".into(),
        LockError::Io(e) => format!("the lock of the skills cannot be taken: {e}"),
    })
}

/// Writes a new file to the disk.
pub(super) fn write_new(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(content)?;
    file.sync_all()
}

/// Writes a folder's list of names to the disk.
pub(super) fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Copies a folder into an existing one: files with their modes, folders, and links as links.
///
/// # Errors
/// When the folder has more than [`ENTRIES`], or a file is larger than [`LARGEST`].
pub(super) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut left = ENTRIES;
    copy_some(from, to, &mut left)
}

fn copy_some(from: &Path, to: &Path, left: &mut usize) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if leftovers::is_inside(&entry.file_name()) {
            continue;
        }
        *left = left.checked_sub(1).ok_or_else(|| io::Error::other("the skill has too many files"))?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            DirBuilder::new().mode(0o700).create(&target)?;
            copy_some(&entry.path(), &target, left)?;
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(entry.path())?, &target)?;
        } else if kind.is_file() {
            if entry.metadata()?.len() > LARGEST {
                return Err(io::Error::other(format!("{} is larger than 16 MiB", entry.path().display())));
            }
            fs::copy(entry.path(), &target)?;
            File::open(&target)?.sync_all()?;
        }
    }
    sync(to)
}

/// Exchanges two folders in one step.
fn swap(new: &Path, old: &Path) -> rustix::io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    #[cfg(test)]
    if let Some(errno) = tests::SWAP_FAILS.with(std::cell::Cell::get) {
        return Err(errno);
    }
    renameat_with(CWD, new, CWD, old, RenameFlags::EXCHANGE)
}

#[cfg(test)]
#[path = "change_tests.rs"]
mod tests;
