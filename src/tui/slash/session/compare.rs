//! `/compare`.

use crate::app::effect::Effect;
use crate::dialog::session::compare::pick;
use crate::model::Model;
use crate::slash::SlashCommand;

/// `/compare`
pub(crate) struct Compare;

impl SlashCommand for Compare {
    fn name(&self) -> &'static str {
        "compare"
    }

    fn help(&self) -> &'static str {
        "Compare this branch with another: messages, files, cost, a command"
    }

    fn usage(&self) -> &'static str {
        "/compare [BRANCH]"
    }

    fn run(&self, args: &str, _model: &Model) -> Result<Vec<Effect>, String> {
        Ok(vec![Effect::Push(Box::new(pick::open().filtered(args)))])
    }
}
