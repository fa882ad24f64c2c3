//! `delegate_async`: starts several agents in the background.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tiller_protocol::ToolVerb;
use tiller_protocol::{Access, ToolSpec, Touch};

use super::port::{Brief, CrewRequest};
use crate::{Tool, ToolCx, ToolError, ToolOutput, schema};

/// The tool.
pub struct DelegateAsync;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    tasks: Vec<Brief>,
}

#[async_trait]
impl Tool for DelegateAsync {
    fn name(&self) -> &str {
        "delegate_async"
    }

    fn spec(&self) -> ToolSpec {
        crate::files::spec::<Args>(self.name(), include_str!("delegate_async.md"))
    }

    fn toolset(&self) -> &'static str {
        "crew"
    }

    fn touch(&self) -> Touch {
        Touch::Agent
    }

    fn verb(&self) -> ToolVerb {
        ToolVerb::Spawn
    }

    fn target(&self, args: &Value) -> String {
        super::delegate::target(args)
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
