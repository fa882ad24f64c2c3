//! `send_to_agent`: sends a message to an agent.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tiller_protocol::ToolVerb;
use tiller_protocol::{Access, RuleArgument, ToolGrant, ToolInfo, ToolSet, ToolSpec, Touch};

use super::port::CrewRequest;
use crate::{Tool, ToolCx, ToolError, ToolOutput, schema};

/// The tool.
pub struct SendToAgent;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    agent: String,
    text: String,
}

const INFO: ToolInfo = ToolInfo {
    name: "send_to_agent",
    set: ToolSet::Crew,
    grant: ToolGrant::All,
    starts_agents: false,
    touch: Touch::Agent,
    rule: RuleArgument::Text,
    aliases: &[],
    verb: ToolVerb::Tell,
    target: |args| schema::text(args, "agent"),
};

#[async_trait]
impl Tool for SendToAgent {
    fn info(&self) -> ToolInfo {
        INFO
    }

    fn seldom(&self) -> bool {
        true
    }

    fn spec(&self) -> ToolSpec {
        crate::files::spec::<Args>(self.name(), include_str!("send.md"))
    }

    fn access(&self, args: &Value, _cx: &ToolCx) -> Result<Vec<Access>, ToolError> {
        schema::read::<Args>(args)?;
        Ok(vec![Access::Free])
    }

    async fn run(&self, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let args: Args = schema::read(&args)?;
        match cx.ports.crew(cx, CrewRequest::Send { agent: args.agent, text: args.text }).await {
            Ok(reply) => Ok(super::output_of(reply, cx)),
            Err(why) => Err(ToolError::Tell(why)),
        }
    }
}
