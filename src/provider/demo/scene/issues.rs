//! The list of issues behind the demo's MCP server.

use serde_json::{Value, json};

use crate::demo::Step;
use crate::demo::turn::Turn;

/// The server's name in `tiller demo`.
const SERVER: &str = "issues";

/// Finds the tool, then calls it.
pub(super) fn add(turn: &Turn<'_>, title: &str) -> Step {
    if turn.last("tool_search").is_none() {
        let text = "Looking for a tool that can do it. Its schema comes as the result of this search.";
        return Step::call(text, "tool_search", json!({"query": "add issue", "server": SERVER}));
    }
    call(turn, "add_issue", json!({"title": title}), "The server says")
}

/// Lists the open issues.
pub(super) fn list(turn: &Turn<'_>) -> Step {
    call(turn, "list_issues", json!({}), "Open issues")
}

fn call(turn: &Turn<'_>, tool: &str, arguments: Value, head: &str) -> Step {
    match turn.last("mcp_call") {
        None => Step::call("", "mcp_call", json!({"server": SERVER, "tool": tool, "arguments": arguments})),
        Some(done) if done.ok => Step::say(format!("{head}:\n\n{}", super::look::tail(&done.text, true))),
        Some(done) => Step::say(format!("That failed: {}", super::shorten(&done.text, 200))),
    }
}
