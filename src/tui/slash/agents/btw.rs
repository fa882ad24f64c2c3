//! `/btw`.

use crate::app::effect::Effect;
use crate::dialog::reader::aside::Aside;
use crate::model::Model;
use crate::slash::SlashCommand;

/// `/btw`
pub(crate) struct Btw;

impl SlashCommand for Btw {
    fn name(&self) -> &'static str {
        "btw"
    }

    fn help(&self) -> &'static str {
        "Ask a side question; the conversation does not change"
    }

    fn usage(&self) -> &'static str {
        "/btw QUESTION"
    }

    fn run(&self, args: &str, _model: &Model) -> Result<Vec<Effect>, String> {
        if args.is_empty() {
            return Err("Write the question after the command: /btw QUESTION".into());
        }
        Ok(vec![Effect::Push(Box::new(Aside::new(args)))])
    }
}
