//! Tools that fail, panic or hang.

use async_trait::async_trait;
use serde_json::{Value, json};
use tiller_protocol::ToolVerb;
use tiller_protocol::{Access, RuleArgument, ToolGrant, ToolInfo, ToolSet, ToolSpec, Touch};
use tiller_tool::{Tool, ToolCx, ToolError, ToolOutput};

/// Does what its argument `do` names.
pub(crate) struct Naughty;

impl Naughty {
    pub(crate) fn leak() -> &'static dyn Tool {
        &Self
    }
}

#[async_trait]
impl Tool for Naughty {
    fn info(&self) -> ToolInfo {
        ToolInfo {
            name: "naughty",
            set: ToolSet::Read,
            grant: ToolGrant::All,
            starts_agents: false,
            touch: Touch::Execute,
            rule: RuleArgument::Text,
            aliases: &[],
            verb: ToolVerb::Other("naughty".into()),
            target: |args| args["do"].as_str().unwrap_or_default().to_owned(),
        }
    }

    fn spec(&self) -> ToolSpec {
        ToolSpec { name: "naughty".into(), description: "x".into(), schema: json!({"type": "object"}) }
    }

    fn access(&self, _: &Value, _: &ToolCx) -> Result<Vec<Access>, ToolError> {
        Ok(vec![Access::Free])
    }

    async fn run(&self, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        match args["do"].as_str() {
            Some("panic") => panic!("a tool that panics"),
            Some("hang") => std::future::pending().await,
            Some("wait") => {
                cx.cancel.cancelled().await;
                Err(ToolError::Interrupted("got this far".into()))
            }
            Some("fail") => Err(ToolError::Tell("it went wrong".into())),
            _ => Ok(ToolOutput::text("fine")),
        }
    }
}
