//! `tool_search`: finds tools of the servers, and returns their schemas.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::read::result::clean;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tiller_protocol::tool::Display;
use tiller_protocol::{Access, RuleArgument, ToolGrant, ToolInfo, ToolSet, ToolSpec, ToolVerb, Touch};
use tiller_tool::foreign::framed;
use tiller_tool::output::bound;
use tiller_tool::{Tool, ToolCx, ToolError, ToolOutput, schema};

use super::lines;
use crate::hub::Hub;
use crate::known::{KnownTool, first_line};

/// Tools that are returned with their schemas.
const FULL: usize = 8;
/// More tools that are named.
const NAMED: usize = 60;
/// Longest time between the answers of two servers that a search waits.
const PATIENCE: Duration = Duration::from_secs(3);
/// Bytes of a description.
const DESCRIPTION: usize = 2000;

/// The tool.
pub struct ToolSearch {
    hub: Arc<Hub>,
    /// Made at its first use: the description stays the same for a whole process.
    description: OnceLock<String>,
}

impl ToolSearch {
    /// Over these servers, as they are known when it is described for the first time.
    pub fn new(hub: Arc<Hub>) -> Self {
        Self { hub, description: OnceLock::new() }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// Words of what the tool should do, or its name; empty: all
    #[serde(default)]
    query: String,
    /// Only tools of this server
    #[serde(default)]
    server: Option<String>,
}

const INFO: ToolInfo = ToolInfo {
    name: "tool_search",
    set: ToolSet::Web,
    grant: ToolGrant::All,
    starts_agents: false,
    touch: Touch::Network,
    rule: RuleArgument::Text,
    aliases: &["toolsearch", "mcp_search", "list_tools"],
    verb: ToolVerb::Search,
    target: |args| {
        let query = args.get("query").and_then(Value::as_str).unwrap_or_default();
        format!("tools {query}").trim_end().to_owned()
    },
};

#[async_trait]
impl Tool for ToolSearch {
    fn info(&self) -> ToolInfo {
        INFO
    }

    fn spec(&self) -> ToolSpec {
        let description = self
            .description
            .get_or_init(|| format!("{}\n{}", include_str!("search.md").trim_end(), lines(&self.hub)));
        ToolSpec { name: INFO.name.into(), description: description.clone(), schema: schema::of::<Args>() }
    }

    fn access(&self, args: &Value, _cx: &ToolCx) -> Result<Vec<Access>, ToolError> {
        let _: Args = schema::read(args)?;
        // It starts only what the person has configured or approved.
        Ok(vec![Access::Free])
    }

    async fn run(&self, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let args: Args = schema::read(&args)?;
        if let Some(name) = args.server.as_deref().filter(|name| self.hub.find(name).is_none()) {
            let names: Vec<String> = self.hub.servers().iter().map(|s| s.name().to_owned()).collect();
            return Err(super::refused(name, "", crate::hub::NoResult::NoServer(names)));
        }
        // A search of one server is for its tools: the limit of that server holds.
        let only = args.server.as_deref();
        let limit =
            only.and_then(|name| Some(self.hub.find(name)?.settings().start.saturating_add(PATIENCE)));
        let learned = tokio::select! {
            biased;
            () = cx.cancel.cancelled() => return Err(ToolError::Interrupted(String::new())),
            learned = self.hub.learn(Some(cx), only, limit.unwrap_or(PATIENCE)) => learned,
        };
        let wanted = |name: &str| args.server.as_deref().is_none_or(|server| server == name);
        let mut all: Vec<(String, KnownTool)> = Vec::new();
        let mut held = String::new();
        for server in
            self.hub.servers().iter().filter(|server| wanted(server.name()) && !server.is_disabled())
        {
            let names: Vec<String> = server.held().iter().take(NAMED).map(KnownTool::label).collect();
            if !names.is_empty() {
                held.push_str(&format!("server {}: {}\n", server.name(), names.join(", ")));
            }
            all.extend(
                server.tools().unwrap_or_default().into_iter().map(|tool| (server.name().to_owned(), tool)),
            );
        }
        let count = all.len();
        let found = ranked(all, &args.query);
        let mut text = words(&found, count, args.query.trim().is_empty());
        if !found.is_empty() {
            text = framed("the MCP servers", &bound(clean(text.as_bytes()), cx), "");
        }
        if !held.is_empty() {
            text.push_str(
                "\nThese tools are new or changed, and held back until the user approves them (a call asks, and so does \
                 `tiller mcp test NAME --approve`):\n",
            );
            text.push_str(&framed("the MCP servers", &bound(clean(held.as_bytes()), cx), ""));
        }
        if !learned.waiting.is_empty() {
            text.push_str(&format!(
                "\nThese servers have not answered yet: {}. Their tools are found once they answer; a search with `server` \
                 waits for one of them.\n",
                learned.waiting.join(", ")
            ));
        }
        for (name, failure) in learned.failed.iter().filter(|(name, _)| wanted(name)) {
            text.push_str(&format!("\nThe server {name} cannot be used: {}\n", failure.for_model(name)));
        }
        let measure = if found.len() == 1 { "1 tool".to_owned() } else { format!("{} tools", found.len()) };
        Ok(ToolOutput::text(text).show(Display::Measure { text: measure }))
    }
}

/// The tools that fit, best first. Every word counts: in the name more than in the description.
fn ranked(all: Vec<(String, KnownTool)>, query: &str) -> Vec<(String, KnownTool)> {
    let query = query.to_lowercase();
    let asked: Vec<&str> =
        query.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 1 && *word != "mcp").collect();
    if asked.is_empty() {
        return all;
    }
    let score = |(server, tool): &(String, KnownTool)| {
        let (name, description) = (tool.name.to_lowercase(), tool.description.to_lowercase());
        let own = tool.own.to_lowercase();
        let server = server.to_lowercase();
        asked
            .iter()
            .map(|word| {
                let stem = word.strip_suffix('s').filter(|stem| stem.len() > 2).unwrap_or(word);
                match () {
                    () if name == *word || own == *word => 10,
                    () if name.contains(stem) || own.contains(stem) => 5,
                    () if server.contains(stem) => 3,
                    () if description.contains(stem) => 2,
                    () => 0,
                }
            })
            .sum::<u32>()
    };
    let mut scored: Vec<(u32, (String, KnownTool))> =
        all.into_iter().map(|tool| (score(&tool), tool)).filter(|(score, _)| *score > 0).collect();
    // Stable: equals keep the order of servers and names.
    scored.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    scored.into_iter().map(|(_, tool)| tool).collect()
}

/// The result. `listing`: only names are wanted.
fn words(found: &[(String, KnownTool)], all: usize, listing: bool) -> String {
    if found.is_empty() {
        return match all {
            0 => "No server has a tool that can be called now.\n".into(),
            all => format!("None of {all} tools fits. Without a query all are listed.\n"),
        };
    }
    let full = if listing { 0 } else { FULL };
    let mut text = String::new();
    for (server, tool) in found.iter().take(full) {
        let mut description = tool.description.clone();
        description.truncate(description.floor_char_boundary(DESCRIPTION));
        text.push_str(&format!(
            "server: {server}\ntool: {}\n{}\nschema: {}\n\n",
            tool.label(),
            description.trim(),
            tool.schema
        ));
    }
    let rest: Vec<&(String, KnownTool)> = found.iter().skip(full).collect();
    if !rest.is_empty() && full > 0 {
        text.push_str("Also:\n");
    }
    for (server, tool) in rest.iter().take(NAMED) {
        text.push_str(&format!("- {server} {}: {}\n", tool.label(), first_line(&tool.description)));
    }
    if rest.len() > NAMED {
        text.push_str(&format!("and {} more; search with words\n", rest.len() - NAMED));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools() -> Vec<(String, KnownTool)> {
        let tool = |server: &str, name: &str, description: &str| {
            (
                server.to_owned(),
                KnownTool { name: name.into(), description: description.into(), ..KnownTool::default() },
            )
        };
        vec![
            tool("github", "create_issue", "Creates an issue in a repository"),
            tool("github", "list_commits", "Lists commits"),
            tool("memory", "add", "Keeps a fact, such as an issue"),
        ]
    }

    #[test]
    fn words_in_the_name_count_more_than_those_in_the_description() {
        let names = |query: &str| -> Vec<String> {
            ranked(tools(), query).into_iter().map(|(_, t)| t.name).collect()
        };
        assert_eq!(names("create issues"), ["create_issue", "add"]);
        assert_eq!(names("github"), ["create_issue", "list_commits"]);
        assert_eq!(names("mcp add"), ["add"]);
        assert_eq!(names("weather").len(), 0);
        assert_eq!(names("").len(), 3);
    }

    #[test]
    fn the_first_ones_come_with_schemas_and_the_rest_by_name() {
        let many: Vec<(String, KnownTool)> = (0..100)
            .map(|n| {
                (
                    "s".into(),
                    KnownTool {
                        name: format!("t{n}"),
                        description: "does it".into(),
                        ..KnownTool::default()
                    },
                )
            })
            .collect();
        let text = words(&many, 100, false);
        assert_eq!(text.matches("schema:").count(), FULL);
        assert!(text.contains("- s t8: does it") && text.contains("and 32 more"), "{text}");
        assert_eq!(words(&many[..2], 2, true).matches("schema:").count(), 0);
    }
}
