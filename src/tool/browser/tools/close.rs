//! `browser_close`: closes a tab, or all of them.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tiller_protocol::{Access, ToolInfo, ToolSpec};

use super::{info, lease, stoppable};
use crate::browser::report::{Extent, report};
use crate::browser::{BrowserSettings, download};
use crate::foreign::framed;
use crate::output::Spill;
use crate::{Tool, ToolCx, ToolError, ToolOutput, schema};

/// The tool.
pub(super) struct Close(pub(super) &'static BrowserSettings);

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// All tabs
    #[serde(default)]
    all: bool,
}

#[async_trait]
impl Tool for Close {
    fn info(&self) -> ToolInfo {
        info("browser_close", &["close_browser"], |_| "close".into())
    }

    fn seldom(&self) -> bool {
        true
    }

    fn spec(&self) -> ToolSpec {
        crate::files::spec::<Args>(self.name(), include_str!("close.md"))
    }

    fn access(&self, args: &Value, _cx: &ToolCx) -> Result<Vec<Access>, ToolError> {
        schema::read::<Args>(args)?;
        Ok(vec![Access::Free])
    }

    async fn run(&self, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let args: Args = schema::read(&args)?;
        let mut lease = lease(cx, self.0, false).await?;
        if !args.all && stoppable(cx, lease.close_tab()).await? {
            return stoppable(cx, report(&mut lease, cx, self.0, "", Extent::Whole)).await?;
        }
        let mut notes = Vec::new();
        download::tell(&mut lease, cx, true, &mut notes).await;
        lease.close_all().await;
        let script = lease.recording.script();
        drop(lease);
        cx.state.browser.release(&cx.agent).await;
        let mut text = String::from("Closed.");
        if let Some(script) = script {
            let kept = Spill::create(cx).and_then(|mut spill| {
                spill.write(script.as_bytes())?;
                Ok(spill.path().display().to_string())
            });
            match kept {
                Ok(path) => text.push_str(&format!(" What was done, as a Playwright test: {path}")),
                Err(error) => {
                    text.push_str(&format!(" The Playwright test of it could not be kept: {error}"))
                }
            }
        }
        if !notes.is_empty() {
            // Names in them are words of pages.
            text.push_str(&format!("\n{}", framed("the closed pages", &notes.join("\n"), "")));
        }
        Ok(ToolOutput::text(text))
    }
}
