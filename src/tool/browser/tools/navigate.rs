//! `browser_navigate`: opens an address.

use async_trait::async_trait;
use reqwest::Url;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tiller_protocol::{Access, ToolInfo, ToolSpec};

use super::{access, info, lease, stoppable};
use crate::browser::BrowserSettings;
use crate::browser::report::{Extent, report};
use crate::web::address;
use crate::{Tool, ToolCx, ToolError, ToolOutput, schema};

/// The tool.
pub(super) struct Navigate(pub(super) &'static BrowserSettings);

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    url: String,
}

/// Reads an address. Loopback is allowed here, since a page under development is there; the rules ask about it.
fn parse(raw: &str, cx: &ToolCx) -> Result<Url, ToolError> {
    let raw = raw.trim();
    let with_scheme = if raw.contains("://") || raw.starts_with("about:") {
        raw.to_owned()
    } else {
        format!("https://{raw}")
    };
    let lax = Url::parse(&with_scheme).is_ok_and(|url| crate::browser::outlet::names_loopback(&url));
    address::parse(&with_scheme, cx.limits.fetch_private || lax).map_err(ToolError::Tell)
}

#[async_trait]
impl Tool for Navigate {
    fn info(&self) -> ToolInfo {
        info("browser_navigate", &["navigate", "goto", "open_url", "browser"], |args| {
            schema::text(args, "url")
        })
    }

    fn spec(&self) -> ToolSpec {
        crate::files::spec::<Args>(self.name(), include_str!("navigate.md"))
    }

    fn access(&self, args: &Value, cx: &ToolCx) -> Result<Vec<Access>, ToolError> {
        let args: Args = schema::read(args)?;
        Ok(vec![access(&parse(&args.url, cx)?)])
    }

    async fn run(&self, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let args: Args = schema::read(&args)?;
        let url = parse(&args.url, cx)?;
        let mut lease = lease(cx, self.0, true).await?;
        stoppable(cx, async {
            let page = lease.page_or_new(cx).await.map_err(ToolError::Tell)?;
            if let Err(why) = page.navigate(url.as_str()).await {
                return Err(ToolError::Tell(format!("{url} was not opened: {why}")));
            }
            lease.recording.goto(url.as_str());
            report(&mut lease, cx, self.0, "", Extent::Whole).await
        })
        .await?
    }
}
