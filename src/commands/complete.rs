//! `tiller completions` and `tiller man`, generated from the command line's definition.

use std::io::{Result as IoResult, Write};

use clap::{Command, CommandFactory};
use clap_mangen::Man;
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
    page(Cli::command(), &mut text)
        .map_err(|e| Notice::new(NoticeKind::Internal, format!("The man page could not be created: {e}.")))?;
    say(&String::from_utf8_lossy(&text))
}

/// One page for the whole command line, so that one file is installed: each subcommand is a section of it.
fn page(mut root: Command, out: &mut dyn Write) -> IoResult<()> {
    root.build();
    let man = Man::new(root.clone());
    man.render_title(out)?;
    section(out, "NAME", |text| man.render_name_section(text))?;
    section(out, "SYNOPSIS", |text| man.render_synopsis_section(text))?;
    section(out, "DESCRIPTION", |text| man.render_description_section(text))?;
    section(out, "OPTIONS", |text| man.render_options_section(text))?;
    writeln!(out, ".SH COMMANDS")?;
    commands(&root, out)?;
    section(out, "NOTES", |text| man.render_extra_section(text))?;
    section(out, "VERSION", |text| man.render_version_section(text))
}

/// A subsection for each runnable subcommand, with its arguments and options.
fn commands(above: &Command, out: &mut dyn Write) -> IoResult<()> {
    for command in above.get_subcommands().filter(|c| !c.is_hide_set() && c.get_name() != "help") {
        let man = Man::new(command.clone());
        if !command.is_subcommand_required_set() {
            writeln!(out, ".SS {}", command.get_bin_name().unwrap_or_else(|| command.get_name()))?;
            body(out, |text| man.render_synopsis_section(text))?;
            writeln!(out, ".PP")?;
            body(out, |text| man.render_description_section(text))?;
            body(out, |text| man.render_options_section(text))?;
        }
        commands(command, out)?;
    }
    Ok(())
}

fn section(
    out: &mut dyn Write,
    title: &str,
    render: impl FnOnce(&mut dyn Write) -> IoResult<()>,
) -> IoResult<()> {
    writeln!(out, ".SH {title}")?;
    body(out, render)
}

/// The output of the library's renderer, without its own title and the definitions before it.
fn body(out: &mut dyn Write, render: impl FnOnce(&mut dyn Write) -> IoResult<()>) -> IoResult<()> {
    let mut text = Vec::new();
    render(&mut text)?;
    let text = String::from_utf8_lossy(&text);
    let mut lines = text.lines().skip_while(|line| !line.starts_with(".SH")).skip(1);
    lines.try_for_each(|line| writeln!(out, "{line}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_man_page_has_the_options_of_every_command_and_names_no_other_page() {
        let mut text = Vec::new();
        page(Cli::command(), &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let exec = text.split(".SS tiller exec\n").nth(1).unwrap().split(".SS ").next().unwrap();
        assert!(exec.contains("ephemeral") && exec.contains("no\\-wait"), "{exec}");
        let export = text.split(".SS tiller sessions export\n").nth(1).unwrap();
        assert!(export.split(".SS ").next().unwrap().contains("Output file"), "{export}");
        assert!(text.contains(".SH NOTES\n") && text.contains("Exit codes"), "{text}");
        assert!(!text.contains("EXTRA") && !text.contains("(1)"), "{text}");
        assert_eq!(text.matches(".ie ").count(), 1, "the definitions are written once");
    }
}
