//! What calls would write that wait for an approval: laid over the files that later calls of the same script read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use tiller_protocol::lock;

use crate::shell::own_folder;

/// Files as they would be. Dropping it removes them.
#[derive(Debug)]
pub struct Drafts {
    /// Without links.
    at: PathBuf,
    files: Mutex<Files>,
    _folder: tempfile::TempDir,
}

#[derive(Debug, Default)]
struct Files {
    /// The number of a file's content, by its path (absolute, without links); `None`: it would be gone.
    by_path: BTreeMap<PathBuf, Option<u32>>,
    last: u32,
}

/// What a path would be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Drafted {
    /// What it is.
    Same,
    /// A file with the content of this one.
    File(PathBuf),
    /// A folder, since a file would lie below it.
    Folder,
    Gone,
}

impl Drafts {
    /// Nothing is different yet.
    ///
    /// # Errors
    /// When there is no room for temporary files.
    pub(crate) fn new() -> std::io::Result<Self> {
        let folder = own_folder::make("code")?;
        let at = folder.path().canonicalize()?;
        Ok(Self { at, files: Mutex::default(), _folder: folder })
    }

    /// What `path` (absolute, without links) would be.
    pub(crate) fn seen(&self, path: &Path) -> Drafted {
        let files = lock(&self.files);
        match files.by_path.get(path) {
            Some(Some(number)) => return Drafted::File(self.at.join(number.to_string())),
            Some(None) => return Drafted::Gone,
            None => {}
        }
        let mut below =
            files.by_path.range(path.to_owned()..).take_while(|(other, _)| other.starts_with(path));
        if below.any(|(_, number)| number.is_some()) { Drafted::Folder } else { Drafted::Same }
    }

    /// Whether nothing would be different.
    pub fn is_empty(&self) -> bool {
        lock(&self.files).by_path.is_empty()
    }

    /// The files that would be below `folder`, in order of names.
    pub(crate) fn below(&self, folder: &Path) -> Vec<PathBuf> {
        let files = lock(&self.files);
        let there = files.by_path.iter().filter(|(_, number)| number.is_some());
        there.map(|(path, _)| path.clone()).filter(|path| path.starts_with(folder)).collect()
    }

    /// The content that `path` would have.
    pub(super) fn put(&self, path: &Path, bytes: &[u8]) -> std::io::Result<PathBuf> {
        let mut files = lock(&self.files);
        files.last += 1;
        let number = files.last;
        let at = self.at.join(number.to_string());
        std::fs::write(&at, bytes)?;
        files.by_path.insert(path.to_owned(), Some(number));
        Ok(at)
    }

    pub(super) fn remove(&self, path: &Path) {
        lock(&self.files).by_path.insert(path.to_owned(), None);
    }
}
