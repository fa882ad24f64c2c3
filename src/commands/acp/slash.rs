//! Slash commands, listed for the client.

use serde_json::{Value, json};
use tiller_protocol::CommandBody;
use tiller_protocol::command::{ContextCommand, SessionCommand};
use tiller_protocol::skill::CommandRow;

/// Name, description, and argument.
const ALL: &[(&str, &str, Option<&str>)] = &[
    ("checkpoint", "Create a checkpoint of conversation and files", Some("name")),
    ("compact", "Compact the conversation so far", Some("what the summary must keep")),
    ("redo", "Redo the last undone operation", None),
    ("undo", "Undo the last operation: a restore, a branch, a compaction, a name", None),
];

/// The update that lists them, and the commands from files that are used. `own`: as the engine last read them.
pub(super) fn offered(own: &[CommandRow]) -> Value {
    let command = |name: &str, about: &str, hint: Option<&str>| {
        let mut command = json!({"name": name, "description": about});
        if let Some(hint) = hint {
            command["input"] = json!({"hint": hint});
        }
        command
    };
    let ours = ALL.iter().map(|(name, about, hint)| command(name, about, *hint));
    let free = |row: &&CommandRow| row.unused.is_empty() && ALL.iter().all(|(name, ..)| *name != row.name);
    let own = own.iter().filter(free).map(|row| {
        let about = if row.description.is_empty() { "Send a prompt from a file" } else { &row.description };
        // Words that are not announced are accepted too.
        command(&row.name, about, Some(row.hint.as_str()).filter(|hint| !hint.is_empty()))
    });
    let commands: Vec<Value> = ours.chain(own).collect();
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
    fn commands_from_files_are_listed_where_they_are_used() {
        let row = |name: &str, hint: &str, unused: &str| CommandRow {
            name: name.into(),
            hint: hint.into(),
            unused: unused.into(),
            ..CommandRow::default()
        };
        let own = [row("deploy", "[stage]", ""), row("kept", "", "not trusted"), row("undo", "", "")];
        let update = offered(&own);
        let listed = update["availableCommands"].as_array().unwrap();
        assert_eq!(listed.len(), ALL.len() + 1, "{update}");
        assert_eq!(listed[ALL.len()]["name"], "deploy");
        assert_eq!(listed[ALL.len()]["input"]["hint"], "[stage]");
    }

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
