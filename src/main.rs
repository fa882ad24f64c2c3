//! Arguments to face to exit code. Nothing else.

use std::process::ExitCode;

use clap::Parser;
use tiller::cli::Cli;
use tiller::face;

fn main() -> ExitCode {
    face::run(Cli::parse())
}
