//! `mcp_call`: calls one tool of a server.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use tiller_protocol::{Access, RuleArgument, ToolGrant, ToolInfo, ToolSet, ToolSpec, ToolVerb, Touch};
use tiller_tool::{Preview, Tool, ToolCx, ToolError, ToolOutput, schema};

use super::refused;
use crate::hub::{Hub, NoResult};

/// The tool.
pub struct McpCall {
    hub: Arc<Hub>,
}

impl McpCall {
    /// Over these servers.
    pub fn new(hub: Arc<Hub>) -> Self {
        Self { hub }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    server: String,
    tool: String,
    /// Arguments of the tool, by its schema
    #[serde(default)]
    arguments: Option<Map<String, Value>>,
}

const INFO: ToolInfo = ToolInfo {
    name: "mcp_call",
    set: ToolSet::Web,
    grant: ToolGrant::All,
    starts_agents: false,
    touch: Touch::Network,
    rule: RuleArgument::Text,
    aliases: &["mcp", "use_mcp_tool", "call_mcp_tool"],
    verb: ToolVerb::Tool,
    target: |args| {
        let text = |key: &str| args.get(key).and_then(Value::as_str).unwrap_or_default();
        format!("{} {}", text("server"), text("tool"))
    },
};

/// Reads and checks the arguments. A tool may be named by its own name: rules know it by its safe one.
fn checked(args: &Value, hub: &Hub) -> Result<Args, ToolError> {
    let mut args: Args = schema::read(args)?;
    if let Some(name) = hub.find(&args.server).and_then(|server| server.safe_name(&args.tool)) {
        args.tool = name;
    }
    for (what, name) in [("server", &args.server), ("tool", &args.tool)] {
        if !crate::is_name(name) {
            return Err(ToolError::Tell(format!(
                "'{}' cannot be the name of a {what}",
                name.escape_default()
            )));
        }
    }
    Ok(args)
}

#[async_trait]
impl Tool for McpCall {
    fn info(&self) -> ToolInfo {
        INFO
    }

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: INFO.name.into(),
            description: include_str!("call.md").trim_end().into(),
            schema: schema::of::<Args>(),
        }
    }

    fn access(&self, args: &Value, _cx: &ToolCx) -> Result<Vec<Access>, ToolError> {
        let args = checked(args, &self.hub)?;
        let arguments = Value::Object(args.arguments.unwrap_or_default());
        Ok(vec![Access::Mcp {
            server: args.server,
            tool: args.tool,
            arguments: serde_json::to_string_pretty(&arguments).unwrap_or_default(),
        }])
    }

    async fn ready(&self, args: &Value, cx: &ToolCx, _show: bool) -> Result<(), ToolError> {
        let args = checked(args, &self.hub)?;
        let Some(server) = self.hub.find(&args.server) else {
            let names = self.hub.servers().iter().map(|s| s.name().to_owned()).collect();
            return Err(refused(&args.server, &args.tool, NoResult::NoServer(names)));
        };
        // Before anyone is asked for a permission that would not help.
        if crate::shared::refused(server.settings(), &args.tool, Some(cx)) {
            return Err(refused(&args.server, &args.tool, NoResult::MainAgentOnly));
        }
        if server.tools().is_some() && server.safe_name(&args.tool).is_none() {
            return Err(refused(&args.server, &args.tool, crate::hub::no_tool(&server, &args.tool)));
        }
        Ok(())
    }

    async fn preview(&self, args: &Value, _cx: &ToolCx) -> Preview {
        let lines = checked(args, &self.hub).map(|args| super::own_name(&self.hub, &args.server, &args.tool));
        Preview { lines: lines.unwrap_or_default(), ..Preview::default() }
    }

    async fn run(&self, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let args = checked(&args, &self.hub)?;
        let arguments = args.arguments.unwrap_or_default();
        super::call(&self.hub, &args.server, &args.tool, arguments, cx).await
    }
}
