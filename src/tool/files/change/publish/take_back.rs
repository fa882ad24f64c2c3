//! Taking back a change set that was cut off. Every step first checks the present files, so it may itself be
//! cut off and begun again, and later changes by others are kept.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, OFlags, RenameFlags};
use rustix::io::Errno;
use tiller_protocol::names;

use super::{Content, Phase, PlannedChange, StoredSet};
use crate::files::path::beneath::open_at;

/// What became of a change set that a kill had cut off.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TakeBackReport {
    /// All changes stood already; only temporary files were removed.
    pub finished: bool,
    /// Files that are again as they were (absolute paths).
    pub back: Vec<PathBuf>,
    /// Files that others changed since: they stay, and their earlier content is beside them under this name.
    pub beside: Vec<(PathBuf, PathBuf)>,
    /// What could not be taken back, and why; the next start tries again.
    pub failed: Vec<(PathBuf, String)>,
}

impl TakeBackReport {
    /// Whether nothing is left to do.
    pub(super) fn is_over(&self) -> bool {
        self.failed.is_empty()
    }

    /// Whether a person should hear of it.
    pub(super) fn says_something(&self) -> bool {
        !(self.back.is_empty() && self.beside.is_empty() && self.failed.is_empty())
    }

    /// What happened, in a sentence for the person.
    pub fn sentence(&self) -> String {
        let mut text = match self.back.as_slice() {
            [] => "A file change was interrupted when Tiller was killed.".to_owned(),
            [one] => format!(
                "A file change was interrupted when Tiller was killed. It was reverted: {} was restored.",
                one.display()
            ),
            all => format!(
                "A file change was interrupted when Tiller was killed. It was reverted: {} files \
                were restored.",
                all.len()
            ),
        };
        if let Some((path, beside)) = self.beside.first() {
            let more = self.beside.len() - 1;
            let more = if more > 0 { format!(" ({more} more like this)") } else { String::new() };
            text.push_str(&format!(
                " {} has changed since then and is kept; its earlier content is in {}{more}.",
                path.display(),
                beside.display()
            ));
        }
        if let Some((path, why)) = self.failed.first() {
            let more = self.failed.len() - 1;
            let more = if more > 0 { format!(" ({more} more like this)") } else { String::new() };
            text.push_str(&format!(" {} could not be reverted: {why}{more}.", path.display()));
        }
        text
    }
}

/// A folder and the names of one change in it.
struct FolderNames {
    dir: OwnedFd,
    leaf: OsString,
    temp: OsString,
    /// See [`names::second`].
    second: OsString,
}

pub(super) fn run(set: &StoredSet) -> TakeBackReport {
    let mut out = TakeBackReport { finished: set.phase == Phase::Done, ..TakeBackReport::default() };
    for (n, change) in set.changes.iter().enumerate().rev() {
        let spot = match FolderNames::open(change, &set.token, n) {
            Ok(spot) => spot,
            // The folder is gone, and with it all there was to take back.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => continue,
            Err(e) => {
                out.failed.push((change.path.clone(), std::io::Error::from(e).to_string()));
                continue;
            }
        };
        let done = match set.phase {
            Phase::Staging => spot.clear().map(|()| Outcome::Nothing),
            Phase::Going => spot.undo(change),
            Phase::Done => spot.finish(change),
        };
        match done {
            Ok(Outcome::Nothing) => {}
            Ok(Outcome::Back) => out.back.push(change.path.clone()),
            Ok(Outcome::Beside(name)) => {
                out.beside.push((change.path.clone(), change.path.with_file_name(name)))
            }
            Err(e) => out.failed.push((change.path.clone(), std::io::Error::from(e).to_string())),
        }
        // Where it cannot be synchronised, a loss of power is followed by one more try.
        let _ = rustix::fs::fsync(&spot.dir);
    }
    if set.phase != Phase::Done {
        for folder in set.folders.iter().rev() {
            // Something lies in it by now: it stays.
            let _ = std::fs::remove_dir(folder);
        }
    }
    out.back.reverse();
    out
}

enum Outcome {
    Nothing,
    Back,
    Beside(OsString),
}

impl FolderNames {
    fn open(change: &PlannedChange, token: &str, n: usize) -> Result<Self, Errno> {
        let root = File::open("/").map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::IO))?;
        let parent = change.path.parent().and_then(|p| p.strip_prefix("/").ok()).ok_or(Errno::INVAL)?;
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        let dir = open_at(root.as_fd(), parent, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let leaf = change.path.file_name().ok_or(Errno::INVAL)?.to_owned();
        let (temp, second) = (names::temporary(token, n).into(), names::second(token, n).into());
        Ok(Self { dir, leaf, temp, second })
    }

    /// Before the first target was touched, everything under a temporary name is ours.
    fn clear(&self) -> Result<(), Errno> {
        for name in [&self.temp, &self.second] {
            self.unlink(name)?;
        }
        Ok(())
    }

    /// After the last step the temporary file holds the old content, unless another process wrote into it.
    fn finish(&self, change: &PlannedChange) -> Result<Outcome, Errno> {
        let mut outcome = Outcome::Nothing;
        for name in [&self.temp, &self.second] {
            if !self.exists(name) || self.is(name, change.old) || self.is(name, change.new) {
                self.unlink(name)?;
            } else {
                outcome = Outcome::Beside(self.put_beside(name)?);
            }
        }
        Ok(outcome)
    }

    fn undo(&self, change: &PlannedChange) -> Result<Outcome, Errno> {
        let second = self.exists(&self.second);
        match (change.old, change.new) {
            (None, Some(_)) => {
                if !self.exists(&self.temp) || self.same(&self.temp, &self.leaf) {
                    let ours = self.is(&self.leaf, change.new);
                    self.unlink(&self.temp)?;
                    if ours {
                        self.unlink(&self.leaf)?;
                        return Ok(Outcome::Back);
                    }
                    return Ok(Outcome::Nothing);
                }
                self.unlink(&self.temp)?;
                Ok(Outcome::Nothing)
            }
            // Replaced by a plain renaming: the old file has a second name.
            (Some(_), Some(_)) if second && !self.exists(&self.temp) => self.bring_back(&self.second, change),
            (Some(_), Some(_)) => {
                if second {
                    self.unlink(&self.second)?;
                }
                // Not exchanged yet.
                if !self.exists(&self.temp) || self.is(&self.temp, change.new) {
                    self.unlink(&self.temp)?;
                    return Ok(Outcome::Nothing);
                }
                self.bring_back(&self.temp, change)
            }
            (Some(_), None) => {
                if !self.exists(&self.temp) {
                    return Ok(Outcome::Nothing);
                }
                // Linked and not unlinked yet: the file system cannot rename without replacing.
                if self.same(&self.temp, &self.leaf) {
                    self.unlink(&self.temp)?;
                    return Ok(Outcome::Nothing);
                }
                self.bring_back(&self.temp, change)
            }
            (None, None) => Ok(Outcome::Nothing),
        }
    }

    /// `name` holds the old file. It is restored, unless another process wrote under the target's name meanwhile.
    fn bring_back(&self, name: &OsStr, change: &PlannedChange) -> Result<Outcome, Errno> {
        if change.new.is_some() && self.is(&self.leaf, change.new) {
            match rustix::fs::renameat_with(&self.dir, name, &self.dir, &self.leaf, RenameFlags::EXCHANGE) {
                Ok(()) => {
                    if self.is(name, change.new) {
                        self.unlink(name)?;
                        return Ok(Outcome::Back);
                    }
                    // Written by another program between the check and the exchange: its version stays.
                    rustix::fs::renameat_with(&self.dir, name, &self.dir, &self.leaf, RenameFlags::EXCHANGE)?;
                }
                Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                    rustix::fs::renameat(&self.dir, name, &self.dir, &self.leaf)?;
                    return Ok(Outcome::Back);
                }
                Err(Errno::NOENT) => {}
                Err(e) => return Err(e),
            }
        }
        match self.rename_new(name, &self.leaf) {
            Ok(()) => Ok(Outcome::Back),
            // A file of another program with the content from before.
            Err(Errno::EXIST) if self.is(&self.leaf, change.old) && self.is(name, change.old) => {
                self.unlink(name)?;
                Ok(Outcome::Nothing)
            }
            Err(Errno::EXIST) => Ok(Outcome::Beside(self.put_beside(name)?)),
            Err(e) => Err(e),
        }
    }

    /// Gives a file of the person's a name that the person finds.
    fn put_beside(&self, name: &OsStr) -> Result<OsString, Errno> {
        for n in 1..1000 {
            let mut beside = self.leaf.clone();
            beside.push(format!(".kept-{n}"));
            match self.rename_new(name, &beside) {
                Ok(()) => return Ok(beside),
                Err(Errno::EXIST) => {}
                Err(e) => return Err(e),
            }
        }
        Err(Errno::EXIST)
    }

    fn rename_new(&self, from: &OsStr, to: &OsStr) -> Result<(), Errno> {
        match rustix::fs::renameat_with(&self.dir, from, &self.dir, to, RenameFlags::NOREPLACE) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                rustix::fs::linkat(&self.dir, from, &self.dir, to, AtFlags::empty())?;
                rustix::fs::unlinkat(&self.dir, from, AtFlags::empty())
            }
            done => done,
        }
    }

    fn unlink(&self, name: &OsStr) -> Result<(), Errno> {
        match rustix::fs::unlinkat(&self.dir, name, AtFlags::empty()) {
            Err(Errno::NOENT) => Ok(()),
            done => done,
        }
    }

    fn stat(&self, name: &OsStr) -> Option<rustix::fs::Stat> {
        rustix::fs::statat(&self.dir, name, AtFlags::SYMLINK_NOFOLLOW).ok()
    }

    fn exists(&self, name: &OsStr) -> bool {
        self.stat(name).is_some()
    }

    /// Whether both are names of one file.
    fn same(&self, a: &OsStr, b: &OsStr) -> bool {
        let (Some(a), Some(b)) = (self.stat(a), self.stat(b)) else { return false };
        (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino)
    }

    /// Whether a regular file with this content has the name.
    fn is(&self, name: &OsStr, content: Option<Content>) -> bool {
        let Some(content) = content else { return false };
        let Ok(fd) = open_at(self.dir.as_fd(), Path::new(name), OFlags::RDONLY) else { return false };
        let regular = rustix::fs::fstat(&fd).is_ok_and(|s| {
            FileType::from_raw_mode(s.st_mode) == FileType::RegularFile
                && u64::try_from(s.st_size) == Ok(content.len)
        });
        let mut hasher = blake3::Hasher::new();
        regular
            && hasher.update_reader(File::from(fd).take(content.len + 1)).is_ok()
            && *hasher.finalize().as_bytes() == content.hash
    }
}
