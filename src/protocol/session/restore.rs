//! Restoring files to an earlier state: the preview, and the request.

use serde::{Deserialize, Serialize};

use crate::base::clock::Time;
use crate::base::ids::{AgentId, EntryId, SessionId};
use crate::turn::feed::{ChangeKind, FileChange, Who};

/// A changed file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepFile {
    /// Relative to the workspace, as [`crate::base::names::written`] writes it.
    pub path: String,
    pub kind: ChangeKind,
    /// The author of the change, where it is not the subject of the whole list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<By>,
    /// Only some of the hunks that could be restored were restored.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partly: bool,
    /// Lines added and removed, where they were counted; `None` for binary files, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<(u32, u32)>,
}

impl StepFile {
    /// A file that the subject of the list changed as a whole. Its lines are not counted.
    pub fn new(path: impl Into<String>, kind: ChangeKind) -> Self {
        Self { path: path.into(), kind, by: None, partly: false, lines: None }
    }
}

/// What one turn changed, from the state of the files before it to the state after it: the one source of every list and
/// figure about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnChanges {
    /// The user entry that began the turn.
    pub turn: EntryId,
    pub began: Time,
    /// At most [`Self::LISTED`], sorted by path.
    pub files: Vec<StepFile>,
    /// Number of files that are not listed.
    #[serde(default, skip_serializing_if = "crate::base::usage::zero")]
    pub more: u64,
    /// Lines of all files, listed or not.
    pub added: u32,
    pub removed: u32,
}

impl TurnChanges {
    /// Files that are listed.
    pub const LISTED: usize = 200;

    /// Sums up all files of a turn.
    pub fn new(turn: EntryId, began: Time, mut files: Vec<StepFile>) -> Self {
        let sum = |of: fn((u32, u32)) -> u32| {
            files.iter().filter_map(|f| f.lines).map(of).fold(0, u32::saturating_add)
        };
        let (added, removed) = (sum(|l| l.0), sum(|l| l.1));
        let more = files.len().saturating_sub(Self::LISTED) as u64;
        files.truncate(Self::LISTED);
        Self { turn, began, files, more, added, removed }
    }

    /// Gives a feed the figures of the turn that `agent` has ended: the first row of each file since it began has them,
    /// and later ones have none, so that their sum is the turn's. `rows` are oldest first.
    pub fn settle<'a>(&self, agent: &AgentId, rows: impl Iterator<Item = &'a mut FileChange>) {
        let mut first: std::collections::HashMap<&str, Option<(u32, u32)>> =
            self.files.iter().map(|f| (f.path.as_str(), f.lines)).collect();
        let ours = |row: &FileChange| match &row.who {
            Who::Agent { agent: by } | Who::Shell { agent: by } => by == agent,
            Who::You | Who::Git => false,
        };
        for row in rows.filter(|row| row.time >= self.began && row.kind.is_file() && ours(row)) {
            if let Some(lines) = first.get_mut(row.path.as_str()) {
                row.lines = lines.take();
            }
        }
    }
}

/// The author of a change between two states of the workspace, when it was not a call of the session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum By {
    /// The person, or a program of theirs.
    Outside,
    /// As `Outside`, or these commands of the session, which ran in the background.
    Background { commands: String },
    /// A call of another session.
    Session { session: SessionId, title: String },
    /// A command, or others while it ran: restores keep what stands there beside what they write.
    Unknown,
    /// As `Unknown`, where no witness saw the command: restores keep what stands there in a folder of the store. An author that
    /// only a later program knows is read as this one.
    #[serde(other)]
    Unseen,
}

impl std::fmt::Display for By {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Outside => f.write_str("you or another program"),
            Self::Background { commands } => write!(f, "you, or a background command: {commands}"),
            Self::Session { title, .. } if title.is_empty() => f.write_str("another session"),
            Self::Session { title, .. } => write!(f, "the session {title}"),
            Self::Unknown | Self::Unseen => f.write_str("a command, or you while it ran"),
        }
    }
}

/// What is restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RestoreWhat {
    /// The conversation only.
    Talk,
    Files,
    Both,
}

impl RestoreWhat {
    /// Whether the files change.
    pub fn files(self) -> bool {
        self != Self::Talk
    }

    /// Whether the conversation goes back.
    pub fn talk(self) -> bool {
        self != Self::Files
    }
}

/// The effect of a restore that has not been done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestorePreview {
    /// The first line of the message at that entry, or the name of the checkpoint.
    pub title: String,
    /// When the state was saved; `None`: the files of that moment were not saved.
    pub time: Option<Time>,
    pub files: Vec<RestoreFile>,
    /// More files than are listed.
    pub more: usize,
    /// Differing paths that stay as they are in any case, each with the reason.
    pub left: Vec<String>,
    /// Limits that the person should know: what the checkpoint does not cover.
    pub notes: Vec<String>,
    /// Messages of the person at the entry and after it, which would leave the branch; `None`: the entry is not on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<u64>,
}

/// One file of a preview.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreFile {
    /// As [`crate::base::names::written`] writes it.
    pub path: String,
    /// How it would change.
    pub kind: ChangeKind,
    pub added: u32,
    pub removed: u32,
    /// Unified, from the present state to the restored one; empty for binary or too large files.
    pub diff: String,
    /// Why the file stays as it is unless the person decides otherwise: it has changes that are not the session's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conflict: Option<String>,
}

/// The result of a restore.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreDone {
    /// Files that changed.
    pub files: Vec<StepFile>,
    /// Paths that stayed as they were, each with the reason.
    pub left: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of several changes of a file have the turn's figures once, whatever they counted; others keep theirs.
    #[test]
    fn rows_of_a_feed_sum_up_to_the_turn() {
        let me = AgentId::main();
        let row = |time: i64, path: &str, who: Who, lines: (u32, u32)| FileChange {
            time: Time(time),
            kind: ChangeKind::Modified,
            path: path.into(),
            who,
            count: 1,
            lines: Some(lines),
            during: None,
        };
        let (shell, tool) = (Who::Shell { agent: me.clone() }, Who::Agent { agent: me.clone() });
        let mut rows = [
            row(1, "a", shell.clone(), (9, 9)),
            row(5, "a", tool, (7, 0)),
            row(6, "a", Who::You, (3, 3)),
            row(7, "a", shell.clone(), (6, 1)),
            row(8, "elsewhere", shell.clone(), (4, 4)),
            FileChange { kind: ChangeKind::Storm, ..row(9, "a", shell, (5, 5)) },
        ];
        let file = StepFile { lines: Some((13, 1)), ..StepFile::new("a", ChangeKind::Modified) };
        let turn = EntryId(uuid::Uuid::nil());
        let changes = TurnChanges::new(turn, Time(5), vec![file]);
        let wanted = [(9, 9), (13, 1), (3, 3), (0, 0), (4, 4), (5, 5)];
        for _ in 0..2 {
            changes.settle(&me, rows.iter_mut());
            assert_eq!(rows.clone().map(|r| r.lines.unwrap_or_default()), wanted);
        }
    }

    #[test]
    fn a_long_list_is_cut_and_its_figures_are_whole() {
        let files = (0..1000).map(|n| StepFile {
            lines: Some((2, 1)),
            ..StepFile::new(format!("f{n:04}"), ChangeKind::Added)
        });
        let changes = TurnChanges::new(EntryId(uuid::Uuid::nil()), Time(0), files.collect());
        assert_eq!((changes.files.len(), changes.more), (TurnChanges::LISTED, 800));
        assert_eq!((changes.added, changes.removed), (2000, 1000));
    }
}
