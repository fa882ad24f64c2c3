//! `checkpoint`: names the present state of the conversation and the files.

use async_trait::async_trait;
use serde_json::Value;
use tiller_protocol::ToolVerb;
use tiller_protocol::{Access, RuleArgument, ToolGrant, ToolInfo, ToolSet, ToolSpec, Touch};

use super::{Args, name};
use crate::{Tool, ToolCx, ToolError, ToolOutput, schema};

/// The tool.
pub struct Checkpoint;

const INFO: ToolInfo = ToolInfo {
    name: "checkpoint",
    set: ToolSet::Plan,
    grant: ToolGrant::Main,
    starts_agents: false,
    touch: Touch::Plan,
    rule: RuleArgument::Text,
    aliases: &[],
    verb: ToolVerb::Checkpoint,
    target: |args| schema::text(args, "name"),
};

#[async_trait]
impl Tool for Checkpoint {
    fn info(&self) -> ToolInfo {
        INFO
    }

    fn seldom(&self) -> bool {
        true
    }

    fn spec(&self) -> ToolSpec {
        crate::files::spec::<Args>(self.name(), include_str!("create.md"))
    }

    fn access(&self, args: &Value, _cx: &ToolCx) -> Result<Vec<Access>, ToolError> {
        name(args)?;
        Ok(vec![Access::Free])
    }

    async fn run(&self, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let said = cx.ports.checkpoint(&name(&args)?).await.map_err(ToolError::Tell)?;
        Ok(ToolOutput::text(said))
    }
}
