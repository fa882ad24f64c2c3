//! The use that Enter makes of the text: send a message, run a `/` command, run a `!` line.

use tiller_protocol::command::TurnCommand;
use tiller_protocol::{Attachment, CommandBody, Message, SendMode};

use crate::app::effect::Effect;
use crate::model::Model;
use crate::slash::{self, Commands};

/// The action for a text that is sent.
pub(crate) enum SubmitAction {
    /// To the engine, as a message; comes back when it is refused.
    Message(CommandBody),
    /// Done at once by these.
    Effects(Vec<Effect>),
    /// Nothing is done, and the text stays: why.
    Stay(String),
}

/// The text that goes to memory and to no model. A heading of a longer text is none, and with a space before it the line is
/// for the model.
pub(super) fn note(text: &str) -> Option<&str> {
    let rest = text.strip_prefix('#')?;
    (!rest.starts_with('#') && !text.trim().contains('\n')).then(|| rest.trim())
}

/// Why a message with a pasted block or an image cannot be `what`, which has only text: it would be lost.
pub(super) fn cannot_go(message: &Message, what: &str) -> Option<String> {
    let lost = |a: &&Attachment| matches!(a, Attachment::Paste { .. } | Attachment::Image { .. });
    let label = message.attachments.iter().find(lost)?.label();
    Some(format!("{label} cannot be part of {what}: remove it, or send it in a message."))
}

/// Interprets the text.
pub(crate) fn submit(message: &Message, mode: SendMode, commands: Commands, model: &Model) -> SubmitAction {
    let text = message.text.trim();
    if let Some(line) = text.strip_prefix('!') {
        let (line, share) = line.strip_prefix('!').map_or((line, true), |line| (line, false));
        return match cannot_go(message, "a shell command") {
            Some(why) => SubmitAction::Stay(why),
            None => shell(line, share),
        };
    }
    if let Some(("effort", args)) = slash::parse(text)
        && let Some((effort, words)) = slash::settings::effort::of_message(args)
        && !model.agent.session.read_only
    {
        let message = Message { text: words.to_owned(), effort: Some(effort), ..message.clone() };
        return SubmitAction::Message(CommandBody::Turn(TurnCommand::Submit { message, mode }));
    }
    if let Some((name, args)) = slash::parse(text) {
        return match commands.find(name) {
            Some(command) => match command.run(args, model) {
                Ok(effects) => SubmitAction::Effects(effects),
                Err(why) => SubmitAction::Stay(why),
            },
            None => SubmitAction::Stay(commands.unknown(name)),
        };
    }
    if model.agent.session.read_only {
        return SubmitAction::Stay(
            "This session is open read-only, so nothing can be sent. Fork it in /sessions and continue there.".into(),
        );
    }
    if let Some(name) = agent(text, model) {
        if let Some(why) = cannot_go(message, "a task for a new agent") {
            return SubmitAction::Stay(why);
        }
        return match crate::panel::agents::spawned(text) {
            Ok(spawn) => SubmitAction::Message(CommandBody::Agent(spawn)),
            Err(_) => SubmitAction::Stay(format!("Write the task after @{name}.")),
        };
    }
    // A resource of a server that was chosen from the list may be called like an agent.
    let chosen = |a: &Attachment| text.starts_with(a.label()) && a.label().starts_with('@');
    if !message.attachments.iter().any(chosen)
        && let Some(why) = no_agent(text, model)
    {
        return SubmitAction::Stay(why);
    }
    SubmitAction::Message(CommandBody::Turn(TurnCommand::Submit { message: message.clone(), mode }))
}

/// The text begins with a name that is nearly that of an agent or a program: it would go to the main agent, as words.
fn no_agent(text: &str, model: &Model) -> Option<String> {
    let name = text.strip_prefix('@')?.split(char::is_whitespace).next()?;
    let plain = |c: char| c.is_ascii_lowercase() || c == '-';
    let own = name.split(':').next().unwrap_or(name);
    if own.len() < 3 || !own.chars().all(plain) || matches!(own, "diff" | "session") {
        return None;
    }
    let programs = tiller_config::agents::DefinitionContext::CLIS;
    if programs.contains(&own) {
        return Some(format!("@{name} is an external program: start it with /spawn @{name} TASK."));
    }
    let kinds = model.crew.kinds.iter().map(|k| k.name.as_str());
    let near = crate::keymap::nearest(own, kinds.chain(programs.iter().copied()));
    (!near.is_empty()).then(|| {
        format!("There is no agent @{name}{near} To send it as plain text, put a space before the @.")
    })
}

/// The kind of agent that the text begins with: a fresh one gets it.
fn agent<'t>(text: &'t str, model: &Model) -> Option<&'t str> {
    let name = text.strip_prefix('@')?.split(char::is_whitespace).next()?;
    model.crew.kinds.iter().any(|k| k.name == name).then_some(name)
}

fn shell(line: &str, share: bool) -> SubmitAction {
    let line = line.trim();
    if line.is_empty() {
        return SubmitAction::Stay(
            "Type a command after the !, for example !git status. With !! the agent does not see it.".into(),
        );
    }
    SubmitAction::Effects(vec![Effect::send(CommandBody::Turn(TurnCommand::Shell {
        line: line.into(),
        share,
    }))])
}
