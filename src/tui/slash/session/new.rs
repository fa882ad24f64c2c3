//! `/new`.

use tiller_protocol::CommandBody;
use tiller_protocol::command::SessionCommand;

use crate::app::effect::Effect;
use crate::keymap::action::Action;
use crate::model::Model;
use crate::slash::SlashCommand;

/// `/new`
pub(crate) struct New;

impl SlashCommand for New {
    fn name(&self) -> &'static str {
        "new"
    }

    fn help(&self) -> &'static str {
        "Start a new session; this one is kept"
    }

    fn action(&self) -> Option<Action> {
        Some(Action("session.new"))
    }

    fn ends(&self) -> bool {
        true
    }

    fn run(&self, _args: &str, _model: &Model) -> Result<Vec<Effect>, String> {
        Ok(vec![Effect::send(CommandBody::Session(SessionCommand::New))])
    }
}
