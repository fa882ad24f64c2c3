//! `browser_back`: the page before.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tiller_protocol::{Access, ToolInfo, ToolSpec};

use super::{info, lease, stoppable};
use crate::browser::BrowserSettings;
use crate::browser::report::{Extent, report};
use crate::{Tool, ToolCx, ToolError, ToolOutput, schema};

/// The tool.
pub(super) struct Back(pub(super) &'static BrowserSettings);

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {}

#[async_trait]
impl Tool for Back {
    fn info(&self) -> ToolInfo {
        info("browser_back", &["go_back"], |_| "back".into())
    }

    fn seldom(&self) -> bool {
        true
    }

    fn spec(&self) -> ToolSpec {
        crate::files::spec::<Args>(self.name(), include_str!("back.md"))
    }

    fn access(&self, args: &Value, _cx: &ToolCx) -> Result<Vec<Access>, ToolError> {
        schema::read::<Args>(args)?;
        // It was allowed when it was opened.
        Ok(vec![Access::Free])
    }

    async fn run(&self, _args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let mut lease = lease(cx, self.0, false).await?;
        stoppable(cx, async {
            let page = lease.page().map_err(ToolError::Tell)?;
            if !page.back().await.map_err(|e| ToolError::Tell(e.to_string()))? {
                return Err(ToolError::Tell("there is no earlier page in this tab".into()));
            }
            lease.recording.back();
            report(&mut lease, cx, self.0, "", Extent::Whole).await
        })
        .await?
    }
}
