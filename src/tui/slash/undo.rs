//! `/undo` and `/redo`: the last restore of files.

use tiller_protocol::CommandBody;
use tiller_protocol::command::SessionCommand;

use super::SlashCommand;
use crate::effect::Effect;
use crate::model::Model;

/// `/undo`; with `true`, `/redo`.
pub(super) struct Undo(pub(super) bool);

impl SlashCommand for Undo {
    fn name(&self) -> &'static str {
        if self.0 { "redo" } else { "undo" }
    }

    fn help(&self) -> &'static str {
        if self.0 { "Restore the files again, after /undo" } else { "Take the last restore of files back" }
    }

    fn run(&self, _args: &str, _model: &Model) -> Result<Vec<Effect>, String> {
        Ok(vec![Effect::Send(CommandBody::Session(SessionCommand::UndoRestore { redo: self.0 }))])
    }
}
