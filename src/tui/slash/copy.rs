//! `/copy`.

use super::SlashCommand;
use crate::effect::Effect;
use crate::model::Model;
use crate::model::conversation::Body;

/// `/copy`
pub(super) struct Copy;

impl SlashCommand for Copy {
    fn name(&self) -> &'static str {
        "copy"
    }

    fn help(&self) -> &'static str {
        "Copy the last answer, as it was written"
    }

    fn run(&self, _args: &str, model: &Model) -> Result<Vec<Effect>, String> {
        let last = model.conversation.cells().iter().rev().find_map(|c| match &c.body {
            Body::Reply { text } if !text.trim().is_empty() => Some(text.clone()),
            _ => None,
        });
        let text = last.ok_or("There is no answer yet that could be copied.")?;
        Ok(vec![Effect::Copy { text, what: "answer" }])
    }
}
