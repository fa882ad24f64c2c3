//! `wait_agents`: waits for agents.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tiller_protocol::ToolVerb;
use tiller_protocol::{Access, ToolSpec, Touch};

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

#[async_trait]
impl Tool for WaitAgents {
    fn name(&self) -> &str {
        "wait_agents"
    }

    fn spec(&self) -> ToolSpec {
        crate::files::spec::<Args>(self.name(), include_str!("wait.md"))
    }

    fn toolset(&self) -> &'static str {
        "crew"
    }

    fn touch(&self) -> Touch {
        Touch::Read
    }

    fn verb(&self) -> ToolVerb {
        ToolVerb::WaitFor
    }

    fn target(&self, args: &Value) -> String {
        args.get("agents")
            .and_then(Value::as_array)
            .map(|l| l.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "))
            .unwrap_or_default()
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
