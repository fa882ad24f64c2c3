//! Slash commands, listed for the client.

use serde_json::{Value, json};
use tiller_protocol::CommandBody;
use tiller_protocol::command::{ContextCommand, SessionCommand};

/// Name, description, and argument.
const ALL: &[(&str, &str, Option<&str>)] = &[
    ("checkpoint", "Create a checkpoint of conversation and files", Some("name")),
    ("compact", "Compact the conversation so far", Some("what the summary must keep")),
    ("redo", "Redo the last undone operation", None),
    ("undo", "Undo the last operation: a restore, a branch, a compaction, a name", None),
];

/// The update that lists them.
pub(super) fn offered() -> Value {
    let commands: Vec<Value> = ALL
        .iter()
        .map(|(name, about, input)| {
            let mut command = json!({"name": name, "description": about});
            if let Some(hint) = input {
                command["input"] = json!({"hint": hint});
            }
            command
        })
        .collect();
    json!({"sessionUpdate": "available_commands_update", "availableCommands": commands})
}

/// The command in the text, if there is one. Any other text is for the model.
pub(super) fn read(text: &str) -> Option<CommandBody> {
    let (name, rest) =
        text.trim().strip_prefix('/').map(|t| t.split_once(char::is_whitespace).unwrap_or((t, "")))?;
    let rest = rest.trim();
    let session = |c| Some(CommandBody::Session(c));
    match name {
        "checkpoint" => session(SessionCommand::Checkpoint { name: rest.to_owned() }),
        "compact" => {
            let focus = (!rest.is_empty()).then(|| rest.to_owned());
            Some(CommandBody::Context(ContextCommand::Compact { focus }))
        }
        "redo" if rest.is_empty() => session(SessionCommand::UndoOp { redo: true }),
        "undo" if rest.is_empty() => session(SessionCommand::UndoOp { redo: false }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_offered_is_understood_and_the_rest_is_words() {
        for (name, ..) in ALL {
            assert!(read(&format!(" /{name} ")).is_some(), "{name}");
        }
        for text in ["undo", "/undo the last change", "/etc/passwd is what?", "/", "", "/nothing"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
