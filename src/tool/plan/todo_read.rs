//! `todo_read`: the list, counts, and the calls since its last change.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tiller_protocol::ToolVerb;
use tiller_protocol::tool::Display;
use tiller_protocol::{Access, RuleArgument, ToolGrant, ToolInfo, ToolSet, ToolSpec, Touch};

use super::todo::{counts, written};
use crate::{Tool, ToolCx, ToolError, ToolOutput};

/// The tool.
pub struct TodoRead;

#[derive(Debug, Deserialize, JsonSchema)]
struct Args {}

const INFO: ToolInfo = ToolInfo {
    name: "todo_read",
    set: ToolSet::Plan,
    grant: ToolGrant::All,
    starts_agents: false,
    touch: Touch::Plan,
    rule: RuleArgument::Text,
    aliases: &["todoread"],
    verb: ToolVerb::Todo,
    target: |_args| "read".into(),
};

#[async_trait]
impl Tool for TodoRead {
    fn info(&self) -> ToolInfo {
        INFO
    }

    fn seldom(&self) -> bool {
        true
    }

    fn spec(&self) -> ToolSpec {
        crate::files::spec::<Args>(self.name(), include_str!("todo_read.md"))
    }

    fn access(&self, _args: &Value, _cx: &ToolCx) -> Result<Vec<Access>, ToolError> {
        Ok(vec![Access::Free])
    }

    async fn run(&self, _args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let (list, calls) = cx.ports.todos(&cx.agent);
        let (done, left) = counts(&list);
        let text =
            format!("{}{done} done, {left} left; {calls} tool calls since the last update\n", written(&list));
        Ok(ToolOutput::text(text).show(Display::Measure { text: format!("{done} done, {left} left") }))
    }
}
