//! What Enter makes of the text: a message, a `/` command, a `!` line.

use tiller_protocol::command::TurnCommand;
use tiller_protocol::{CommandBody, Message, SendMode};

use crate::effect::Effect;
use crate::model::Model;
use crate::slash;

/// What to do with a text that is sent.
pub(crate) enum Sent {
    /// To the engine, as a message; comes back when it is refused.
    Message(CommandBody),
    /// Done at once by these.
    Effects(Vec<Effect>),
    /// Nothing is done, and the text stays: why.
    Stay(String),
}

/// Reads the text as the person meant it.
pub(crate) fn submit(message: &Message, mode: SendMode, model: &Model) -> Sent {
    let text = message.text.trim();
    if let Some(line) = text.strip_prefix("!!") {
        return shell(line, false);
    }
    if let Some(line) = text.strip_prefix('!') {
        return shell(line, true);
    }
    // A heading of a longer text is no note, and with a space before it the line is for the model.
    if message.text.starts_with("# ") && !text.contains('\n') {
        return Sent::Stay(
            "# notes come with memory, later; use AGENTS.md. A space before # sends it.".into(),
        );
    }
    if let Some((name, args)) = slash::parse(text) {
        return match slash::find(name) {
            Some(command) => match command.run(args, model) {
                Ok(effects) => Sent::Effects(effects),
                Err(why) => Sent::Stay(why),
            },
            None => Sent::Stay(slash::unknown(name)),
        };
    }
    if model.session.read_only {
        return Sent::Stay(
            "This session is open read-only, so nothing can be sent. In /sessions it can be forked: then go on there.".into(),
        );
    }
    if let Some(name) = agent(text, model) {
        return match crate::panel::agents::spawned(text) {
            Ok(spawn) => Sent::Message(CommandBody::Agent(spawn)),
            Err(_) => Sent::Stay(format!("Write behind @{name} what it is to do.")),
        };
    }
    Sent::Message(CommandBody::Turn(TurnCommand::Submit { message: message.clone(), mode }))
}

/// The kind of agent that the text begins with: a fresh one gets it.
fn agent<'t>(text: &'t str, model: &Model) -> Option<&'t str> {
    let name = text.strip_prefix('@')?.split(char::is_whitespace).next()?;
    model.kinds.iter().any(|k| k.name == name).then_some(name)
}

fn shell(line: &str, share: bool) -> Sent {
    let line = line.trim();
    if line.is_empty() {
        return Sent::Stay(
            "Type a command behind the !, for instance !git status. Two !! keep it from the agent.".into(),
        );
    }
    Sent::Effects(vec![Effect::Send(CommandBody::Turn(TurnCommand::Shell { line: line.into(), share }))])
}
