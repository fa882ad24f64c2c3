//! `save_learning`: keeps what failed and what worked instead.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tiller_config::schema::LearningsSetting;
use tiller_protocol::{
    Access, LearningState, Provenance, RuleArgument, Taint, ToolGrant, ToolInfo, ToolSet, ToolSpec, ToolVerb,
    Touch,
};
use tiller_tool::{Tool, ToolCx, ToolError, ToolOutput};

use super::{LearningsSlot, learning_access, learning_spec, off_thread};
use crate::learnings::SavedLearning;

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

    fn seldom(&self) -> bool {
        true
    }

    fn spec(&self) -> ToolSpec {
        learning_spec::<Args>(&INFO, include_str!("save_learning.md"))
    }

    fn access(&self, args: &Value, _: &ToolCx) -> Result<Vec<Access>, ToolError> {
        learning_access::<Args>(args)
    }

    async fn run(&self, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let args: Args = tiller_tool::schema::read(&args)?;
        let learnings = self.0.get()?;
        if learnings.mode() == LearningsSetting::Never {
            return Err(ToolError::Tell("the user keeps no learnings (memory.learnings is never)".into()));
        }
        let text = format!("{} {} {}", args.pattern, args.fix, args.context);
        let from = match cx.ports.memory_origin(&cx.agent, &text).await {
            Ok(origin) => origin.provenance,
            // Where the origin is not known, it is not trusted.
            Err(_) => Provenance {
                session: Some(cx.session),
                agent: cx.agent.clone(),
                taint: Taint::Web,
                ..Provenance::default()
            },
        };
        let saved = SavedLearning {
            pattern: args.pattern,
            error: args.error_type,
            fix: args.fix,
            context: args.context,
            tags: args.tags,
        };
        let kept = off_thread(move || learnings.save(saved, &from)).await?;
        let kept = kept.map_err(|why| ToolError::Tell(format!("not saved: {why}")))?;
        let text = match kept {
            None => "This is known already.".to_owned(),
            Some(l) if l.state == LearningState::Active => format!("Saved as learning {}.", l.id),
            Some(l) => format!("Proposed as learning {}; the user decides in /learnings.", l.id),
        };
        Ok(ToolOutput::text(text))
    }
}
