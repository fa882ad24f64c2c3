//! Calls git on repositories that may be hostile: named explicitly, with every setting overridden that could run a
//! program. [`crate::git::command`] builds the calls.

pub(crate) mod around;
pub(crate) mod command;
mod leads;
mod remote;
pub(crate) mod steering;
pub mod worktree;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tiller_protocol::view::GitOperation;

use crate::git::command::{Call, ConfigScope};

pub use remote::{Fetched, Remote, is_reference, is_url};

/// Why a call of git failed.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error("git is not installed")]
    Missing,
    #[error("not a git repository")]
    NoRepository,
    #[error("git took too long")]
    Slow,
    #[error("it was stopped")]
    Stopped,
    #[error("the repository is too large")]
    TooLarge,
    #[error("git failed: {0}")]
    Failed(String),
}

/// A repository, named explicitly so that git does not search for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    /// The work tree's folder.
    pub work: PathBuf,
    /// `.git`, or the folder that its pointer file names.
    pub dir: PathBuf,
    /// The folder of the branches; equal to `dir` except for linked work trees.
    pub common: PathBuf,
}

impl Repository {
    /// The repository whose work tree holds `folder`. Reads files only; no git runs.
    pub fn find(folder: &Path) -> Option<Self> {
        folder.ancestors().find_map(Self::at)
    }

    fn at(work: &Path) -> Option<Self> {
        let entry = work.join(".git");
        let meta = entry.symlink_metadata().ok()?;
        let dir = if meta.is_dir() {
            entry
        } else if meta.is_file() && meta.len() < 4096 {
            // A linked work tree or a submodule: `gitdir: PATH`.
            let text = std::fs::read_to_string(&entry).ok()?;
            work.join(text.strip_prefix("gitdir:")?.trim())
        } else {
            return None;
        };
        dir.join("HEAD").symlink_metadata().ok()?;
        let common = std::fs::read_to_string(dir.join("commondir"))
            .map_or_else(|_| dir.clone(), |text| dir.join(text.trim()));
        Some(Self { work: work.to_owned(), dir, common })
    }

    /// The branch as `HEAD` names it; `None` when detached or unreadable.
    pub fn branch(&self) -> Option<String> {
        let head = std::fs::read_to_string(self.dir.join("HEAD")).ok()?;
        Some(head.trim().strip_prefix("ref: refs/heads/")?.to_owned())
    }

    /// The operation that was begun and has not ended.
    pub fn under_way(&self) -> GitOperation {
        let has = |name: &str| self.dir.join(name).symlink_metadata().is_ok();
        match () {
            () if has("rebase-merge") || has("rebase-apply") => GitOperation::Rebasing,
            () if has("MERGE_HEAD") => GitOperation::Merging,
            () if has("CHERRY_PICK_HEAD") => GitOperation::CherryPicking,
            () if has("REVERT_HEAD") => GitOperation::Reverting,
            () if has("BISECT_LOG") => GitOperation::Bisecting,
            () => GitOperation::None,
        }
    }

    /// Initialises a repository in `folder` and commits all its files.
    ///
    /// # Errors
    /// When git is missing, fails or is slow.
    pub fn create(folder: &Path, message: &str, limit: Duration) -> Result<Self, GitError> {
        let until = Instant::now() + limit;
        let author = [("user.name", "demo"), ("user.email", "demo@localhost"), ("commit.gpgSign", "false")];
        let settings: Vec<_> = author.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        for args in [&["init", "-q"][..], &["add", "-A"], &["commit", "-qm", message]] {
            Call { folder, scope: ConfigScope::None, settings: &settings, ..Call::new(folder) }
                .run(args, until)?;
        }
        Self::at(folder).ok_or(GitError::NoRepository)
    }

    /// Runs git on it and returns its standard output. Blocks, at most for `limit`.
    ///
    /// # Errors
    /// When git is missing, fails or is slow.
    pub fn run(&self, args: &[&str], limit: Duration) -> Result<Vec<u8>, GitError> {
        let until = Instant::now() + limit;
        let mut settings = self.drivers(until)?;
        // None of these calls compares files; a call that did would fail instead of running another program.
        settings.push(("diff.external".into(), String::new()));
        self.call(&settings).run(args, until)
    }

    fn call<'a>(&'a self, settings: &'a [(String, String)]) -> Call<'a> {
        Call { repository: Some(self), scope: ConfigScope::None, settings, ..Call::new(&self.work) }
    }

    /// Settings that disable filters and diff drivers, which otherwise run programs of the repository, even for
    /// `status`.
    fn drivers(&self, until: Instant) -> Result<Vec<(String, String)>, GitError> {
        let list = ["config", "--name-only", "-z", "--get-regexp", "^(filter|diff)\\..*\\."];
        let names = match self.call(&[]).run(&list, until) {
            Ok(names) => names,
            // Exit code 1: there are none.
            Err(GitError::Failed(_)) => return Ok(Vec::new()),
            Err(e) => return Err(e),
        };
        let mut over = Vec::new();
        for name in names.split(|b| *b == 0).filter(|n| !n.is_empty()) {
            let name = std::str::from_utf8(name)
                .map_err(|_| GitError::Failed("the name of a filter is not UTF-8".into()))?;
            if let Some(value) = overridden(name) {
                over.push((name.to_owned(), value.to_owned()));
            }
        }
        Ok(over)
    }
}

/// The value that makes a setting of a filter or a diff driver run nothing; `None`: the setting names no program.
pub(crate) fn overridden(key: &str) -> Option<&'static str> {
    let (section, rest) = key.split_once('.')?;
    let (_, last) = rest.rsplit_once('.')?;
    match (section.to_ascii_lowercase().as_str(), last.to_ascii_lowercase().as_str()) {
        ("filter", "clean" | "smudge" | "process") => Some(""),
        ("filter", "required") | ("diff", "cachetextconv") => Some("false"),
        // An empty value would fail; this one leaves the text unchanged.
        ("diff", "textconv") => Some("/bin/cat"),
        ("diff", "command") => Some(""),
        _ => None,
    }
}

#[cfg(test)]
#[path = "git_tests.rs"]
pub(crate) mod tests;
