//! `blackboard`: notes that siblings share.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tiller_protocol::ToolVerb;
use tiller_protocol::{Access, RuleArgument, ToolGrant, ToolInfo, ToolSet, ToolSpec, Touch};

use super::port::CrewRequest;
use crate::{Tool, ToolCx, ToolError, ToolOutput, schema};

/// The tool.
pub struct Blackboard;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    #[serde(default)]
    key: Option<String>,
    #[serde(default)]
    value: Option<String>,
    #[serde(default)]
    version: Option<u64>,
}

const INFO: ToolInfo = ToolInfo {
    name: "blackboard",
    set: ToolSet::Crew,
    grant: ToolGrant::Siblings,
    starts_agents: false,
    touch: Touch::Plan,
    rule: RuleArgument::Text,
    aliases: &[],
    verb: ToolVerb::Note,
    target: |args| args.get("key").and_then(Value::as_str).unwrap_or("list").to_owned(),
};

#[async_trait]
impl Tool for Blackboard {
    fn info(&self) -> ToolInfo {
        INFO
    }

    fn spec(&self) -> ToolSpec {
        crate::files::spec::<Args>(self.name(), include_str!("blackboard.md"))
    }

    fn access(&self, args: &Value, _cx: &ToolCx) -> Result<Vec<Access>, ToolError> {
        schema::read::<Args>(args)?;
        Ok(vec![Access::Free])
    }

    async fn run(&self, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let args: Args = schema::read(&args)?;
        let put = match (&args.key, args.value) {
            (Some(key), Some(value)) => Some((key.clone(), value, args.version)),
            (None, Some(_)) => return Err(ToolError::Tell("`value` needs `key`".into())),
            _ => None,
        };
        let request = CrewRequest::Board { put, key: args.key };
        match cx.ports.crew(cx, request).await {
            Ok(reply) => Ok(super::output_of(reply, cx)),
            Err(why) => Err(ToolError::Tell(why)),
        }
    }
}
