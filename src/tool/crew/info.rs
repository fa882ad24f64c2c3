//! `get_process_info`: what an agent or a background process does now.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tiller_protocol::ToolVerb;
use tiller_protocol::{Access, RuleArgument, ToolGrant, ToolInfo, ToolSet, ToolSpec, Touch};

use super::port::CrewRequest;
use crate::{Tool, ToolCx, ToolError, ToolOutput, schema};

/// The tool.
pub struct GetProcessInfo;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    id: String,
}

const INFO: ToolInfo = ToolInfo {
    name: "get_process_info",
    set: ToolSet::Crew,
    grant: ToolGrant::Named,
    starts_agents: false,
    touch: Touch::Read,
    rule: RuleArgument::Text,
    aliases: &[],
    verb: ToolVerb::LookAt,
    target: |args| schema::text(args, "id"),
};

#[async_trait]
impl Tool for GetProcessInfo {
    fn info(&self) -> ToolInfo {
        INFO
    }

    fn spec(&self) -> ToolSpec {
        crate::files::spec::<Args>(self.name(), include_str!("info.md"))
    }

    fn access(&self, args: &Value, _cx: &ToolCx) -> Result<Vec<Access>, ToolError> {
        schema::read::<Args>(args)?;
        Ok(vec![Access::Free])
    }

    async fn run(&self, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let args: Args = schema::read(&args)?;
        match cx.ports.crew(cx, CrewRequest::Info { agent: args.id }).await {
            Ok(reply) => Ok(super::output_of(reply, cx)),
            Err(why) => Err(ToolError::Tell(why)),
        }
    }
}
