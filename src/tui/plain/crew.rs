//! Agents in plain mode: their list, and the commands for one of them.

use tiller_protocol::command::TurnCommand;
use tiller_protocol::{AgentCommand, AgentId, CommandBody, Message, SendMode};

use super::Plain;

/// Shown in the list of commands.
pub(super) const HELP: &str =
    "state of the agents; agents pause, resume, stop, retry or background NAME (a1)";
pub(super) const TELL: &str = "tell NAME TEXT: send a message to an agent";

/// Runs the command in the rest of the line.
pub(super) fn run(p: &mut Plain, text: &str) -> Result<(), String> {
    let (verb, name) = text.split_once(' ').unwrap_or((text, ""));
    if verb.is_empty() {
        let lines: Vec<String> = p
            .model
            .crew
            .agents
            .iter()
            .map(|a| {
                format!("{}: {} {}", p.model.name_of(&a.id), a.state.word(), a.act).trim_end().to_owned()
            })
            .collect();
        p.say(&format!("Agents: {}\n{}", lines.len(), lines.join("\n")));
        return Ok(());
    }
    let id = named(p, name)?;
    let command = match verb {
        "pause" => AgentCommand::Pause { id },
        "resume" => AgentCommand::Resume { id },
        "stop" => AgentCommand::Cancel { id, subtree: true },
        "retry" => AgentCommand::Retry { id, note: None },
        "background" => AgentCommand::Background { id },
        _ => return Err("use pause, resume, stop, retry or background".into()),
    };
    p.send(CommandBody::Agent(command));
    Ok(())
}

/// A message to one of them; it says itself when it is delivered.
pub(super) fn tell(p: &mut Plain, text: &str) -> Result<(), String> {
    let (name, words) = text.split_once(' ').unwrap_or((text, ""));
    let id = named(p, name)?;
    if words.trim().is_empty() {
        return Err("write a text after it".into());
    }
    let message = Message::text(words.trim());
    p.send_to(Some(id), CommandBody::Turn(TurnCommand::Submit { message, mode: SendMode::Steer }));
    Ok(())
}

fn named(p: &Plain, name: &str) -> Result<AgentId, String> {
    let children = || p.model.crew.agents.iter().filter(|a| !a.id.is_main());
    let found =
        children().find(|a| a.id.name() == name.trim() || a.label == name.trim()).map(|a| a.id.clone());
    found.ok_or_else(|| {
        let names: Vec<&str> = children().map(|a| a.id.name()).collect();
        match names.is_empty() {
            true => "there are no agents".into(),
            false => format!("name an agent: {}", names.join(", ")),
        }
    })
}
