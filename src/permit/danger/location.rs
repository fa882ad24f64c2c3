//! The paths that words of a command name: compared as resolved paths, not as spelled.

use std::path::{Path, PathBuf};

use crate::paths::{Roots, normal};
use tiller_shell::Word;

/// The folders of the workspace, and those in which the command may run.
#[derive(Clone, Copy)]
pub(crate) struct Location<'a> {
    pub(crate) roots: &'a Roots,
    pub(crate) places: &'a [PathBuf],
}

/// Folders of the system.
const SYSTEM: &[&str] = &[
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/lib",
    "/lib32",
    "/lib64",
    "/proc",
    "/root",
    "/run",
    "/sbin",
    "/sys",
    "/usr",
    "/Applications",
    "/Library",
    "/System",
    "/private/etc",
    "/var/lib",
    "/var/log",
    "/var/spool",
    "/snap",
    "/opt",
];

impl Location<'_> {
    /// The paths that a word may name: without `..`, and as links lead. Empty when that is not known.
    pub(crate) fn paths(&self, word: &Word) -> Vec<PathBuf> {
        let here = [self.roots.workspace.clone()];
        let places = if self.places.is_empty() { &here } else { self.places };
        let mut out = self.roots.candidates(word, places).unwrap_or_default();
        for path in out.clone() {
            let real = self.roots.real(&path);
            if !out.contains(&real) {
                out.push(real);
            }
        }
        out
    }

    /// Whether all that a word names lies in the workspace. What is not known does not.
    pub(crate) fn inside(&self, word: &Word) -> bool {
        !word.dynamic
            && crate::read_only::inside(&Word { glob: false, ..word.clone() }, self.roots, self.places)
    }

    /// Whether deleting or changing all of what a word names takes more than a project's own files.
    pub(super) fn broad(&self, word: &Word) -> bool {
        if word.dynamic {
            return false;
        }
        // `dir/*` and `dir/.` are all of `dir`.
        let mut text = word.text.as_str();
        loop {
            let cut = text.trim_end_matches('/');
            let cut =
                ["/*", "/.*", "/.", "/**", "/?*"].iter().find_map(|e| cut.strip_suffix(e)).unwrap_or(cut);
            if cut == text {
                break;
            }
            text = cut;
        }
        let through = text.len() != word.text.len();
        if text.is_empty() && !word.tilde {
            return word.text.starts_with('/');
        }
        let bare = Word { text: text.to_owned(), ..word.clone() };
        let here = [self.roots.workspace.clone()];
        let places = if self.places.is_empty() { &here } else { self.places };
        let Some(paths) = self.roots.candidates(&bare, places) else { return word.tilde };
        paths.iter().any(|path| {
            // A link itself goes alone; with a slash behind it, what it leads to.
            let real = match (through, path.parent(), path.file_name()) {
                (false, Some(parent), Some(name)) => self.roots.real(parent).join(name),
                _ => self.roots.real(path),
            };
            self.wide(path) || self.wide(&real)
        })
    }

    /// Whether a word names a folder of the system, a home folder, or a parent of the workspace.
    pub(super) fn foreign(&self, word: &Word) -> bool {
        let mut text = word.text.trim_end_matches('/');
        while let Some(cut) = ["/*", "/.", "/.*"].iter().find_map(|e| text.strip_suffix(e)) {
            text = cut.trim_end_matches('/');
        }
        if word.dynamic {
            return false;
        }
        if text.is_empty() {
            return word.tilde || word.text.starts_with('/');
        }
        let root = self.roots.real(&self.roots.workspace);
        let home = self.roots.home.as_deref();
        self.paths(&Word { text: text.to_owned(), glob: false, ..word.clone() }).iter().any(|path| {
            let path = normal(path);
            if path == root || path.starts_with(&root) || path.starts_with(&self.roots.workspace) {
                return false;
            }
            let temporary = ["/tmp", "/var/tmp", "/private/tmp"]
                .iter()
                .any(|t| path.starts_with(t) && path != Path::new(t));
            let homes = path.parent().is_some_and(|p| p == Path::new("/home") || p == Path::new("/Users"));
            root.starts_with(&path)
                || home.is_some_and(|h| h.starts_with(&path))
                || homes
                || !temporary
                    && (path.components().count() <= 2 || SYSTEM.iter().any(|s| path.starts_with(s)))
        })
    }

    fn wide(&self, path: &Path) -> bool {
        let path = normal(path);
        let root = self.roots.real(&self.roots.workspace);
        for at in [&self.roots.workspace, &root] {
            if at.starts_with(&path) {
                return true;
            }
            if path.starts_with(at) {
                return path.file_name().is_some_and(|n| n == ".git");
            }
        }
        if self.roots.home.as_ref().is_some_and(|h| h.starts_with(&path))
            || self.roots.own.iter().any(|o| o.starts_with(&path) || path.starts_with(o))
        {
            return true;
        }
        path.components().count() <= 3 || SYSTEM.iter().any(|s| path.starts_with(s)) || path.ends_with(".git")
    }
}
