//! `tiller sessions`, and what is looked for and compared there.

use std::path::PathBuf;

use clap::Subcommand;

use crate::face::{Export, Import};

/// `tiller sessions`.
#[derive(Debug, Subcommand)]
pub enum Sessions {
    /// Sessions of this folder, last used first
    List {
        /// Of all folders
        #[arg(long)]
        all: bool,
        /// Also those that were put away
        #[arg(long)]
        archived: bool,
    },
    /// One session, entry by entry
    Show { id: String },
    /// Find words in sessions
    Search(Search),
    /// Two branches side by side: what was said, what it cost, which files differ
    Compare(Compare),
    /// Write a session: JSON lines to keep or move it, Markdown or an HTML page to read it
    Export(Export),
    /// Read sessions: exported ones, and transcripts of Claude Code, Codex and Pi
    Import(Import),
    /// Give a session another title
    Rename { id: String, title: String },
    /// Put a session away (it can come back)
    Archive {
        id: String,
        /// Bring it back
        #[arg(long)]
        undo: bool,
    },
    /// Delete what was thrown away more than 30 days ago
    Gc,
}

/// What `tiller sessions compare` puts side by side.
#[derive(Debug, clap::Args)]
pub struct Compare {
    /// A branch or a tag by its name, or an entry by its id
    pub left: String,
    pub right: String,
    /// Of this session (an id or its beginning, or last)
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
}

/// What `tiller sessions search` looks for.
#[derive(Debug, clap::Args)]
pub struct Search {
    /// Words that must all be there; "a phrase"; -not this (in quotes with the rest)
    #[arg(required = true)]
    pub query: Vec<String>,
    /// In the sessions of every folder
    #[arg(long)]
    pub all: bool,
    /// In the sessions of this folder
    #[arg(long, value_name = "FOLDER", conflicts_with = "all")]
    pub project: Option<PathBuf>,
    /// Only in this session (an id or its beginning, or last)
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// Only what these said: user, assistant, tool, summary, note
    #[arg(long, value_delimiter = ',', value_name = "ROLE")]
    pub role: Vec<String>,
    /// Only on the branch of this name
    #[arg(long, value_name = "NAME")]
    pub branch: Option<String>,
    /// Only from this agent
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// From this time on: 2026-11-20, an RFC 3339 time, or 3d, 12h ago
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Before this time
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    #[arg(long, default_value_t = 20)]
    pub limit: u32,
    /// Leave out so many hits: the pages before
    #[arg(long, default_value_t = 0)]
    pub offset: u32,
}
