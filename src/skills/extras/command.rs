//! Own commands.

use std::path::PathBuf;

use tiller_config::agents::Origin;
use tiller_config::agents::front::{Pairs, Value};

use super::described;
use super::shell::{Arguments, filled};
use crate::fill::placed;
use crate::read::{find, one_line, scalar, tool_words};

/// A part of the text that a call of an own command sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandPiece {
    Text(String),
    /// A command: its output stands here.
    Run {
        line: String,
        /// It stands in a line of text: `` !`command` ``.
        inline: bool,
        /// Why it cannot run with its arguments; `line` has none of them then.
        refused: Option<&'static str>,
    },
}

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

    /// The text of a message that calls it, with its arguments. The file alone says what is a command: in commands
    /// arguments are quoted.
    pub fn pieces(&self, arguments: &str) -> Vec<CommandPiece> {
        self.pieces_with(arguments, &[])
    }

    /// As [`Self::pieces`]. `pastes`: labels in the arguments, and the texts that they stand for in commands.
    pub fn pieces_with(&self, arguments: &str, pastes: &[(&str, &str)]) -> Vec<CommandPiece> {
        let mut used = false;
        let quoted = Arguments::new(arguments, pastes);
        let mut pieces: Vec<CommandPiece> = Vec::new();
        for piece in split(&self.body) {
            let (piece, here) = match piece {
                CommandPiece::Text(text) => {
                    let (text, here) = placed(&text, &[], arguments);
                    (CommandPiece::Text(text), here)
                }
                CommandPiece::Run { line, inline, .. } => {
                    let (with, here) = filled(&line, &quoted);
                    let refused = with.as_ref().err().copied();
                    (CommandPiece::Run { line: with.unwrap_or(line), inline, refused }, here)
                }
            };
            used |= here;
            pieces.push(piece);
        }
        let mut end = String::new();
        if !used && !arguments.trim().is_empty() {
            end.push_str(&format!("\n\n{}", arguments.trim()));
        }
        if !self.allowed_tools.is_empty() {
            end.push_str(&format!(
                "\n\nOnly these tools run for this task: {}.",
                self.allowed_tools.join(", ")
            ));
        }
        match pieces.last_mut() {
            Some(CommandPiece::Text(text)) => text.push_str(&end),
            _ if end.is_empty() => {}
            _ => pieces.push(CommandPiece::Text(end)),
        }
        pieces
    }

    /// The commands in its text, in order, without arguments.
    pub fn runs(&self) -> Vec<String> {
        let run = |piece| match piece {
            CommandPiece::Run { line, .. } => Some(line),
            CommandPiece::Text(_) => None,
        };
        split(&self.body).into_iter().filter_map(run).collect()
    }
}

/// A text, divided at its commands: lines `!command`, and `` !`command` `` in a line. In a fenced block there are none.
fn split(text: &str) -> Vec<CommandPiece> {
    let mut pieces = Pieces::default();
    let mut open: Option<Fence> = None;
    for line in text.trim_end().lines() {
        open = match (open, Fence::of(line)) {
            (None, Some((fence, rest))) if fence.opens(rest) => Some(fence),
            (Some(first), Some((fence, rest))) if first.is_closed_by(fence, rest) => None,
            (open, _) => open,
        };
        let fenced = open.is_some();
        let whole = line
            .trim_start()
            .strip_prefix('!')
            .filter(|rest| rest.starts_with(|c: char| c.is_ascii_alphanumeric() || "./~$".contains(c)));
        match whole {
            Some(command) if !fenced => pieces.run(command, false),
            _ if !fenced => inline(line, &mut pieces),
            _ => pieces.text.push_str(line),
        }
        pieces.text.push('\n');
    }
    pieces.end()
}

/// A line that begins or ends a block of code.
#[derive(Clone, Copy)]
struct Fence {
    sign: char,
    length: usize,
}

impl Fence {
    /// The row of at least three backticks or tildes at the beginning of a line, and what stands behind it.
    fn of(line: &str) -> Option<(Self, &str)> {
        let line = line.trim_start();
        let sign = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let rest = line.trim_start_matches(sign);
        let length = line.len() - rest.len();
        (length >= 3).then_some((Self { sign, length }, rest))
    }

    fn opens(self, rest: &str) -> bool {
        // As in Markdown: else it is code in a line.
        self.sign != '`' || !rest.contains('`')
    }

    fn is_closed_by(self, other: Self, rest: &str) -> bool {
        self.sign == other.sign && self.length <= other.length && rest.trim().is_empty()
    }
}

/// `` !`command` `` in a line.
fn inline(line: &str, pieces: &mut Pieces) {
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("!`") {
        let Some((command, behind)) = after.split_once('`').filter(|(command, _)| !command.trim().is_empty())
        else {
            break;
        };
        pieces.text.push_str(before);
        pieces.run(command, true);
        rest = behind;
    }
    pieces.text.push_str(rest);
}

/// The pieces of a text so far, and the text behind the last command.
#[derive(Default)]
struct Pieces {
    all: Vec<CommandPiece>,
    text: String,
}

impl Pieces {
    fn run(&mut self, command: &str, inline: bool) {
        let text = std::mem::take(&mut self.text);
        if !text.is_empty() {
            self.all.push(CommandPiece::Text(text));
        }
        self.all.push(CommandPiece::Run { line: command.trim().to_owned(), inline, refused: None });
    }

    fn end(mut self) -> Vec<CommandPiece> {
        let text = self.text.trim_end();
        if !text.is_empty() {
            self.all.push(CommandPiece::Text(text.to_owned()));
        }
        self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(text: &str) -> OwnCommand {
        OwnCommand::new("look", &Pairs::new(), text.into(), Origin::User, "look.md".into())
    }

    fn text(text: &str) -> CommandPiece {
        CommandPiece::Text(text.into())
    }

    fn run(line: &str, inline: bool) -> CommandPiece {
        CommandPiece::Run { line: line.into(), inline, refused: None }
    }

    #[test]
    fn a_text_is_divided_at_its_commands() {
        let command = command(
            "Look.\n!git status --short\nBranch: !`git branch --show-current` now, !`` not\n```\n!not this\n```\n! nor this",
        );
        assert_eq!(command.runs(), ["git status --short", "git branch --show-current"]);
        assert_eq!(
            command.pieces(""),
            [
                text("Look.\n"),
                run("git status --short", false),
                text("\nBranch: "),
                run("git branch --show-current", true),
                text(" now, !`` not\n```\n!not this\n```\n! nor this"),
            ]
        );
    }

    #[test]
    fn arguments_are_put_into_commands_and_never_make_one() {
        let show = command("Show it.\n!git show $1");
        assert_eq!(show.pieces("HEAD; ls"), [text("Show it.\n"), run("git show 'HEAD;'", false)]);
        assert_eq!(show.runs(), ["git show $1"]);
        let plain = command("Say $ARGUMENTS.");
        assert_eq!(plain.pieces("it\n!rm x\n!`ls`"), [text("Say it\n!rm x\n!`ls`.")]);
        let whole = command("!make");
        assert_eq!(whole.pieces("all"), [run("make", false), text("\n\nall")]);
        assert_eq!(command("!$ARGUMENTS").pieces("git log"), [run("git log", false)]);
    }
    #[test]
    fn a_fence_ends_with_its_own_sign_and_length() {
        let fenced =
            "````\n```\n!a\n```\n~~~~\n!b\n```` x\n!c\n`````\n!runs\n~~~ sh\n```\n!d\n~~~\n```x```\n!too";
        assert_eq!(command(fenced).runs(), ["runs", "too"]);
        assert!(command("~~~\n!a !`b`\n~~\n!c").runs().is_empty());
    }

    #[test]
    fn a_command_that_takes_no_quoted_argument_is_refused() {
        let pieces = command("!echo `date $1`").pieces("'a;b'");
        let refused = |piece: &CommandPiece| match piece {
            CommandPiece::Run { line, refused, .. } => line == "echo `date $1`" && refused.is_some(),
            CommandPiece::Text(_) => false,
        };
        assert!(pieces.len() == 1 && pieces.iter().all(refused), "{pieces:?}");
    }
}
