//! `tiller memory`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// `tiller memory`.
#[derive(Debug, Subcommand)]
pub enum MemoryWhat {
    /// List what is kept across sessions
    List {
        #[command(flatten)]
        of: MemoryOf,
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// List the entries that fit these words, best first
    Search {
        /// Words to look for
        #[arg(required = true)]
        words: Vec<String>,
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Show how sessions are searched by meaning, or import a table of vectors for it
    Embed {
        /// A folder with model.safetensors and tokenizer.json of a static embedding model
        #[arg(long, value_name = "FOLDER")]
        import: Option<PathBuf>,
    },
    /// Write an entry
    Add {
        /// What to keep: one short fact
        text: String,
        #[command(flatten)]
        of: MemoryOf,
    },
    /// Remove an entry
    Forget {
        /// Text of the entry, or a part that no other entry has
        text: String,
        #[command(flatten)]
        of: MemoryOf,
    },
    /// Print all entries as JSON lines, with their state and origin
    Export {
        #[command(flatten)]
        of: MemoryOf,
    },
    /// Add entries of an export, or the list items of a Markdown file
    ///
    /// Entries keep their state: archived ones stay archived, and those that waited or were of another branch wait in /memory.
    /// An entry that this data folder has recorded keeps its origin. Any other is marked as text of others, and is no rule
    /// until you accept it in /memory.
    Import {
        /// File to read, or - for standard input
        file: PathBuf,
        /// The file is yours: take the origins that it states, and yours where it states none
        #[arg(long)]
        mine: bool,
        #[command(flatten)]
        of: MemoryOf,
    },
}

/// Which memory file.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct MemoryOf {
    /// USER.md, about you, instead of MEMORY.md
    #[arg(long)]
    pub user: bool,
    /// The file of this project, in its folder .tiller
    #[arg(long)]
    pub project: bool,
}
