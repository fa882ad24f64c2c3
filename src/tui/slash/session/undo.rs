//! `/undo` and `/redo`: the last operation, of any kind.

use tiller_protocol::CommandBody;
use tiller_protocol::command::SessionCommand;

use crate::app::effect::Effect;
use crate::model::Model;
use crate::slash::SlashCommand;

/// `/undo`; with `true`, `/redo`.
pub(crate) struct Undo(pub(crate) bool);

impl SlashCommand for Undo {
    fn name(&self) -> &'static str {
        if self.0 { "redo" } else { "undo" }
    }

    fn help(&self) -> &'static str {
        match self.0 {
            true => "Redo what /undo reverted",
            false => "Undo the last turn's files, or the last branch, restore or summary",
        }
    }

    fn ends(&self) -> bool {
        true
    }

    fn run(&self, _args: &str, _model: &Model) -> Result<Vec<Effect>, String> {
        Ok(vec![Effect::send(CommandBody::Session(SessionCommand::UndoOp { redo: self.0 }))])
    }
}
