//! Names that no tool may write, in any profile, whether they exist or not.
//!
//! These files control Tiller, git, shells and editors: writing them runs code later, with the user's rights. File
//! tools cannot write them. For shell commands the check of the text is a best effort; the boundary is the kernel
//! sandbox, where there is one.

mod names;

use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, LazyLock};

use names::{FILES, FOLDERS, SYSTEM};

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
        protected_name(&parts)
            .map(|name| format!("'{name}' is protected: its content can run later or loosen a rule"))
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

/// A protected name and its folded components.
type Name = (&'static str, Vec<String>);

static FOLDED: LazyLock<[Vec<Name>; 2]> = LazyLock::new(|| {
    let names = |all: &[&'static str]| all.iter().map(|n| (*n, n.split('/').map(fold).collect())).collect();
    [names(FOLDERS), names(FILES)]
});

static FOLDED_SYSTEM: LazyLock<Vec<(&'static str, PathBuf)>> =
    LazyLock::new(|| SYSTEM.iter().map(|s| (*s, fold_path(Path::new(s)))).collect());

/// The protected name that these folded components go through, if any.
fn protected_name(parts: &[String]) -> Option<&'static str> {
    let [folders, files] = &*FOLDED;
    let run = |want: &[String], to_end: bool| {
        (0..parts.len()).any(|at| {
            parts[at..].starts_with(want) && (!to_end || at + want.len() == parts.len() || want.len() == 1)
        })
    };
    // A file's name protects below it too: it may become a folder.
    let hit =
        folders.iter().find(|(_, w)| run(w, false)).or_else(|| files.iter().find(|(_, w)| run(w, true)));
    hit.map(|(name, _)| *name)
}

/// True when a pattern of file names that begins with a dot may stand for a protected name.
pub(crate) fn glob_may_hit(component: &str) -> bool {
    if !component.starts_with(['.', '[', '?', '*']) || component.starts_with('*') {
        return false;
    }
    let Ok(glob) = globset::GlobBuilder::new(component).case_insensitive(true).build() else { return true };
    let matcher = glob.compile_matcher();
    FOLDERS.iter().chain(FILES).filter_map(|n| n.split('/').next()).any(|n| matcher.is_match(n))
}

/// Lower case, look-alikes of ASCII as ASCII, invisible characters away: file systems that fold names
/// must not be a way around.
pub fn fold(name: &str) -> String {
    if name.is_ascii() {
        return name.to_ascii_lowercase();
    }
    name.chars()
        .filter(|c| tiller_shell::invisibles(c.encode_utf8(&mut [0; 4])).is_empty())
        .map(|c| match c {
            '\u{FF01}'..='\u{FF5E}' => char::from_u32(c as u32 - 0xFEE0).unwrap_or(c),
            '\u{017F}' => 's',
            '\u{0131}' | '\u{0130}' => 'i',
            '\u{2024}' => '.',
            c => c,
        })
        .flat_map(char::to_lowercase)
        .filter(|c| *c != '\u{0307}')
        .collect()
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
