//! `checkpoint`: names the present state of the conversation and the files.

use async_trait::async_trait;
use serde_json::Value;
use tiller_protocol::ToolVerb;
use tiller_protocol::{Access, ToolSpec, Touch};

use super::{Args, name};
use crate::{Tool, ToolCx, ToolError, ToolOutput};

/// The tool.
pub struct Checkpoint;

#[async_trait]
impl Tool for Checkpoint {
    fn name(&self) -> &str {
        "checkpoint"
    }

    fn spec(&self) -> ToolSpec {
        crate::files::spec::<Args>(self.name(), include_str!("create.md"))
    }

    fn toolset(&self) -> &'static str {
        "plan"
    }

    fn touch(&self) -> Touch {
        Touch::Plan
    }

    fn verb(&self) -> ToolVerb {
        ToolVerb::Checkpoint
    }

    fn target(&self, args: &Value) -> String {
        args.get("name").and_then(Value::as_str).unwrap_or_default().to_owned()
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
