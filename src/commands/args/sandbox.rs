//! `tiller sandbox`.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};

/// `tiller sandbox`.
#[derive(Debug, Subcommand)]
pub enum Sandbox {
    /// Run a command in the sandbox, with this folder as its workspace
    Run(SandboxRun),
    /// Test what the sandbox stops on this machine
    Test {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
}

/// `tiller sandbox run`.
#[derive(Debug, clap::Args)]
pub struct SandboxRun {
    /// What the command may write
    #[arg(long, value_enum, default_value = "workspace")]
    pub profile: SandboxProfile,
    /// Allow connections to the network
    #[arg(long)]
    pub network: bool,
    /// Allow connections to a domain, such as crates.io or *.crates.io
    #[arg(long, value_name = "DOMAIN", conflicts_with = "network")]
    pub domain: Vec<String>,
    /// Another folder that may be written, for example a cache
    #[arg(long, value_name = "DIR")]
    pub write: Vec<PathBuf>,
    /// Confine in this way instead of the best one
    #[arg(long, value_enum)]
    pub method: Option<SandboxMethod>,
    /// Command and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "CMD")]
    pub command: Vec<String>,
}

/// What a command may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SandboxProfile {
    /// Nothing
    Read,
    /// Files in the workspace
    Workspace,
}

/// How a command is confined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SandboxMethod {
    /// Landlock and seccomp
    Landlock,
    /// bubblewrap, Landlock and seccomp
    Bubblewrap,
}
