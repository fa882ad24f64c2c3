//! What to restore, which paths stay as they are, and the outcome of an interrupted restore.

use std::path::PathBuf;

use crate::objects::id::Id;
use crate::report::Reason;

/// A change that the session made to the files: a tool call, a command, a restore. Changes between one step's `after`
/// and the next one's `before` were made by others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    pub before: Id,
    pub after: Id,
}

/// What to restore, and the session's steps since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Goal {
    /// The state to restore.
    pub to: Id,
    /// A state from which `steps` lead to the present: `to` itself when going back on one branch, the last common
    /// snapshot when changing to another.
    pub base: Id,
    /// The session's steps since `base`, oldest first.
    pub steps: Vec<Step>,
    /// Only these files and folders; `None` is everything.
    pub select: Option<Vec<PathBuf>>,
    /// Files that others may have changed as well while a step did: their present content is kept beside.
    pub mixed: Vec<PathBuf>,
    /// The same for a step that no witness saw: their present content is kept in a folder of the store. The empty path: all files.
    pub unseen: Vec<PathBuf>,
}

impl Goal {
    /// Back to `to` along the session's own steps.
    pub fn back(to: Id, steps: Vec<Step>) -> Self {
        Self { to, base: to, steps, select: None, mixed: Vec::new(), unseen: Vec::new() }
    }
}

/// A path that a restore does not change, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedPath {
    pub path: PathBuf,
    pub why: SkipReason,
}

/// Why a path is not changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// The state to restore does not know it: it was ignored or not covered then.
    UnknownThen,
    /// It existed, was not stored, and was deleted since.
    Vanished(Reason),
    /// It existed, was not stored, and was changed since.
    Changed(Reason),
    /// It was created since, and its content is not stored.
    Created(Reason),
    /// The present state cannot be stored (ignored, too large, unreadable), so it must not be replaced.
    UnknownNow,
    /// The folder is a repository that was none then; its files would be lost.
    Repository,
    /// The answer was to keep it.
    Asked,
    /// It is a conflict without an answer.
    Conflict,
    /// It changed after the plan was shown.
    ChangedSince,
    /// A folder on the way to it is a link or a file now.
    InTheWay,
    /// The folder contains something that Tiller must not delete.
    NotEmpty,
    /// The file has other names now (hard links).
    Links,
    /// The file is read-only, and the answer does not name it.
    ReadOnly,
    /// The file system refused.
    Failed(String),
}

impl std::fmt::Display for SkipReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Vanished(Reason::Repository) => {
                "the history of a repository; it no longer exists and its content was not kept"
            }
            Self::Vanished(reason) => {
                return write!(f, "it no longer exists and its content was not kept: {reason}");
            }
            Self::Changed(reason) => {
                return write!(f, "it changed and its earlier content was not kept: {reason}");
            }
            Self::Created(reason) => {
                return write!(f, "it is new and stays, because its content is not kept: {reason}");
            }
            Self::UnknownThen => "the checkpoint does not cover it",
            Self::UnknownNow => "it is not covered now, so it could not be restored",
            Self::Repository => "it is a repository that is not in the checkpoint",
            Self::Asked => "kept as requested",
            Self::Conflict => "you or another program changed it since",
            Self::ChangedSince => "it was changed in the meantime",
            Self::InTheWay => "a parent folder is now a link or a file",
            Self::NotEmpty => "the folder contains other files",
            Self::Links => "the file has several names (hard links)",
            Self::ReadOnly => "the file is read-only",
            Self::Failed(why) => return write!(f, "the file system refused: {why}"),
        })
    }
}

/// The outcome of an interrupted restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoveryReport {
    /// The state before the restore.
    pub before: Id,
    /// The state that it was to restore.
    pub to: Id,
    /// The state after the restore when it was finished; `None` when it was rolled back, with no file changed.
    pub after: Option<Id>,
    /// Changed paths.
    pub done: Vec<PathBuf>,
    /// Paths that stayed as they were, and why.
    pub left: Vec<SkippedPath>,
    /// The folder with copies of what stood at changed paths that others may have written.
    pub apart: Option<PathBuf>,
}

impl RecoveryReport {
    /// One sentence for the person.
    pub fn sentence(&self) -> String {
        let mut text = self.outcome();
        if let Some(folder) = self.apart.as_ref().filter(|_| self.after.is_some()) {
            text.push_str(&format!(
                " What you may have changed before it is kept for 30 days in {}.",
                folder.display()
            ));
        }
        text
    }

    fn outcome(&self) -> String {
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

    /// The restore as a step of the session, when it was finished.
    pub fn step(&self) -> Option<Step> {
        Some(Step { before: self.before, after: self.after? })
    }

    /// The goal that undoes it, when it was finished.
    pub fn undo(&self) -> Option<Goal> {
        let base = self.after?;
        let select = Some(self.done.clone());
        Some(Goal { base, select, ..Goal::back(self.before, Vec::new()) })
    }
}

fn files(n: usize) -> String {
    if n == 1 { "1 file".into() } else { format!("{n} files") }
}
