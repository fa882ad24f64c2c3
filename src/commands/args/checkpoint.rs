//! `tiller checkpoint`.

use std::path::PathBuf;

use clap::Subcommand;

/// `tiller checkpoint`.
#[derive(Debug, clap::Args)]
pub struct Checkpoint {
    #[command(subcommand)]
    pub what: CheckpointWhat,
    /// Session ID or its beginning; by default, the last session in this folder
    #[arg(long, global = true, value_name = "ID")]
    pub session: Option<String>,
    /// Print one JSON object per line
    #[arg(long, global = true)]
    pub json: bool,
}

/// What is brought back.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct RestorePart {
    /// Restore the files (the default)
    #[arg(long, group = "part")]
    files: bool,
    /// Restore the conversation on a new branch; the current branch is kept
    #[arg(long, group = "part", conflicts_with_all = ["path", "force"])]
    talk: bool,
    /// Restore files and conversation
    #[arg(long, group = "part")]
    both: bool,
}

impl RestorePart {
    /// As in the workbench.
    pub fn what(self) -> tiller_protocol::RestoreWhat {
        match (self.talk, self.both) {
            (true, _) => tiller_protocol::RestoreWhat::Talk,
            (_, true) => tiller_protocol::RestoreWhat::Both,
            _ => tiller_protocol::RestoreWhat::Files,
        }
    }
}

/// What is done with them.
#[derive(Debug, Subcommand)]
pub enum CheckpointWhat {
    /// List checkpoints; named ones have a *
    List,
    /// Create a named checkpoint
    Create {
        /// Name of the checkpoint
        name: String,
    },
    /// Show what a restore would change
    Diff {
        /// Checkpoint name, or entry ID or its beginning
        point: String,
    },
    /// Restore files, the conversation, or both. The current state is saved first; your own changes are kept
    Restore {
        /// Checkpoint name, or entry ID or its beginning
        point: String,
        /// Restore only these files and folders
        #[arg(long, value_name = "PATH")]
        path: Vec<PathBuf>,
        /// Also restore files that you or another program changed since the checkpoint
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        part: RestorePart,
    },
    /// Undo the last restore
    Undo {
        /// Redo the restore that was undone last
        #[arg(long)]
        redo: bool,
    },
}
