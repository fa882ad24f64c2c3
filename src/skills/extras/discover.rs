//! The files of own commands and output styles: found within limits, and not read yet.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use tiller_config::Problem;
use tiller_config::agents::{Origin, ProjectFile};

use crate::files::{ReadFailure, read_inside};

/// Files of one place at most.
pub(super) const MOST: usize = 200;
/// Entries of folders that are looked at in one place.
const ENTRIES: usize = 10 * MOST;
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
    let mut search = Search { from, deep, entries: ENTRIES, full: false, files: FoundFiles::default() };
    search.folder(folder, &[]);
    search.files
}

/// The Markdown files of the project below `place`, made of the bytes that were trusted.
pub(super) fn in_project(place: &str, files: &[ProjectFile<'_>], deep: bool) -> FoundFiles {
    let mut found: Vec<Found> = files.iter().filter_map(|file| of_project(place, file, deep)).collect();
    // Stable: what is in no folder goes first.
    found.sort_by_key(|file| file.names.len());
    let mut problems = Vec::new();
    if found.len() > MOST {
        found.truncate(MOST);
        problems.push(too_many(Path::new(place), &[]));
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

fn too_many(place: &Path, above: &[String]) -> (String, Problem) {
    wrong(place, above, &format!("more than {MOST} files; the rest is ignored"))
}

/// What is wrong with a folder; `above`: the names on the way to it.
fn wrong(folder: &Path, above: &[String], message: &str) -> (String, Problem) {
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
    /// Entries that may still be looked at.
    entries: usize,
    /// There was more than is read, and it is reported.
    full: bool,
    files: FoundFiles,
}

impl Search {
    /// Adds the files of a folder, then those of the folders in it; `above`: the names on the way to it.
    fn folder(&mut self, folder: &Path, above: &[String]) {
        let entries = match std::fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(e) if above.is_empty() && is_no_folder(&e) => return,
            Err(e) => return self.wrong(folder, above, &format!("the folder cannot be read: {e}")),
        };
        let mut paths: Vec<PathBuf> = entries.take(self.entries + 1).flatten().map(|e| e.path()).collect();
        if paths.len() > self.entries {
            self.stop(folder, above);
            paths.truncate(self.entries);
        }
        self.entries -= paths.len();
        paths.sort();
        // A folder whose name begins with a dot holds no commands, for example `.git`.
        let deep = self.deep;
        let hidden = |p: &Path| p.file_name().is_some_and(|n| n.as_encoded_bytes().starts_with(b"."));
        let (folders, files): (Vec<PathBuf>, Vec<PathBuf>) = paths.into_iter().partition(|p| p.is_dir());
        for path in files.into_iter().filter(|p| p.extension().is_some_and(|e| e == "md")) {
            self.file(path, folder, above);
        }
        for path in folders.into_iter().filter(|p| deep && !hidden(p.as_path())) {
            self.below(&path, above);
        }
    }

    /// Adds a file of `folder`.
    fn file(&mut self, path: PathBuf, folder: &Path, above: &[String]) {
        if self.files.found.len() >= MOST {
            return self.stop(folder, above);
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // A person's file may be a link, to where they keep their files. Nothing in a folder below may.
        let content = if above.is_empty() { read_linked(&path, &name) } else { read(folder, &name) };
        let mut names = above.to_vec();
        names.push(path.file_stem().unwrap_or_default().to_string_lossy().into_owned());
        self.files.found.push(Found { path, names, content });
    }

    /// Adds the files of a folder in a folder.
    fn below(&mut self, path: &Path, above: &[String]) {
        let mut names = above.to_vec();
        names.push(path.file_name().unwrap_or_default().to_string_lossy().into_owned());
        // A person's folder may be a link, to where they keep their files. Nothing below it may.
        let may_link = above.is_empty() && self.from == Origin::User;
        let link = std::fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_symlink());
        if link && !may_link {
            self.wrong(path, &names, "the folder cannot be read: it is a link, which is not followed");
        } else if names.len() > DEPTH {
            self.wrong(path, &names, &format!("the folder cannot be read: {}", too_deep()));
        } else {
            self.folder(path, &names);
        }
    }

    fn wrong(&mut self, folder: &Path, above: &[String], message: &str) {
        if self.files.problems.len() < MOST {
            self.files.problems.push(wrong(folder, above, message));
        }
    }

    /// Reports once that there is more than is read.
    fn stop(&mut self, folder: &Path, above: &[String]) {
        if !self.full {
            self.full = true;
            self.files.problems.push(too_many(folder, above));
        }
    }
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
