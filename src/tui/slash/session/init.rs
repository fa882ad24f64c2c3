//! `/init`.

use tiller_protocol::command::TurnCommand;
use tiller_protocol::{CommandBody, Message, SendMode};

use crate::app::effect::Effect;
use crate::model::Model;
use crate::slash::SlashCommand;

/// The prompt for the agent.
const PROMPT: &str = include_str!("../../../../assets/prompts/init.md");

/// `/init`
pub(crate) struct Init;

/// The message of `/init`; `wishes` is what the user typed behind it.
pub fn message(wishes: &str) -> String {
    match wishes.trim() {
        "" => PROMPT.trim().to_owned(),
        wishes => format!("{}\n\nThe user adds: {wishes}", PROMPT.trim()),
    }
}

impl SlashCommand for Init {
    fn name(&self) -> &'static str {
        "init"
    }

    fn help(&self) -> &'static str {
        "Let the agent write or amend AGENTS.md for this project"
    }

    fn usage(&self) -> &'static str {
        "/init [WISHES]"
    }

    fn ends(&self) -> bool {
        true
    }

    fn run(&self, args: &str, _model: &Model) -> Result<Vec<Effect>, String> {
        let message = Message::text(message(args));
        Ok(vec![Effect::send(CommandBody::Turn(TurnCommand::Submit { message, mode: SendMode::Steer }))])
    }
}
