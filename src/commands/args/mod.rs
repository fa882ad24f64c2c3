//! The command line, as `contract.md` promises it. Help, completions and the man page are generated from it.

mod agents;
mod batch;
mod checkpoint;
mod extensions;
mod learnings;
mod mcp;
mod memory;
mod sandbox;
mod sessions;
mod skills;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use crate::app::options::{Common, EffortArg, ProfileArg};
use crate::commands::{Export, Import};

pub use agents::{Agents, Workflow};
pub use batch::{Batch, BatchLauncher};
pub use checkpoint::{Checkpoint, CheckpointWhat, RestorePart};
pub use extensions::{HooksCommand, PluginCommand};
pub use learnings::{LearningStateArg, LearningsCommand};
pub use mcp::{Mcp, McpAdd, McpLimits};
pub use memory::{MemoryOf, MemoryWhat};
pub use sandbox::{Sandbox, SandboxMethod, SandboxProfile, SandboxRun};
pub use sessions::{Compare, Search, Sessions};
pub use skills::{SkillTrial, SkillsArgs, SkillsCommand};

/// Pair programming with AI agents, in the terminal.
#[derive(Debug, Parser)]
#[command(
    name = "tiller",
    version,
    about,
    long_about = "A full-screen workbench for pair programming with AI agents. Everything that runs is on screen and \
                  steered from the keyboard. Without a configured model, the workbench offers the built-in demo model.",
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
    /// First message to send
    pub prompt: Option<String>,
    /// Continue your last session in this folder
    #[arg(short = 'c', long = "continue", conflicts_with = "session")]
    pub cont: bool,
    /// Continue this session
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// Start a new workbench even if one is detached in this folder
    #[arg(long, conflicts_with_all = ["cont", "session"])]
    pub new: bool,
    /// Print linear text without redraws, for screen readers and simple terminals
    #[arg(long)]
    pub plain: bool,
    /// Draw on the normal screen instead of the alternate screen
    #[arg(long)]
    pub inline: bool,
    /// Turn off mouse support; the terminal handles the mouse
    #[arg(long)]
    pub no_mouse: bool,
    /// Open the session read-only: no messages, edits or commands
    #[arg(long)]
    pub read_only: bool,
    #[command(flatten)]
    pub common: Common,
}

/// Everything but the workbench itself.
#[derive(Debug, Subcommand)]
pub enum Sub {
    /// Try Tiller on a sample project with the built-in demo model
    Demo(Demo),
    /// Choose a session in this folder and continue it
    Resume {
        #[command(flatten)]
        common: Common,
    },
    /// Run one turn without a screen
    Exec(Box<Exec>),
    /// Serve editors and other ACP clients on standard input and output
    Acp {
        #[command(flatten)]
        common: Common,
    },
    /// List, show, rename, archive, export and import sessions
    Sessions {
        #[command(subcommand)]
        what: Sessions,
        /// Print one JSON object per line
        #[arg(long, global = true)]
        json: bool,
    },
    /// Export a session as JSON lines, Markdown or HTML (as `sessions export`)
    Export(Export),
    /// Import exported sessions and transcripts of other programs (as `sessions import`)
    Import(Import),
    /// List, create, compare and restore checkpoints of files and conversation
    Checkpoint(Checkpoint),
    /// List agent definitions, or run one
    Agents {
        #[command(subcommand)]
        what: Agents,
    },
    /// Check or run a workflow file
    Workflow {
        #[command(subcommand)]
        what: Workflow,
    },
    /// Run many prompts without a screen, each in a process of its own
    Batch(Box<Batch>),
    /// Show which tool calls ran, who allowed them and how they ended
    Audit {
        /// Show only rows that contain this text
        filter: Option<String>,
        /// Maximum number of rows
        #[arg(long, default_value_t = 100)]
        limit: u32,
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// List, export and import learnings, and decide about them
    Learnings {
        #[command(subcommand)]
        what: LearningsCommand,
        /// Print one JSON object per line
        #[arg(long, global = true)]
        json: bool,
    },
    /// Show tokens and cost by model, agent or day
    Costs {
        /// How to group the rows
        #[arg(long, value_enum, default_value = "model")]
        by: By,
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Show what a folder would run or allow, and trust it
    Trust {
        /// Folder to show; the current one by default
        dir: Option<PathBuf>,
        /// List trusted folders
        #[arg(long, conflicts_with = "revoke")]
        list: bool,
        /// Stop trusting this folder
        #[arg(long, value_name = "DIR")]
        revoke: Option<PathBuf>,
        /// Trust without asking
        #[arg(long)]
        yes: bool,
    },
    /// Check this machine and the configuration
    Doctor {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// List, test and import hooks
    Hooks {
        #[command(subcommand)]
        what: HooksCommand,
    },
    /// List, make, check, install and update skills
    #[command(alias = "skill")]
    Skills(SkillsArgs),
    /// List, install and remove plugins
    #[command(alias = "plugins")]
    Plugin {
        #[command(subcommand)]
        what: PluginCommand,
    },
    /// Run a command in the sandbox, or test the sandbox
    Sandbox {
        #[command(subcommand)]
        what: Sandbox,
    },
    /// List, add, remove, test and call MCP servers; serve sessions as one
    Mcp {
        #[command(subcommand)]
        what: Mcp,
    },
    /// List, search, write, remove, export and import what is kept across sessions
    Memory {
        #[command(subcommand)]
        what: MemoryWhat,
    },
    /// The MCP server of the demo, on standard input and output
    #[command(hide = true)]
    DemoServer,
    /// List all key bindings in effect
    Keys {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// List available themes
    #[command(alias = "theme")]
    Themes {
        /// Convert a base16 scheme (YAML) and print it as a theme
        #[arg(long, value_name = "FILE")]
        import: Option<PathBuf>,
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Show the settings in effect
    Config {
        /// Print the JSON schema of config.toml
        #[arg(long, conflicts_with = "origin")]
        schema: bool,
        /// Show where each value comes from
        #[arg(long)]
        origin: bool,
    },
    /// Print shell completions
    Completions {
        /// Shell to complete for
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Print the man page
    Man,
    /// List running workbenches
    Ps {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Attach to a detached workbench
    Attach {
        /// Session ID or its beginning, if several run; `tiller ps` lists them
        session: Option<String>,
        /// Take over from the attached terminal
        #[arg(long)]
        take: bool,
        /// Watch without control while another terminal is attached; q quits
        #[arg(long, conflicts_with = "take")]
        watch: bool,
    },
    /// Detach the terminal of a workbench; its work continues
    Detach {
        /// Session ID or its beginning
        session: Option<String>,
    },
    /// Save and end a detached workbench
    Stop {
        /// Session ID or its beginning
        #[arg(conflicts_with = "all")]
        session: Option<String>,
        /// End all running workbenches
        #[arg(long)]
        all: bool,
    },
}

/// `tiller demo`.
#[derive(Debug, Args)]
pub struct Demo {
    /// Create the sample project here instead of in a temporary folder
    #[arg(long, value_name = "DIR")]
    pub at: Option<PathBuf>,
    /// Skip the guided tour
    #[arg(long)]
    pub no_tour: bool,
    /// Print linear text without redraws, for screen readers and simple terminals
    #[arg(long)]
    pub plain: bool,
    /// Turn off mouse support; the terminal handles the mouse
    #[arg(long)]
    pub no_mouse: bool,
}

/// `tiller exec`.
#[derive(Debug, Args)]
pub struct Exec {
    /// Prompt, or - to read it from standard input; piped input is added after the prompt
    pub prompt: String,
    /// Print one JSON event per line
    #[arg(long)]
    pub json: bool,
    /// Continue this session
    #[arg(long, value_name = "ID", conflicts_with = "cont")]
    pub session: Option<String>,
    /// Continue the last session in this folder
    #[arg(short = 'c', long = "continue")]
    pub cont: bool,
    /// Allow calls that match, for example 'terminal(cargo test*)'
    #[arg(long, value_name = "RULE")]
    pub allow: Vec<String>,
    /// Deny calls that match
    #[arg(long, value_name = "RULE")]
    pub deny: Vec<String>,
    /// Maximum model requests
    #[arg(long, value_name = "N")]
    pub max_turns: Option<u32>,
    /// Maximum cost in US dollars
    #[arg(long, value_name = "USD", value_parser = dollars, allow_negative_numbers = true)]
    pub max_cost: Option<f64>,
    /// Attach an image
    #[arg(long, value_name = "FILE")]
    pub image: Vec<PathBuf>,
    /// Trust this folder's own configuration
    #[arg(long)]
    pub trust: bool,
    /// Exit when the turn ends, even if background agents are still running
    #[arg(long)]
    pub no_wait: bool,
    /// Do not keep a session of this run; its cost is still recorded
    #[arg(long, conflicts_with_all = ["session", "cont"])]
    pub ephemeral: bool,
    /// Leave this skill out, for `tiller skills try`
    #[arg(long, hide = true, value_name = "NAME")]
    pub without_skill: Vec<String>,
    #[command(flatten)]
    pub common: Common,
}

/// How costs are grouped.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum By {
    /// By agent
    Agent,
    /// By model
    Model,
    /// By day
    Day,
}

/// Parses an amount in dollars.
fn dollars(text: &str) -> Result<f64, String> {
    let usd = text.trim().trim_start_matches('$').parse::<f64>().ok();
    usd.filter(|usd| usd.is_finite() && *usd >= 0.0)
        .ok_or_else(|| "expected an amount in dollars of at least 0, for example 0.50".to_owned())
}

#[cfg(test)]
#[path = "args_tests.rs"]
mod tests;
