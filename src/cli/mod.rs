//! The command line, as `contract.md` promises it. Help, completions and the man page are made from here.

mod agents;
mod checkpoint;
mod sessions;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use tiller_protocol::Profile;

use crate::face::{Export, Import};

pub use agents::{Agents, Workflow};
pub use checkpoint::{Checkpoint, CheckpointWhat, RestorePart};
pub use sessions::{Compare, Search, Sessions};

/// Pair programming with AI agents, in the terminal.
#[derive(Debug, Parser)]
#[command(
    name = "tiller",
    version,
    about,
    long_about = "A full-screen workbench for pair programming with AI agents. Everything that runs is on screen and \
                  steered from the keyboard. Without a model configured the workbench offers the built-in demo model.",
    after_help = "Keys: F1 or ? help, Ctrl-P palette, Ctrl-X more, Ctrl-D on an empty line quits.\n\
                  Exit codes: 0 done, 1 model failed, 2 usage or configuration, 3 permission or answer needed,\n\
                  4 budget or limit, 5 store could not be written, 130 interrupted.",
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
pub struct Cli {
    #[command(flatten)]
    pub open: Open,
    #[command(subcommand)]
    pub command: Option<Sub>,
}

/// How the workbench opens.
#[derive(Debug, Default, Args)]
pub struct Open {
    /// What to say first
    pub prompt: Option<String>,
    /// Continue the last session of this folder
    #[arg(short = 'c', long = "continue", conflicts_with = "session")]
    pub cont: bool,
    /// Continue this session
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// Begin anew, also where a workbench was left at work
    #[arg(long, conflicts_with_all = ["cont", "session"])]
    pub new: bool,
    /// Linear text without redraws, for screen readers and simple terminals
    #[arg(long)]
    pub plain: bool,
    /// Draw in the normal screen, below what is there
    #[arg(long)]
    pub inline: bool,
    /// Leave the mouse to the terminal
    #[arg(long)]
    pub no_mouse: bool,
    /// Look only: the agent writes nothing and runs nothing
    #[arg(long)]
    pub read_only: bool,
    #[command(flatten)]
    pub common: Common,
}

/// What the workbench and `exec` share.
#[derive(Debug, Default, Clone, Args)]
pub struct Common {
    /// Model, as provider/model
    #[arg(short = 'm', long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Permission profile
    #[arg(long, value_enum, value_name = "PROFILE")]
    pub profile: Option<ProfileArg>,
    /// Work in this folder
    #[arg(short = 'C', long = "dir", value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// [`Profile`] on the command line.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ProfileArg {
    /// Nothing is written, nothing runs
    ReadOnly,
    /// Nothing is written or run until a plan is approved
    Plan,
    /// Reads are free, the rest asks
    Ask,
    /// Edits in the folder are free, commands ask
    AutoEdit,
    /// Everything runs but what is denied, protected or dangerous
    Full,
}

impl From<ProfileArg> for Profile {
    fn from(p: ProfileArg) -> Self {
        match p {
            ProfileArg::ReadOnly => Self::ReadOnly,
            ProfileArg::Plan => Self::Plan,
            ProfileArg::Ask => Self::Ask,
            ProfileArg::AutoEdit => Self::AutoEdit,
            ProfileArg::Full => Self::Full,
        }
    }
}

/// Everything but the workbench itself.
#[derive(Debug, Subcommand)]
pub enum Sub {
    /// Try it on a sample project with the built-in demo model
    Demo(Demo),
    /// Pick a session of this folder to go on with
    Resume {
        #[command(flatten)]
        common: Common,
    },
    /// Run one turn without a screen
    Exec(Box<Exec>),
    /// Serve editors and other hosts of agents, over the Agent Client Protocol on standard input and output
    Acp {
        #[command(flatten)]
        common: Common,
    },
    /// List, show, rename, archive, export and import sessions
    Sessions {
        #[command(subcommand)]
        what: Sessions,
        /// One JSON object a line on standard output
        #[arg(long, global = true)]
        json: bool,
    },
    /// Write a session as JSON lines, Markdown or a page (as `sessions export`)
    Export(Export),
    /// Read sessions: exported ones, and transcripts of other programs (as `sessions import`)
    Import(Import),
    /// What the files were: list, name, compare, restore, undo
    Checkpoint(Checkpoint),
    /// Kinds of agents: built in, yours, and the project's
    Agents {
        #[command(subcommand)]
        what: Agents,
    },
    /// Steps of work for several agents, from a file
    Workflow {
        #[command(subcommand)]
        what: Workflow,
    },
    /// What ran, who allowed it, and how it ended
    Audit {
        /// Show only rows that contain this
        filter: Option<String>,
        /// Rows at most
        #[arg(long, default_value_t = 100)]
        limit: u32,
        #[arg(long)]
        json: bool,
    },
    /// What it cost, by model, agent or day
    Costs {
        #[arg(long, value_enum, default_value = "model")]
        by: By,
        #[arg(long)]
        json: bool,
    },
    /// Show what a folder brings, and trust it or not
    Trust {
        dir: Option<PathBuf>,
        /// Folders that are trusted
        #[arg(long, conflicts_with = "revoke")]
        list: bool,
        /// Stop trusting this folder
        #[arg(long, value_name = "DIR")]
        revoke: Option<PathBuf>,
        /// Say yes without being asked
        #[arg(long)]
        yes: bool,
    },
    /// Check this machine and the setup
    Doctor {
        #[arg(long)]
        json: bool,
    },
    /// Every key, as it is bound now
    Keys {
        #[arg(long)]
        json: bool,
    },
    /// Themes that can be chosen
    #[command(alias = "theme")]
    Themes {
        /// Turn a base16 scheme (YAML) into a theme on standard output
        #[arg(long, value_name = "FILE")]
        import: Option<PathBuf>,
        #[arg(long)]
        json: bool,
    },
    /// Show the settings in force
    Config {
        /// Print the JSON schema of config.toml
        #[arg(long, conflicts_with = "origin")]
        schema: bool,
        /// Say for each value where it comes from
        #[arg(long)]
        origin: bool,
    },
    /// Print shell completions
    Completions {
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Print the man page
    Man,
    /// Workbenches that run: what is at work, and on which screen
    Ps {
        /// One JSON object a line on standard output
        #[arg(long)]
        json: bool,
    },
    /// Go back to a workbench that was left at work
    Attach {
        /// The beginning of its session's id, where several run; `tiller ps` shows them
        session: Option<String>,
        /// Also when a screen is attached: that one is left
        #[arg(long)]
        take: bool,
        /// Only look on, where a screen is attached; q leaves
        #[arg(long, conflicts_with = "take")]
        watch: bool,
    },
    /// Leave the screen of a workbench from another shell; what works goes on
    Detach {
        /// The beginning of its session's id
        session: Option<String>,
    },
    /// End a workbench that was left at work; everything is saved
    Stop {
        /// The beginning of its session's id
        #[arg(conflicts_with = "all")]
        session: Option<String>,
        /// All that run
        #[arg(long)]
        all: bool,
    },
}

/// `tiller demo`.
#[derive(Debug, Args)]
pub struct Demo {
    /// Lay the sample project out here instead of a scratch folder
    #[arg(long, value_name = "DIR")]
    pub at: Option<PathBuf>,
    /// Without the guided tour
    #[arg(long)]
    pub no_tour: bool,
    #[arg(long)]
    pub plain: bool,
    #[arg(long)]
    pub no_mouse: bool,
}

/// `tiller exec`.
#[derive(Debug, Args)]
pub struct Exec {
    /// The prompt; - reads it from standard input
    pub prompt: String,
    /// One JSON event a line on standard output
    #[arg(long)]
    pub json: bool,
    /// Go on with this session
    #[arg(long, value_name = "ID", conflicts_with = "cont")]
    pub session: Option<String>,
    /// Go on with the last session of this folder
    #[arg(short = 'c', long = "continue")]
    pub cont: bool,
    /// Allow what matches, for instance 'terminal(cargo test*)'
    #[arg(long, value_name = "RULE")]
    pub allow: Vec<String>,
    /// Deny what matches
    #[arg(long, value_name = "RULE")]
    pub deny: Vec<String>,
    /// Requests to the model at most
    #[arg(long, value_name = "N")]
    pub max_turns: Option<u32>,
    /// Dollars at most
    #[arg(long, value_name = "USD", value_parser = dollars, allow_negative_numbers = true)]
    pub max_cost: Option<f64>,
    /// Send an image along
    #[arg(long, value_name = "FILE")]
    pub image: Vec<PathBuf>,
    /// Trust what this folder brings
    #[arg(long)]
    pub trust: bool,
    /// End with the turn, also while agents that it started in the background are at work
    #[arg(long)]
    pub no_wait: bool,
    #[command(flatten)]
    pub common: Common,
}

/// How costs are grouped.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum By {
    Agent,
    Model,
    Day,
}

/// An amount that can be held against what was spent.
fn dollars(text: &str) -> Result<f64, String> {
    let usd = text.trim().trim_start_matches('$').parse::<f64>().ok();
    usd.filter(|usd| usd.is_finite() && *usd >= 0.0)
        .ok_or_else(|| "it is an amount of dollars from 0 on, for instance 0.50".to_owned())
}
