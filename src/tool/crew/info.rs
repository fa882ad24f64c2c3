//! `get_process_info`: what an agent or a background process does now.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tiller_protocol::ToolVerb;
use tiller_protocol::{Access, ToolSpec, Touch};

use super::port::CrewRequest;
use crate::{Tool, ToolCx, ToolError, ToolOutput, schema};

/// The tool.
pub struct GetProcessInfo;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    id: String,
}

#[async_trait]
impl Tool for GetProcessInfo {
    fn name(&self) -> &str {
        "get_process_info"
    }

    fn spec(&self) -> ToolSpec {
        crate::files::spec::<Args>(self.name(), include_str!("info.md"))
    }

    fn toolset(&self) -> &'static str {
        "crew"
    }

    fn touch(&self) -> Touch {
        Touch::Read
    }

    fn verb(&self) -> ToolVerb {
        ToolVerb::LookAt
    }

    fn target(&self, args: &Value) -> String {
        args.get("id").and_then(Value::as_str).unwrap_or_default().to_owned()
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
