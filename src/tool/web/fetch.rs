//! `web_fetch`: one public page as readable text.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tiller_protocol::tool::Display;
use tiller_protocol::{Access, RuleArgument, ToolGrant, ToolInfo, ToolSet, ToolSpec, ToolVerb, Touch};

use super::address;
use super::page::Page;
use crate::foreign::seen;
use crate::output::bound;
use crate::{Tool, ToolCx, ToolError, ToolOutput, schema};

/// The tool.
pub struct WebFetch;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    url: String,
    /// Do not convert to Markdown
    #[serde(default)]
    raw: bool,
}

const INFO: ToolInfo = ToolInfo {
    name: "web_fetch",
    set: ToolSet::Web,
    grant: ToolGrant::All,
    starts_agents: false,
    touch: Touch::Network,
    rule: RuleArgument::Address,
    aliases: &["fetch", "webfetch", "curl", "http", "url"],
    verb: ToolVerb::Fetch,
    target: |args| schema::text(args, "url"),
};

#[async_trait]
impl Tool for WebFetch {
    fn info(&self) -> ToolInfo {
        INFO
    }

    fn spec(&self) -> ToolSpec {
        crate::files::spec::<Args>(self.name(), include_str!("fetch.md"))
    }

    fn access(&self, args: &Value, cx: &ToolCx) -> Result<Vec<Access>, ToolError> {
        let args: Args = schema::read(args)?;
        let url = address::parse(&args.url, cx.limits.fetch_private).map_err(ToolError::Tell)?;
        let host = url.host_str().unwrap_or_default().to_owned();
        Ok(vec![Access::Net { url: url.into(), host, local: false }])
    }

    async fn run(&self, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let args: Args = schema::read(&args)?;
        let url = address::parse(&args.url, cx.limits.fetch_private).map_err(ToolError::Tell)?;
        let page = Page::fetch(url, args.raw, cx).await?;
        let Some(text) = &page.text else { return Ok(ToolOutput::text(page.is_no_text())) };
        let (size, status) = (&page.size, page.status);
        let note = if page.capped { format!("; only its first {size} were fetched") } else { String::new() };
        let words = format!("HTTP {status}, {size}{}", if page.capped { ", cut" } else { "" });
        Ok(ToolOutput::text(page.framed(&bound(seen(text), cx), &note))
            .show(Display::Measure { text: words }))
    }
}

#[cfg(test)]
#[path = "fetch_tests.rs"]
mod tests;
