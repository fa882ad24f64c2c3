//! What the loop does with each report about the prompts.

use crate::compare::run;
use crate::core::Core;
use crate::goal;
use crate::prompts::comments;
use crate::prompts::compose;
use crate::prompts::msg::PromptMsg;
use crate::prompts::shell_line;
use crate::prompts::skills;
use crate::tool_call::calls;

pub(crate) fn handle(core: &mut Core, msg: PromptMsg) {
    match msg {
        PromptMsg::FilesRead(read) => compose::files_were_read(core, *read),
        PromptMsg::PreparedMessage(composed) => compose::composed(core, *composed),
        PromptMsg::LineDone(done) => shell_line::shell_done(core, *done),
        PromptMsg::RanOnBoth(audit) => run::ran_both(core, *audit),
        PromptMsg::Comments(found) => comments::comments_found(core, found),
        PromptMsg::GoalChecked(checked) => goal::goal_checked(core, *checked),
        PromptMsg::StylesRead { client, cause, name } => skills::style(core, client, cause, Some(name)),
        PromptMsg::Todos { items, reply } => calls::set_todos(core, items, reply),
    }
}
