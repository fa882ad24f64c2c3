//! Protected names of the workspace, noted before a call changes them and judged after the command.

use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use tiller_tool::shell::BlockedKind;

use crate::policy::Profile;
use crate::supervisor::decide::{Judge, Note};
use crate::supervisor::removal::Refused;
use crate::supervisor::walk::Entry;
use crate::writes::{Holding, are_free, folder_above, instructs};

/// Entries of a folder that is moved. One with more may hide a protected name.
const ENTRIES: usize = 200_000;

/// The kind of file that may lie at a name afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaves {
    /// No link.
    File,
    /// Perhaps a link.
    Link,
}

impl Judge {
    /// Notes a path that is about to be changed, if it has a protected name. Keep the result until it is changed.
    pub(super) fn hold(
        &self,
        path: &Path,
        leaves: Leaves,
        kind: BlockedKind,
    ) -> Result<Option<Holding<'_>>, Refused> {
        let link = leaves == Leaves::Link;
        if self.scope.profile != Profile::Workspace || !self.is_named(path, link) {
            return Ok(None);
        }
        let mut holding = self.writes.hold();
        holding.note(self.scope.workspace(), path, link).map_err(|_| too_much(kind, path))?;
        Ok(Some(holding))
    }

    /// Returns true for a path that is judged. `link`: as [`folder_above`].
    fn is_named(&self, path: &Path, link: bool) -> bool {
        let workspace = self.scope.workspace();
        folder_above(workspace, path, link).is_some()
            && (self.scope.judges_instructions || !instructs(workspace, path))
    }

    /// Notes what a renaming changes. `exchange`: what lies at the new name goes to the old one.
    pub(super) fn hold_renaming(
        &self,
        (old, new): (&Entry, &Entry),
        folders: (bool, bool),
        exchange: bool,
    ) -> Result<Option<Holding<'_>>, Refused> {
        if self.scope.profile != Profile::Workspace {
            return Ok(None);
        }
        let workspace = self.scope.workspace();
        let (old_path, new_path) = (old.path()?, new.path()?);
        let mut pairs = self.protected_pairs(old, (&old_path, &new_path), folders.0)?;
        if exchange {
            pairs.extend(self.protected_pairs(new, (&new_path, &old_path), folders.1)?);
        }
        if pairs.is_empty() {
            return Ok(None);
        }
        let mut holding = self.writes.hold();
        for (from, to, whole) in pairs {
            let noted = match whole {
                true => holding.note_moved(workspace, &from, &to),
                false => {
                    holding.note(workspace, &from, true).and_then(|()| holding.note(workspace, &to, true))
                }
            };
            noted.map_err(|_| too_much(BlockedKind::Rename, &to))?;
        }
        Ok(Some(holding))
    }

    /// Returns the old and new paths with protected names of what is moved, and whether it goes with its folder.
    fn protected_pairs(
        &self,
        entry: &Entry,
        (old, new): (&Path, &Path),
        folder: bool,
    ) -> Result<Vec<(PathBuf, PathBuf, bool)>, Refused> {
        let workspace = self.scope.workspace();
        let named = |path: &Path| self.is_named(path, true);
        if !folder {
            let some = named(old) || named(new);
            return Ok(some.then(|| (old.to_owned(), new.to_owned(), false)).into_iter().collect());
        }
        if are_free(workspace, [old, new]) {
            return Ok(Vec::new());
        }
        let moved = entry.open()?;
        let here = PathBuf::from(format!("/proc/self/fd/{}", moved.as_raw_fd()));
        let all = files_below(&here).ok_or_else(|| too_much(BlockedKind::Rename, new))?;
        let pairs = all.into_iter().map(|name| (old.join(&name), new.join(&name), true));
        Ok(pairs.filter(|(from, to, _)| named(from) || named(to)).collect())
    }
}

/// Returns the files and links below a folder, relative to it. `None`: there are too many, or not all can be read.
fn files_below(top: &Path) -> Option<Vec<PathBuf>> {
    let (mut all, mut left) = (Vec::new(), ENTRIES);
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(top.join(&folder)).ok()?.flatten() {
            left = left.checked_sub(1)?;
            let name = folder.join(entry.file_name());
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(name),
                _ => all.push(name),
            }
        }
    }
    Some(all)
}

fn too_much(kind: BlockedKind, path: &Path) -> Refused {
    Refused { errno: Errno::ACCESS, note: Some(Note::path(kind, path)) }
}
