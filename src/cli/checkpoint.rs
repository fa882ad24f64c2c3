//! `tiller checkpoint`.

use clap::Subcommand;

/// `tiller checkpoint`.
#[derive(Debug, clap::Args)]
pub struct Checkpoint {
    #[command(subcommand)]
    pub what: CheckpointWhat,
    /// Of this session (an id or its beginning) instead of the last one of this folder
    #[arg(long, global = true, value_name = "ID")]
    pub session: Option<String>,
    #[arg(long, global = true)]
    pub json: bool,
}

/// What is brought back.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct RestorePart {
    /// The files (what happens without any of these three)
    #[arg(long, group = "part")]
    files: bool,
    /// The conversation: it goes on from there on a branch of its own, the old one stays
    #[arg(long, group = "part", conflicts_with_all = ["path", "force"])]
    talk: bool,
    /// Both
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
    /// Moments that can be gone back to; named ones have a *
    List,
    /// Name this moment
    Create { name: String },
    /// What restoring would change
    Diff {
        /// A name, or an entry's id or its beginning
        point: String,
    },
    /// Bring files back, the conversation, or both. What is there now is kept first; what you changed yourself stays
    Restore {
        /// A name, or an entry's id or its beginning
        point: String,
        /// Only these files and folders
        #[arg(long, value_name = "PATH")]
        path: Vec<String>,
        /// Also what you or another program changed since
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        part: RestorePart,
    },
    /// Take the last restore back
    Undo {
        /// Do it again instead
        #[arg(long)]
        redo: bool,
    },
}
