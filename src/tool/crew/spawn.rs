//! `spawn_agent`: starts an agent in the background.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tiller_protocol::ToolVerb;
use tiller_protocol::{Access, RuleArgument, ToolGrant, ToolInfo, ToolSet, ToolSpec, Touch};

use super::port::{Brief, CrewRequest};
use crate::{Tool, ToolCx, ToolError, ToolOutput, schema};

/// The tool.
pub struct SpawnAgent;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    #[serde(flatten)]
    task: Brief,
}

// The part that the schema names. The other fields are described with `delegate_task`, which every agent with this tool has.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct SchemaArgs {
    goal: String,
    context: Option<String>,
}

const INFO: ToolInfo = ToolInfo {
    name: "spawn_agent",
    set: ToolSet::Crew,
    grant: ToolGrant::All,
    starts_agents: true,
    touch: Touch::Agent,
    rule: RuleArgument::Text,
    aliases: &[],
    verb: ToolVerb::Spawn,
    target: |args| {
        ["label", "goal"].iter().find_map(|k| args.get(*k)?.as_str()).unwrap_or_default().to_owned()
    },
};

#[async_trait]
impl Tool for SpawnAgent {
    fn info(&self) -> ToolInfo {
        INFO
    }

    fn seldom(&self) -> bool {
        true
    }

    fn spec(&self) -> ToolSpec {
        crate::files::spec::<SchemaArgs>(self.name(), include_str!("spawn.md"))
    }

    fn access(&self, args: &Value, _cx: &ToolCx) -> Result<Vec<Access>, ToolError> {
        if schema::read::<Args>(args)?.task.goal.trim().is_empty() {
            return Err(ToolError::Tell("there is no goal".into()));
        }
        Ok(vec![Access::Free])
    }

    async fn run(&self, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let args: Args = schema::read(&args)?;
        match cx.ports.crew(cx, CrewRequest::Start(vec![args.task])).await {
            Ok(reply) => Ok(super::output_of(reply, cx)),
            Err(why) => Err(ToolError::Tell(why)),
        }
    }
}
