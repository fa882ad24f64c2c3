//! `search_learnings`: what failed before, and what worked instead.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tiller_protocol::tool::Display;
use tiller_protocol::{
    Access, LearningState, RuleArgument, ToolGrant, ToolInfo, ToolSet, ToolSpec, ToolVerb, Touch,
};
use tiller_tool::{Tool, ToolCx, ToolError, ToolOutput};

use super::LearningsSlot;

/// Most learnings of an answer.
const LIMIT: u32 = 10;

/// The tool.
pub(super) struct SearchLearnings(pub(super) LearningsSlot);

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// Words that all occur
    query: String,
}

const INFO: ToolInfo = ToolInfo {
    name: "search_learnings",
    set: ToolSet::Read,
    grant: ToolGrant::Main,
    starts_agents: false,
    touch: Touch::Read,
    rule: RuleArgument::Text,
    aliases: &[],
    verb: ToolVerb::Recall,
    target: |args| format!("\"{}\"", args.get("query").and_then(Value::as_str).unwrap_or_default()),
};

#[async_trait]
impl Tool for SearchLearnings {
    fn info(&self) -> ToolInfo {
        INFO
    }

    fn seldom(&self) -> bool {
        true
    }

    fn spec(&self) -> ToolSpec {
        let schema = tiller_tool::schema::of::<Args>();
        ToolSpec {
            name: self.name().into(),
            description: include_str!("search_learnings.md").trim_end().into(),
            schema,
        }
    }

    fn access(&self, args: &Value, _: &ToolCx) -> Result<Vec<Access>, ToolError> {
        tiller_tool::schema::read::<Args>(args)?;
        Ok(vec![Access::Free])
    }

    async fn run(&self, args: Value, _: &ToolCx) -> Result<ToolOutput, ToolError> {
        let args: Args = tiller_tool::schema::read(&args)?;
        let learnings = self.0.get()?;
        // Proposals are not the person's yet: they are not shown to a model.
        let found = tokio::task::spawn_blocking(move || {
            learnings.store().learnings().list(&args.query, Some(&LearningState::Active), LIMIT)
        })
        .await
        .map_err(|_| ToolError::Tell("the search failed".into()))?
        .map_err(|e| ToolError::Tell(e.notice().message))?;
        let texts: Vec<String> = found.iter().map(crate::learnings::note).collect();
        let measure =
            if found.len() == 1 { "1 learning".into() } else { format!("{} learnings", found.len()) };
        let text =
            if texts.is_empty() { "No learning has all these words.".into() } else { texts.join("\n") };
        Ok(ToolOutput::text(text).show(Display::Measure { text: measure }))
    }
}
