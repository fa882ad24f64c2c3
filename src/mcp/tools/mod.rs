//! The tools by which models reach the servers. Their list never changes within a session: `tool_search` returns the
//! schemas of the servers' tools as its result, and `mcp_call` calls one.

mod call;
mod search;

pub use call::McpCall;
pub use search::ToolSearch;

use tiller_tool::ToolError;

use crate::hub::{Hub, NoResult};
use crate::server::Failure;
use crate::session::CallError;

/// Maximum number of servers that a description names.
const SERVERS: usize = 40;

/// One line for each server, as far as it is known when the session begins.
fn lines(hub: &Hub) -> String {
    let servers: Vec<String> = hub
        .servers()
        .iter()
        .filter(|server| !server.is_disabled())
        .take(SERVERS)
        .map(|server| match server.tools() {
            Some(tools) => {
                let names: Vec<&str> = tools.iter().take(6).map(|tool| tool.name.as_str()).collect();
                let more = if tools.len() > names.len() { ", ..." } else { "" };
                format!("- {}: {} tools ({}{more})", server.name(), tools.len(), names.join(", "))
            }
            None => format!("- {}: not started yet", server.name()),
        })
        .collect();
    if servers.is_empty() { "- none yet".into() } else { servers.join("\n") }
}

/// A failure in words for the model.
fn told(server: &str, failure: &Failure) -> ToolError {
    let words = format!("the MCP server {server} cannot be used: {}", failure.words());
    if failure.unanswered { ToolError::Unanswered(words) } else { ToolError::Tell(words) }
}

/// Why there is no result, in words for the model.
fn refused(server: &str, tool: &str, why: NoResult) -> ToolError {
    match why {
        NoResult::NoServer(names) => ToolError::Tell(format!(
            "there is no MCP server '{server}'; there are: {}",
            if names.is_empty() { "none".into() } else { names.join(", ") }
        )),
        NoResult::NoTool(near) => ToolError::Tell(format!(
            "the MCP server {server} has no tool '{tool}'{}; tool_search finds its tools",
            near.map_or_else(String::new, |near| format!("; did you mean '{near}'?"))
        )),
        NoResult::Unusable(failure) => told(server, &failure),
        NoResult::Failed(CallError::Interrupted) => ToolError::Interrupted(String::new()),
        NoResult::Failed(CallError::TimedOut(seconds)) => ToolError::TimedOut(format!(
            "{server}: no answer and no progress for {seconds} s; the call was cancelled"
        )),
        NoResult::Failed(error) => ToolError::Tell(format!("{server}: {error}")),
    }
}
