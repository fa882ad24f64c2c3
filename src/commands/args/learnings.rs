//! `tiller learnings`.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};

/// `tiller learnings`.
#[derive(Debug, Subcommand)]
pub enum LearningsCommand {
    /// List learnings, last used first
    List {
        /// Show only learnings that contain these words
        filter: Option<String>,
        /// Show only learnings in this state
        #[arg(long, value_enum)]
        state: Option<LearningStateArg>,
        /// Maximum number of rows
        #[arg(long, default_value_t = 100)]
        limit: u32,
    },
    /// Write all learnings as JSON lines
    Export {
        /// File to write; standard output by default
        file: Option<PathBuf>,
    },
    /// Read learnings from JSON lines; they wait for you in /learnings
    Import {
        /// File to read; - for standard input
        file: PathBuf,
        /// The file is yours: take state, uses, times and origins as it states them
        #[arg(long)]
        mine: bool,
    },
    /// Use a proposed or retired learning
    Accept {
        /// Number of the learning
        id: i64,
    },
    /// Stop using a learning
    Retire {
        /// Number of the learning
        id: i64,
    },
    /// Undo the last change of a learning
    Undo {
        /// Number of the learning
        id: i64,
    },
}

/// The state of a learning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LearningStateArg {
    /// It waits for your decision
    Proposed,
    /// It is attached to calls
    Active,
    /// It is not used any more
    Retired,
}
