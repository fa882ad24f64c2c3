//! Options that the workbench and the commands share.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tiller_protocol::{Effort, Profile};

/// What the workbench and `exec` share.
#[derive(Debug, Default, Clone, Args)]
pub struct Common {
    /// Model to use, as PROVIDER/MODEL
    #[arg(short = 'm', long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Permission mode for this session
    #[arg(long, value_enum, value_name = "PROFILE")]
    pub profile: Option<ProfileArg>,
    /// How much the model thinks
    #[arg(long, value_enum, value_name = "EFFORT")]
    pub effort: Option<EffortArg>,
    /// Run commands at this terminal of your settings
    #[arg(long, value_name = "NAME")]
    pub terminal: Option<String>,
    /// Work in this folder
    #[arg(short = 'C', long = "dir", value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// It is the demo, which has a hook of its own.
    #[arg(skip)]
    pub demo: bool,
    /// Skills that this run leaves out.
    #[arg(skip)]
    pub without_skills: Vec<String>,
}

/// [`Profile`] on the command line, those that allow more behind those that allow less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum ProfileArg {
    /// No edits, no commands
    ReadOnly,
    /// No edits or commands until a plan is approved
    Plan,
    /// Reads inside the folder run; everything else needs approval
    Ask,
    /// Edits inside the folder run; commands need approval
    AutoEdit,
    /// Everything runs except denied, protected and dangerous actions
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

/// [`Effort`] on the command line.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum EffortArg {
    /// No thinking, if the model allows it
    Off,
    /// Fast and cheap
    Low,
    /// Balanced
    Medium,
    /// For hard problems
    High,
    /// The model's maximum; slow and expensive
    Max,
    /// The provider's default
    Default,
}

impl From<EffortArg> for Effort {
    fn from(e: EffortArg) -> Self {
        match e {
            EffortArg::Off => Self::Off,
            EffortArg::Low => Self::Low,
            EffortArg::Medium => Self::Medium,
            EffortArg::High => Self::High,
            EffortArg::Max => Self::Max,
            EffortArg::Default => Self::Default,
        }
    }
}
