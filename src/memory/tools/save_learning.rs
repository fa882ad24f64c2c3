//! `save_learning`: keeps what failed and what worked instead.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tiller_config::schema::LearningsSetting;
use tiller_protocol::tool::Display;
use tiller_protocol::{
    Access, LearningState, Provenance, RuleArgument, Taint, ToolGrant, ToolInfo, ToolSet, ToolSpec, ToolVerb,
    Touch,
};
use tiller_tool::{Tool, ToolCx, ToolError, ToolOutput};

use super::{LearningsSlot, learning_spec, off_thread};
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
        let what = "keeps a learning for later sessions".into();
        tiller_tool::schema::read::<Args>(args)?;
        Ok(vec![Access::Store { what, path: None }])
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
        let (text, measure) = match kept {
            None => ("This is known already.".to_owned(), "known"),
            Some(l) if l.state == LearningState::Active => (format!("Saved as learning {}.", l.id), "saved"),
            Some(l) => (
                format!("Proposed as learning {}; the user decides in /learnings.", l.id),
                "waits in /learnings",
            ),
        };
        Ok(ToolOutput::text(text).show(Display::Measure { text: measure.into() }))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use tiller_protocol::{ManualClock, Time};
    use tiller_store::{Options, Store};
    use tiller_tool::testing::Bench;

    use super::*;
    use crate::Learnings;

    #[tokio::test]
    async fn the_row_says_what_became_of_a_learning() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("tiller.db"), Options::default()).unwrap();
        let learnings = Learnings::new(store, Arc::new(ManualClock::new(Time(2))));
        learnings.set(LearningsSetting::Ask, 1_000);
        let slot = LearningsSlot::default();
        assert!(slot.set(Arc::new(learnings)));
        let (bench, tool) = (Bench::new(), SaveLearning(slot));
        for said in ["waits in /learnings", "known"] {
            let args = json!({"pattern": "npm run buld", "fix": "npm run build"});
            let out = bench.call(&tool, args).await.unwrap();
            assert_eq!(out.display, Some(Display::Measure { text: said.into() }));
        }
    }
}
