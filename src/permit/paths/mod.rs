//! Paths as decisions use them: absolute, without `.` and `..`, and with links resolved.

pub(crate) mod below;
mod linked;
pub(crate) mod respell;
mod secret;
pub(crate) mod touched;
pub(crate) mod tracked;

use std::ffi::OsString;
use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use tiller_shell::{Analysis, Word};

/// Resolves links as far as the path exists.
pub type Resolve = Arc<dyn Fn(&Path) -> PathBuf + Send + Sync>;

/// What a folder holds: names, and whether each is a folder itself (a link is none). Empty when it cannot
/// be read.
pub type List = Arc<dyn Fn(&Path) -> Vec<(OsString, bool)> + Send + Sync>;

/// Most folders in which one command may run; with more, none of them is known.
const FOLDERS: usize = 64;

/// The folders that matter.
#[derive(Clone)]
pub struct Roots {
    /// Absolute, links resolved.
    pub workspace: PathBuf,
    /// The person's home, when known.
    pub home: Option<PathBuf>,
    /// Tiller's own config, data, state and cache folders.
    pub own: Vec<PathBuf>,
    /// Files that hooks run: no call writes them.
    pub hook_files: Vec<PathBuf>,
    resolve: Resolve,
    list: List,
    tracked: fn(&Path, &Path) -> bool,
    secrets: Arc<secret::SecretPaths>,
    /// `None`: no file is looked at (tests).
    linked: Option<Arc<linked::LinkedSecrets>>,
}

impl fmt::Debug for Roots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Roots")
            .field("workspace", &self.workspace)
            .field("home", &self.home)
            .field("own", &self.own)
            .finish()
    }
}

impl Roots {
    /// The same, for another workspace.
    #[must_use]
    pub fn at(&self, workspace: &Path) -> Self {
        Self { workspace: workspace.to_owned(), ..self.clone() }
    }

    /// With the file system's own links.
    pub fn new(workspace: impl Into<PathBuf>, home: Option<PathBuf>, own: Vec<PathBuf>) -> Self {
        let roots = Self::with_resolve(workspace, home, own, Arc::new(real));
        let linked = linked::LinkedSecrets::new(roots.secrets.all());
        Self {
            list: Arc::new(listed),
            tracked: crate::paths::tracked::tracked,
            linked: Some(Arc::new(linked)),
            ..roots
        }
    }

    /// With another way to resolve links, and without folders to list (tests).
    pub fn with_resolve(
        workspace: impl Into<PathBuf>,
        home: Option<PathBuf>,
        own: Vec<PathBuf>,
        resolve: Resolve,
    ) -> Self {
        let secrets = Arc::new(secret::SecretPaths::new(home.as_deref(), &own, &resolve));
        Self {
            workspace: workspace.into(),
            home,
            own,
            hook_files: Vec::new(),
            resolve,
            list: Arc::new(|_| vec![]),
            tracked: |_, _| true,
            secrets,
            linked: None,
        }
    }

    /// The same, where variables move secret paths ([`tiller_protocol::secret_paths::moved`]).
    #[must_use]
    pub fn with_variables(mut self, variable: &dyn Fn(&str) -> Option<String>) -> Self {
        let moved = tiller_protocol::secret_paths::moved(variable, &self.workspace);
        let moved = moved.into_iter().map(|(path, _)| path).collect();
        self.secrets = Arc::new((*self.secrets).clone().with_moved(moved, &self.resolve));
        self.linked = self.linked.map(|_| Arc::new(linked::LinkedSecrets::new(self.secrets.all())));
        self
    }

    /// With another way to list folders (tests).
    #[must_use]
    pub fn with_list(self, list: List) -> Self {
        Self { list, ..self }
    }

    /// Whether git may track `path`, in the repository that holds `folder`.
    pub(crate) fn tracked(&self, folder: &Path, path: &Path) -> bool {
        (self.tracked)(folder, path)
    }

    /// What a folder holds.
    pub(crate) fn list(&self, folder: &Path) -> Vec<(OsString, bool)> {
        (self.list)(folder)
    }

    /// The path with links resolved as far as it exists.
    pub fn real(&self, path: &Path) -> PathBuf {
        (self.resolve)(path)
    }

    /// The entry of the list of secret paths that holds `path` (absolute), as it is spelled, as its links lead, or by
    /// another name of the same file. For people: `~/.ssh`.
    pub fn secret(&self, path: &Path) -> Option<String> {
        let lexical = normal(path);
        self.secrets.holds(&lexical).or_else(|| self.secret_real(&self.real(&lexical)))
    }

    /// As [`Self::secret`], for a path without links.
    pub fn secret_real(&self, path: &Path) -> Option<String> {
        self.secrets.holds(path).or_else(|| self.secrets.holds(&self.linked.as_ref()?.find(path)?))
    }

    /// The entry of the list of secret paths that holds `folder`, or exists below it.
    pub(crate) fn secret_below(&self, folder: &Path) -> Option<String> {
        let exists = |path: &Path| path.symlink_metadata().is_ok();
        self.secrets.below(&self.real(folder), exists)
    }

    /// True when the path, and what it leads to, are in the workspace.
    pub fn inside(&self, path: &Path) -> bool {
        let lexical = normal(path);
        let root = self.real(&self.workspace);
        (lexical.starts_with(&self.workspace) || lexical.starts_with(&root))
            && self.real(&lexical).starts_with(&root)
    }

    /// What `text` may name when a command runs in one of `folders`. `None` when that is not known.
    pub fn candidates(&self, word: &Word, folders: &[PathBuf]) -> Option<Vec<PathBuf>> {
        if word.dynamic {
            return None;
        }
        if word.tilde {
            let home = self.home.as_ref()?;
            let rest = word.text.trim_start_matches('/');
            return Some(vec![normal(&home.join(rest))]);
        }
        let path = Path::new(&word.text);
        if path.is_absolute() {
            return Some(vec![normal(path)]);
        }
        if folders.is_empty() {
            return None;
        }
        Some(folders.iter().map(|f| normal(&f.join(path))).collect())
    }

    /// The folders in which the parts of a command run if each of its changes of folder works, apart from those that are known only
    /// when it runs. For what the sandbox holds wherever it runs. Empty when there are too many.
    pub fn likely_folders(&self, analysis: &Analysis, start: &Path) -> Vec<PathBuf> {
        let mut known = vec![normal(start)];
        let mut current = known.clone();
        // In a group, a pipeline and the background a change ends with it.
        let plain =
            ["&&", "||", ">&", "&>"].iter().fold(analysis.raw.clone(), |raw, sign| raw.replace(sign, " "));
        let may_end = plain.contains(['(', '|', '&']);
        for to in analysis.folders.iter().flatten() {
            let from = if may_end { &known } else { &current };
            current = self.candidates(&folder_word(to), from).unwrap_or_default();
            for folder in &current {
                if !known.contains(folder) {
                    known.push(folder.clone());
                }
            }
            if known.len() > FOLDERS {
                return vec![];
            }
        }
        known
    }

    /// Every folder in which a part of the command may run. Empty when one is not known.
    pub fn folders(&self, analysis: &Analysis, start: &Path) -> Vec<PathBuf> {
        let mut known = vec![normal(start)];
        for change in &analysis.folders {
            let Some(to) = change else { return vec![] };
            let Some(next) = self.candidates(&folder_word(to), &known) else { return vec![] };
            for folder in next {
                if !known.contains(&folder) {
                    known.push(folder);
                }
            }
            if known.len() > FOLDERS {
                return vec![];
            }
        }
        known
    }
}

/// The word of a change of folder, as an analysis has it.
fn folder_word(to: &str) -> Word {
    Word { text: to.trim_start_matches('~').to_owned(), tilde: to.starts_with('~'), ..Word::default() }
}

/// Removes `.` and `..` by text alone.
pub fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for c in path.components() {
        match c {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}

/// The folder's own entries. A folder of more than [`crate::paths::below::MOST`] entries is cut there: a search
/// has given up by then.
fn listed(folder: &Path) -> Vec<(OsString, bool)> {
    let Ok(entries) = std::fs::read_dir(folder) else { return vec![] };
    entries
        .flatten()
        .take(crate::paths::below::MOST + 1)
        .map(|e| (e.file_name(), e.file_type().is_ok_and(|t| t.is_dir())))
        .collect()
}

/// Names that lead to the descriptors of the process that opens them: of a command, not of this one.
const STREAMS: [&str; 4] = ["/dev/fd", "/dev/stdin", "/dev/stdout", "/dev/stderr"];

/// Resolves links of the longest part that exists. A link that leads nowhere is followed by hand, so
/// that creating its target is seen for what it is.
fn real(path: &Path) -> PathBuf {
    resolve(path, 0)
}

fn resolve(path: &Path, depth: usize) -> PathBuf {
    const MOST: usize = 40;
    let path = normal(path);
    if STREAMS.iter().any(|name| path.starts_with(name)) {
        return path;
    }
    if let Ok(found) = path.canonicalize() {
        return found;
    }
    if depth < MOST
        && let Ok(target) = std::fs::read_link(&path)
    {
        let target = path.parent().map_or(target.clone(), |p| p.join(&target));
        return resolve(&target, depth + 1);
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) if depth < MOST * 10 => resolve(parent, depth + 1).join(name),
        _ => path,
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn a_descriptor_that_a_command_names_is_none_of_this_process() {
        let tmp = tempfile::tempdir().unwrap();
        let secret = tmp.path().canonicalize().unwrap().join("home/.ssh/id");
        std::fs::create_dir_all(secret.parent().unwrap()).unwrap();
        std::fs::write(&secret, "x").unwrap();
        let file = std::fs::File::open(&secret).unwrap();
        let roots = Roots::new(tmp.path(), Some(tmp.path().join("home")), Vec::new());
        for name in [format!("/dev/fd/{}", file.as_raw_fd()), "/dev/stdin".into(), "/dev/fd/none".into()] {
            assert_eq!(roots.real(Path::new(&name)), Path::new(&name));
            assert_eq!(roots.secret(Path::new(&name)), None, "{name}");
        }
    }
}
