//! The files of a skill: listed and read within limits, never outside of its folder. Nothing is run.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, FileType, statat};
use tiller_fs::beneath;

use crate::skill::is_hidden;

/// Files of a skill that are listed at most.
const MOST: usize = 200;
/// Folders below each other at most.
const DEPTH: usize = 6;
/// Bytes that are read of one file at most.
pub(crate) const LARGEST: u64 = 1024 * 1024;

/// Where the files of a skill are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SkillFiles {
    /// In the program: path below the folder, content.
    Embedded(&'static [(&'static str, &'static [u8])]),
    /// In a folder of this machine.
    Folder(PathBuf),
    /// In a folder of this machine, of which only files in the form that the user agreed to are read.
    Pinned {
        folder: PathBuf,
        /// Of blake3 as hexadecimal digits, by the path below the folder.
        hashes: Arc<BTreeMap<String, String>>,
    },
    /// As the person trusted them: path below the folder, content.
    InMemory(Arc<Vec<(String, Vec<u8>)>>),
}

/// One file of a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillFile {
    /// Below the skill's folder, with `/`.
    pub path: String,
    /// In bytes.
    pub size: u64,
}

impl SkillFiles {
    /// The files, `SKILL.md` first, then by path; at most 200. Links are left out. Blocks.
    pub fn list(&self) -> Vec<SkillFile> {
        let mut all: Vec<SkillFile> = match self {
            Self::Embedded(files) => {
                files.iter().map(|(p, b)| SkillFile { path: (*p).to_owned(), size: b.len() as u64 }).collect()
            }
            Self::InMemory(files) => {
                files.iter().map(|(p, b)| SkillFile { path: p.clone(), size: b.len() as u64 }).collect()
            }
            Self::Folder(folder) => below(folder),
            Self::Pinned { folder, hashes } => {
                below(folder).into_iter().filter(|file| hashes.contains_key(&file.path)).collect()
            }
        };
        all.sort_by(|a, b| {
            (a.path != crate::skill::FILE, &a.path).cmp(&(b.path != crate::skill::FILE, &b.path))
        });
        all.truncate(MOST);
        all
    }

    /// The content of one file. Blocks.
    ///
    /// # Errors
    /// A sentence: there is no such file, it is not in the folder, or it is too large.
    pub fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        let plain = Path::new(path).components().all(|c| matches!(c, Component::Normal(_)));
        if !plain || path.is_empty() || path.contains(['\0', '\\']) {
            return Err(format!("`{path}` is not a path below the skill's folder"));
        }
        match self {
            Self::Embedded(files) => files
                .iter()
                .find(|(p, _)| *p == path)
                .map(|(_, bytes)| bytes.to_vec())
                .ok_or_else(|| self.no_such(path)),
            Self::InMemory(files) => files
                .iter()
                .find(|(p, _)| p == path)
                .map(|(_, bytes)| bytes.clone())
                .ok_or_else(|| self.no_such(path)),
            Self::Folder(folder) => match read_inside(folder, path) {
                Err(ReadFailure::Missing) => Err(self.no_such(path)),
                Err(ReadFailure::Refused(why)) => Err(format!("`{path}` {why}")),
                Ok(bytes) => Ok(bytes),
            },
            Self::Pinned { folder, hashes } => {
                let agreed = hashes.get(path).ok_or_else(|| self.no_such(path))?;
                let bytes = Self::Folder(folder.clone()).read(path)?;
                match blake3::hash(&bytes).to_hex().as_str() == agreed {
                    true => Ok(bytes),
                    false => Err(format!("`{path}` changed since the user agreed to it")),
                }
            }
        }
    }

    /// The folder on this machine that has the files; `None`: they are not read from one.
    pub(crate) fn folder(&self) -> Option<&Path> {
        match self {
            Self::Folder(folder) | Self::Pinned { folder, .. } => Some(folder),
            Self::Embedded(_) | Self::InMemory(_) => None,
        }
    }

    fn no_such(&self, path: &str) -> String {
        format!("the skill has no file `{path}`; it has {}", self.named(|_| true, 20))
    }

    /// The paths of its files that are `wanted`, for a model: at most `most` of them, then how many more there are. A path with
    /// a character that [`is_odd`] is only counted. Empty: none is wanted. Blocks.
    pub(crate) fn named(&self, wanted: impl Fn(&str) -> bool, most: usize) -> String {
        let all: Vec<String> = self.list().into_iter().map(|f| f.path).filter(|path| wanted(path)).collect();
        let plain = all.iter().filter(|path| !path.contains(is_odd));
        let mut names: Vec<String> = plain.take(most).cloned().collect();
        let more = all.len() - names.len();
        if more > 0 {
            names.push(format!("{more} more"));
        }
        names.join(", ")
    }
}

/// Whether a character of a path could end the line or the tag that contains the path, or is invisible.
pub(crate) fn is_odd(c: char) -> bool {
    c.is_control() || is_hidden(c) || matches!(c, '"' | '<' | '>')
}

/// Why a file is not read.
pub(crate) enum ReadFailure {
    Missing,
    /// The end of a sentence about the file.
    Refused(String),
}

/// Reads a file below a folder whose path leads through no link.
pub(crate) fn read_inside(folder: &Path, path: &str) -> Result<Vec<u8>, ReadFailure> {
    let refused = |why: &str| ReadFailure::Refused(why.to_owned());
    let mut at = folder.to_path_buf();
    for part in Path::new(path).components() {
        at.push(part);
        let meta = fs::symlink_metadata(&at).map_err(|_| ReadFailure::Missing)?;
        if meta.file_type().is_symlink() {
            return Err(refused("is a link, which is not followed"));
        }
    }
    let meta = fs::symlink_metadata(&at).map_err(|_| ReadFailure::Missing)?;
    // Reading a pipe would block.
    if !meta.is_file() {
        return Err(refused("is not a file"));
    }
    if meta.len() > LARGEST {
        return Err(ReadFailure::Refused(format!("is larger than {} KiB", LARGEST / 1024)));
    }
    beneath::read_below(folder, Path::new(path), LARGEST)
        .map_err(|e| ReadFailure::Refused(format!("cannot be read: {e}")))
}

/// The files below a folder; links and special files are left out.
fn below(folder: &Path) -> Vec<SkillFile> {
    let mut all = Vec::new();
    walk(folder, "", 0, &mut all);
    all
}

/// Collects files of the folder `below` in the folder of the skill.
fn walk(root: &Path, below: &str, depth: usize, all: &mut Vec<SkillFile>) {
    let Ok(folder) = beneath::folder_below(root, Path::new(below)) else { return };
    let mut entries = beneath::entries(&folder, MOST * 2).unwrap_or_default();
    entries.sort();
    for (name, is_folder) in entries {
        if all.len() >= MOST {
            return;
        }
        // A file that a change was about to put into its place when it was cut off.
        if crate::change::leftovers::is_inside(&name) {
            continue;
        }
        let shown = name.to_string_lossy();
        let path = if below.is_empty() { shown.into_owned() } else { format!("{below}/{shown}") };
        if is_folder && depth < DEPTH {
            walk(root, &path, depth + 1, all);
        } else if let Ok(stat) = statat(&folder, &name, AtFlags::SYMLINK_NOFOLLOW)
            && FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
        {
            all.push(SkillFile { path, size: u64::try_from(stat.st_size).unwrap_or(0) });
        }
    }
}

#[cfg(test)]
mod tests {
    use tiller_fs::testing::swap::{MINE, Swaps};

    use super::*;

    #[test]
    fn x20_a_folder_that_is_swapped_with_a_link_is_neither_read_nor_listed() {
        for (name, what) in [("content", "scripts/run.md"), ("list", "")] {
            let tmp = tempfile::tempdir().unwrap();
            let swaps = Swaps::new(tmp.path(), "scripts", &["run.md", &format!("{MINE}.md")]);
            let files = SkillFiles::Folder(swaps.root().to_owned());
            swaps.check(name, || match what {
                "" => format!("{:?}", files.list()),
                path => files.read(path).map_or_else(|e| e, |bytes| String::from_utf8(bytes).unwrap()),
            });
        }
    }
}
