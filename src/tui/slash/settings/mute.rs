//! `/mute`.

use crate::app::effect::Effect;
use crate::model::Model;
use crate::panel::View;
use crate::panel::watch;
use crate::slash::SlashCommand;

/// `/mute`
pub(crate) struct Mute;

impl SlashCommand for Mute {
    fn name(&self) -> &'static str {
        "mute"
    }

    fn help(&self) -> &'static str {
        "Hide a path in the feed, or show it again"
    }

    fn usage(&self) -> &'static str {
        "/mute [PATH]"
    }

    fn run(&self, args: &str, _model: &Model) -> Result<Vec<Effect>, String> {
        let path = args.trim_start_matches('@').trim_start_matches("./").trim_end_matches('/');
        let path = (!path.is_empty()).then(|| path.to_owned());
        Ok(vec![Effect::Tell(View::Watch, Box::new(watch::Mute(path)))])
    }
}
