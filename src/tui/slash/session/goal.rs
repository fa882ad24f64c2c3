//! `/goal`.

use tiller_protocol::command::GoalCommand;
use tiller_protocol::{CommandBody, Goal, GoalCheck, GoalState, GoalView, Notice, NoticeKind};

use crate::app::effect::Effect;
use crate::model::Model;
use crate::slash::SlashCommand;

/// Turns where none are named.
const TURNS: u32 = 10;

/// `/goal`
pub(crate) struct SetGoal;

impl SlashCommand for SetGoal {
    fn name(&self) -> &'static str {
        "goal"
    }

    fn help(&self) -> &'static str {
        "Let the agent continue on its own until a check passes"
    }

    fn usage(&self) -> &'static str {
        "/goal [--turns N] [--usd X] TEXT [-- COMMAND] | go | stop"
    }

    fn run(&self, args: &str, model: &Model) -> Result<Vec<Effect>, String> {
        let send = |command| Ok(vec![Effect::send(CommandBody::Goal(command))]);
        match args.trim() {
            "" => {
                let text = model
                    .agent
                    .session
                    .goal
                    .as_ref()
                    .map_or_else(|| format!("No goal is set; set one with {}", self.usage()), described);
                Ok(vec![Effect::Toast(Notice::new(NoticeKind::Info, text))])
            }
            "go" => send(GoalCommand::Go),
            "stop" => send(GoalCommand::Stop),
            args => send(GoalCommand::Set { goal: read(args)? }),
        }
    }
}

/// Where it stands, in a line.
pub(crate) fn described(v: &GoalView) -> String {
    let state = match v.state {
        GoalState::Working => "works",
        GoalState::Checking => "checking",
        GoalState::Stopped => "stopped",
        GoalState::Reached => "reached",
    };
    let spent = v.spent.map_or("cost unknown".to_owned(), |c| c.to_string());
    let of = v.goal.usd.map(|usd| format!(" of ${usd:.2}")).unwrap_or_default();
    let check = match &v.goal.check {
        GoalCheck::Command { line } => format!("checked by: {line}"),
        GoalCheck::Judge => "checked by a model".to_owned(),
    };
    let last = if v.last.is_empty() { String::new() } else { format!("; {}", v.last) };
    let text = format!(
        "goal {state}, turn {} of {}, {spent}{of}; {check}{last}: {}",
        v.done, v.goal.turns, v.goal.text
    );
    crate::text::clean::plain(&text).into_owned()
}

/// Reads what is written behind `/goal`.
fn read(args: &str) -> Result<Goal, String> {
    let (mut rest, mut turns, mut usd) = (args.trim(), TURNS, None);
    while let Some(option) = rest.strip_prefix("--").filter(|o| !o.starts_with(char::is_whitespace)) {
        let mut words = option.splitn(3, char::is_whitespace);
        let (name, value) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        match name {
            "turns" => turns = value.parse().map_err(|_| "--turns needs a number of turns".to_owned())?,
            "usd" => {
                let value = value.trim_start_matches('$');
                usd = Some(value.parse().map_err(|_| "--usd needs an amount in dollars".to_owned())?);
            }
            _ => return Err(format!("Unknown option --{name}: use --turns N or --usd X")),
        }
        rest = words.next().unwrap_or_default().trim_start();
    }
    let (text, check) = match rest.split_once(" -- ") {
        Some((text, line)) => (text, GoalCheck::Command { line: line.trim().to_owned() }),
        None => (rest, GoalCheck::Judge),
    };
    if text.trim().is_empty() || text.starts_with("-- ") {
        return Err("Write the goal after the command: /goal TEXT -- COMMAND (COMMAND is the check)".into());
    }
    Ok(Goal { text: text.trim().to_owned(), check, turns, usd })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_text_and_check_are_told_apart() {
        let goal = |text: &str, check: Option<&str>, turns, usd| Goal {
            text: text.into(),
            check: check.map_or(GoalCheck::Judge, |line| GoalCheck::Command { line: line.into() }),
            turns,
            usd,
        };
        assert_eq!(
            read("all tests pass -- cargo test -- --nocapture"),
            Ok(goal("all tests pass", Some("cargo test -- --nocapture"), 10, None))
        );
        assert_eq!(read("--turns 3 --usd $0.50 it is tidy"), Ok(goal("it is tidy", None, 3, Some(0.5))));
        for wrong in ["--turns x y", "--usd y", "--size 3 y", "--turns 3", " -- make"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
