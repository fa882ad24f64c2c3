//! `tiller skills`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// `tiller skills`.
#[derive(Debug, Args)]
pub struct SkillsArgs {
    #[command(subcommand)]
    pub what: SkillsCommand,
    /// Print one JSON object per line
    #[arg(long, global = true)]
    pub json: bool,
}

/// What is done with skills and packs.
#[derive(Debug, Subcommand)]
pub enum SkillsCommand {
    /// List the skills of this folder and the installed packs
    List {
        /// List what can be installed by name instead
        #[arg(long)]
        registry: bool,
    },
    /// Show a skill or a pack
    Show {
        /// Name of the skill or the pack
        name: String,
    },
    /// Make the folder of a new skill
    New {
        /// Name of the skill and its folder
        name: String,
        /// Make it for this project only, in .tiller/skills
        #[arg(long, conflicts_with = "at")]
        project: bool,
        /// Make it in this folder
        #[arg(long, value_name = "DIR")]
        at: Option<PathBuf>,
    },
    /// Check a skill, or all skills below a folder, against the public format
    Validate {
        /// Folder with a SKILL.md, or with skills below it
        #[arg(default_value = ".")]
        path: PathBuf,
    },
    /// Install a pack of skills; shows what is in it, and asks
    Install {
        /// Folder, .tar.gz or .zip file, git URL with an optional #REF, or a name in the registry
        source: String,
        /// Name of the pack
        #[arg(long)]
        name: Option<String>,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Show the files of a pack that changed since you agreed to it, and use it again
    Trust {
        /// Name of the pack
        name: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Remove a pack; it can be restored for 30 days
    Remove {
        /// Name of the pack
        name: String,
    },
    /// Restore what was removed or updated last
    Restore {
        /// Name of the pack
        name: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Fetch packs again, and show what differs before it is used
    Update {
        /// Name of the pack; all packs by default
        name: Option<String>,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}
