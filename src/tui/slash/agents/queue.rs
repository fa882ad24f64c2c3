//! `/queue`.

use tiller_protocol::command::TurnCommand;
use tiller_protocol::{CommandBody, Message, SendMode};

use crate::app::effect::Effect;
use crate::model::Model;
use crate::slash::SlashCommand;

/// `/queue`
pub(crate) struct Queue;

impl SlashCommand for Queue {
    fn name(&self) -> &'static str {
        "queue"
    }

    fn help(&self) -> &'static str {
        "Queue a message as a separate turn after this one"
    }

    fn usage(&self) -> &'static str {
        "/queue MESSAGE"
    }

    fn run(&self, args: &str, _model: &Model) -> Result<Vec<Effect>, String> {
        if args.is_empty() {
            return Err("Write the message after the command: /queue MESSAGE".into());
        }
        let message = Message::text(args);
        Ok(vec![Effect::send(CommandBody::Turn(TurnCommand::Submit { message, mode: SendMode::Queue }))])
    }
}
