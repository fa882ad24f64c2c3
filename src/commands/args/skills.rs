//! `tiller skills`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Common, dollars};

/// `tiller skills`.
#[derive(Debug, Args)]
pub struct SkillsArgs {
    #[command(subcommand)]
    pub what: SkillsCommand,
    /// Print one JSON object per line
    #[arg(long, global = true)]
    pub json: bool,
}

impl SkillsArgs {
    /// The options of a run; those of other commands are the usual ones.
    pub fn common(&self) -> Common {
        match &self.what {
            SkillsCommand::Try(trial) => trial.common.clone(),
            _ => Common::default(),
        }
    }
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
        /// Folder, .tar.gz or .zip file, git URL with an optional #REF, builtin:NAME, or a name in the registry
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
    /// Run a skill on your own past prompts, with and without it, in copies of this folder
    Try(Box<SkillTrial>),
    /// Fetch packs again, and show what differs before it is used
    Update {
        /// Name of the pack; all packs by default
        name: Option<String>,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

/// `tiller skills try`.
#[derive(Debug, Args)]
pub struct SkillTrial {
    /// Name of a skill, or the folder of one that is not in use yet
    pub skill: String,
    /// How many prompts that it should answer to
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=20))]
    pub prompts: u8,
    /// How many prompts that it should not answer to
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(0..=20))]
    pub others: u8,
    /// Command that tells by exit code 0 that a run went well, in the sandbox and the copy of that run
    #[arg(long, value_name = "CMD")]
    pub check: Option<String>,
    /// Maximum cost of all runs in US dollars
    #[arg(long, value_name = "USD", value_parser = dollars, allow_negative_numbers = true, default_value = "1")]
    pub max_cost: f64,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
    /// Wait for Enter at the end, as the screen needs it
    #[arg(long, hide = true)]
    pub pause: bool,
    #[command(flatten)]
    pub common: Common,
}
