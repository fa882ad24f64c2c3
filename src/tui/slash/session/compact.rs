//! `/compact`.

use tiller_protocol::CommandBody;
use tiller_protocol::command::ContextCommand;

use crate::app::effect::Effect;
use crate::keymap::action::Action;
use crate::model::Model;
use crate::slash::SlashCommand;

/// `/compact`
pub(crate) struct Compact;

impl SlashCommand for Compact {
    fn name(&self) -> &'static str {
        "compact"
    }

    fn help(&self) -> &'static str {
        "Compact the conversation to free context"
    }

    fn usage(&self) -> &'static str {
        "/compact [WHAT TO KEEP]"
    }

    fn action(&self) -> Option<Action> {
        Some(Action("compact.open"))
    }

    fn ends(&self) -> bool {
        true
    }

    fn run(&self, args: &str, model: &Model) -> Result<Vec<Effect>, String> {
        if model.agent.turn.running {
            return Err("A turn is running. Stop it first (Esc), or wait until it ends.".into());
        }
        if args.is_empty() {
            return Ok(vec![Effect::Act(Action("compact.open"))]);
        }
        let focus = Some(args.to_owned());
        Ok(vec![Effect::send(CommandBody::Context(ContextCommand::Compact { focus }))])
    }
}
