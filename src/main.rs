//! Arguments to command to exit code. Nothing else.

use std::process::ExitCode;

use clap::Parser;
use tiller::commands;
use tiller::commands::args::Cli;

fn main() -> ExitCode {
    commands::run(Cli::parse())
}
