//! `/permissions`.

use tiller_protocol::command::SessionCommand;
use tiller_protocol::{CommandBody, Profile};

use crate::app::effect::Effect;
use crate::keymap::action::Action;
use crate::model::Model;
use crate::slash::SlashCommand;

/// `/permissions`
pub(crate) struct Permissions;

impl SlashCommand for Permissions {
    fn name(&self) -> &'static str {
        "permissions"
    }

    fn help(&self) -> &'static str {
        "Change what runs without asking"
    }

    fn usage(&self) -> &'static str {
        "/permissions [read-only|plan|ask|auto-edit|full]"
    }

    fn action(&self) -> Option<Action> {
        Some(Action("profile.open"))
    }

    fn run(&self, args: &str, _model: &Model) -> Result<Vec<Effect>, String> {
        if args.is_empty() || args == "full" {
            // The list asks again before the most permissive one.
            return Ok(vec![Effect::Act(Action("profile.open"))]);
        }
        let profile: Profile = args.parse()?;
        Ok(vec![Effect::send(CommandBody::Session(SessionCommand::SetProfile { profile }))])
    }
}
