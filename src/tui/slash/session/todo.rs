//! `/todo`.

use tiller_protocol::CommandBody;
use tiller_protocol::command::TodoCommand;

use crate::app::effect::Effect;
use crate::keymap::action::Action;
use crate::model::Model;
use crate::panel::View;
use crate::slash::SlashCommand;

/// `/todo`
pub(crate) struct Todo;

impl SlashCommand for Todo {
    fn name(&self) -> &'static str {
        "todo"
    }

    fn help(&self) -> &'static str {
        "Show the todo list, or add to it"
    }

    fn usage(&self) -> &'static str {
        "/todo [WHAT]"
    }

    fn action(&self) -> Option<Action> {
        Some(Action("view.todo"))
    }

    fn run(&self, args: &str, _model: &Model) -> Result<Vec<Effect>, String> {
        if args.is_empty() {
            return Ok(vec![Effect::Focus(View::Todo)]);
        }
        Ok(vec![Effect::send(CommandBody::Todo(TodoCommand::Add { content: args.to_owned() }))])
    }
}
