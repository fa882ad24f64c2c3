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

use super::{LearningsSlot, learning_access, learning_spec, off_thread};

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
        learning_spec::<Args>(&INFO, include_str!("search_learnings.md"))
    }

    fn access(&self, args: &Value, _: &ToolCx) -> Result<Vec<Access>, ToolError> {
        learning_access::<Args>(args)
    }

    async fn run(&self, args: Value, _: &ToolCx) -> Result<ToolOutput, ToolError> {
        let args: Args = tiller_tool::schema::read(&args)?;
        let learnings = self.0.get()?;
        // Proposals are not the person's yet: they are not shown to a model.
        let found = off_thread(move || {
            learnings.store().learnings().list(&args.query, Some(&LearningState::Active), LIMIT)
        });
        let found = found.await?.map_err(|e| ToolError::Tell(e.notice().message))?;
        let texts: Vec<String> = found.iter().map(crate::learnings::note).collect();
        let measure =
            if found.len() == 1 { "1 learning".into() } else { format!("{} learnings", found.len()) };
        let text =
            if texts.is_empty() { "No learning has all these words.".into() } else { texts.join("\n") };
        Ok(ToolOutput::text(text).show(Display::Measure { text: measure }))
    }
}
