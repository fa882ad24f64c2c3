//! Changes by a command in the workspace, for the witness of its call: all other changes meanwhile are another's.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, MutexGuard, PoisonError};

use rustix::fs::{AtFlags, FileType, Stat, statat};
use tiller_tool::shell::{FileMark, Left};

use crate::supervisor::decide::Judge;
use crate::supervisor::walk::Entry;

mod closings;
#[cfg(test)]
mod cost_tests;
#[cfg(test)]
mod tests;

pub(super) use closings::Closings;

impl Judge {
    /// Notes what the command has just made of a path. `was`: what stood there before.
    pub(super) fn changed(&self, path: &Path, left: Left, was: Option<FileMark>) {
        if self.scope.is_workspace(path) {
            if left == Left::Nothing {
                self.files().removed(path);
            }
            self.watch.changed(path, left, was);
        }
    }

    fn files(&self) -> MutexGuard<'_, Closings> {
        self.closings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at the closings of a file that is noted as changed from now on. `opening`: the command is about to get a descriptor
    /// with which it can write it.
    pub(super) fn look_at(&self, path: &Path, file: &OwnedFd, opening: bool) {
        if self.scope.is_workspace(path) && self.watch.is_attended() {
            let here = format!("/proc/self/fd/{}", file.as_raw_fd());
            let looks = self.files().look_at(path, Path::new(&here), opening, self.watch.command().number);
            if !looks {
                self.watch.not_looked_at(path);
            }
        }
    }

    /// Returns what becomes readable when a file that the command has opened is closed.
    pub(super) fn closings(&self) -> Option<Arc<OwnedFd>> {
        self.files().queue()
    }

    /// Notes which files the command and others have closed meanwhile.
    pub(super) fn read_closings(&self) {
        let closed = self.files().closed();
        closed.own.iter().for_each(|path| self.watch.closed(path));
        closed.others.iter().for_each(|path| self.watch.written_by_others(path));
    }

    /// Notes that the command has just moved a file or folder, to this entry. `marks`: the file, and the one that it replaced.
    pub(super) fn moved(
        &self,
        (old, new): (&Path, &Path),
        entry: &Entry,
        folder: bool,
        (file, over): (Option<FileMark>, Option<FileMark>),
    ) {
        if self.scope.is_workspace(old) || self.scope.is_workspace(new) {
            let left = if folder { Left::Tree } else { file.map_or(Left::Other, Left::File) };
            self.files().moved(old, new);
            self.watch.moved((old, new), left, file, over);
            if left != Left::Tree
                && let Ok(file) = entry.open()
            {
                self.look_at(new, &file, false);
            }
        }
    }

    /// Notes that the command has just exchanged two names. `folders`: which of them were folders; `files`: what stood there.
    pub(super) fn exchanged(&self, names: [&Path; 2], folders: [bool; 2], files: [Option<FileMark>; 2]) {
        if names.iter().any(|name| self.scope.is_workspace(name)) {
            let left = |at: usize| match folders[at] {
                true => Left::Tree,
                false => files[at].map_or(Left::Other, Left::File),
            };
            self.files().exchanged(names);
            self.watch.exchanged(names, [left(1), left(0)], files);
        }
    }
}

/// The mark of a file.
pub(super) fn mark(file: &Stat) -> FileMark {
    #[allow(
        clippy::unnecessary_cast,
        clippy::cast_possible_wrap,
        clippy::cast_lossless,
        reason = "the types differ between architectures"
    )]
    FileMark::new(file.st_dev as u64, file.st_ino as u64, file.st_ctime as i64, file.st_ctime_nsec as i64)
}

/// The mark of the file or link with this name; `None`: there is none, or a folder, whose time is that of its names.
pub(super) fn mark_at(entry: &Entry) -> Option<FileMark> {
    let found = statat(&entry.folder, entry.name(), AtFlags::SYMLINK_NOFOLLOW).ok()?;
    (FileType::from_raw_mode(found.st_mode) != FileType::Directory).then(|| mark(&found))
}
