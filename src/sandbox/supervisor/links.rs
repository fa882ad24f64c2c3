//! Files of the workspace that have another name where the command may not write, by a hard link of before the command.
//! They are not written in place: that would write the file outside. To replace them, as most programs do, is as before.
//!
//! The other names are looked for when such a file is to be written. Those that a command makes itself lie where it may
//! write, as do those of build programs, so these files are found to be inside.

use std::collections::HashMap;
use std::os::unix::fs::DirEntryExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{FileType, Stat};
use tiller_fs::links::{FileId, linked_file};

use crate::policy::{Policy, Profile};

/// Entries that are looked at for the other names of one file. Where there are more, it is taken to be outside.
const ENTRIES: usize = 200_000;
/// Files that are remembered.
const KNOWN: usize = 4096;

/// What is known of the files of one command that have several names.
#[derive(Debug)]
pub(super) struct LinksOut {
    /// Where the command may write.
    folders: Vec<PathBuf>,
    /// Whether a file has a name elsewhere, for its number of names.
    known: Mutex<HashMap<(FileId, u64), bool>>,
}

impl LinksOut {
    pub(super) fn new(policy: &Policy) -> Self {
        let folders = match policy.profile {
            Profile::Workspace => policy.writable_folders(),
            _ => Vec::new(),
        };
        Self { folders, known: Mutex::default() }
    }

    /// Whether the file with this path is one that is also elsewhere.
    pub(super) fn lead_out(&self, path: &Path, file: &Stat) -> bool {
        let is_file = FileType::from_raw_mode(file.st_mode) == FileType::RegularFile;
        #[allow(clippy::useless_conversion, reason = "the types differ between architectures")]
        let (id, names) =
            (FileId { device: file.st_dev.into(), inode: file.st_ino.into() }, u64::from(file.st_nlink));
        if !is_file || names < 2 || !self.folders.iter().any(|folder| path.starts_with(folder)) {
            return false;
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(out) = known.get(&(id, names)) {
            return *out;
        }
        let out = self.look(path, id, names);
        if known.len() >= KNOWN {
            known.clear();
        }
        known.insert((id, names), out);
        out
    }

    fn look(&self, path: &Path, id: FileId, names: u64) -> bool {
        let missing = self.missing(path, Search { id, missing: names, left: ENTRIES, listed: true });
        // Some file systems, layered ones for instance, list other numbers than files have: then no name was found.
        missing > 0
            && (missing < names
                || self.missing(path, Search { id, missing: names, left: ENTRIES, listed: false }) > 0)
    }

    /// Returns the number of names that are not found.
    fn missing(&self, path: &Path, mut search: Search) -> u64 {
        // Most other names lie in the same folder or near it.
        let near = path.parent().filter(|near| !self.folders.iter().any(|folder| folder == near));
        if let Some(near) = near {
            search.below(near, None);
        }
        for folder in &self.folders {
            // Of folders in each other the inner ones are read already.
            if search.goes_on() && !self.folders.iter().any(|f| f != folder && folder.starts_with(f)) {
                search.below(folder, near);
            }
        }
        search.missing
    }
}

/// The search for the names of one file.
struct Search {
    id: FileId,
    /// Names that were not found yet.
    missing: u64,
    /// Entries that may still be looked at.
    left: usize,
    /// Entries with another number in their folder are passed over without another look.
    listed: bool,
}

impl Search {
    fn goes_on(&self) -> bool {
        self.missing > 0 && self.left > 0
    }

    /// Looks below a folder, `read` and what lies below it excepted.
    fn below(&mut self, folder: &Path, read: Option<&Path>) {
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                if !self.goes_on() {
                    return;
                }
                self.left -= 1;
                let path = entry.path();
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() && read == Some(path.as_path()) => {}
                    Ok(kind) if kind.is_dir() => folders.push(path),
                    Ok(kind) if kind.is_file() && (!self.listed || entry.ino() == self.id.inode) => {
                        self.missing -= u64::from(linked_file(&path) == Some(self.id));
                    }
                    _ => {}
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_outside_if_one_of_its_names_is_not_found_inside() {
        let tmp = tempfile::tempdir().unwrap();
        let top = tmp.path().canonicalize().unwrap();
        for folder in ["work/a/deep", "work/b", "scratch", "outside"] {
            std::fs::create_dir_all(top.join(folder)).unwrap();
        }
        for (file, links) in [
            ("work/a/near", &["work/a/near2", "work/a/deep/near3"][..]),
            ("work/a/far", &["work/b/far2", "scratch/far3"]),
            ("work/b/out", &["outside/out2", "work/b/out3"]),
            ("work/alone", &[]),
        ] {
            std::fs::write(top.join(file), file).unwrap();
            for link in links {
                std::fs::hard_link(top.join(file), top.join(link)).unwrap();
            }
        }
        let policy = Policy::new(Profile::Workspace, &top.join("work"), &top.join("scratch"), None);
        let links = LinksOut::new(&policy);
        // Where folders list other numbers, each file is looked at.
        let far = top.join("work/a/far");
        let id = linked_file(&far).unwrap();
        let search = |missing| Search { id, missing, left: ENTRIES, listed: false };
        assert_eq!((links.missing(&far, search(3)), links.missing(&far, search(4))), (0, 1));
        let out = |name: &str| {
            let path = top.join(name);
            links.lead_out(&path, &rustix::fs::lstat(&path).unwrap())
        };
        for (name, is_out) in [
            ("work/a/near", false),
            ("work/a/deep/near3", false),
            ("work/a/far", false),
            ("scratch/far3", false),
            ("work/b/out", true),
            ("work/b/out3", true),
            ("work/alone", false),
            ("work/b", false),
            ("outside/out2", false),
        ] {
            assert_eq!(out(name), is_out, "{name}");
        }
        std::fs::remove_file(top.join("outside/out2")).unwrap();
        assert!(!out("work/b/out"), "all of its names are inside now");
        let floor = Policy { profile: Profile::Floor, ..policy };
        assert!(LinksOut::new(&floor).folders.is_empty());
    }
}
