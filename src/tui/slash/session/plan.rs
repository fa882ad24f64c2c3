//! `/plan`.

use tiller_protocol::command::{SessionCommand, TurnCommand};
use tiller_protocol::{CommandBody, Message, Profile, SendMode};

use crate::app::effect::Effect;
use crate::model::Model;
use crate::slash::SlashCommand;

/// `/plan`
pub(crate) struct Plan;

impl SlashCommand for Plan {
    fn name(&self) -> &'static str {
        "plan"
    }

    fn help(&self) -> &'static str {
        "Plan first: no edits or commands until you approve the plan"
    }

    fn usage(&self) -> &'static str {
        "/plan [WHAT]"
    }

    fn run(&self, args: &str, model: &Model) -> Result<Vec<Effect>, String> {
        if model.agent.session.profile == Profile::Plan && args.is_empty() {
            return Err("Planning is already on: write what to plan, or leave with /permissions".into());
        }
        let set = SessionCommand::SetProfile { profile: Profile::Plan };
        let mut effects = vec![Effect::send(CommandBody::Session(set))];
        if !args.is_empty() {
            let message = Message::text(args);
            let say = TurnCommand::Submit { message, mode: SendMode::Steer };
            effects.push(Effect::send(CommandBody::Turn(say)));
        }
        Ok(effects)
    }
}
