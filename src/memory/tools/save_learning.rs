//! `save_learning`: keeps what failed and what worked instead.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tiller_protocol::{
    Access, LearningState, RuleArgument, ToolGrant, ToolInfo, ToolSet, ToolSpec, ToolVerb, Touch,
};
use tiller_tool::{Tool, ToolCx, ToolError, ToolOutput};

use super::LearningsSlot;
use crate::learnings::{LearningsMode, SavedLearning};

/// The tool.
pub(super) struct SaveLearning(pub(super) LearningsSlot);

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The call that failed
    pattern: String,
    /// The error's line
    #[serde(default)]
    error_type: String,
    fix: String,
    #[serde(default)]
    context: String,
    #[serde(default)]
    tags: Vec<String>,
}

const INFO: ToolInfo = ToolInfo {
    name: "save_learning",
    set: ToolSet::Plan,
    grant: ToolGrant::Main,
    starts_agents: false,
    touch: Touch::Plan,
    rule: RuleArgument::Text,
    aliases: &["learn", "remember_fix"],
    verb: ToolVerb::Note,
    target: |args| args.get("pattern").and_then(Value::as_str).unwrap_or_default().to_owned(),
};

#[async_trait]
impl Tool for SaveLearning {
    fn info(&self) -> ToolInfo {
        INFO
    }

    fn spec(&self) -> ToolSpec {
        let schema = tiller_tool::schema::of::<Args>();
        ToolSpec {
            name: self.name().into(),
            description: include_str!("save_learning.md").trim_end().into(),
            schema,
        }
    }

    fn access(&self, args: &Value, _: &ToolCx) -> Result<Vec<Access>, ToolError> {
        tiller_tool::schema::read::<Args>(args)?;
        Ok(vec![Access::Free])
    }

    async fn run(&self, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let args: Args = tiller_tool::schema::read(&args)?;
        let learnings = self.0.get()?;
        if learnings.mode() == LearningsMode::Never {
            return Err(ToolError::Tell("the user keeps no learnings (memory.learnings is never)".into()));
        }
        let (session, agent) = (cx.session, cx.agent.0.clone());
        let saved = SavedLearning {
            pattern: args.pattern,
            error: args.error_type,
            fix: args.fix,
            context: args.context,
            tags: args.tags,
        };
        let done = tokio::task::spawn_blocking(move || learnings.save(saved, session, agent)).await;
        let kept = done
            .map_err(|_| ToolError::Tell("the learning could not be saved".into()))?
            .map_err(|why| ToolError::Tell(format!("not saved: {why}")))?;
        let text = match kept {
            None => "This is known already.".to_owned(),
            Some(l) if l.state == LearningState::Active => format!("Saved as learning {}.", l.id),
            Some(l) => format!("Proposed as learning {}; the user decides in /learnings.", l.id),
        };
        Ok(ToolOutput::text(text))
    }
}
