//! `/effort`.

use tiller_protocol::command::SessionCommand;
use tiller_protocol::{CommandBody, Effort};

use crate::app::effect::Effect;
use crate::model::Model;
use crate::slash::SlashCommand;

/// `/effort`
pub(crate) struct SetEffort;

impl SlashCommand for SetEffort {
    fn name(&self) -> &'static str {
        "effort"
    }

    fn help(&self) -> &'static str {
        "Set the thinking effort; with a message: for that message only"
    }

    fn usage(&self) -> &'static str {
        "/effort [off|low|medium|high|max|default] [MESSAGE]"
    }

    fn run(&self, args: &str, model: &Model) -> Result<Vec<Effect>, String> {
        if args.is_empty() {
            let view = &model.agent.session.effort;
            let levels: Vec<&str> = view.offered.iter().map(|e| e.word()).collect();
            if levels.is_empty() {
                return Err("This model does not support thinking.".into());
            }
            return Err(format!(
                "The effort is {}. Available: {}; `default` leaves it to the model.",
                view.chosen.word(),
                levels.join(", ")
            ));
        }
        let effort: Effort = args.parse()?;
        Ok(vec![Effect::send(CommandBody::Session(SessionCommand::SetEffort { effort }))])
    }
}

/// The effort and the message of `/effort LEVEL MESSAGE`; `None`: it is for the session.
pub(crate) fn of_message(args: &str) -> Option<(Effort, &str)> {
    let (word, rest) = args.split_once(char::is_whitespace)?;
    let rest = rest.trim_start();
    (!rest.is_empty()).then_some((word.parse().ok()?, rest))
}
