//! `browser_vision`: a picture of the page.

use async_trait::async_trait;
use base64::Engine as _;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tiller_protocol::{Access, ToolInfo, ToolSpec};

use super::{info, lease, stoppable};
use crate::browser::BrowserSettings;
use crate::files::image_parts;
use crate::{Tool, ToolCx, ToolError, ToolOutput, schema};

/// The tool.
pub(super) struct Vision(pub(super) &'static BrowserSettings);

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The whole page, not only what is in view
    #[serde(default)]
    full: bool,
}

#[async_trait]
impl Tool for Vision {
    fn info(&self) -> ToolInfo {
        info("browser_vision", &["screenshot", "browser_screenshot"], |_| "picture".into())
    }

    fn seldom(&self) -> bool {
        true
    }

    fn spec(&self) -> ToolSpec {
        crate::files::spec::<Args>(self.name(), include_str!("vision.md"))
    }

    fn access(&self, args: &Value, _cx: &ToolCx) -> Result<Vec<Access>, ToolError> {
        schema::read::<Args>(args)?;
        Ok(vec![Access::Free])
    }

    async fn run(&self, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let args: Args = schema::read(&args)?;
        let mut lease = lease(cx, self.0, false).await?;
        let page = lease.page().map_err(ToolError::Tell)?;
        let ask = json!({"format": "jpeg", "quality": 80, "captureBeyondViewport": args.full});
        let reply = stoppable(cx, page.call("Page.captureScreenshot", ask)).await?;
        let reply = reply.map_err(|e| ToolError::Tell(e.to_string()))?;
        let data = reply["data"].as_str().unwrap_or_default();
        let bytes = base64::engine::general_purpose::STANDARD.decode(data);
        let bytes = bytes.map_err(|_| ToolError::Tell("the browser made no picture".into()))?;
        let content = image_parts("the page", "image/jpeg", &bytes);
        Ok(ToolOutput { content, ..ToolOutput::text("") })
    }
}
