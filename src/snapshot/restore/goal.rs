//! What a restore is to do, what it leaves as it is, and what became of one that was interrupted.

use std::path::PathBuf;

use crate::objects::id::Id;
use crate::report::Reason;

/// Something that the session did to the files: a tool call, a command, a restore. What changes between one
/// step's `after` and the next one's `before` was made by others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    pub before: Id,
    pub after: Id,
}

/// What is to be restored, and what the session did since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Goal {
    /// The state to restore.
    pub to: Id,
    /// A state from which `steps` lead to the present: `to` itself when going back on one branch, the last
    /// common snapshot when changing to another.
    pub base: Id,
    /// What the session did since `base`, oldest first.
    pub steps: Vec<Step>,
    /// Only these files and folders; `None` is everything.
    pub select: Option<Vec<PathBuf>>,
}

impl Goal {
    /// Back to `to` on the way that the session came.
    pub fn back(to: Id, steps: Vec<Step>) -> Self {
        Self { to, base: to, steps, select: None }
    }
}

/// A path that a restore does not touch, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    pub path: PathBuf,
    pub why: Why,
}

/// Why a path is left alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// The state to restore did not look at it: it was ignored or not covered then.
    UnknownThen,
    /// It was there, was not kept, and is gone.
    Vanished(Reason),
    /// The present state cannot be kept (ignored, too large, unreadable), so it must not be replaced.
    UnknownNow,
    /// The folder is a repository that was none then; it would lose its files.
    Repository,
    /// The answer was to keep it.
    Asked,
    /// It is a conflict without a decision.
    Conflict,
    /// It changed after the plan was shown.
    ChangedSince,
    /// A folder on its way is a link or a file now.
    InTheWay,
    /// The folder holds something that is not ours to delete.
    NotEmpty,
    /// The file has other names now (hard links).
    Links,
    /// The file is read-only, and the answer does not name it.
    ReadOnly,
    /// The file system refused.
    Failed(String),
}

impl std::fmt::Display for Why {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Vanished(Reason::Repository) => {
                "the history of a repository; it no longer exists and its content was not kept"
            }
            Self::Vanished(reason) => {
                return write!(f, "it no longer exists and its content was not kept: {reason}");
            }
            Self::UnknownThen => "the checkpoint does not cover it",
            Self::UnknownNow => "it is not covered now, so it could not be restored",
            Self::Repository => "it is a repository that is not in the checkpoint",
            Self::Asked => "kept as requested",
            Self::Conflict => "you or another program changed it since",
            Self::ChangedSince => "it was changed meanwhile",
            Self::InTheWay => "a parent folder is now a link or a file",
            Self::NotEmpty => "the folder contains other files",
            Self::Links => "the file has several names (hard links)",
            Self::ReadOnly => "the file is read-only",
            Self::Failed(why) => return write!(f, "the file system refused: {why}"),
        })
    }
}

/// What became of an interrupted restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// The state before the restore.
    pub before: Id,
    /// The state that it was to restore.
    pub to: Id,
    /// The state now, when the restore was finished; `None` when it was taken back, with no file changed.
    pub after: Option<Id>,
    /// What it changed.
    pub done: Vec<PathBuf>,
    /// What stayed as it was, and why.
    pub left: Vec<Left>,
}

impl Recovered {
    /// One sentence for the person.
    pub fn sentence(&self) -> String {
        match self.after {
            None => "A restore was interrupted before it changed a file. Nothing was changed.".into(),
            Some(_) if self.left.is_empty() => {
                format!("An interrupted restore was completed: {}.", files(self.done.len()))
            }
            Some(_) => format!(
                "An interrupted restore was completed: {}; {} left unchanged.",
                files(self.done.len()),
                files(self.left.len())
            ),
        }
    }

    /// The restore as something that the session did, when it was finished.
    pub fn step(&self) -> Option<Step> {
        Some(Step { before: self.before, after: self.after? })
    }

    /// What undoes it, when it was finished.
    pub fn undo(&self) -> Option<Goal> {
        let base = self.after?;
        Some(Goal { to: self.before, base, steps: Vec::new(), select: Some(self.done.clone()) })
    }
}

fn files(n: usize) -> String {
    if n == 1 { "1 file".into() } else { format!("{n} files") }
}
