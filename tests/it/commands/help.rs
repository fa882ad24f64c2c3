//! The help of every command is complete.

use clap::CommandFactory as _;

/// Commands, arguments and values without help.
fn blank(command: &clap::Command, path: &str, out: &mut Vec<String>) {
    let path = format!("{path} {}", command.get_name());
    if command.get_about().is_none_or(|help| help.to_string().trim().is_empty()) {
        out.push(path.clone());
    }
    for argument in command.get_arguments() {
        let name = format!("{path} <{}>", argument.get_id());
        if argument.get_help().is_none_or(|help| help.to_string().trim().is_empty()) {
            out.push(name);
        }
    }
    for sub in command.get_subcommands() {
        blank(sub, &path, out);
    }
}

#[test]
fn no_help_text_is_blank() {
    let mut out = Vec::new();
    blank(&tiller::commands::args::Cli::command(), "", &mut out);
    assert_eq!(out, Vec::<String>::new());
}
