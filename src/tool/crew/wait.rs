//! `wait_agents`: waits for agents.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tiller_protocol::ToolVerb;
use tiller_protocol::{Access, RuleArgument, ToolGrant, ToolInfo, ToolSet, ToolSpec, Touch};

use super::port::CrewRequest;
use crate::{Tool, ToolCx, ToolError, ToolOutput, schema};

/// The tool.
pub struct WaitAgents;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    agents: Vec<String>,
    /// Return when the first ends
    #[serde(default)]
    any: bool,
    #[serde(default)]
    seconds: Option<u64>,
}

const INFO: ToolInfo = ToolInfo {
    name: "wait_agents",
    set: ToolSet::Crew,
    grant: ToolGrant::All,
    starts_agents: false,
    touch: Touch::Read,
    rule: RuleArgument::Text,
    aliases: &[],
    verb: ToolVerb::WaitFor,
    target,
};

/// What its row shows.
fn target(args: &Value) -> String {
    args.get("agents")
        .and_then(Value::as_array)
        .map(|l| l.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "))
        .unwrap_or_default()
}

#[async_trait]
impl Tool for WaitAgents {
    fn info(&self) -> ToolInfo {
        INFO
    }

    fn seldom(&self) -> bool {
        true
    }

    fn spec(&self) -> ToolSpec {
        crate::files::spec::<Args>(self.name(), include_str!("wait.md"))
    }

    fn access(&self, args: &Value, _cx: &ToolCx) -> Result<Vec<Access>, ToolError> {
        schema::read::<Args>(args)?;
        Ok(vec![Access::Free])
    }

    async fn run(&self, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let args: Args = schema::read(&args)?;
        let seconds = args.seconds.unwrap_or(600).min(86_400);
        let request = CrewRequest::Wait { agents: args.agents, any: args.any, seconds };
        tokio::select! {
            biased;
            () = cx.cancel.cancelled() => Err(ToolError::Interrupted("stopped waiting; the agents continue".into())),
            reply = cx.ports.crew(cx, request) => match reply {
                Ok(reply) => Ok(super::output_of(reply, cx)),
                Err(why) => Err(ToolError::Tell(why)),
            }
        }
    }
}
