//! Commands that perform an action.

use super::SlashCommand;
use crate::app::effect::Effect;
use crate::keymap::action::Action;
use crate::model::Model;

/// Name, help, and the action that it stands for.
pub(super) struct Alias(pub &'static str, pub &'static str, pub &'static str);

impl SlashCommand for Alias {
    fn name(&self) -> &'static str {
        self.0
    }

    fn help(&self) -> &'static str {
        self.1
    }

    fn action(&self) -> Option<Action> {
        Some(Action(self.2))
    }

    fn run(&self, _args: &str, _model: &Model) -> Result<Vec<Effect>, String> {
        Ok(vec![Effect::Act(Action(self.2))])
    }
}
