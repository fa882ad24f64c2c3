//! `/checkpoint`.

use tiller_protocol::CommandBody;
use tiller_protocol::command::SessionCommand;

use crate::app::effect::Effect;
use crate::model::Model;
use crate::slash::SlashCommand;

/// `/checkpoint`
pub(crate) struct Checkpoint;

impl SlashCommand for Checkpoint {
    fn name(&self) -> &'static str {
        "checkpoint"
    }

    fn help(&self) -> &'static str {
        "Create a checkpoint of conversation and files"
    }

    fn usage(&self) -> &'static str {
        "/checkpoint NAME"
    }

    fn run(&self, args: &str, _model: &Model) -> Result<Vec<Effect>, String> {
        if args.is_empty() {
            return Err("Write a name after the command: /checkpoint NAME".into());
        }
        let name = args.to_owned();
        Ok(vec![Effect::send(CommandBody::Session(SessionCommand::Checkpoint { name }))])
    }
}
