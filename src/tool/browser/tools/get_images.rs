//! `browser_get_images`: the pictures of the page.

use async_trait::async_trait;
use reqwest::Url;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tiller_protocol::{Access, ToolInfo, ToolSpec};

use super::{info, lease, stoppable};
use crate::browser::BrowserSettings;
use crate::foreign::framed;
use crate::output::bound;
use crate::text::visible;
use crate::{Tool, ToolCx, ToolError, ToolOutput, schema};

/// The tool.
pub(super) struct GetImages(pub(super) &'static BrowserSettings);

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {}

/// Address, alternative text and size of each visible picture of the page, the largest first.
const LIST: &str = "(() => [...document.images].filter(i => i.naturalWidth > 1 && i.getClientRects().length) \
    .map(i => ({src: String(i.currentSrc || i.src).slice(0, 500), alt: String(i.alt).slice(0, 200), \
      width: i.naturalWidth, height: i.naturalHeight})) \
    .sort((a, b) => b.width * b.height - a.width * a.height).slice(0, 100))()";

#[async_trait]
impl Tool for GetImages {
    fn info(&self) -> ToolInfo {
        info("browser_get_images", &["get_images"], |_| "images".into())
    }

    fn seldom(&self) -> bool {
        true
    }

    fn spec(&self) -> ToolSpec {
        crate::files::spec::<Args>(self.name(), include_str!("get_images.md"))
    }

    fn access(&self, args: &Value, _cx: &ToolCx) -> Result<Vec<Access>, ToolError> {
        schema::read::<Args>(args)?;
        Ok(vec![Access::Free])
    }

    async fn run(&self, _args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let mut lease = lease(cx, self.0, false).await?;
        let page = lease.page().map_err(ToolError::Tell)?;
        let ask = page.call("Runtime.evaluate", json!({"expression": LIST, "returnByValue": true}));
        let reply = stoppable(cx, ask).await?.map_err(|e| ToolError::Tell(e.to_string()))?;
        let url = Url::parse(&page.url()).map_err(|e| ToolError::Tell(e.to_string()))?;
        let mut text = String::new();
        for image in reply["result"]["value"].as_array().into_iter().flatten() {
            let word =
                |key: &str| visible(image[key].as_str().unwrap_or_default()).replace(['\n', '\r', '"'], " ");
            text.push_str(&format!(
                "{}x{} \"{}\" {}\n",
                image["width"],
                image["height"],
                word("alt"),
                word("src")
            ));
        }
        if text.is_empty() {
            text.push_str("(no pictures)\n");
        }
        Ok(ToolOutput::text(framed(&url, &bound(text, cx), "")))
    }
}
