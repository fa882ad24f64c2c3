//! `browser_scroll`: scrolls the page or a part of it.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tiller_protocol::{Access, ToolInfo, ToolSpec};

use super::{info, lease, stoppable};
use crate::browser::BrowserSettings;
use crate::browser::page::{Ref, Scroll};
use crate::browser::report::{Extent, report};
use crate::{Tool, ToolCx, ToolError, ToolOutput, schema};

/// The tool.
pub(super) struct ScrollPage(pub(super) &'static BrowserSettings);

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    to: Scroll,
    /// Scrolls what holds this element
    #[serde(default)]
    r#ref: Option<String>,
    /// Heights of the view (default 0.8)
    #[serde(default)]
    pages: Option<f64>,
}

#[async_trait]
impl Tool for ScrollPage {
    fn info(&self) -> ToolInfo {
        info("browser_scroll", &["scroll"], |args| format!("scroll {}", schema::text(args, "to")))
    }

    fn seldom(&self) -> bool {
        true
    }

    fn spec(&self) -> ToolSpec {
        crate::files::spec::<Args>(self.name(), include_str!("scroll.md"))
    }

    fn access(&self, args: &Value, _cx: &ToolCx) -> Result<Vec<Access>, ToolError> {
        let args: Args = schema::read(args)?;
        args.r#ref.as_deref().map(Ref::parse).transpose().map_err(ToolError::Tell)?;
        Ok(vec![Access::Free])
    }

    async fn run(&self, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let args: Args = schema::read(&args)?;
        let mut lease = lease(cx, self.0, false).await?;
        stoppable(cx, async {
            let at = act(&args, &mut lease).await.map_err(ToolError::Tell)?;
            report(&mut lease, cx, self.0, &at, Extent::Changes).await
        })
        .await?
    }
}

async fn act(args: &Args, lease: &mut crate::browser::lease::Lease) -> Result<String, String> {
    let page = lease.page()?;
    let element = args.r#ref.as_deref().map(|name| page.element(Ref::parse(name)?)).transpose()?;
    let pages = args.pages.filter(|p| p.is_finite()).unwrap_or(0.8).clamp(0.0, 100.0);
    let at = page.scroll(element.as_ref(), args.to, pages).await?;
    let pixels = |n: usize| at[n].as_f64().unwrap_or(0.0);
    Ok(format!("Scrolled to {} of {} pixels.", pixels(0), pixels(1)))
}
