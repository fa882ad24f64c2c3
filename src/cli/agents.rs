//! `tiller agents` and `tiller workflow`.

use std::path::PathBuf;

use clap::Subcommand;

use super::{Common, Exec};

/// `tiller agents`.
#[derive(Debug, Subcommand)]
pub enum Agents {
    /// Every definition: where it is from, when to use it, its model and tools
    List {
        /// One JSON object a line on standard output
        #[arg(long)]
        json: bool,
    },
    /// Run one turn without a screen, as this kind of agent: its prompt, tools, model and limits
    Run {
        /// A kind of agent; `tiller agents list` shows them
        name: String,
        #[command(flatten)]
        exec: Box<Exec>,
    },
}

/// `tiller workflow`.
#[derive(Debug, Subcommand)]
pub enum Workflow {
    /// Look at a file, and say all that is wrong with it; nothing starts
    Check { file: PathBuf },
    /// Run it to its end, in a new session
    Run {
        file: PathBuf,
        /// One JSON event a line on standard output
        #[arg(long)]
        json: bool,
        /// Allow what matches, for instance 'terminal(cargo test*)'
        #[arg(long, value_name = "RULE")]
        allow: Vec<String>,
        /// Deny what matches
        #[arg(long, value_name = "RULE")]
        deny: Vec<String>,
        #[command(flatten)]
        common: Common,
    },
}
