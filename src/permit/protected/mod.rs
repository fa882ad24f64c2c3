//! Names that no tool may write, in any profile, whether they exist or not.
//!
//! These files control Tiller, git, shells and editors: writing them runs code later, with the user's rights. File
//! tools cannot write them. For shell commands the check of the text is a best effort; the boundary is the kernel
//! sandbox, where there is one.

mod names;

use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, LazyLock};

use names::SYSTEM;
use tiller_protocol::protected_names::{self, FILES, FOLDERS};
pub use tiller_shell::fold;

use crate::paths::{Roots, normal};

/// [`Protected::check_write`] as a function: the reason why a path may not be written.
pub type CheckWrite = Arc<dyn Fn(&Path) -> Option<String> + Send + Sync>;

/// The judge of protected names. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Protected {
    roots: Roots,
}

impl Protected {
    /// For these roots.
    pub fn new(roots: Roots) -> Self {
        Self { roots }
    }

    /// Why `path` (absolute) may not be written, if so. Judges the path as spelled and what its links
    /// lead to; a folder that holds protected things may not be replaced or removed either.
    pub fn check_write(&self, path: &Path) -> Option<String> {
        let lexical = normal(path);
        let real = self.roots.real(&lexical);
        self.check_one(&lexical).or_else(|| if real == lexical { None } else { self.check_one(&real) })
    }

    /// The same as a function for rooms that must not know this one.
    pub fn as_fn(&self) -> CheckWrite {
        let this = self.clone();
        Arc::new(move |path| this.check_write(path))
    }

    fn check_one(&self, path: &Path) -> Option<String> {
        let folded = fold_path(path);
        // A sample project may lie in one of Tiller's own folders (`tiller demo`).
        let workspace = fold_path(&self.roots.workspace);
        let sample = folded != workspace && folded.starts_with(&workspace);
        for own in self.roots.own.iter().filter(|own| !(sample && workspace.starts_with(fold_path(own)))) {
            for own in [own.clone(), self.roots.real(own)] {
                let own = fold_path(&own);
                if folded.starts_with(&own) {
                    return Some(format!("{} belongs to Tiller itself", path.display()));
                }
                if own.starts_with(&folded) {
                    return Some(format!("{} contains Tiller's own files", path.display()));
                }
            }
        }
        if self.roots.hook_files.iter().any(|file| folded.starts_with(fold_path(file))) {
            return Some(format!("{} is protected: a hook runs it", path.display()));
        }
        if let Some(home) = &self.roots.home
            && fold_path(home).starts_with(&folded)
            && !self.roots.workspace.starts_with(path)
        {
            return Some(format!("{} contains the home folder", path.display()));
        }
        if let Some((system, _)) = FOLDED_SYSTEM.iter().find(|(_, s)| folded.starts_with(s)) {
            return Some(format!("{system} belongs to the system"));
        }
        let parts = self.relative(path, &folded);
        protected_names::find(&parts)
            .map(|found| format!("'{}' is protected: its content can run later or loosen a rule", found.name))
    }

    /// Folded components below the workspace, else below home, else all.
    fn relative(&self, path: &Path, folded: &Path) -> Vec<String> {
        let workspace = fold_path(&self.roots.workspace);
        let real = fold_path(&self.roots.real(&self.roots.workspace));
        let home = self.roots.home.as_ref().map(|h| fold_path(h));
        let below = [Some(workspace), Some(real), home]
            .into_iter()
            .flatten()
            .find_map(|root| folded.strip_prefix(root).ok().map(Path::to_path_buf))
            .unwrap_or_else(|| fold_path(path));
        components(&below)
    }
}

fn components(path: &Path) -> Vec<String> {
    path.components()
        .filter_map(|c| match c {
            Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
            _ => None,
        })
        .collect()
}

static FOLDED_SYSTEM: LazyLock<Vec<(&'static str, PathBuf)>> =
    LazyLock::new(|| SYSTEM.iter().map(|s| (*s, fold_path(Path::new(s)))).collect());

/// True when a pattern of file names that begins with a dot may stand for a protected name.
pub(crate) fn glob_may_hit(component: &str) -> bool {
    if !component.starts_with(['.', '[', '?', '*']) || component.starts_with('*') {
        return false;
    }
    let Ok(glob) = globset::GlobBuilder::new(component).case_insensitive(true).build() else { return true };
    let matcher = glob.compile_matcher();
    FOLDERS.iter().chain(FILES).filter_map(|n| n.split('/').next()).any(|n| matcher.is_match(n))
}

pub(crate) fn fold_path(path: &Path) -> PathBuf {
    path.components()
        .map(|c| match c {
            Component::Normal(name) => PathBuf::from(fold(&name.to_string_lossy())),
            other => PathBuf::from(other.as_os_str()),
        })
        .collect()
}

#[cfg(test)]
mod tests;
