//! `web_extract`: several public pages as readable text.

use async_trait::async_trait;
use futures_util::future::join_all;
use reqwest::Url;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tiller_protocol::tool::Display;
use tiller_protocol::{Access, RuleArgument, ToolGrant, ToolInfo, ToolSet, ToolSpec, ToolVerb, Touch};

use super::address;
use super::page::Page;
use crate::output::human;
use crate::{Tool, ToolCx, ToolError, ToolOutput, schema};

/// Pages of one call.
const PAGES: usize = 8;

/// The tool.
pub struct WebExtract;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    urls: Vec<String>,
}

const INFO: ToolInfo = ToolInfo {
    name: "web_extract",
    set: ToolSet::Web,
    grant: ToolGrant::All,
    starts_agents: false,
    touch: Touch::Network,
    rule: RuleArgument::Address,
    aliases: &["extract", "webextract", "scrape"],
    verb: ToolVerb::Fetch,
    target: |args| {
        let urls: Vec<&str> = args
            .get("urls")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        match urls.as_slice() {
            [] => String::new(),
            [one] => (*one).to_owned(),
            [first, rest @ ..] => format!("{first} and {} more", rest.len()),
        }
    },
};

impl Args {
    /// Each address once.
    fn read(args: &Value, cx: &ToolCx) -> Result<Vec<Url>, ToolError> {
        let args: Self = schema::read(args)?;
        let mut urls: Vec<Url> = Vec::new();
        for text in &args.urls {
            let url = address::parse(text, cx.limits.fetch_private).map_err(ToolError::Tell)?;
            if !urls.contains(&url) {
                urls.push(url);
            }
        }
        match urls.len() {
            0 => Err(ToolError::Tell("the list of URLs is empty".into())),
            n if n > PAGES => Err(ToolError::Tell(format!("{n} pages; at most {PAGES} in one call"))),
            _ => Ok(urls),
        }
    }
}

#[async_trait]
impl Tool for WebExtract {
    fn info(&self) -> ToolInfo {
        INFO
    }

    fn seldom(&self) -> bool {
        true
    }

    fn spec(&self) -> ToolSpec {
        crate::files::spec::<Args>(self.name(), include_str!("extract.md"))
    }

    fn access(&self, args: &Value, cx: &ToolCx) -> Result<Vec<Access>, ToolError> {
        let net = |url: Url| {
            let host = url.host_str().unwrap_or_default().to_owned();
            Access::Net { url: url.into(), host, local: false }
        };
        Ok(Args::read(args, cx)?.into_iter().map(net).collect())
    }

    async fn run(&self, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let urls = Args::read(&args, cx)?;
        let share = cx.limits.output_bytes / urls.len();
        let pages = join_all(urls.iter().map(|url| Page::fetch(url.clone(), false, cx))).await;
        let (mut all, mut fetched, mut why) = (Vec::new(), 0, None);
        for (url, page) in urls.iter().zip(pages) {
            match page {
                Ok(page) => {
                    fetched += 1;
                    all.push(shown(page, share));
                }
                Err(error @ ToolError::Interrupted(_)) => return Err(error),
                Err(error) => {
                    all.push(format!("{url}: {error}\n"));
                    why.get_or_insert(error);
                }
            }
        }
        match why {
            // Nothing came, and the reason is that of the first.
            Some(error) if fetched == 0 && urls.len() == 1 => Err(error),
            Some(_) if fetched == 0 => Err(ToolError::Tell(all.concat())),
            _ => {
                let words = if fetched == 1 { "1 page".to_owned() } else { format!("{fetched} pages") };
                let failed = urls.len() - fetched;
                let words = if failed == 0 { words } else { format!("{words}, {failed} failed") };
                Ok(ToolOutput::text(all.concat()).show(Display::Measure { text: words }))
            }
        }
    }
}

/// A page with at most `most` bytes of text.
fn shown(page: Page, most: usize) -> String {
    let Some(text) = &page.text else { return format!("{}\n", page.is_no_text()) };
    if text.len() <= most {
        let note =
            if page.capped { format!("; only its first {} were fetched", page.size) } else { String::new() };
        return page.framed(text, &note);
    }
    let end = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let note =
        format!("; its first {} of {}, web_fetch shows more", human(end as u64), human(text.len() as u64));
    page.framed(&text[..end], &note)
}

#[cfg(test)]
#[path = "extract_tests.rs"]
mod tests;
