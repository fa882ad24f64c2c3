//! `/spawn`.

use tiller_protocol::CommandBody;

use crate::app::effect::Effect;
use crate::keymap::action::Action;
use crate::model::Model;
use crate::slash::SlashCommand;

/// `/spawn`
pub(crate) struct Spawn;

impl SlashCommand for Spawn {
    fn name(&self) -> &'static str {
        "spawn"
    }

    fn help(&self) -> &'static str {
        "Start an agent in the background (@coder, @claude, @codex:pty, ...)"
    }

    fn usage(&self) -> &'static str {
        "/spawn [@NAME] GOAL"
    }

    fn action(&self) -> Option<Action> {
        Some(Action("spawn.open"))
    }

    fn run(&self, args: &str, _model: &Model) -> Result<Vec<Effect>, String> {
        if args.is_empty() {
            return Ok(vec![Effect::Act(Action("spawn.open"))]);
        }
        Ok(vec![Effect::send(CommandBody::Agent(crate::panel::agents::spawned(args)?))])
    }
}
