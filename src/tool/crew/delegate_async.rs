//! `delegate_async`: starts several agents in the background.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tiller_protocol::ToolVerb;
use tiller_protocol::{Access, RuleArgument, ToolGrant, ToolInfo, ToolSet, ToolSpec, Touch};

use super::port::{Brief, CrewRequest};
use crate::{Tool, ToolCx, ToolError, ToolOutput, schema};

/// The tool.
pub struct DelegateAsync;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    tasks: Vec<Brief>,
}

const INFO: ToolInfo = ToolInfo {
    name: "delegate_async",
    set: ToolSet::Crew,
    grant: ToolGrant::Named,
    starts_agents: true,
    touch: Touch::Agent,
    rule: RuleArgument::Text,
    aliases: &[],
    verb: ToolVerb::Spawn,
    target: super::delegate::target,
};

#[async_trait]
impl Tool for DelegateAsync {
    fn info(&self) -> ToolInfo {
        INFO
    }

    fn spec(&self) -> ToolSpec {
        crate::files::spec::<Args>(self.name(), include_str!("delegate_async.md"))
    }

    fn access(&self, args: &Value, _cx: &ToolCx) -> Result<Vec<Access>, ToolError> {
        let tasks = schema::read::<Args>(args)?.tasks;
        if tasks.is_empty() || tasks.iter().any(|t| t.goal.trim().is_empty()) {
            return Err(ToolError::Tell("each task needs a goal, and there must be one".into()));
        }
        Ok(vec![Access::Free])
    }

    async fn run(&self, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let args: Args = schema::read(&args)?;
        match cx.ports.crew(cx, CrewRequest::Start(args.tasks)).await {
            Ok(reply) => Ok(super::output_of(reply, cx)),
            Err(why) => Err(ToolError::Tell(why)),
        }
    }
}
