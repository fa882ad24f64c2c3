//! `skills_list`: every skill with its description.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tiller_protocol::{Access, RuleArgument, ToolGrant, ToolInfo, ToolSet, ToolSpec, ToolVerb, Touch};
use tiller_tool::{Tool, ToolCx, ToolError, ToolOutput, output};

use crate::library::Library;

/// The tool.
pub(super) struct SkillsList(pub(super) Library);

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {}

#[async_trait]
impl Tool for SkillsList {
    fn info(&self) -> ToolInfo {
        ToolInfo {
            name: "skills_list",
            set: ToolSet::Read,
            grant: ToolGrant::Named,
            starts_agents: false,
            touch: Touch::Read,
            rule: RuleArgument::Text,
            aliases: &[],
            verb: ToolVerb::List,
            target: |_| "skills".into(),
        }
    }

    fn spec(&self) -> ToolSpec {
        super::spec::<Args>(self.name(), include_str!("list.md"))
    }

    fn access(&self, args: &Value, _cx: &ToolCx) -> Result<Vec<Access>, ToolError> {
        super::read::<Args>(args)?;
        Ok(vec![Access::Free])
    }

    async fn run(&self, _args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text(output::bound(super::listed(&self.0.now()), cx)))
    }
}
