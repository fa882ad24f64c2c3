//! `tiller batch`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{Common, dollars};

/// `tiller batch`.
#[derive(Debug, Args)]
pub struct Batch {
    /// File with one case per line: JSON objects with id and prompt
    pub file: PathBuf,
    /// Where each case runs
    #[arg(long, value_enum, default_value = "local")]
    pub launcher: BatchLauncher,
    /// Maximum cases that run at the same time
    #[arg(short = 'j', long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub jobs: u16,
    /// File for the results; FILE with the ending .results.jsonl by default
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Maximum cost of all cases in US dollars
    #[arg(long, value_name = "USD", value_parser = dollars, allow_negative_numbers = true)]
    pub max_cost: Option<f64>,
    /// Run failed cases again
    #[arg(long)]
    pub retry: bool,
    /// Let cases widen what they may do: by their own profile, allow and dir
    #[arg(long)]
    pub trust: bool,
    /// Host for --launcher ssh; cases are spread over several
    #[arg(long, value_name = "HOST")]
    pub host: Vec<String>,
    /// Image with Tiller for --launcher kubernetes
    #[arg(long, value_name = "IMAGE")]
    pub image: Option<String>,
    /// Kubernetes secret whose values become variables, for example API keys
    #[arg(long, value_name = "NAME")]
    pub secret: Option<String>,
    /// More arguments: of ssh as for -o, of sbatch and kubectl as they are
    #[arg(long, value_name = "ARG", allow_hyphen_values = true)]
    pub option: Vec<String>,
    /// Tiller where the cases run; for local and slurm this program by default, otherwise `tiller`
    #[arg(long, value_name = "PROGRAM")]
    pub program: Option<String>,
    #[command(flatten)]
    pub common: Common,
}

/// Where the cases of a batch run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BatchLauncher {
    /// This machine
    Local,
    /// Another machine, with your ssh
    Ssh,
    /// A cluster, with your sbatch; the folder of the results must be shared with it
    Slurm,
    /// A cluster, with your kubectl
    Kubernetes,
}

impl BatchLauncher {
    /// As on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Ssh => "ssh",
            Self::Slurm => "slurm",
            Self::Kubernetes => "kubernetes",
        }
    }
}
