//! A message whose commands run, and the text that it has until they have run.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tiller_protocol::ask::CommandSource;
use tiller_protocol::{Attachment, EntryId, Message, Part, QueueId, Taint, ToolCall, ToolOutcome};
use tiller_skills::{CommandPiece, OwnCommand, Skills};

use super::text::{code, filled, words};
use crate::turn::CallResult;

/// A command in the text of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MessageCommand {
    /// With the arguments of the message.
    pub(super) line: String,
    /// It stands in a line of text.
    pub(super) inline: bool,
    /// The name of the own command, and its file.
    pub(super) source: (String, PathBuf),
    /// Why it cannot run with its arguments.
    pub(super) refused: Option<&'static str>,
    /// Stands in the text until the command has run.
    pub(super) mark: String,
}

/// A message whose commands run. It is in the queue until it is sent.
pub(crate) struct HeldMessage {
    pub(super) id: QueueId,
    /// The entry that it becomes. The state of the files is kept under this id before the commands run.
    pub(crate) entry: EntryId,
    /// Its commands ran before, and were stopped: that state is kept already.
    pub(crate) again: bool,
    pub(super) message: Message,
    /// With the marks.
    pub(super) content: Vec<Part>,
    /// The least trusted text of others in the content and the outputs.
    pub(super) taint: Option<Taint>,
    /// The numbers of the learnings at the end of the content.
    pub(super) learnings: Vec<i64>,
    pub(super) commands: Vec<MessageCommand>,
    /// The ids of their calls.
    pub(super) calls: Vec<String>,
    /// What takes the place of each mark.
    pub(super) outputs: Vec<String>,
}

impl HeldMessage {
    /// The own command that a call comes from. `root`: the folder of the workspace.
    pub(crate) fn source(&self, call_id: &str, root: &Path) -> Option<CommandSource> {
        let at = self.calls.iter().position(|id| id == call_id)?;
        let (name, file) = &self.commands.get(at)?.source;
        let file = tiller_protocol::names::written(file.strip_prefix(root).unwrap_or(file));
        Some(CommandSource { name: name.clone(), file })
    }

    /// Notes the output of a command that has ended. The stored result begins with the command: no reply has it.
    pub(crate) fn ended(&mut self, call_id: &str, result: &mut CallResult) {
        let Some(at) = self.calls.iter().position(|id| id == call_id) else { return };
        let (Some(command), Some(output)) = (self.commands.get(at), self.outputs.get_mut(at)) else { return };
        *output = words(command, result);
        let own = (result.outcome != ToolOutcome::Denied).then_some(Taint::ToolOutput);
        self.taint = self.taint.max(own).max(result.taint);
        result.put_before(format!("{}{}", ToolCall::MESSAGE_LINE, command.line));
    }

    /// The content with the outputs of the commands.
    pub(super) fn take_content(&mut self) -> Vec<Part> {
        let mut content = std::mem::take(&mut self.content);
        if let Some(Part::Text { text }) = content.first_mut() {
            *text = filled(text, &self.commands, &self.outputs);
        }
        content
    }
}

/// The own command that a text calls, and the words behind its name.
pub(crate) fn called<'t>(skills: &Skills, text: &'t str) -> Option<(Arc<OwnCommand>, &'t str)> {
    let rest = text.trim_start().strip_prefix('/')?;
    let (name, words) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    Some((skills.command(name)?.clone(), words))
}

/// The text that `command` sends with these words behind its name, with a mark for each of its commands.
pub(crate) fn marked(
    command: &OwnCommand,
    words: &str,
    attachments: &[Attachment],
) -> (String, Vec<MessageCommand>) {
    let pastes = pastes(attachments);
    let pieces = command.pieces_with(words, &pastes);
    let mut plain: String = pieces
        .iter()
        .map(|piece| match piece {
            CommandPiece::Text(text) => text.as_str(),
            CommandPiece::Run { .. } => "",
        })
        .collect();
    // They take the places of their labels later.
    plain.extend(pastes.iter().map(|(_, text)| *text));
    let begins = |n: u32| format!("[output {n} of /{}: ", command.name);
    // The words of the user may look like a mark.
    let begin = (0..).map(begins).find(|begin| !plain.contains(begin.as_str())).unwrap_or_default();
    let (mut text, mut commands) = (String::new(), Vec::new());
    for piece in pieces {
        match piece {
            CommandPiece::Text(more) => text.push_str(&more),
            CommandPiece::Run { line, inline, refused } => {
                let mark = format!("{begin}command {}]", commands.len() + 1);
                text.push_str(&mark);
                let source = (command.name.clone(), command.file.clone());
                commands.push(MessageCommand { line, inline, source, refused, mark });
            }
        }
    }
    (text, commands)
}

/// The text that asks a program of another vendor to run the commands.
pub(crate) fn requested(command: &OwnCommand, words: &str, attachments: &[Attachment]) -> String {
    let piece = |piece| match piece {
        CommandPiece::Text(text) => text,
        CommandPiece::Run { line, refused: Some(why), .. } => format!("{} (not run: {why})", code(&line)),
        CommandPiece::Run { line, .. } => {
            format!("(run this command first, and use its output: {})", code(&line))
        }
    };
    command.pieces_with(words, &pastes(attachments)).into_iter().map(piece).collect()
}

/// The labels and texts of what the user pasted.
fn pastes(attachments: &[Attachment]) -> Vec<(&str, &str)> {
    let mut all = Vec::new();
    for attachment in attachments {
        if let Attachment::Paste { label, text } = attachment {
            all.push((label.as_str(), &**text));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use tiller_config::agents::Origin;

    use super::*;

    #[test]
    fn a_mark_is_in_no_text_that_was_pasted() {
        let command = OwnCommand {
            name: "look".into(),
            description: String::new(),
            hint: String::new(),
            model: None,
            allowed_tools: Vec::new(),
            from: Origin::User,
            file: "look.md".into(),
            body: "$ARGUMENTS\n!echo $1".into(),
        };
        let text = "[output 0 of /look: command 1]";
        let paste = Attachment::Paste { label: "[paste 1]".into(), text: text.into() };
        let (_, commands) = marked(&command, "[paste 1]", &[paste]);
        assert_eq!(commands.len(), 1);
        assert_eq!(commands[0].line, format!("echo '{text}'"));
        assert_eq!(commands[0].mark, "[output 1 of /look: command 1]");
    }
}
