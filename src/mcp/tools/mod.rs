//! The tools by which models reach the servers. Their list never changes within a session: `tool_search` returns the
//! schemas of the servers' tools as its result, and `mcp_call` calls one. Where all tools are known when Tiller starts and
//! cost little, each is in the list by its own name, too.

mod call;
mod named;
mod search;

pub use call::McpCall;
pub use named::{NamedTool, named_tools};
pub use search::ToolSearch;

use serde_json::{Map, Value};
use tiller_protocol::mask::has_mask;
use tiller_protocol::tool::Display;
use tiller_protocol::{Part, ToolOutcome};
use tiller_tool::foreign::framed;
use tiller_tool::output::bound;
use tiller_tool::{ToolCx, ToolError, ToolOutput};

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

/// What the question about a call shows of a tool whose own name is another one than that of the call.
fn own_name(hub: &Hub, server: &str, tool: &str) -> Vec<String> {
    let tools = hub.find(server).and_then(|server| server.tools()).unwrap_or_default();
    let odd = tools.into_iter().find(|known| known.name == tool && !known.own.is_empty());
    odd.map(|odd| format!("the server calls the tool {}", crate::read::names::shown(&odd.own)))
        .into_iter()
        .collect()
}

/// A failure in words for the model.
fn told(server: &str, failure: &Failure) -> ToolError {
    let words = format!("the MCP server {server} cannot be used: {}", failure.for_model(server));
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
        NoResult::HeldBack(failure) => {
            let words =
                format!("{tool} of the MCP server {server} is held back: {}", failure.for_model(server));
            if failure.unanswered { ToolError::Unanswered(words) } else { ToolError::Tell(words) }
        }
        NoResult::MainAgentOnly => ToolError::Tell(format!(
            "{tool} of the MCP server {server} changes its state for all agents, so that only the main agent may call it: \
             work with the state as it is, or say in your result that the main agent should call it"
        )),
        NoResult::Failed(CallError::Interrupted) => ToolError::Interrupted(String::new()),
        NoResult::Failed(CallError::TimedOut(seconds)) => ToolError::TimedOut(format!(
            "{server}: no answer and no progress for {seconds} s; the call was cancelled"
        )),
        NoResult::Failed(ref error @ (CallError::Refused(ref why) | CallError::Failed(ref why))) => {
            let what = match error {
                CallError::Refused(_) => "refused the call",
                _ => "did not answer the call: it failed on its way",
            };
            let why = framed(format_args!("the MCP server {server}"), why, "");
            ToolError::Tell(format!("{server} {what}\n{}", why.trim_end()))
        }
        NoResult::Failed(error) => ToolError::Tell(format!("{server}: {error}")),
    }
}

/// Calls a tool for a model.
async fn call(
    hub: &Hub,
    server: &str,
    tool: &str,
    arguments: Map<String, Value>,
    cx: &ToolCx,
) -> Result<ToolOutput, ToolError> {
    if has_mask(&Value::Object(arguments.clone()).to_string()) {
        return Err(ToolError::Tell(
            "nothing was called: the arguments hold a mask, which stands for a value that you are not shown; \
             the server would take it for the value itself"
                .into(),
        ));
    }
    let result = tokio::select! {
        biased;
        () = cx.cancel.cancelled() => return Err(ToolError::Interrupted(String::new())),
        result = hub.call(server, tool, arguments, Some(cx)) => {
            result.map_err(|why| refused(server, tool, why))?
        }
    };
    let mut content = Vec::new();
    let mut measure = String::new();
    for part in result.parts {
        content.push(match part {
            Part::Text { text } => {
                measure = tiller_tool::output::human(text.len() as u64);
                Part::Text { text: framed(format_args!("the MCP server {server}"), &bound(text, cx), "") }
            }
            picture => picture,
        });
    }
    for note in &result.notes {
        content.push(Part::Text { text: format!("[{note}]\n") });
    }
    let outcome = if result.failed { ToolOutcome::Error } else { ToolOutcome::Ok };
    Ok(ToolOutput { content, display: Some(Display::Measure { text: measure }), outcome })
}
