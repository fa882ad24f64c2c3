//! Parses the arguments, runs the command, and returns its exit code.

use std::process::ExitCode;

use clap::Parser;
use tiller::commands;
use tiller::commands::args::Cli;

fn main() -> ExitCode {
    commands::run(Cli::parse())
}
