use clap::{Command, CommandFactory};

use super::Cli;

/// Collects everything without a help text in a command and its subcommands.
fn blanks(command: &Command, out: &mut Vec<String>) {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name()).to_owned();
    if command.get_about().is_none_or(|about| about.to_string().trim().is_empty()) {
        out.push(name.clone());
    }
    for argument in command.get_arguments() {
        let id = argument.get_id();
        if argument.get_help().is_none_or(|help| help.to_string().trim().is_empty()) {
            out.push(format!("{name}: {id}"));
        }
        // The library names the shells, which need no explanation.
        if id == "shell" {
            continue;
        }
        // A flag has the values true and false.
        for value in argument.get_possible_values().iter().filter(|_| argument.get_action().takes_values()) {
            if value.get_help().is_none_or(|help| help.to_string().trim().is_empty()) {
                out.push(format!("{name}: {id}={}", value.get_name()));
            }
        }
    }
    for inner in command.get_subcommands() {
        blanks(inner, out);
    }
}

#[test]
fn every_command_argument_and_value_has_help() {
    let mut command = Cli::command();
    command.build();
    let mut without = Vec::new();
    blanks(&command, &mut without);
    assert!(without.is_empty(), "{without:#?}");
}
