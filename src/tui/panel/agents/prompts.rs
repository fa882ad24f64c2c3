//! Dialogs that ask for a text about an agent: a message, a task for a new agent, limits.

use tiller_protocol::command::TurnCommand;
use tiller_protocol::{AgentCommand, AgentId, AgentLimits, AgentView, CommandBody, Cost, Message, SendMode};

use super::keys::say;
use super::totals;
use crate::app::effect::{Effect, Token};
use crate::dialog::text_prompt::TextPrompt;
use crate::model::Model;
use crate::panel::Reply;

/// Receives the answers to these dialogs.
const WORDS: Token = Token(1);

/// The dialog for a message to an agent.
pub(crate) fn message(model: &Model, id: AgentId) -> TextPrompt {
    let title = format!("Message to {}", model.name_of(&id));
    let at_work = model.row(&id).is_some_and(|a| a.state.at_work());
    let child = model.row(&id).and_then(|a| a.child.as_ref());
    let about = match (at_work, child) {
        (false, _) => "It continues with this message",
        (true, Some(c)) if c.pane.is_some() => "Typed into the program as soon as it is idle",
        (true, Some(c)) if c.backend.is_external() => "Delivered when its turn ends",
        (true, _) => "Delivered at its next step",
    };
    let then = move |text: &str| {
        if text.is_empty() {
            return Err("Write the message first".into());
        }
        let submit = TurnCommand::Submit { message: Message::text(text), mode: SendMode::Steer };
        Ok(vec![Effect::ask_of(id.clone(), CommandBody::Turn(submit), WORDS)])
    };
    TextPrompt::new(&title, about, "", Box::new(then))
}

/// The dialog that starts an agent by hand.
pub(crate) fn spawn() -> TextPrompt {
    let about = "The task; start with @NAME for a kind of agent (@coder, @explorer, ...)";
    let then = |text: &str| Ok(vec![Effect::ask(CommandBody::Agent(spawned(text)?), WORDS)]);
    TextPrompt::new("Start an agent", about, "", Box::new(then))
}

/// `@coder GOAL`, or only the goal.
///
/// # Errors
/// When no goal is there.
pub(crate) fn spawned(text: &str) -> Result<AgentCommand, String> {
    let text = text.trim();
    let (role, goal) = match text.strip_prefix('@') {
        Some(rest) => {
            let (role, goal) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            (Some(role.to_owned()).filter(|r| !r.is_empty()), goal.trim())
        }
        None => (None, text),
    };
    if goal.is_empty() {
        return Err("Write the task: @NAME GOAL, or only the goal".into());
    }
    Ok(AgentCommand::Spawn { goal: goal.to_owned(), role, model: None, cli: None, isolated: false })
}

/// Opens the dialog for a note to retry an agent, or says that the agent is still working.
pub(super) fn retry(a: &AgentView, name: &str) -> Reply {
    if !totals::ended(a.state) {
        return say(format!("{name} is working; end it first, or write to it"));
    }
    let id = a.id.clone();
    let then = move |text: &str| {
        let note = Some(text.to_owned()).filter(|t| !t.is_empty());
        Ok(vec![Effect::ask(CommandBody::Agent(AgentCommand::Retry { id: id.clone(), note }), WORDS)])
    };
    let about = "Runs the same task as a new agent; you can add a note";
    Reply::with(Effect::Push(Box::new(TextPrompt::new(&format!("Retry {name}"), about, "", Box::new(then)))))
}

/// Opens the dialog for the limits of an agent.
pub(crate) fn raise(a: &AgentView, name: &str) -> Reply {
    let limits = a.child.as_ref().map(|c| c.limits).unwrap_or_default();
    let id = a.id.clone();
    let then = move |text: &str| {
        let limits = limits_of(text)?;
        Ok(vec![Effect::ask(CommandBody::Agent(AgentCommand::Raise { id: id.clone(), limits }), WORDS)])
    };
    let about = "requests, seconds, tokens, cost in US dollars; omitted limits stay as they are";
    let words = TextPrompt::new(&format!("Limits of {name}"), about, &limits_text(&limits), Box::new(then));
    Reply::with(Effect::Push(Box::new(words)))
}

/// As [`limits_of`] reads them.
fn limits_text(l: &AgentLimits) -> String {
    let part = |word: &str, n: Option<String>| n.map(|n| format!("{word} {n}"));
    let all = [
        part("requests", l.turns.map(|n| n.to_string())),
        part("seconds", l.seconds.map(|n| n.to_string())),
        part("tokens", l.tokens.map(|n| n.to_string())),
        part("cost", l.cost.map(|c| format!("{:.2}", c.usd()))),
    ];
    all.into_iter().flatten().collect::<Vec<_>>().join("  ")
}

/// `turns 40 cost 0.50`. What is not named stays as it is.
fn limits_of(text: &str) -> Result<AgentLimits, String> {
    let mut limits = AgentLimits::default();
    let mut words = text.split([' ', '\n', '\t', ',', '=', ':']).filter(|w| !w.is_empty());
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| format!("A number is missing after '{word}'"))?;
        let whole = || {
            let n = value.parse::<u64>().ok().filter(|n| *n > 0);
            n.ok_or_else(|| format!("'{value}' is not a whole number of at least 1"))
        };
        match word {
            "requests" | "turns" => {
                let n = u32::try_from(whole()?).map_err(|_| format!("'{value}' is too large"))?;
                limits.turns = Some(n);
            }
            "seconds" => limits.seconds = Some(whole()?),
            "tokens" => limits.tokens = Some(whole()?),
            "cost" => {
                let usd = value.trim_start_matches('$').parse::<f64>().ok();
                let usd = usd.filter(|n| n.is_finite() && *n >= 0.0);
                limits.cost = Some(Cost::from_usd(
                    usd.ok_or_else(|| format!("'{value}' is not an amount in dollars"))?,
                ));
            }
            other => return Err(format!("Unknown limit '{other}'; use requests, seconds, tokens or cost")),
        }
    }
    if limits.is_empty() {
        Err("Enter a limit and a number: requests 40, cost 0.50".into())
    } else {
        Ok(limits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_as_they_are_written() {
        let all = AgentLimits {
            turns: Some(40),
            seconds: Some(900),
            tokens: Some(400_000),
            cost: Some(Cost::from_usd(0.5)),
        };
        assert_eq!(limits_of(&limits_text(&all)), Ok(all));
        assert_eq!(
            limits_of("cost=$2, turns: 3").map(|l| (l.cost, l.turns)),
            Ok((Some(Cost::from_usd(2.0)), Some(3)))
        );
        for (text, why) in [
            ("", "Enter a limit and a number: requests 40, cost 0.50"),
            ("turns", "A number is missing after 'turns'"),
            ("turns 0", "'0' is not a whole number of at least 1"),
            ("turns 99999999999", "'99999999999' is too large"),
            ("cost -1", "'-1' is not an amount in dollars"),
            ("cost NaN", "'NaN' is not an amount in dollars"),
            ("depth 3", "Unknown limit 'depth'; use requests, seconds, tokens or cost"),
        ] {
            assert_eq!(limits_of(text), Err(why.to_owned()), "{text}");
        }
    }

    #[test]
    fn a_kind_of_agent_stands_before_the_goal() {
        let of = |text: &str| match spawned(text) {
            Ok(AgentCommand::Spawn { goal, role, .. }) => Ok((role, goal)),
            Ok(other) => panic!("{other:?}"),
            Err(why) => Err(why),
        };
        assert_eq!(of("@coder mend it\nall"), Ok((Some("coder".into()), "mend it\nall".into())));
        assert_eq!(of("mend @it"), Ok((None, "mend @it".into())));
        assert!(of("@coder ").is_err() && of("  ").is_err());
    }
}
