//! `orchestrate`: has a goal split into parts, the parts done concurrently, and their results combined.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tiller_protocol::ToolVerb;
use tiller_protocol::{Access, RuleArgument, ToolGrant, ToolInfo, ToolSet, ToolSpec, Touch};

use super::port::{self, CrewRequest, Goal};
use super::{delegate, task};
use crate::{Tool, ToolCx, ToolError, ToolOutput, schema};

/// The tool.
pub struct Orchestrate;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    goal: String,
    #[serde(default)]
    context: String,
    /// Maximum number; default 5
    #[serde(default)]
    parts: Option<usize>,
}

const INFO: ToolInfo = ToolInfo {
    name: "orchestrate",
    set: ToolSet::Crew,
    grant: ToolGrant::Named,
    starts_agents: true,
    touch: Touch::Agent,
    rule: RuleArgument::Text,
    aliases: &[],
    verb: ToolVerb::Orchestrate,
    target: |args| schema::text(args, "goal"),
};

#[async_trait]
impl Tool for Orchestrate {
    fn info(&self) -> ToolInfo {
        INFO
    }

    fn spec(&self) -> ToolSpec {
        crate::files::spec::<Args>(self.name(), include_str!("orchestrate.md"))
    }

    fn access(&self, args: &Value, _cx: &ToolCx) -> Result<Vec<Access>, ToolError> {
        if schema::read::<Args>(args)?.goal.trim().is_empty() {
            return Err(ToolError::Tell("there is no goal".into()));
        }
        Ok(vec![Access::Free])
    }

    async fn run(&self, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let args: Args = schema::read(&args)?;
        let parts = args.parts.unwrap_or(5).clamp(1, task::MOST);
        let request = CrewRequest::Goal(Goal { goal: args.goal, context: args.context, parts });
        let stopped = "the agents were stopped; their changes are kept";
        Ok(delegate::output(&port::reports(request, stopped, cx).await?, cx))
    }
}
