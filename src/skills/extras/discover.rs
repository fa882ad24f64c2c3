//! The files of own commands and output styles: found within limits, and not read yet.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use tiller_config::Problem;
use tiller_config::agents::{Origin, ProjectFile};

use crate::files::{ReadFailure, read_inside};

/// Files of one place at most.
pub(super) const MOST: usize = 200;
/// Files and folders that are looked at in one place. Files with other endings do not count.
pub(super) const ENTRIES: usize = 10 * MOST;
/// Folders of commands below each other at most.
const DEPTH: usize = 4;

/// A file before it is read.
pub(super) struct Found {
    pub(super) path: PathBuf,
    /// The names of the folders between the place and the file, and of the file without its ending.
    pub(super) names: Vec<String>,
    /// Its bytes, or the end of a sentence on why there are none.
    pub(super) content: Result<Vec<u8>, String>,
}

impl Found {
    /// Leaves out content that is not as the user agreed to it. `folder`: that of the pack. The bytes that were read are compared:
    /// the file may have changed since the pack was.
    pub(super) fn pin(&mut self, folder: &Path, agreed: &BTreeMap<String, String>) {
        let Ok(bytes) = &self.content else { return };
        let hash = blake3::hash(bytes).to_hex();
        let inside = self.path.strip_prefix(folder).unwrap_or(&self.path);
        let known = inside.to_str().and_then(|inside| agreed.get(inside));
        if known.is_none_or(|known| known.as_str() != hash.as_str()) {
            self.content = Err("it changed since you agreed to it".to_owned());
        }
    }
}

/// The files of one place.
#[derive(Default)]
pub(super) struct FoundFiles {
    pub(super) found: Vec<Found>,
    /// What is left out besides single files: its name, and why.
    pub(super) problems: Vec<(String, Problem)>,
}

/// The Markdown files of a folder on this machine, by path; `deep`: also those of the folders below it. No folder is no
/// mistake. Blocks.
pub(super) fn in_folder(folder: &Path, from: Origin, deep: bool) -> FoundFiles {
    let mut search = Search { from, deep, entries: ENTRIES, reported: false, files: FoundFiles::default() };
    search.folder(folder, &[]);
    search.files
}

/// The Markdown files of the project below `place`, made of the bytes that were trusted.
pub(super) fn in_project(place: &str, files: &[ProjectFile<'_>], deep: bool) -> FoundFiles {
    let mut found: Vec<Found> = files.iter().filter_map(|file| of_project(place, file, deep)).collect();
    // Files directly in the place go first; those of the same depth stay in their order.
    found.sort_by_key(|file| file.names.len());
    let mut problems = Vec::new();
    if found.len() > MOST {
        found.truncate(MOST);
        problems.push(folder_problem(Path::new(place), &[], &too_many_files()));
    }
    FoundFiles { found, problems }
}

/// The file of the project, where it is one of this place.
fn of_project(place: &str, file: &ProjectFile<'_>, deep: bool) -> Option<Found> {
    let below = file.path.strip_prefix(place)?;
    let (folders, name) = below.rsplit_once('/').map_or((None, below), |(f, n)| (Some(f), n));
    let mut names: Vec<String> = folders.iter().flat_map(|f| f.split('/')).map(str::to_owned).collect();
    if (!deep && !names.is_empty()) || names.iter().any(|name| name.starts_with('.')) {
        return None;
    }
    let content = match file.bytes {
        _ if names.len() > DEPTH => Err(too_deep()),
        Some(bytes) => Ok(bytes.to_vec()),
        None => Err("it is a link, or too large".to_owned()),
    };
    // A link to a folder is listed as a file without content.
    let folder = deep && file.bytes.is_none() && !name.contains('.');
    let stem = if folder { name } else { name.strip_suffix(".md")? };
    names.push(stem.to_owned());
    Some(Found { path: PathBuf::from(file.path), names, content })
}

fn too_deep() -> String {
    format!("it is more than {DEPTH} folders deep")
}

fn too_many_files() -> String {
    format!("more than {MOST} files; the rest is ignored")
}

fn too_many_entries() -> String {
    format!("more than {ENTRIES} files and folders; the rest is ignored")
}

/// The name of a folder, with what is wrong with it; `above`: the names on the way to it.
fn folder_problem(folder: &Path, above: &[String], message: &str) -> (String, Problem) {
    let name = if above.is_empty() {
        folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
    } else {
        above.join(":")
    };
    (name, Problem::file(folder, message))
}

/// The search below one folder.
struct Search {
    from: Origin,
    deep: bool,
    /// Files and folders that may still be looked at.
    entries: usize,
    /// It is reported that there is more than is read.
    reported: bool,
    files: FoundFiles,
}

impl Search {
    /// Adds the files of a folder, then those of the folders in it; `above`: the names on the way to it.
    fn folder(&mut self, folder: &Path, above: &[String]) {
        let entries = match std::fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(e) if above.is_empty() && is_no_folder(&e) => return,
            Err(e) => return self.report(folder, above, &format!("the folder cannot be read: {e}")),
        };
        let deep = self.deep;
        // Each entry with whether it is a folder; what is neither a folder of commands nor Markdown is left out.
        let wanted = entries.flatten().filter_map(|entry| {
            let path = entry.path();
            let is_folder = path.is_dir();
            let is_wanted = match is_folder {
                true => deep && !is_hidden(&path),
                false => path.extension().is_some_and(|e| e == "md"),
            };
            is_wanted.then_some((is_folder, path))
        });
        let mut wanted: Vec<(bool, PathBuf)> = wanted.take(self.entries + 1).collect();
        if wanted.len() > self.entries {
            self.report_too_many(folder, above, &too_many_entries());
            wanted.truncate(self.entries);
        }
        self.entries -= wanted.len();
        // Files go before folders, each by path.
        wanted.sort();
        for (is_folder, path) in wanted {
            match is_folder {
                true => self.below(&path, above),
                false => self.file(path, folder, above),
            }
        }
    }

    /// Adds a file of `folder`.
    fn file(&mut self, path: PathBuf, folder: &Path, above: &[String]) {
        if self.files.found.len() >= MOST {
            return self.report_too_many(folder, above, &too_many_files());
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // A file directly in the place may be a link, for example into a repository of settings. One in a folder below
        // may not.
        let content = if above.is_empty() { read_linked(&path, &name) } else { read(folder, &name) };
        let mut names = above.to_vec();
        names.push(path.file_stem().unwrap_or_default().to_string_lossy().into_owned());
        self.files.found.push(Found { path, names, content });
    }

    /// Adds the files of a folder in a folder.
    fn below(&mut self, path: &Path, above: &[String]) {
        let mut names = above.to_vec();
        names.push(path.file_name().unwrap_or_default().to_string_lossy().into_owned());
        // A folder directly in the user's place may be a link, for example into a repository of settings. One below it
        // may not.
        let may_link = above.is_empty() && self.from == Origin::User;
        let link = std::fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_symlink());
        if link && !may_link {
            self.report(path, &names, "the folder cannot be read: it is a link, which is not followed");
        } else if names.len() > DEPTH {
            self.report(path, &names, &format!("the folder cannot be read: {}", too_deep()));
        } else {
            self.folder(path, &names);
        }
    }

    /// Reports what is wrong with a folder.
    fn report(&mut self, folder: &Path, above: &[String], message: &str) {
        if self.files.problems.len() < MOST {
            self.files.problems.push(folder_problem(folder, above, message));
        }
    }

    /// Reports once that there is more than is read.
    fn report_too_many(&mut self, folder: &Path, above: &[String], message: &str) {
        if !self.reported {
            self.reported = true;
            self.files.problems.push(folder_problem(folder, above, message));
        }
    }
}

/// Whether the name begins with a dot, as that of `.git`: such a folder holds no commands.
fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

/// Whether the error says that there is no folder.
fn is_no_folder(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// Reads a file that may be a link.
fn read_linked(path: &Path, name: &str) -> Result<Vec<u8>, String> {
    let real = std::fs::canonicalize(path).map_err(|e| format!("{name}: {e}"))?;
    let (parent, file) = (real.parent().unwrap_or(&real), real.file_name().unwrap_or_default());
    read(parent, &file.to_string_lossy())
}

/// Reads a file of a folder that is no link.
fn read(folder: &Path, name: &str) -> Result<Vec<u8>, String> {
    match read_inside(folder, name) {
        Ok(bytes) => Ok(bytes),
        Err(ReadFailure::Missing) => Err("it is gone".to_owned()),
        Err(ReadFailure::Refused(why)) => Err(format!("it {why}")),
    }
}
