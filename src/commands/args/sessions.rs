//! `tiller sessions`, with the arguments of its search and comparison.

use std::path::PathBuf;

use clap::Subcommand;

use crate::commands::{Export, Import};

/// `tiller sessions`.
#[derive(Debug, Subcommand)]
pub enum Sessions {
    /// List the sessions in this folder, most recent first
    List {
        /// List the sessions in all folders
        #[arg(long)]
        all: bool,
        /// Include archived sessions
        #[arg(long)]
        archived: bool,
        /// Include sessions of `tiller exec` and `tiller workflow run`
        #[arg(long)]
        exec: bool,
    },
    /// Show one session entry by entry
    Show {
        /// Session ID or its beginning, or last
        id: String,
    },
    /// Search sessions
    Search(Search),
    /// Compare two branches: conversation, cost and files
    Compare(Compare),
    /// Export a session as JSON lines, Markdown or HTML
    Export(Export),
    /// Import exported sessions, and transcripts of Claude Code, Codex and Pi
    Import(Import),
    /// Rename a session
    Rename {
        /// Session ID or its beginning, or last
        id: String,
        /// New title
        title: String,
    },
    /// Archive a session
    Archive {
        /// Session ID or its beginning, or last
        id: String,
        /// Unarchive it
        #[arg(long)]
        undo: bool,
    },
    /// Permanently remove sessions that were deleted more than 30 days ago, and pack the snapshots
    Gc,
}

/// What `tiller sessions compare` puts side by side.
#[derive(Debug, clap::Args)]
pub struct Compare {
    /// Branch or tag name, or entry ID
    pub left: String,
    /// Branch or tag name, or entry ID
    pub right: String,
    /// Session ID or its beginning, or last
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
}

/// What `tiller sessions search` looks for.
#[derive(Debug, clap::Args)]
pub struct Search {
    /// Words to find, in any form. Quote the whole query to use "a phrase" or -excluded
    #[arg(required = true)]
    pub query: Vec<String>,
    /// Show the newest first instead of the best, and only entries with all words
    #[arg(long)]
    pub newest: bool,
    /// Index all new entries first, however long that takes
    #[arg(long)]
    pub complete: bool,
    /// Search the sessions in all folders
    #[arg(long)]
    pub all: bool,
    /// Search the sessions in this folder
    #[arg(long, value_name = "FOLDER", conflicts_with = "all")]
    pub project: Option<PathBuf>,
    /// Search only this session (ID or its beginning, or last)
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// Search only entries with these roles: user, assistant, tool, summary, note
    #[arg(long, value_delimiter = ',', value_name = "ROLE")]
    pub role: Vec<String>,
    /// Search only the branch with this name
    #[arg(long, value_name = "NAME")]
    pub branch: Option<String>,
    /// Search only entries by this agent
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Only entries since this time: a date (2026-11-20), an RFC 3339 time, or an age (3d, 12h)
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Only entries before this time
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// Maximum number of results of sessions, and of memory, learnings and skills
    #[arg(long, default_value_t = 20)]
    pub limit: u32,
    /// Skip this many results
    #[arg(long, default_value_t = 0)]
    pub offset: u32,
}
