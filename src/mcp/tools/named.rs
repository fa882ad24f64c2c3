//! Tools of servers that are in the list by their own names, `mcp__server__tool`, as they were known and approved when Tiller
//! started. What a server says later changes neither their names nor their schemas.

use std::sync::Arc;

use crate::read::names;
use crate::read::result::clean;
use async_trait::async_trait;
use serde_json::{Map, Value};
use tiller_protocol::{Access, RuleArgument, ToolGrant, ToolInfo, ToolSet, ToolSpec, ToolVerb, Touch};
use tiller_tool::foreign::seen;
use tiller_tool::{Preview, Tool, ToolCx, ToolError, ToolOutput};

use crate::hub::{Hub, NoResult};
use crate::known::{KnownTool, tokens};

/// Maximum length of a name that vendors take.
const NAME: usize = 64;
/// Maximum bytes of a description.
const DESCRIPTION: usize = 2000;
/// Maximum depth and bytes of a schema.
const DEPTH: usize = 12;
const SCHEMA: usize = 16 << 10;

/// A tool of a server.
pub struct NamedTool {
    hub: Arc<Hub>,
    info: ToolInfo,
    spec: ToolSpec,
    server: String,
    tool: String,
}

/// The tools of all servers, when all are known, all can be sent as they are, and together they cost at most `most` tokens;
/// else none. Their names live as long as the process.
pub fn named_tools(hub: &Arc<Hub>, most: u64) -> Vec<NamedTool> {
    let (mut all, mut cost) = (Vec::new(), 0u64);
    for server in hub.servers().iter().filter(|server| !server.is_disabled() && !server.needs_approval()) {
        let Some(tools) = server.tools() else { return Vec::new() };
        cost = cost.saturating_add(tokens(&tools));
        for tool in tools {
            let Some(named) = NamedTool::new(hub, server.name(), &tool) else { return Vec::new() };
            if all.iter().any(|other: &NamedTool| other.info.name == named.info.name) {
                return Vec::new();
            }
            all.push(named);
        }
    }
    if cost > most { Vec::new() } else { all }
}

impl NamedTool {
    /// `None`: a vendor could refuse it, and with it every request.
    fn new(hub: &Arc<Hub>, server: &str, tool: &KnownTool) -> Option<Self> {
        let name = vendor_name(server, &tool.name);
        let mut description = clean(tool.description.as_bytes());
        description.truncate(description.floor_char_boundary(DESCRIPTION));
        let own = if tool.own.is_empty() {
            String::new()
        } else {
            format!(" called {} there", names::shown(&tool.own))
        };
        let description = format!("Tool of the MCP server {server}{own}. {}", description.trim());
        Some(Self {
            hub: Arc::clone(hub),
            info: ToolInfo {
                name: Box::leak(name.clone().into_boxed_str()),
                set: ToolSet::Web,
                grant: ToolGrant::All,
                starts_agents: false,
                touch: Touch::Network,
                rule: RuleArgument::Text,
                aliases: &[],
                verb: ToolVerb::Tool,
                target: |_| String::new(),
            },
            spec: ToolSpec { name, description: description.trim_end().into(), schema: sent(&tool.schema)? },
            server: server.to_owned(),
            tool: tool.name.clone(),
        })
    }
}

/// A name that vendors take. It begins with that of the server, cut where both are long.
fn vendor_name(server: &str, tool: &str) -> String {
    let name = format!("mcp__{server}__{tool}");
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if name.len() <= NAME && name.chars().all(plain) {
        return name;
    }
    let server = &server[..server.floor_char_boundary(20)];
    // Its hash is of both whole names.
    let hashed = names::made(&name, 8, NAME);
    let hash = hashed.rsplit('_').next().unwrap_or_default();
    let begin = names::made(tool, 0, NAME - "mcp____".len() - server.len() - hash.len() - 2);
    format!("mcp__{server}__{begin}{hash}")
}

/// A schema as vendors take it; `None`: they do not.
fn sent(schema: &Value) -> Option<Value> {
    let object = schema.as_object()?;
    let plain = object.get("type").is_none_or(|kind| kind == "object")
        && object.get("properties").is_none_or(Value::is_object)
        && !["oneOf", "anyOf", "allOf", "not", "enum", "$ref"].iter().any(|key| object.contains_key(*key));
    if !plain || depth(schema) > DEPTH || schema.to_string().len() > SCHEMA {
        return None;
    }
    let mut sent = object.clone();
    sent.remove("$schema");
    sent.entry("type").or_insert_with(|| "object".into());
    sent.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    // A raw line end would end the text that it stands in.
    let text = seen(&Value::Object(sent).to_string().replace(['\u{2028}', '\u{2029}'], "\\n"));
    serde_json::from_str(&text).ok()
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        Value::Array(list) => 1 + list.iter().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

fn arguments(args: &Value) -> Result<Map<String, Value>, ToolError> {
    match args {
        Value::Object(arguments) => Ok(arguments.clone()),
        Value::Null => Ok(Map::new()),
        _ => Err(ToolError::Tell("the arguments must be an object".into())),
    }
}

#[async_trait]
impl Tool for NamedTool {
    fn info(&self) -> ToolInfo {
        self.info.clone()
    }

    fn target(&self, _args: &Value) -> String {
        format!("{} {}", self.server, self.tool)
    }

    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn access(&self, args: &Value, _cx: &ToolCx) -> Result<Vec<Access>, ToolError> {
        let arguments = Value::Object(arguments(args)?);
        Ok(vec![Access::Mcp {
            server: self.server.clone(),
            tool: self.tool.clone(),
            arguments: serde_json::to_string_pretty(&arguments).unwrap_or_default(),
        }])
    }

    async fn ready(&self, _args: &Value, cx: &ToolCx, _show: bool) -> Result<(), ToolError> {
        match self.hub.find(&self.server) {
            Some(server) if crate::shared::refused(server.settings(), &self.tool, Some(cx)) => {
                Err(super::refused(&self.server, &self.tool, NoResult::MainAgentOnly))
            }
            _ => Ok(()),
        }
    }

    async fn preview(&self, _args: &Value, _cx: &ToolCx) -> Preview {
        Preview { lines: super::own_name(&self.hub, &self.server, &self.tool), ..Preview::default() }
    }

    async fn run(&self, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        super::call(&self.hub, &self.server, &self.tool, arguments(&args)?, cx).await
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_tool_has_a_name_that_vendors_take() {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let (mut all, long) = (std::collections::BTreeSet::new(), "x".repeat(64));
        for server in ["s", "other", &long] {
            for tool in ["echo", "a.b", "a/b", "a_b", "tool.v1", &"y".repeat(128), &"z".repeat(40)] {
                let name = vendor_name(server, tool);
                assert!(name.len() <= NAME && name.chars().all(plain), "{server} {tool}: {name}");
                assert!(tiller_protocol::mcp::named_target(&name).is_some(), "{name}");
                assert!(all.insert(name), "{server} {tool}");
            }
        }
        assert_eq!(vendor_name("s", "echo"), "mcp__s__echo");
    }

    #[test]
    fn a_schema_that_a_vendor_could_refuse_is_not_sent() {
        let object = json!({"type": "object", "properties": {}});
        assert_eq!(sent(&json!({})), Some(object.clone()));
        assert_eq!(sent(&json!({"$schema": "x", "type": "object"})), Some(object));
        let mut deep = json!({});
        (0..20).for_each(|_| deep = json!({"properties": deep}));
        for bad in [
            json!("x"),
            json!({"type": "string"}),
            json!({"properties": []}),
            json!({"anyOf": [{"type": "object"}]}),
            json!({"description": "x".repeat(20_000)}),
            deep,
        ] {
            assert_eq!(sent(&bad), None, "{}", bad.to_string().chars().take(80).collect::<String>());
        }
    }
}
