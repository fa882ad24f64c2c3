//! `/workflow`.

use tiller_protocol::{AgentCommand, CommandBody};

use crate::app::effect::Effect;
use crate::keymap::action::Action;
use crate::model::Model;
use crate::slash::SlashCommand;

/// `/workflow`
pub(crate) struct Workflow;

impl SlashCommand for Workflow {
    fn name(&self) -> &'static str {
        "workflow"
    }

    fn help(&self) -> &'static str {
        "Show or start workflows: steps from a file, done by agents"
    }

    fn usage(&self) -> &'static str {
        "/workflow [NAME | pause w1 | resume w1 | stop w1]"
    }

    fn action(&self) -> Option<Action> {
        Some(Action("workflows.open"))
    }

    fn run(&self, args: &str, _model: &Model) -> Result<Vec<Effect>, String> {
        let id = |id: &str| id.trim().to_owned();
        let command = match args.trim().split_once(char::is_whitespace) {
            Some(("pause", of)) => AgentCommand::WorkflowPause { id: id(of), paused: true },
            Some(("resume", of)) => AgentCommand::WorkflowResume { id: id(of) },
            Some(("stop", of)) => AgentCommand::WorkflowCancel { id: id(of) },
            Some(_) => return Err("A workflow name is a single word".into()),
            None if args.trim().is_empty() => return Ok(vec![Effect::Act(Action("workflows.open"))]),
            None => AgentCommand::Workflow { name: id(args) },
        };
        Ok(vec![Effect::send(CommandBody::Agent(command))])
    }
}
