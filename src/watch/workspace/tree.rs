//! The last known state of the folder: enough to distinguish added from changed, and to find changes whose events were
//! lost.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::rules::Rules;

/// Maximum number of known files. Beyond it only folders are stored, and changes there are reported as `Modified`.
const MAX_FILES: usize = 500_000;
/// Folders deeper than this below the root are not entered.
const MAX_DEPTH: usize = 128;

/// The last known state of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meta {
    pub size: u64,
    /// Nanoseconds since 1970; times beyond 2262 count as equal. An `i64` saves memory for a hundred thousand files.
    pub modified: i64,
    pub inode: u64,
}

impl Meta {
    /// Of a path, links not followed. `None` for a folder, or when the path does not exist.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        path.symlink_metadata().ok().filter(|m| !m.is_dir()).map(|m| Self::from(&m))
    }

    fn from(m: &std::fs::Metadata) -> Self {
        Self {
            size: m.size(),
            modified: m.mtime().saturating_mul(1_000_000_000).saturating_add(m.mtime_nsec()),
            inode: m.ino(),
        }
    }
}

/// One difference between the last known and the present state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Diff {
    pub path: PathBuf,
    pub before: Option<Meta>,
    pub now: Option<Meta>,
}

/// Files by folder.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    folders: HashMap<PathBuf, HashMap<OsString, Meta>>,
    files: usize,
}

impl Tree {
    pub(crate) fn has_folder(&self, path: &Path) -> bool {
        self.folders.contains_key(path)
    }

    pub(crate) fn folders(&self) -> usize {
        self.folders.len()
    }

    /// All folders at and below `path`.
    pub(crate) fn below(&self, path: &Path) -> Vec<PathBuf> {
        self.folders.keys().filter(|f| f.starts_with(path)).cloned().collect()
    }

    /// Stores the present state of a file; returns the earlier one.
    pub(crate) fn set(&mut self, path: &Path, now: Option<Meta>) -> Option<Meta> {
        let (parent, name) = (path.parent()?, path.file_name()?);
        let before = match now {
            Some(meta) if self.files < MAX_FILES => {
                self.folders.entry(parent.to_owned()).or_default().insert(name.to_owned(), meta)
            }
            Some(meta) => self.folders.get_mut(parent)?.get_mut(name).map(|m| std::mem::replace(m, meta)),
            None => self.folders.get_mut(parent)?.remove(name),
        };
        match (before, now) {
            (None, Some(_)) if self.files < MAX_FILES => self.files += 1,
            (Some(_), None) => self.files -= 1,
            _ => {}
        }
        before
    }

    /// Removes a folder and everything below it; returns the files that were there.
    pub(crate) fn remove(&mut self, folder: &Path) -> Vec<Diff> {
        let mut gone = Vec::new();
        for path in self.below(folder) {
            for (name, meta) in self.folders.remove(&path).unwrap_or_default() {
                gone.push(Diff { path: path.join(name), before: Some(meta), now: None });
            }
        }
        self.files -= gone.len();
        gone
    }

    /// Scans one folder, not what is below it. Returns the changed files and its folders. `None` when the folder cannot
    /// be read, or is marked as a cache.
    pub(crate) fn look(
        &mut self,
        folder: &Path,
        rules: &mut Rules,
        out: &mut Vec<Diff>,
    ) -> Option<Vec<PathBuf>> {
        let entries = std::fs::read_dir(folder).ok()?;
        rules.load(folder);
        let mut now = HashMap::new();
        let mut folders = Vec::new();
        for entry in entries.flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            let path = entry.path();
            if entry.file_name() == "CACHEDIR.TAG" {
                // The tag by which tools mark folders that can be regenerated.
                out.extend(self.remove(folder));
                return None;
            }
            if rules.ignored(&path, kind.is_dir()) {
                continue;
            }
            if kind.is_dir() {
                // Links to folders count as files: they are not entered, so no loop can occur.
                folders.push(path);
            } else if let Ok(meta) = entry.metadata() {
                now.insert(entry.file_name(), Meta::from(&meta));
            }
        }
        let before = self.folders.entry(folder.to_owned()).or_default();
        if before.is_empty() && self.files + now.len() > MAX_FILES {
            return Some(folders);
        }
        for (name, meta) in &now {
            let old = before.get(name).copied();
            if old != Some(*meta) {
                out.push(Diff { path: folder.join(name), before: old, now: Some(*meta) });
            }
        }
        for (name, old) in &*before {
            if !now.contains_key(name) {
                out.push(Diff { path: folder.join(name), before: Some(*old), now: None });
            }
        }
        self.files = self.files - before.len() + now.len();
        *before = now;
        Some(folders)
    }

    /// Walks `start` and everything below it without recursion; `enter` is called before a folder is read (to set a
    /// watch) and ends the walk with `false`. Returns all changed files; folders that are gone are removed.
    pub(crate) fn walk(
        &mut self,
        start: &Path,
        rules: &mut Rules,
        mut enter: impl FnMut(&Path) -> bool,
    ) -> Vec<Diff> {
        let mut out = Vec::new();
        let mut found = std::collections::HashSet::new();
        let mut open = vec![start.to_owned()];
        let base = start.components().count();
        while let Some(folder) = open.pop() {
            if !enter(&folder) {
                return out;
            }
            let deep = folder.components().count() - base >= MAX_DEPTH;
            if let Some(folders) = self.look(&folder, rules, &mut out) {
                found.insert(folder);
                if !deep {
                    open.extend(folders);
                }
            }
        }
        for gone in self.below(start) {
            if !found.contains(&gone) {
                out.extend(self.remove(&gone));
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(diffs: &[Diff]) -> Vec<String> {
        let mut names: Vec<String> = diffs
            .iter()
            .map(|d| {
                let mark = match (d.before, d.now) {
                    (None, _) => '+',
                    (_, None) => '-',
                    _ => '~',
                };
                format!("{mark}{}", d.path.file_name().unwrap().display())
            })
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_second_walk_finds_exactly_what_changed() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::create_dir_all(root.join("target/x")).unwrap();
        for f in ["one", "a/two", "a/b/three", "target/x/four"] {
            std::fs::write(root.join(f), f).unwrap();
        }
        let mut rules = Rules::new(root, &[], &[], None);
        let mut tree = Tree::default();
        assert_eq!(names(&tree.walk(root, &mut rules, |_| true)), ["+one", "+three", "+two"]);
        assert_eq!(tree.walk(root, &mut rules, |_| true), []);
        std::fs::write(root.join("a/two"), "longer").unwrap();
        std::fs::write(root.join("new"), "").unwrap();
        std::fs::remove_dir_all(root.join("a/b")).unwrap();
        assert_eq!(names(&tree.walk(root, &mut rules, |_| true)), ["+new", "-three", "~two"]);
        assert_eq!((tree.files, tree.folders()), (3, 2));
        assert_eq!(names(&tree.remove(root)), ["-new", "-one", "-two"]);
        assert_eq!(tree.files, 0);
    }

    /// F3: loops of links end, and the files behind them are not counted twice.
    #[test]
    fn f3_link_loops_are_cut() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::os::unix::fs::symlink("..", root.join("a/up")).unwrap();
        std::os::unix::fs::symlink("../..", root.join("a/b/top")).unwrap();
        std::os::unix::fs::symlink("self", root.join("self")).unwrap();
        let mut tree = Tree::default();
        let mut entered = 0;
        let mut rules = Rules::new(root, &[], &[], None);
        tree.walk(root, &mut rules, |_| {
            entered += 1;
            true
        });
        assert_eq!(entered, 3);
    }

    #[test]
    fn folders_that_call_themselves_caches_are_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        std::fs::create_dir_all(root.join("out/deep")).unwrap();
        std::fs::write(root.join("out/CACHEDIR.TAG"), "Signature: 8a477f597d28d172789f06886806bc55").unwrap();
        std::fs::write(root.join("out/deep/x"), "").unwrap();
        let mut tree = Tree::default();
        let mut rules = Rules::new(root, &[], &[], None);
        assert_eq!(tree.walk(root, &mut rules, |_| true), []);
    }
}
