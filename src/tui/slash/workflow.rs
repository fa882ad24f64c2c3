//! `/workflow`.

use tiller_protocol::{AgentCommand, CommandBody};

use super::SlashCommand;
use crate::effect::Effect;
use crate::model::Model;

/// `/workflow`
pub(super) struct Workflow;

impl SlashCommand for Workflow {
    fn name(&self) -> &'static str {
        "workflow"
    }

    fn help(&self) -> &'static str {
        "Run the steps of a file with agents, go on with them, or stop them"
    }

    fn usage(&self) -> &'static str {
        "/workflow NAME | resume w1 | stop w1"
    }

    fn run(&self, args: &str, _model: &Model) -> Result<Vec<Effect>, String> {
        let command = match args.trim().split_once(char::is_whitespace) {
            Some(("resume", id)) => AgentCommand::WorkflowResume { id: id.trim().to_owned() },
            Some(("stop", id)) => AgentCommand::WorkflowCancel { id: id.trim().to_owned() },
            Some(_) => return Err("a workflow has one word as its name".into()),
            None if args.trim().is_empty() => {
                return Err("write the name of a workflow: that of its file in .tiller/workflows".into());
            }
            None => AgentCommand::Workflow { name: args.trim().to_owned() },
        };
        Ok(vec![Effect::Send(CommandBody::Agent(command))])
    }
}
