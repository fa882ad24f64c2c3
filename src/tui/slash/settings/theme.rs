//! `/theme`.

use crate::app::effect::{Effect, SettingsChange};
use crate::keymap::action::Action;
use crate::model::Model;
use crate::slash::SlashCommand;

/// `/theme`
pub(crate) struct Theme;

impl SlashCommand for Theme {
    fn name(&self) -> &'static str {
        "theme"
    }

    fn help(&self) -> &'static str {
        "Change the theme"
    }

    fn usage(&self) -> &'static str {
        "/theme [NAME]"
    }

    fn action(&self) -> Option<Action> {
        Some(Action("theme.open"))
    }

    fn run(&self, args: &str, _model: &Model) -> Result<Vec<Effect>, String> {
        if args.is_empty() {
            return Ok(vec![Effect::Act(Action("theme.open"))]);
        }
        Ok(vec![Effect::Settings(SettingsChange::Theme { name: Some(args.to_owned()), keep: true })])
    }
}
