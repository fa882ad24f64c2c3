//! `/stop`.

use crate::app::effect::Effect;
use crate::keymap::action::Action;
use crate::model::Model;
use crate::slash::SlashCommand;

/// `/stop`
pub(crate) struct Stop;

impl SlashCommand for Stop {
    fn name(&self) -> &'static str {
        "stop"
    }

    fn help(&self) -> &'static str {
        "Stop the running turn"
    }

    fn action(&self) -> Option<Action> {
        Some(Action("global.stop"))
    }

    fn ends(&self) -> bool {
        true
    }

    fn run(&self, _args: &str, model: &Model) -> Result<Vec<Effect>, String> {
        if !model.agent.turn.running {
            return Err("No turn is running.".into());
        }
        Ok(vec![Effect::Act(Action("global.stop"))])
    }
}
