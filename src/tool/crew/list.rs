//! `list_agents`: the agents of this one, and the roles that there are.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tiller_protocol::ToolVerb;
use tiller_protocol::{Access, RuleArgument, ToolGrant, ToolInfo, ToolSet, ToolSpec, Touch};

use super::port::CrewRequest;
use crate::{Tool, ToolCx, ToolError, ToolOutput, schema};

/// The tool.
pub struct ListAgents;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {}

const INFO: ToolInfo = ToolInfo {
    name: "list_agents",
    set: ToolSet::Crew,
    grant: ToolGrant::All,
    starts_agents: false,
    touch: Touch::Read,
    rule: RuleArgument::Text,
    aliases: &[],
    verb: ToolVerb::Agents,
    target: |_args| String::new(),
};

#[async_trait]
impl Tool for ListAgents {
    fn info(&self) -> ToolInfo {
        INFO
    }

    fn seldom(&self) -> bool {
        true
    }

    fn spec(&self) -> ToolSpec {
        crate::files::spec::<Args>(self.name(), include_str!("list.md"))
    }

    fn access(&self, args: &Value, _cx: &ToolCx) -> Result<Vec<Access>, ToolError> {
        schema::read::<Args>(args)?;
        Ok(vec![Access::Free])
    }

    async fn run(&self, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        schema::read::<Args>(&args)?;
        match cx.ports.crew(cx, CrewRequest::List).await {
            Ok(reply) => Ok(super::output_of(reply, cx)),
            Err(why) => Err(ToolError::Tell(why)),
        }
    }
}
