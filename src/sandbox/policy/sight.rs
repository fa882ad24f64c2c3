//! Which parts of the file system a command sees.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::paths::LookUp;
use super::repository::Repository;
use super::{Policy, Profile, tools};

/// Which parts of the file system a command sees, by real paths: of those in both lists that hold a path, the nearest one
/// decides, and what none of them holds is not seen. Both are sorted. Secrets are hidden in any case.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sight {
    pub open: Vec<PathBuf>,
    pub closed: Vec<PathBuf>,
    /// Links on the way to what is open, and where they lead.
    pub links: Vec<(PathBuf, PathBuf)>,
}

impl Sight {
    /// `writable`: what the command writes. `repository`: that of the workspace, if it lies elsewhere.
    pub(super) fn of(
        policy: &Policy,
        writable: &[PathBuf],
        repository: Option<&Repository>,
        files: &mut LookUp,
    ) -> Self {
        let mut open = writable.to_vec();
        open.extend(files.find(&policy.workspace));
        let mut closed: Vec<PathBuf> =
            policy.reads.private.iter().filter_map(|path| files.find(path)).collect();
        match policy.profile {
            Profile::Read => {
                open.extend(repository.iter().flat_map(|git| git.folders()).map(Path::to_owned));
                let home = policy.reads.home.as_deref().and_then(|home| files.find(home));
                for path in more(policy) {
                    let Some(path) = files.find(&path) else { continue };
                    let above_home = home.as_ref().is_some_and(|home| home.starts_with(&path));
                    let private = closed.iter().any(|folder| path.starts_with(folder));
                    if !above_home && !private && path.parent().is_some() {
                        open.push(path);
                    }
                }
                closed.extend(home);
            }
            Profile::Workspace => open.push("/".into()),
            Profile::Floor | Profile::Off => {
                return Self { open: vec!["/".into()], ..Self::default() };
            }
        }
        closed.retain(|path| !open.contains(path));
        let mut sight = Self { open, closed, links: Vec::new() };
        sight.simplify();
        if policy.profile == Profile::Read {
            sight.links = files.links.iter().filter(|(link, _)| !sight.sees(link)).cloned().collect();
        }
        sight
    }

    /// Whether the command sees this real path, secrets aside.
    pub(crate) fn sees(&self, path: &Path) -> bool {
        path.ancestors().find_map(|above| self.says(above)).unwrap_or(false)
    }

    fn says(&self, path: &Path) -> Option<bool> {
        let is = |list: &[PathBuf]| list.binary_search_by(|at| at.as_path().cmp(path)).is_ok();
        match (is(&self.open), is(&self.closed)) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        }
    }

    /// Drops what says the same as what is around it.
    fn simplify(&mut self) {
        for list in [&mut self.open, &mut self.closed] {
            list.sort();
            list.dedup();
        }
        let before = self.clone();
        let around =
            |path: &Path| path.ancestors().skip(1).find_map(|above| before.says(above)).unwrap_or(false);
        self.open.retain(|path| !around(path));
        self.closed.retain(|path| around(path));
    }
}

/// What a command that only reads sees beside the workspace and what it writes, if it exists.
fn more(policy: &Policy) -> Vec<PathBuf> {
    let reads = &policy.reads;
    let mut all: Vec<PathBuf> = tools::SYSTEM.iter().map(PathBuf::from).collect();
    all.extend(reads.tools.iter().cloned());
    all.extend(
        reads.tools.iter().filter(|path| is_of_git(path)).flat_map(|path| super::git_files::named(path)),
    );
    all.extend(reads.project.iter().cloned());
    all
}

/// Whether it is a file of the person's settings of git.
fn is_of_git(path: &Path) -> bool {
    path.ends_with(".gitconfig") || path.ends_with("git/config")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_folder_decides() {
        let paths = |list: &[&str]| list.iter().map(PathBuf::from).collect();
        let mut sight = Sight {
            open: paths(&["/usr", "/h/work", "/h/work/tiller/agent", "/usr/lib"]),
            closed: paths(&["/h", "/h/work/tiller", "/h/work/tiller/data"]),
            links: Vec::new(),
        };
        sight.simplify();
        assert_eq!(sight.open, paths(&["/h/work", "/h/work/tiller/agent", "/usr"]) as Vec<PathBuf>);
        assert_eq!(sight.closed, paths(&["/h/work/tiller"]) as Vec<PathBuf>);
        for (path, seen) in [
            ("/usr/lib/x", true),
            ("/", false),
            ("/h", false),
            ("/h/workshop", false),
            ("/h/work/a", true),
            ("/h/work/tiller/data/db", false),
            ("/h/work/tiller/agent/a", true),
        ] {
            assert_eq!(sight.sees(Path::new(path)), seen, "{path}");
        }
    }
}
