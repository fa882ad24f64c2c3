//! The files that git tracks in a workspace, from its index: what is clean can be had again from the repository.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::Timespec;

use crate::policy::repository::Repository;

/// The largest index that is read, in bytes. Beyond it no file counts as tracked.
const LARGEST: u64 = 64 << 20;
/// Before the name of an entry: times, file, owner, size, hash, flags.
const FIXED: usize = 62;

/// What the index knows of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    seconds: u32,
    nanoseconds: u32,
    size: u32,
}

/// The tracked files of one repository.
#[derive(Debug, Default)]
pub(super) struct GitIndex {
    path: PathBuf,
    /// Stands before the names: of a part of a repository, its folder in that.
    part: Vec<u8>,
    /// Time and size of the file that was read.
    read: Option<(i64, i64, u64)>,
    files: HashMap<Vec<u8>, State>,
}

impl GitIndex {
    /// Of the repository of a workspace.
    pub(super) fn new(workspace: &Path, elsewhere: Option<&Repository>) -> Self {
        let Some(git) = elsewhere else {
            return Self { path: workspace.join(".git/index"), ..Self::default() };
        };
        let mut part = workspace.strip_prefix(&git.top).unwrap_or(workspace).as_os_str().as_bytes().to_vec();
        if !part.is_empty() {
            part.push(b'/');
        }
        Self { path: git.own.join("index"), part, ..Self::default() }
    }

    /// True if the file `name` (relative to the workspace) is as it was committed or staged; `None`: it is not tracked.
    /// Reads the index again when it was changed.
    pub(super) fn find(&mut self, name: &[u8], modified: Timespec, size: u64) -> Option<bool> {
        self.refresh();
        let known = self.files.get(&[self.part.as_slice(), name].concat())?;
        let clean = i64::from(known.seconds) == modified.tv_sec
            && (known.nanoseconds == 0 || i64::from(known.nanoseconds) == modified.tv_nsec)
            && u64::from(known.size) == size;
        Some(clean)
    }

    fn refresh(&mut self) {
        let Ok(meta) = self.path.metadata() else {
            // It was there before: what it said then still is in the repository.
            return;
        };
        let stamp = (meta.mtime(), meta.mtime_nsec(), meta.len());
        if self.read == Some(stamp) {
            return;
        }
        self.read = Some(stamp);
        let bytes = if meta.len() <= LARGEST { std::fs::read(&self.path).ok() } else { None };
        self.files = bytes.and_then(|bytes| entries(&bytes)).unwrap_or_default();
    }
}

/// The entries of an index of version 2, 3 or 4. `None`: it is malformed.
fn entries(bytes: &[u8]) -> Option<HashMap<Vec<u8>, State>> {
    let number = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let (version, count) = (number(4)?, number(8)?);
    if bytes.get(..4)? != b"DIRC" || !(2..=4).contains(&version) {
        return None;
    }
    let mut files = HashMap::new();
    let mut name: Vec<u8> = Vec::new();
    let mut at = 12;
    for _ in 0..count {
        let begin = at;
        let flags = u16::from_be_bytes(bytes.get(at + 60..at + 62)?.try_into().ok()?);
        let state = State { seconds: number(at + 8)?, nanoseconds: number(at + 12)?, size: number(at + 36)? };
        // Merges have several stages, and none of them is the file.
        let merged = flags & 0x3000 != 0;
        at += if version >= 3 && flags & 0x4000 != 0 { FIXED + 2 } else { FIXED };
        if version == 4 {
            let (strip, next) = prefix(bytes, at)?;
            name.truncate(name.len().checked_sub(strip)?);
            at = next;
        } else {
            name.clear();
        }
        let rest = bytes.get(at..)?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        name.extend_from_slice(&rest[..end]);
        at += end + 1;
        if version < 4 {
            // Filled up with zeros, one at least.
            let length = at - 1 - begin;
            at = begin + (length + 8) / 8 * 8;
        }
        if !merged {
            files.insert(name.clone(), state);
        }
    }
    Some(files)
}

/// How much of the name before an entry of version 4 goes, and where the rest of its own begins.
fn prefix(bytes: &[u8], mut at: usize) -> Option<(usize, usize)> {
    let mut byte = *bytes.get(at)?;
    let mut value = usize::from(byte & 0x7f);
    while byte & 0x80 != 0 {
        at += 1;
        byte = *bytes.get(at)?;
        value = value.checked_add(1)?.checked_mul(128)?.checked_add(usize::from(byte & 0x7f))?;
    }
    Some((value, at + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn git(folder: &Path, script: &str) {
        let mut sh = Command::new("sh");
        let done = tiller_testkit::plain_git(sh.args(["-ec", script]).current_dir(folder)).status();
        assert!(done.unwrap().success());
    }

    fn clean(index: &mut GitIndex, top: &Path, name: &str) -> bool {
        let meta = top.join(name).symlink_metadata().unwrap();
        let modified = Timespec { tv_sec: meta.mtime(), tv_nsec: meta.mtime_nsec() };
        index.find(name.as_bytes(), modified, meta.len()) == Some(true)
    }

    #[test]
    fn tracked_files_are_clean_until_they_change() {
        for version in [2, 3, 4] {
            let tmp = tempfile::tempdir().unwrap();
            let top = tmp.path();
            std::fs::create_dir_all(top.join("src/deep")).unwrap();
            for name in ["a", "src/b", "src/deep/long name of a file", "src/deep/long name of another"] {
                std::fs::write(top.join(name), name).unwrap();
            }
            let add =
                format!("git init -q; git config index.version {version}; git add -A; git commit -qm one");
            git(top, &add);
            if version == 3 {
                git(top, "echo x > later; git add -N later");
            }
            std::fs::write(top.join("new"), "new").unwrap();
            let mut index = GitIndex::new(top, None);
            for name in ["a", "src/b", "src/deep/long name of a file", "src/deep/long name of another"] {
                assert!(clean(&mut index, top, name), "{version}: {name}");
            }
            assert!(!clean(&mut index, top, "new"));
            std::fs::write(top.join("a"), "changed").unwrap();
            assert!(!clean(&mut index, top, "a"));
            git(top, "git add a new");
            assert!(clean(&mut index, top, "new"), "it was read again");
        }
    }

    #[test]
    fn malformed_indexes_track_nothing() {
        let tmp = tempfile::tempdir().unwrap();
        git(tmp.path(), "git init -q; for i in 1 2 3 4 5; do echo $i > f$i; done; git add -A");
        let good = std::fs::read(tmp.path().join(".git/index")).unwrap();
        assert_eq!(entries(&good).unwrap().len(), 5);
        // Every cut and every changed byte: no panic, and no endless loop.
        for at in 0..good.len() {
            let _ = entries(&good[..at]);
            for value in [0, 0x7f, 0x80, 0xff] {
                let mut bad = good.clone();
                bad[at] = value;
                let _ = entries(&bad);
            }
        }
    }
}
