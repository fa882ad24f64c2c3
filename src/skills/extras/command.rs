//! Own commands.

use std::path::PathBuf;

use tiller_config::agents::Origin;
use tiller_config::agents::front::{Pairs, Value};

use super::described;
use crate::fill::fill;
use crate::read::{find, one_line, scalar, tool_words};

/// A command of a file: `/NAME words` sends its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnCommand {
    /// The name of its file.
    pub name: String,
    /// What it does; may be empty.
    pub description: String,
    /// How its arguments are written; may be empty.
    pub hint: String,
    /// The model that answers it: a tier, or a model by its name.
    pub model: Option<String>,
    /// The only tools that are used for it, as written; empty: it does not narrow them. They never grant anything.
    pub allowed_tools: Vec<String>,
    pub from: Origin,
    /// Relative to the project's folder where it is the project's.
    pub file: PathBuf,
    /// With `$ARGUMENTS`, `$1`, `@file` and `!command`.
    pub body: String,
}

impl OwnCommand {
    /// The command of a file.
    pub(super) fn new(name: &str, pairs: &Pairs, body: String, from: Origin, file: PathBuf) -> Self {
        let text = |key: &str| find(pairs, key).and_then(scalar).map(|t| one_line(&t));
        let hint = match find(pairs, "argument-hint").or_else(|| find(pairs, "arguments")) {
            Some(Value::List(items)) => {
                let words = items.iter().filter_map(|i| scalar(&i.value));
                words.map(|w| format!("[{w}]")).collect::<Vec<_>>().join(" ")
            }
            Some(value) => scalar(value).map(|t| one_line(&t)).unwrap_or_default(),
            None => String::new(),
        };
        Self {
            name: name.to_owned(),
            description: described(pairs),
            hint: hint.chars().take(100).collect(),
            model: text("model").filter(|model| !model.is_empty()),
            allowed_tools: find(pairs, "allowed-tools").map(tool_words).unwrap_or_default(),
            from,
            file,
            body,
        }
    }

    /// The text of a message that calls it, with its arguments.
    pub fn text(&self, arguments: &str) -> String {
        let mut text = with_commands(&fill(&self.body, &[], arguments));
        if !self.allowed_tools.is_empty() {
            text.push_str(&format!(
                "\n\nOnly these tools run for this task: {}.",
                self.allowed_tools.join(", ")
            ));
        }
        text
    }

    /// What it asks the agent to run first, in order.
    pub fn runs(&self) -> Vec<String> {
        let mut found = Vec::new();
        each_command(&self.body, |command| found.push(command.to_owned()));
        found
    }
}

/// A line `!command`, and `` !`command` `` in a line, become a request to run the command: the agent's call is judged and
/// confined like any other.
fn with_commands(text: &str) -> String {
    each_command(text, |_| ())
}

/// As [`with_commands`]; calls `found` with each command.
fn each_command(text: &str, mut found: impl FnMut(&str)) -> String {
    let mut out = String::new();
    let mut fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        let whole = line
            .trim_start()
            .strip_prefix('!')
            .filter(|rest| rest.starts_with(|c: char| c.is_ascii_alphanumeric() || "./~".contains(c)));
        match whole {
            Some(command) if !fenced => {
                found(command.trim());
                out.push_str(&format!(
                    "First run this command with the tool terminal, and use its output: `{}`",
                    command.trim()
                ));
            }
            _ if !fenced => out.push_str(&inline(line, &mut found)),
            _ => out.push_str(line),
        }
        out.push('\n');
    }
    out.trim_end().to_owned()
}

/// `` !`command` `` in a line.
fn inline(line: &str, found: &mut impl FnMut(&str)) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("!`") {
        let Some((command, behind)) = after.split_once('`') else { break };
        found(command);
        out.push_str(before);
        out.push_str(&format!("(the output of `{command}`: run it first with the tool terminal)"));
        rest = behind;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_becomes_a_request_that_is_judged_like_any_other() {
        let text = "Look.\n!git status --short\nBranch: !`git branch --show-current` now\n```\n!not this\n```\n! nor this";
        let said = with_commands(text);
        let command = OwnCommand::new("look", &Pairs::new(), text.into(), Origin::User, "look.md".into());
        assert_eq!(command.runs(), ["git status --short", "git branch --show-current"]);
        assert!(
            said.contains(
                "First run this command with the tool terminal, and use its output: `git status --short`"
            ),
            "{said}"
        );
        assert!(
            said.contains(
                "Branch: (the output of `git branch --show-current`: run it first with the tool terminal) now"
            ),
            "{said}"
        );
        assert!(said.contains("\n!not this\n") && said.ends_with("! nor this"), "{said}");
    }
}
