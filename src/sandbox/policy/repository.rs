//! The repository of a workspace that does not lie in it: of a part of a repository, a submodule, a linked worktree, or with a
//! git folder that was put elsewhere. Git works there as it does in a plain one: it writes objects, references and the index,
//! and not what it obeys.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Names in the folders of a repository that decide which programs git runs.
pub(super) const OBEYED: &[&str] = &["hooks", "config", "config.worktree", "commondir", "gitdir"];
/// Bytes of a file that leads to a folder.
const LINE: u64 = 64 << 10;

/// Temporary folders of all users.
const SHARED: &[&str] = &["/tmp", "/var/tmp", "/private/tmp", "/private/var/tmp", "/dev/shm"];

/// The folders of a repository outside of the workspace, by their real paths.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Repository {
    /// The top of its files: the workspace, or a folder above it.
    pub(crate) top: PathBuf,
    /// Its own folder, with the index and the branch.
    pub(crate) own: PathBuf,
    /// The folder with objects and references, which it may share with others.
    pub(crate) common: PathBuf,
}

impl Repository {
    /// That of a workspace as it is now. A command that could change the way to it must not run meanwhile. `None`: it lies in
    /// the workspace, or there is none.
    pub(crate) fn of(workspace: &Path, home: Option<&Path>) -> Option<Self> {
        let workspace = workspace.canonicalize().ok()?;
        let low = |folder: &&Path| *folder == workspace || !is_too_high(folder, home);
        let mut folders = workspace.ancestors().take_while(low);
        let top = folders.find(|folder| folder.join(".git").symlink_metadata().is_ok())?;
        let git = top.join(".git");
        let found = match git.symlink_metadata().ok()?.is_dir() {
            true if top == workspace => return None,
            // A plain git folder shares none: one that names another folder came from elsewhere.
            true => Self {
                top: top.to_owned(),
                own: git.clone(),
                common: common(&git).filter(|all| *all == git)?,
            },
            false => Self::linked(top).or_else(|| Self::separate(top))?,
        };
        found.is_one().then_some(found)
    }

    /// That of a linked worktree or of a submodule with this top. It counts only if the repository names this top too, since
    /// `.git` itself may have been written by a command.
    pub(crate) fn linked(top: &Path) -> Option<Self> {
        let top = top.canonicalize().ok()?;
        let own = pointed(&top)?;
        let common = common(&own)?;
        let worktree = || {
            let back = own.join(line(&own.join("gitdir"))?).canonicalize().ok()?;
            (back == top.join(".git") && own.starts_with(&common)).then_some(())
        };
        let submodule = || {
            let back = own.join(worktree_of(&own)?).canonicalize().ok()?;
            (back == top && own == common).then_some(())
        };
        worktree().or_else(submodule)?;
        let found = Self { top, own, common };
        found.is_one().then_some(found)
    }

    /// That of a git folder which was put elsewhere. It names no folder of files, so it must not be that of another one.
    fn separate(top: &Path) -> Option<Self> {
        let own = pointed(top)?;
        let is_of_other = own.file_name().is_none_or(|name| name.eq_ignore_ascii_case(".git"))
            || super::git_files::Named::in_repository(&own).worktree.is_some()
            || setting(&own, "bare").is_none_or(|value| value != "false")
            || top.starts_with(&own)
            || common(&own)? != own;
        (!is_of_other).then(|| Self { top: top.to_owned(), common: own.clone(), own })
    }

    fn is_one(&self) -> bool {
        let Self { own, common, .. } = self;
        own.join("HEAD").is_file() && ["objects", "refs"].iter().all(|name| common.join(name).is_dir())
    }

    /// True while its folders are where they were found: a command may have put a link in the place of one.
    pub(super) fn is_there(&self) -> bool {
        self.is_one() && self.folders().all(|folder| folder.canonicalize().is_ok_and(|real| real == folder))
    }

    /// The folders that git writes.
    pub(crate) fn folders(&self) -> impl Iterator<Item = &Path> {
        let own = (!self.own.starts_with(&self.common)).then_some(self.own.as_path());
        std::iter::once(self.common.as_path()).chain(own)
    }

    /// The paths in these folders that decide which programs git runs.
    pub(super) fn obeyed(&self) -> impl Iterator<Item = PathBuf> {
        [&self.own, &self.common].into_iter().flat_map(|git| OBEYED.iter().map(move |name| git.join(name)))
    }

    /// True for a path in one of its folders.
    pub(super) fn holds(&self, path: &Path) -> bool {
        self.folders().any(|git| path.starts_with(git))
    }
}

/// True for a folder that holds more than a project.
pub(super) fn is_too_high(folder: &Path, home: Option<&Path>) -> bool {
    folder.parent().is_none()
        || home.is_some_and(|home| home.starts_with(folder))
        || SHARED.iter().any(|shared| folder == Path::new(shared))
}

/// The folder that the file `.git` of this folder leads to.
fn pointed(top: &Path) -> Option<PathBuf> {
    let pointer = top.join(".git");
    if !pointer.symlink_metadata().ok()?.is_file() {
        return None;
    }
    let text = line(&pointer)?;
    top.join(text.strip_prefix("gitdir:")?.trim()).canonicalize().ok().filter(|own| own.is_dir())
}

/// The folder that a git folder shares with others; itself, if it shares none.
fn common(own: &Path) -> Option<PathBuf> {
    let file = own.join("commondir");
    match file.symlink_metadata() {
        Ok(_) => own.join(line(&file)?).canonicalize().ok(),
        Err(_) => Some(own.to_owned()),
    }
}

/// The folder of files that a git folder names.
fn worktree_of(git: &Path) -> Option<String> {
    setting(git, "worktree")
}

/// A setting of `[core]`, in the file of configuration itself.
fn setting(git: &Path, name: &str) -> Option<String> {
    let all = super::git_files::settings(&git.join("config"));
    all.into_iter().rev().find(|(section, key, _)| section == "core" && key == name).map(|(.., value)| value)
}

/// The text of a small file, without the end of its line. A pipe in its place is not waited for.
fn line(path: &Path) -> Option<String> {
    let meta = path.metadata().ok().filter(|meta| meta.is_file() && meta.len() <= LINE)?;
    let text = std::fs::read_to_string(path).ok().filter(|text| text.len() as u64 <= meta.len().max(LINE))?;
    Some(text.trim_end_matches(['\n', '\r']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A temporary folder, and its real path.
    fn place() -> (tempfile::TempDir, PathBuf) {
        let tmp = tempfile::tempdir_in("/var/tmp").unwrap();
        let top = tmp.path().canonicalize().unwrap();
        (tmp, top)
    }

    fn repository(git: &Path, config: &str) {
        for folder in ["objects", "refs"] {
            std::fs::create_dir_all(git.join(folder)).unwrap();
        }
        std::fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        std::fs::write(git.join("config"), config).unwrap();
    }

    const PLAIN: &str = "[core]\n\tbare = false\n";

    #[test]
    fn a_part_of_a_repository_belongs_to_the_nearest_one() {
        let (_tmp, top) = place();
        repository(&top.join("main/.git"), PLAIN);
        std::fs::create_dir_all(top.join("main/a/b")).unwrap();
        let of = |path: &str| Repository::of(&top.join(path), Some(&top)).map(|found| found.top);
        assert_eq!(of("main"), None, "it lies in the workspace");
        assert_eq!(of("main/a"), Some(top.join("main")));
        assert_eq!(of("main/a/b"), Some(top.join("main")));
        repository(&top.join("main/a/.git"), PLAIN);
        assert_eq!(of("main/a/b"), Some(top.join("main/a")));
        // One of the home folder holds all projects, and names no part of one.
        repository(&top.join(".git"), PLAIN);
        std::fs::create_dir_all(top.join("other")).unwrap();
        assert_eq!(of("other"), None);
        // A plain git folder shares none: this one would open that of another.
        std::fs::write(top.join("main/a/.git/commondir"), "../../.git\n").unwrap();
        assert_eq!(of("main/a/b"), None);
        // A folder of this name that is none.
        std::fs::create_dir_all(top.join("empty/.git/x")).unwrap();
        assert_eq!(of("empty/.git/x"), None);
    }

    #[test]
    fn a_pointer_leads_to_no_repository_of_another_folder() {
        let (_tmp, top) = place();
        repository(&top.join("other/.git"), PLAIN);
        repository(&top.join("bare"), "[core]\n\tbare = true\n");
        repository(&top.join("theirs"), "[core]\n\tbare = false\n\tworktree = ../other\n");
        repository(&top.join("store"), PLAIN);
        repository(&top.join("module"), "[core]\n\tbare = false\n\tworktree = ../work\n");
        repository(&top.join("around"), PLAIN);
        for (name, file, text) in [
            ("settings", "config.worktree", "[core]\n\tworktree = ../other\n"),
            ("including", "more", "[core]\n\tworktree = ../other\n"),
        ] {
            repository(&top.join(name), &format!("{PLAIN}[include]\n\tpath = more\n"));
            std::fs::write(top.join(name).join(file), text).unwrap();
        }
        std::fs::create_dir_all(top.join("work/sub")).unwrap();
        std::fs::create_dir_all(top.join("around/work")).unwrap();
        let leads = |work: &str, to: &str| {
            std::fs::write(top.join(work).join(".git"), format!("gitdir: {to}\n")).unwrap();
            Repository::of(&top.join(work), None).map(|found| found.own)
        };
        for (to, counts) in [
            ("../store", true),
            ("../module", true),
            ("../other/.git", false),
            ("../bare", false),
            ("../theirs", false),
            ("../settings", false),
            ("../including", false),
            ("../nowhere", false),
            ("sub", false),
        ] {
            let own = counts.then(|| top.join(to.trim_start_matches("../")));
            assert_eq!(leads("work", to), own, "{to}");
        }
        assert_eq!(leads("around/work", ".."), None, "it would hold the files");
        leads("work", "../store");
        let below = Repository::of(&top.join("work/sub"), None).unwrap();
        assert_eq!((below.top, below.own), (top.join("work"), top.join("store")));
    }
}
