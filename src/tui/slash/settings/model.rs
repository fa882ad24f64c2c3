//! `/model`.

use tiller_protocol::command::SessionCommand;
use tiller_protocol::{CommandBody, ModelRef};

use crate::app::effect::Effect;
use crate::keymap::action::Action;
use crate::model::Model;
use crate::slash::SlashCommand;

/// `/model`
pub(crate) struct PickModel;

impl SlashCommand for PickModel {
    fn name(&self) -> &'static str {
        "model"
    }

    fn help(&self) -> &'static str {
        "Change the model"
    }

    fn usage(&self) -> &'static str {
        "/model [PROVIDER/MODEL]"
    }

    fn action(&self) -> Option<Action> {
        Some(Action("model.open"))
    }

    fn run(&self, args: &str, _model: &Model) -> Result<Vec<Effect>, String> {
        if args.is_empty() {
            return Ok(vec![Effect::Act(Action("model.open"))]);
        }
        if !args.contains('/') {
            return Err("Write it as provider/model, or use /model alone to choose from a list.".into());
        }
        let model = ModelRef(args.to_owned());
        Ok(vec![Effect::send(CommandBody::Session(SessionCommand::SetModel { model }))])
    }
}
