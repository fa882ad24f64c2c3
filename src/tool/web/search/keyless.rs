//! The page for browsers without scripts of DuckDuckGo, which needs no key. It may refuse programs at any time.

use dom_query::Document;
use reqwest::Url;

use super::{Engine, Hit, address};
use crate::web::client::Sent;
use crate::web::html;

pub(super) const ADDRESS: &str = "https://html.duckduckgo.com";

/// At the address of that page.
pub(super) struct Keyless {
    pub address: String,
}

impl Engine for Keyless {
    fn name(&self) -> &'static str {
        "DuckDuckGo without a key (best effort)"
    }

    fn request(&self, query: &str, _count: usize) -> Result<Sent, String> {
        Ok(Sent::get(address(&self.address, "/html/", &[("q", query)])?).header("accept", "text/html"))
    }

    fn read(&self, body: &str) -> Result<Vec<Hit>, String> {
        if html::is_too_deep(body) {
            return Err("its page cannot be read".into());
        }
        let document = Document::from(body);
        let found: Vec<Hit> = document
            .select(".result")
            .iter()
            .filter(|result| !result.has_class("result--ad"))
            .filter_map(|result| {
                let link = result.select("a.result__a");
                let url = target(&link.attr("href")?)?;
                let snippet = result.select(".result__snippet").text().to_string();
                Some(Hit { title: link.text().to_string(), url, snippet })
            })
            .collect();
        // A page with a puzzle for people has none of both.
        if found.is_empty() && document.select(".no-results, .result--no-result").is_empty() {
            return Err("it refused to answer a program".into());
        }
        Ok(found)
    }

    fn refusal(&self, status: u16) -> Option<&'static str> {
        // 0: whether it refuses at all without a key.
        matches!(status, 0 | 202 | 403 | 418 | 429).then_some("it refused to answer a program")
    }
}

/// The page that a link leads to: links lead through the search engine.
fn target(link: &str) -> Option<String> {
    let base = Url::parse(ADDRESS).ok()?;
    let url = base.join(link).ok()?;
    let through =
        url.host_str().is_some_and(|host| host == "duckduckgo.com" || host.ends_with(".duckduckgo.com"));
    if !through {
        return Some(url.into());
    }
    // What has no other page behind it is a help page or an advertisement.
    let (_, page) = url.query_pairs().find(|(name, _)| name == "uddg")?;
    Some(page.into_owned())
}
