//! `tiller agents` and `tiller workflow`.

use std::path::PathBuf;

use clap::Subcommand;

use super::{Common, Exec};

/// `tiller agents`.
#[derive(Debug, Subcommand)]
pub enum Agents {
    /// List agent definitions with their source, purpose, model and tools
    List {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Run one turn without a screen as this agent, with its prompt, tools, model and limits
    Run {
        /// Name of an agent definition; `tiller agents list` shows them
        name: String,
        #[command(flatten)]
        exec: Box<Exec>,
    },
}

/// `tiller workflow`.
#[derive(Debug, Subcommand)]
pub enum Workflow {
    /// Check a workflow file and report every error; starts nothing
    Check {
        /// Workflow file (TOML or YAML)
        file: PathBuf,
    },
    /// Run a workflow to its end in a new session
    Run {
        /// Workflow file (TOML or YAML)
        file: PathBuf,
        /// Print one JSON event per line
        #[arg(long)]
        json: bool,
        /// Allow calls that match, for example 'terminal(cargo test*)'
        #[arg(long, value_name = "RULE")]
        allow: Vec<String>,
        /// Deny calls that match
        #[arg(long, value_name = "RULE")]
        deny: Vec<String>,
        #[command(flatten)]
        common: Common,
    },
}
