//! Files with several names (hard links).

use std::collections::{HashMap, VecDeque};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Names a file whatever its paths are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId {
    pub device: u64,
    pub inode: u64,
}

/// The file at this path, if it is a regular one that has another name as well. Links are not followed.
pub fn linked_file(path: &Path) -> Option<FileId> {
    let meta = path.symlink_metadata().ok()?;
    (meta.is_file() && meta.nlink() > 1).then(|| FileId { device: meta.dev(), inode: meta.ino() })
}

/// Levels of folders that are read below each path.
const DEPTH: u32 = 4;

/// The regular files at and below some paths.
#[derive(Clone, Debug, Default)]
pub struct Files {
    /// Those nearest to the paths first.
    pub paths: Vec<PathBuf>,
    /// Some were left out: there are too many, or they lie too deep.
    pub cut: bool,
}

impl Files {
    /// Reads folders, at most `most` entries of them, and follows no links.
    pub fn below(paths: impl IntoIterator<Item = PathBuf>, mut most: usize) -> Self {
        let mut todo: VecDeque<(PathBuf, u32)> = paths.into_iter().map(|path| (path, DEPTH)).collect();
        let mut all = Self::default();
        while let Some((path, depth)) = todo.pop_front() {
            let Ok(meta) = path.symlink_metadata() else { continue };
            if meta.is_file() {
                all.paths.push(path);
            } else if meta.is_dir() {
                let entries = std::fs::read_dir(&path).into_iter().flatten().flatten();
                for entry in entries {
                    if most == 0 || depth == 0 {
                        all.cut = true;
                        break;
                    }
                    most -= 1;
                    todo.push_back((entry.path(), depth - 1));
                }
            }
        }
        all
    }

    /// Those that have another name as well.
    pub fn linked(&self) -> HashMap<FileId, PathBuf> {
        self.paths.iter().filter_map(|path| Some((linked_file(path)?, path.clone()))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_with_another_name_are_found_below_paths() {
        let tmp = tempfile::tempdir().unwrap();
        let at = |name: &str| tmp.path().join(name);
        std::fs::create_dir_all(at("keys/a/b")).unwrap();
        for name in ["keys/one", "keys/a/b/two", "alone"] {
            std::fs::write(at(name), name).unwrap();
        }
        std::fs::hard_link(at("keys/a/b/two"), at("second")).unwrap();
        std::os::unix::fs::symlink(at("second"), at("keys/link")).unwrap();
        let all = Files::below([at("keys"), at("alone"), at("none")], 100);
        assert_eq!(all.paths, [at("alone"), at("keys/one"), at("keys/a/b/two")]);
        assert!(!all.cut);
        let linked = all.linked();
        assert_eq!(linked.len(), 1);
        assert_eq!(linked.get(&linked_file(&at("second")).unwrap()), Some(&at("keys/a/b/two")));
        assert_eq!(linked_file(&at("keys/link")), None, "it leads to one");
        assert!(Files::below([at("keys")], 2).cut);
    }
}
