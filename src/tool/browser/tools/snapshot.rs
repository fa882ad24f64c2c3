//! `browser_snapshot`: the page as it is now.

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
pub(super) struct Snapshot(pub(super) &'static BrowserSettings);

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// Only what changed since the last one
    #[serde(default)]
    changes: bool,
    /// Goes to this tab
    #[serde(default)]
    tab: Option<u32>,
}

#[async_trait]
impl Tool for Snapshot {
    fn info(&self) -> ToolInfo {
        info("browser_snapshot", &["snapshot"], |args| match args["tab"].as_u64() {
            Some(tab) => format!("tab {tab}"),
            None => "snapshot".into(),
        })
    }

    fn seldom(&self) -> bool {
        true
    }

    fn spec(&self) -> ToolSpec {
        crate::files::spec::<Args>(self.name(), include_str!("snapshot.md"))
    }

    fn access(&self, args: &Value, _cx: &ToolCx) -> Result<Vec<Access>, ToolError> {
        schema::read::<Args>(args)?;
        // The page was allowed when it was opened.
        Ok(vec![Access::Free])
    }

    async fn run(&self, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let args: Args = schema::read(&args)?;
        let mut lease = lease(cx, self.0, false).await?;
        let extent = if args.changes { Extent::Changes } else { Extent::Whole };
        stoppable(cx, async {
            if let Some(tab) = args.tab {
                lease.switch(tab).await.map_err(ToolError::Tell)?;
            }
            report(&mut lease, cx, self.0, "", extent).await
        })
        .await?
    }
}
