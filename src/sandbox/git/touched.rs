//! What a program that stays has made or written, as its supervisor has it: the person works beside it, and what they do is
//! not the program's.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use super::tree::is_repository_name;

/// Paths that are remembered. After more of them everything counts as the program's.
const PATHS: usize = 50_000;
/// Names that make a folder a repository, or decide what git runs in it.
const NAMES: &[&str] =
    &["HEAD", "objects", "refs", "commondir", "config", "config.worktree", "alternates", "hooks", "modules"];

/// Paths by which git can be led to run a program.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    paths: Mutex<HashSet<PathBuf>>,
    news: AtomicBool,
}

impl Touched {
    /// Notes a path. `folder`: it is one now.
    pub(crate) fn add(&self, path: &Path, folder: bool) {
        let named = |path: &Path, names: &[&str]| {
            path.file_name().is_some_and(|name| {
                is_repository_name(name) || names.iter().any(|known| name.eq_ignore_ascii_case(known))
            })
        };
        let hook = || path.parent().is_some_and(|folder| named(folder, &["hooks"]));
        if !(folder || named(path, NAMES) || hook()) {
            return;
        }
        let mut paths = self.paths.lock().unwrap_or_else(PoisonError::into_inner);
        let path = if paths.len() < PATHS { path } else { Path::new("/") };
        paths.insert(path.to_owned());
        self.news.store(true, Ordering::Relaxed);
    }

    /// Whether there is more than at the last call.
    pub(crate) fn take_news(&self) -> bool {
        self.news.swap(false, Ordering::Relaxed)
    }

    /// Whether the program made this file, or a folder above it, or made a repository of this folder.
    pub(super) fn has(&self, path: &Path, repository: &Path) -> bool {
        let paths = self.paths.lock().unwrap_or_else(PoisonError::into_inner);
        let parts = || ["HEAD", "objects", "refs", "commondir"].map(|part| repository.join(part));
        path.ancestors().any(|path| paths.contains(path)) || parts().iter().any(|part| paths.contains(part))
    }
}
