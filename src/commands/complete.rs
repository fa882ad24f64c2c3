//! `tiller completions` and `tiller man`, made from the command line itself.

use clap::CommandFactory;
use tiller_protocol::{Notice, NoticeKind};

use crate::commands::args::Cli;
use crate::commands::{Exit, say};

/// A completion script for `shell`.
pub(super) fn completions(shell: clap_complete::Shell) -> Result<Exit, Notice> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "tiller", &mut text);
    say(&String::from_utf8_lossy(&text))
}

/// The man page, in roff.
pub(super) fn man() -> Result<Exit, Notice> {
    let mut text = Vec::new();
    clap_mangen::Man::new(Cli::command())
        .render(&mut text)
        .map_err(|e| Notice::new(NoticeKind::Internal, format!("The man page could not be created: {e}.")))?;
    say(&String::from_utf8_lossy(&text))
}
