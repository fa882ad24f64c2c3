//! Parses the arguments, runs the command, and returns its exit code. As a launcher of the sandbox it does nothing else.

use std::process::ExitCode;

use clap::Parser;
use tiller::commands;
use tiller::commands::args::Cli;

fn main() -> ExitCode {
    // Before any thread is started: restrictions hold for one thread and what it starts.
    if let Some(code) = tiller_sandbox::launcher::run() {
        return code;
    }
    // Refused only by a glibc without arenas, which then needs no setting.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    tiller_seccomp::heap::share_one_arena();
    commands::run(Cli::parse())
}
