//! The files of a skill: listed and read within limits, never outside of its folder. Nothing is run.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

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
    let mut bytes = Vec::new();
    let file =
        tiller_fs::open_regular(&at).map_err(|e| ReadFailure::Refused(format!("cannot be read: {e}")))?;
    file.take(LARGEST)
        .read_to_end(&mut bytes)
        .map_err(|e| ReadFailure::Refused(format!("cannot be read: {e}")))?;
    Ok(bytes)
}

/// The files below a folder; links and special files are left out.
fn below(folder: &Path) -> Vec<SkillFile> {
    let mut all = Vec::new();
    walk(folder, "", 0, &mut all);
    all
}

/// Collects files below a folder; links and special files are left out.
fn walk(folder: &Path, below: &str, depth: usize, all: &mut Vec<SkillFile>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut entries: Vec<_> = entries.take(MOST * 2).flatten().collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        if all.len() >= MOST {
            return;
        }
        // A file that a change was about to put into its place when it was cut off.
        if crate::change::leftovers::is_inside(&entry.file_name()) {
            continue;
        }
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if below.is_empty() { name } else { format!("{below}/{name}") };
        let Ok(meta) = fs::symlink_metadata(entry.path()) else { continue };
        if meta.is_file() {
            all.push(SkillFile { path, size: meta.len() });
        } else if meta.is_dir() && depth < DEPTH {
            walk(&entry.path(), &path, depth + 1, all);
        }
    }
}
