//! `todo_write`: replaces or updates the list.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tiller_protocol::ToolVerb;
use tiller_protocol::tool::Display;
use tiller_protocol::{Access, RuleArgument, ToolGrant, ToolInfo, ToolSet, ToolSpec, Touch};

use super::todo::{TodoUpdate, advice, counts, merged, written};
use crate::{Tool, ToolCx, ToolError, ToolOutput, schema};

/// The tool.
pub struct TodoWrite;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    todos: Vec<TodoUpdate>,
    /// Update by id and append; else replace
    #[serde(default)]
    merge: bool,
}

const INFO: ToolInfo = ToolInfo {
    name: "todo_write",
    set: ToolSet::Plan,
    grant: ToolGrant::All,
    starts_agents: false,
    touch: Touch::Plan,
    rule: RuleArgument::Text,
    aliases: &["todo", "todowrite"],
    verb: ToolVerb::Todo,
    target,
};

/// What its row shows.
fn target(args: &Value) -> String {
    let n = args.get("todos").and_then(Value::as_array).map_or(0, Vec::len);
    if n == 1 { "1 item".into() } else { format!("{n} items") }
}

#[async_trait]
impl Tool for TodoWrite {
    fn info(&self) -> ToolInfo {
        INFO
    }

    fn spec(&self) -> ToolSpec {
        crate::files::spec::<Args>(self.name(), include_str!("todo_write.md"))
    }

    fn access(&self, args: &Value, _cx: &ToolCx) -> Result<Vec<Access>, ToolError> {
        schema::read::<Args>(args)?;
        Ok(vec![Access::Free])
    }

    async fn run(&self, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let args: Args = schema::read(&args)?;
        let (old, _) = cx.ports.todos(&cx.agent);
        let list = merged(old, args.todos, args.merge)
            .map_err(|e| ToolError::Tell(format!("{e}; the list was not changed")))?;
        cx.ports.set_todos(&cx.agent, list.clone()).await.map_err(ToolError::Tell)?;
        let (done, left) = counts(&list);
        let text = format!("{}{}", written(&list), advice(&list));
        Ok(ToolOutput::text(text).show(Display::Measure { text: format!("{done} done, {left} left") }))
    }
}

#[cfg(test)]
#[path = "todo_tests.rs"]
mod tests;
