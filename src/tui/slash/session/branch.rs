//! `/branch`.

use tiller_protocol::CommandBody;
use tiller_protocol::command::SessionCommand;

use crate::app::effect::Effect;
use crate::dialog::session::branches;
use crate::model::Model;
use crate::slash::SlashCommand;

/// `/branch`
pub(crate) struct Branch;

impl SlashCommand for Branch {
    fn name(&self) -> &'static str {
        "branch"
    }

    fn help(&self) -> &'static str {
        "Show the branches of this session; with a name: name the current one"
    }

    fn usage(&self) -> &'static str {
        "/branch [NAME]"
    }

    fn run(&self, args: &str, model: &Model) -> Result<Vec<Effect>, String> {
        if args.is_empty() {
            return Ok(vec![Effect::Push(Box::new(branches::open()))]);
        }
        let head = model.agent.session.branch.head.clone();
        if head.is_empty() {
            return Err("No messages yet: there is no branch to name.".into());
        }
        let label = args.to_owned();
        Ok(vec![Effect::send(CommandBody::Session(SessionCommand::LabelBranch {
            session: None,
            head,
            label,
        }))])
    }
}
