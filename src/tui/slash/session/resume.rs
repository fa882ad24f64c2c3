//! `/continue`.

use tiller_protocol::CommandBody;
use tiller_protocol::command::TurnCommand;

use crate::app::effect::Effect;
use crate::model::Model;
use crate::slash::SlashCommand;

/// `/continue`
pub(crate) struct Continue;

impl SlashCommand for Continue {
    fn name(&self) -> &'static str {
        "continue"
    }

    fn help(&self) -> &'static str {
        "Continue a turn that was interrupted or failed"
    }

    fn run(&self, _args: &str, model: &Model) -> Result<Vec<Effect>, String> {
        if model.agent.turn.running {
            return Err("A turn is already running.".into());
        }
        Ok(vec![Effect::send(CommandBody::Turn(TurnCommand::Continue))])
    }
}
